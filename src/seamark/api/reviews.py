"""Reviews: objects that are questions.  They are answered and forgotten, never stored.

TokenReview and SelfSubjectReview ask who somebody is, the access reviews ask what they may do.
"""

from __future__ import annotations

from seamark.api.auth import MASTERS, Authenticator, may
from seamark.api.context import User
from seamark.api.identity import check_namespace
from seamark.errors import BadRequest, Object
from seamark.kinds.kind import Kind
from seamark.kinds.resource import Resource
from seamark.kinds.values.fields import Errors, invalid, refuse


class ReviewKind(Kind):
    """A kind that can only be created, and is answered at once."""

    verbs = ("create",)


def _review(group: str, kind: str, *, namespaced: bool = False) -> ReviewKind:
    plural = kind.lower() + "s"
    words = {"authentication.k8s.io": "authentication", "authorization.k8s.io": "authorization"}
    members = {
        "resource": Resource(group, "v1", plural, kind, namespaced),
        "singular": kind.lower(),
        "shape_name": f"io.k8s.api.{words[group]}.v1.{kind}",
    }
    made = type(f"{kind}Kind", (ReviewKind,), members)
    review = made()
    assert isinstance(review, ReviewKind)
    return review


TOKEN_REVIEW = _review("authentication.k8s.io", "TokenReview")
SELF_SUBJECT_REVIEW = _review("authentication.k8s.io", "SelfSubjectReview")
SUBJECT_ACCESS_REVIEW = _review("authorization.k8s.io", "SubjectAccessReview")
SELF_SUBJECT_ACCESS_REVIEW = _review("authorization.k8s.io", "SelfSubjectAccessReview")
SELF_SUBJECT_RULES_REVIEW = _review("authorization.k8s.io", "SelfSubjectRulesReview")
LOCAL_SUBJECT_ACCESS_REVIEW = _review("authorization.k8s.io", "LocalSubjectAccessReview", namespaced=True)

REVIEWS: tuple[ReviewKind, ...] = (
    SELF_SUBJECT_REVIEW,
    TOKEN_REVIEW,
    LOCAL_SUBJECT_ACCESS_REVIEW,
    SELF_SUBJECT_ACCESS_REVIEW,
    SELF_SUBJECT_RULES_REVIEW,
    SUBJECT_ACCESS_REVIEW,
)


def answer(kind: Kind, obj: Object, user: User, authenticator: Authenticator, *, namespace: str, now: str) -> Object:
    """The review with its status filled in."""
    spec = obj.get("spec") or {}
    if kind.resource.namespaced:
        check_namespace(obj["metadata"], namespace)
        obj["metadata"]["namespace"] = namespace
    match kind.resource.kind:
        case "SelfSubjectReview":
            obj["metadata"]["creationTimestamp"] = now
            status: Object = {"userInfo": _user_info(user)}
        case "TokenReview":
            if not spec.get("token"):
                raise BadRequest("token is required for TokenReview in authentication")
            found = authenticator.user_of_token(spec.get("token", ""))
            status = {"authenticated": True, "user": _user_info(found)} if found else {"user": {}}
        case "SelfSubjectRulesReview":
            if not spec.get("namespace"):
                raise BadRequest("no namespace on request")
            status = _rules(user)
        case "SelfSubjectAccessReview":
            _check(kind, spec, _metadata_mistakes(kind, obj["metadata"]))
            status = _access(user, spec)
        case _:
            wrong: Errors = []
            if not spec.get("user") and not spec.get("groups"):
                wrong.append(invalid("spec.user", "", "at least one of user or group must be specified"))
            wrong += _metadata_mistakes(kind, obj["metadata"])
            if kind.resource.namespaced:
                wrong += _place_mistakes(spec, namespace)
            _check(kind, spec, wrong)
            status = _access(User(spec.get("user", ""), tuple(spec.get("groups") or ())), spec)
    return {
        "kind": kind.resource.kind,
        "apiVersion": kind.resource.api_version,
        "metadata": obj["metadata"],
        **({"spec": obj["spec"]} if "spec" in obj else {}),
        "status": status,
    }


def _user_info(user: User) -> Object:
    info: Object = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    return info


def _metadata_mistakes(kind: Kind, meta: Object) -> Errors:
    """A question has no name, and nothing else to know it by again."""
    kept, more = (("namespace",), " except for namespace") if kind.resource.namespaced else ((), "")
    return [invalid("metadata", meta, f"must be empty{more}")] if meta.keys() - {"managedFields", *kept} else []


def _place_mistakes(spec: Object, namespace: str) -> Errors:
    """What is asked in a namespace must be about it."""
    errors: Errors = []
    attributes = spec.get("resourceAttributes")
    if attributes and attributes.get("namespace", "") != namespace:
        path = "spec.resourceAttributes.namespace"
        errors.append(invalid(path, attributes.get("namespace", ""), "must match metadata.namespace"))
    if spec.get("nonResourceAttributes"):
        sentence = "disallowed on this kind of request"
        errors.append(invalid("spec.nonResourceAttributes", spec["nonResourceAttributes"], sentence))
    return errors


def _check(kind: Kind, spec: Object, more: Errors) -> None:
    asked = [key for key in ("resourceAttributes", "nonResourceAttributes") if spec.get(key)]
    wrong: Errors = []
    if len(asked) == 2:
        sentence = "cannot be specified in combination with resourceAttributes"
        wrong.append(invalid("spec.nonResourceAttributes", spec["nonResourceAttributes"], sentence))
    if not asked or len(asked) == 2:
        sentence = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        wrong = [invalid("spec", None, sentence)]
    if wrong or more:
        # Kubernetes names no kind here.
        raise refuse(Resource(kind.resource.group, "v1", "", ""), "", wrong + more)


def _access(user: User, spec: Object) -> Object:
    if attributes := spec.get("resourceAttributes"):
        allowed = may(
            user, attributes.get("verb", ""), group=attributes.get("group", ""), resource=attributes.get("resource", "")
        )
    else:
        attributes = spec["nonResourceAttributes"]
        allowed = may(user, attributes.get("verb", ""), path=attributes.get("path", "") or "/")
    return {"allowed": allowed}


def _rules(user: User) -> Object:
    every = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    if MASTERS in user.groups:
        return {
            "resourceRules": [every],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": False,
        }
    own = {"verbs": ["create"], "apiGroups": ["authorization.k8s.io"], "resources": ["selfsubjectaccessreviews"]}
    return {
        "resourceRules": [own],
        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/api", "/apis", "/healthz", "/version"]}],
        "incomplete": False,
    }
