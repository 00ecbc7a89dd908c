"""TokenRequest (``serviceaccounts/token``): a token for a ServiceAccount, perhaps bound to a Pod, a Node or a Secret.

A bound token is good only as long as the object it is bound to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seamark.errors import BadRequest, Object
from seamark.kinds.inquiry import Inquiry
from seamark.kinds.kind import Kind
from seamark.kinds.resource import NODES, PODS, SECRETS, SERVICE_ACCOUNTS, Resource
from seamark.kinds.subresource import Question
from seamark.kinds.values import times
from seamark.kinds.values.fields import Errors, invalid, refuse
from seamark.kinds.values.refusals import conflict, missing

USUAL_SECONDS = 3600
SHORTEST_SECONDS = 600
LONGEST_SECONDS = 1 << 32
# Kubelets ask for this many seconds.  Such a token is good for a year, so that clients which never read the file again
# go on working; the claim ``warnafter`` says when they should have.
WARNED_SECONDS = 3607
EXTENDED_SECONDS = 365 * 24 * 3600


class TokenRequestKind(Kind):
    """What a TokenRequest looks like; it has no path of its own, only a subresource's."""

    resource = Resource("authentication.k8s.io", "v1", "tokenrequests", "TokenRequest")
    singular = "tokenrequest"
    shape_name = "io.k8s.api.authentication.v1.TokenRequest"
    verbs = ()
    stored = False

    def default(self, obj: Object) -> None:
        if obj["spec"].get("expirationSeconds") is None:
            obj["spec"]["expirationSeconds"] = USUAL_SECONDS

    def validate(self, obj: Object) -> Errors:
        seconds, path = obj["spec"]["expirationSeconds"], "spec.expirationSeconds"
        if seconds < SHORTEST_SECONDS:
            return [invalid(path, seconds, "may not specify a duration less than 10 minutes")]
        if seconds > LONGEST_SECONDS:
            return [invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")]
        return []


class RequestToken(Question, frozen=True):
    """Issue a token for a ServiceAccount."""

    def answer(self, name: str, namespace: str, document: Object, inquiry: Inquiry) -> tuple[Object, list[str]]:
        kind, meta, spec = self.sent, document["metadata"], document["spec"]
        if meta.get("name") and meta["name"] != name:
            sentence = "must match the service account name if specified"
            raise refuse(kind.resource, name, [invalid("metadata.name", meta["name"], sentence)])
        account = inquiry.find(SERVICE_ACCOUNTS, name, namespace)
        if account is None:
            raise missing(SERVICE_ACCOUNTS, name)
        uid = account["metadata"]["uid"]
        if meta.get("uid") and meta["uid"] != uid:
            sentence = f"the UID in the token request ({meta['uid']}) does not match the UID of the service account"
            raise conflict(_as_kind(kind.resource.group, kind.resource.kind), name, f"{sentence} ({uid})")
        kind.default(document)
        if wrong := kind.validate(document):
            raise refuse(kind.resource, "", wrong)
        bound = bound_objects(spec.get("boundObjectRef"), name, namespace, inquiry)
        seconds, warnings = spec["expirationSeconds"], []
        if 0 < inquiry.longest_token < seconds:
            warnings.append(f"requested expiration of {seconds} seconds shortened to {inquiry.longest_token} seconds")
            seconds = inquiry.longest_token
        audiences = spec.get("audiences") or list(inquiry.audiences)
        ours = set(audiences) <= set(inquiry.audiences)
        now = int(times.parse(inquiry.now))
        signed = claims(
            account, bound, audiences, now=now, seconds=seconds, extended="pod" in bound and ours and inquiry.extends
        )
        meta |= {"name": name, "namespace": namespace, "uid": uid, "creationTimestamp": inquiry.now}
        answered = {
            "metadata": meta,
            "spec": {
                "audiences": audiences,
                "expirationSeconds": seconds,
                "boundObjectRef": spec.get("boundObjectRef"),
            },
            "status": {"token": inquiry.sign(signed), "expirationTimestamp": times.text(now + seconds)},
        }
        return answered, warnings


def bound_objects(reference: Object | None, account: str, namespace: str, inquiry: Inquiry) -> dict[str, Object]:
    """The metadata of the object that a token is to be bound to, by its kind, and of the Pod's node with a Pod."""
    if reference is None:
        return {}
    group, _, version = reference.get("apiVersion", "").rpartition("/")
    kind, name = reference.get("kind", ""), reference.get("name", "")
    resource = {"Pod": PODS, "Node": NODES, "Secret": SECRETS}.get(kind) if not group else None
    if resource is None:
        raise BadRequest(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    if not name:
        raise BadRequest("Name parameter required.")
    found = inquiry.find(resource, name, namespace if resource.namespaced else "")
    if found is None:
        raise missing(resource, name)
    bound = {kind.lower(): found["metadata"]}
    if resource is PODS:
        if found["spec"].get("serviceAccountName", "") != account:
            sentence = "to pod running with different serviceaccount name."
            raise BadRequest(f'cannot bind token for serviceaccount "{account}" {sentence}')
        if node := found["spec"].get("nodeName"):
            # Of a node that is not there the token has at least the name.
            bound["node"] = (inquiry.find(NODES, node) or {"metadata": {"name": node}})["metadata"]
    if reference.get("uid") and reference["uid"] != found["metadata"]["uid"]:
        raise conflict(
            _as_kind("", kind),
            name,
            f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record. The object "
            "might have been deleted and then recreated",
        )
    return bound


def claims(
    account: Object, bound: Mapping[str, Object], audiences: Sequence[str], *, now: int, seconds: int, extended: bool
) -> Object:
    """What a token says, except who issued it and its id; ``extended`` if a kubelet's token may live longer."""
    meta = account["metadata"]
    own: Object = {"namespace": meta["namespace"], "serviceaccount": _reference(meta)}
    own |= {kind: _reference(found) for kind, found in bound.items()}
    until = now + seconds
    if extended and seconds == WARNED_SECONDS:
        own["warnafter"] = until
        until = now + EXTENDED_SECONDS
    return {
        "aud": list(audiences),
        "exp": until,
        "iat": now,
        "nbf": now,
        "sub": f"system:serviceaccount:{meta['namespace']}:{meta['name']}",
        "kubernetes.io": own,
    }


def _reference(meta: Object) -> Object:
    return {key: meta[key] for key in ("name", "uid") if meta.get(key)}


def _as_kind(group: str, kind: str) -> Resource:
    """Here Kubernetes names the kind where other errors name the resource."""
    return Resource(group, "v1", kind, kind)


REQUEST_TOKEN = RequestToken(
    "token", ("create",), "TokenRequest", group="authentication.k8s.io", version="v1", sent=TokenRequestKind()
)
