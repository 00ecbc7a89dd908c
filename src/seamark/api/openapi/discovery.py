"""Discovery: which groups, versions and resources there are, as one document each and in the aggregated form.

Pure functions from kinds to documents; :class:`Discovery` puts them under their paths:

    /                      every path that is worth a look
    /api  /apis            the versions of the core group, all other groups; aggregated if the client asks for that
    /apis/GROUP            one group
    /api/v1  /apis/G/V     the resources of one version
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence

import msgspec

from seamark.api.aggregation.backends import Foreign
from seamark.api.http.negotiate import NONE, negotiate, not_acceptable, parse_accept
from seamark.api.http.wire.messages import Request, Response
from seamark.errors import Object
from seamark.kinds.extensions.custom import CustomKind
from seamark.kinds.extensions.versions import priority
from seamark.kinds.kind import Kind
from seamark.kinds.registration.apiservice import CUSTOM_PRIORITIES, PRIORITIES
from seamark.kinds.resource import API_SERVICES
from seamark.kinds.subresource import Subresource

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

_AGGREGATED_PARAMETERS = {"g": "apidiscovery.k8s.io", "v": "v2", "as": "APIGroupDiscoveryList"}

# What is served beside objects and their discovery.
_KEPT = ("Cache-Control", "public")  # said of the aggregated form only, as in Kubernetes
_OTHER_PATHS = ("/healthz", "/livez", "/metrics", "/metrics/slis", "/openapi/v2", "/openapi/v3", "/readyz", "/version")

# Documents that are kept: clients ask for a few, by a few Accept headers.
MOST_KEPT = 1000

ByVersion = dict[str, dict[str, list[Kind]]]


Served = dict[str, dict[str, list[Kind] | Foreign]]


def served(kinds: Iterable[Kind], foreign: Sequence[Foreign]) -> Served:
    """All versions of all groups, those of other servers included, in the order in which clients shall prefer them."""
    found: Served = {group: dict(versions) for group, versions in by_version(kinds).items()}
    if not foreign:
        return found
    groups = {group: PRIORITIES.get(group, CUSTOM_PRIORITIES)[0] for group in found}
    for each in foreign:
        found.setdefault(each.group, {})[each.version] = each
        groups[each.group] = max(each.group_priority, groups.get(each.group, 0))
    return {
        group: dict(sorted(found[group].items(), key=lambda item: _version_place(group, *item)))
        for group in sorted(found, key=lambda group: _group_place(group, groups[group]))
    }


def _version_place(group: str, version: str, members: list[Kind] | Foreign) -> tuple[object, ...]:
    if isinstance(members, Foreign):
        own = members.version_priority
    else:
        own = PRIORITIES.get(group, CUSTOM_PRIORITIES)[1] + (version == "v2" and group == "autoscaling")
    return -own, priority(version)


def by_version(kinds: Iterable[Kind]) -> ByVersion:
    """Kinds by group and version: groups by priority, kinds by name."""
    found: ByVersion = {}
    for kind in sorted(kinds, key=_place):
        found.setdefault(kind.resource.group, {}).setdefault(kind.resource.version, []).append(kind)
    return found


def _place(kind: Kind) -> tuple[object, ...]:
    """Built-in versions come in their own order, those of custom resources by what their names say."""
    resource = kind.resource
    version = () if kind.built_in else priority(resource.version)
    return _priority(resource.group), version, resource.plural


def _priority(group: str) -> tuple[object, ...]:
    return _group_place(group, PRIORITIES.get(group, CUSTOM_PRIORITIES)[0])


def _group_place(group: str, own: int) -> tuple[object, ...]:
    """Groups by priority; where two serve the same name, clients take the first.  The one of APIServices leads."""
    return group != "", group != API_SERVICES.group, -own, group


def paths(kinds: Iterable[Kind], foreign: Sequence[Foreign] = ()) -> Object:
    """``/``"""
    found = {"/apis", *_OTHER_PATHS}
    for group, versions in served(kinds, foreign).items():
        root = f"/apis/{group}" if group else "/api"
        found |= {root, *(f"{root}/{version}" for version in versions)}
    return {"paths": sorted(found)}


# --- the old form ----------------------------------------------------------------------------------


def core_versions(kinds: Iterable[Kind], address: str) -> Object:
    """``/api``; ``address`` is where the client reached us."""
    return {
        "kind": "APIVersions",
        "versions": list(by_version(kinds).get("", {})),
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def group_list(kinds: Iterable[Kind], foreign: Sequence[Foreign]) -> Object:
    """``/apis``"""
    groups = [_group(name, versions) for name, versions in served(kinds, foreign).items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(kinds: Iterable[Kind], name: str, foreign: Sequence[Foreign] = ()) -> Object | None:
    """``/apis/GROUP``, None if there is no such group."""
    versions = served(kinds, foreign).get(name)
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)} if name and versions else None


def _group(name: str, versions: Iterable[str]) -> Object:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def resource_list(kinds: Iterable[Kind], group: str, version: str) -> Object | None:
    """``/api/v1``, ``/apis/GROUP/VERSION``; None if there is no such version."""
    members = by_version(kinds).get(group, {}).get(version)
    if members is None:
        return None
    resources: list[Object] = []
    for kind in members:
        resources.append(_resource(kind))
        resources += [_subresource(kind, sub) for sub in _in_order(kind)]
    document: Object = {"kind": "APIResourceList"}
    if group:
        document["apiVersion"] = "v1"
    return document | {"groupVersion": f"{group}/{version}" if group else version, "resources": resources}


def _resource(kind: Kind) -> Object:
    resource = kind.resource
    entry: Object = {
        "name": resource.plural,
        "singularName": kind.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _verbs(kind),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    if storage := _storage_version_hash(kind):
        entry["storageVersionHash"] = storage
    return entry


def _storage_version_hash(kind: Kind) -> str:
    """By which migrators of stored objects see that another version is stored than before; "" where none is.

    As Kubernetes computes it, so that tools which compare clusters find no difference.
    """
    resource = kind.stored_as or kind.resource
    if isinstance(kind, CustomKind):
        stored = kind.storage_version == resource.version  # it need not be served
    else:
        stored = kind.stored and "create" in kind.verbs
    named = f"{resource.group}/{resource.version}/{resource.kind}"
    return base64.b64encode(hashlib.sha256(named.encode()).digest()[:8]).decode() if stored else ""


def _verbs(kind: Kind) -> list[str]:
    return sorted(kind.verbs) if kind.built_in else list(kind.verbs)


def _subresource(kind: Kind, sub: Subresource) -> Object:
    entry: Object = {
        "name": f"{kind.resource.plural}/{sub.name}",
        "singularName": "",
        "namespaced": kind.resource.namespaced,
        "kind": sub.kind,
        "verbs": sorted(sub.verbs),
    }
    if sub.group is not None and sub.version is not None:
        entry |= {"group": sub.group, "version": sub.version}
    return entry


# --- the aggregated form ---------------------------------------------------------------------------


def aggregated(kinds: Iterable[Kind], foreign: Sequence[Foreign] = (), *, core: bool) -> Object:
    """Everything at once: the core group's part (``/api``) or that of all others (``/apis``)."""
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": [
            {
                "metadata": {"name": name} if name else {},
                "versions": [_aggregated_version(version, members) for version, members in versions.items()],
            }
            for name, versions in served(kinds, foreign).items()
            if core == (name == "")
        ],
    }


def _aggregated_version(version: str, members: list[Kind] | Foreign) -> Object:
    if not isinstance(members, Foreign):
        resources = [_aggregated_resource(kind) for kind in members]
        return {"version": version, "resources": resources, "freshness": "Current"}
    told: Object = {"resources": list(members.resources)} if members.resources else {}
    return {"version": version, **told, "freshness": "Stale" if members.stale else "Current"}


def _aggregated_resource(kind: Kind) -> Object:
    resource = kind.resource
    entry: Object = {
        "resource": resource.plural,
        "responseKind": _response_kind(kind, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": _verbs(kind),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    if kind.subresources:
        entry["subresources"] = [
            {
                "subresource": sub.name,
                "responseKind": _response_kind(kind, sub.kind, sub.group or "", sub.version or ""),
                "verbs": sorted(sub.verbs),
            }
            for sub in _in_order(kind)
        ]
    return entry


def _in_order(kind: Kind) -> Sequence[Subresource]:
    return sorted(kind.subresources, key=lambda sub: sub.name) if kind.built_in else kind.subresources


def _response_kind(of: Kind, kind: str, group: str = "", version: str = "") -> Object:
    """Group and version are left empty where they are the resource's own, except for custom resources."""
    if not of.built_in and not version:
        group, version = of.resource.group, of.resource.version
    return {"group": group, "version": version, "kind": kind}


# --- answers ---------------------------------------------------------------------------------------


def wants_aggregated(accept: str) -> bool:
    """Whether aggregated discovery is the best answer to this Accept header; 406 if no form is acceptable."""
    for media in parse_accept(accept):
        if media.quality <= 0:
            continue
        plain = "as" not in media.parameters
        if plain and media.type in ("application/json", "application/yaml", "application/*", "*/*"):
            return False
        # "profile" asks to leave out what other servers of this cluster serve; they all serve the same here.
        wanted = {name: value for name, value in media.parameters.items() if name != "profile"}
        if media.type == "application/json" and wanted == _AGGREGATED_PARAMETERS:
            return True
    if accept.strip():
        raise not_acceptable()
    return False


class Discovery:
    """The documents about these kinds, each made when first asked for.

    When a kind appears or vanishes, the server makes a new one: with hundreds of kinds a document costs milliseconds.
    """

    def __init__(self, kinds: Iterable[Kind], foreign: Sequence[Foreign] = ()) -> None:
        self._kinds = kinds
        self._foreign = foreign
        self._made: dict[tuple[str, ...], Response] = {}

    def answer(self, request: Request) -> Response | None:
        """The answer to a discovery path, None for any other."""
        accept, host = request.headers.get("accept", ""), request.headers.get("host", "")
        key = request.path, accept, host if request.path.startswith("/api") else ""
        made = self._made.get(key)
        if made is None:
            made = _answer(self._kinds, self._foreign, request.path, accept, host)
            if made is None:
                return None
            if len(self._made) < MOST_KEPT:
                self._made[key] = made
        if ("ETag", request.headers.get("if-none-match", "")) in made.headers:
            return Response(304, b"", made.content_type, made.headers)
        return msgspec.structs.replace(made)  # the caller may add headers


def _answer(kinds: Iterable[Kind], foreign: Sequence[Foreign], path: str, accept: str, host: str) -> Response | None:
    match path.strip("/").split("/"):
        case [""]:
            return Response(200, msgspec.json.format(msgspec.json.encode(paths(kinds, foreign))))
        case ["api" | "apis" as root]:
            if wants_aggregated(accept):
                return _respond(aggregated(kinds, foreign, core=root == "api"), AGGREGATED, (_KEPT,))
            document: Object | None = core_versions(kinds, host) if root == "api" else group_list(kinds, foreign)
        case ["apis", name]:
            document = group(kinds, name, foreign)
        case ["api", version]:
            document = resource_list(kinds, "", version)
        case ["apis", name, version]:
            document = resource_list(kinds, name, version) if name else None
        case _:
            return None
    return None if document is None else _respond(document, negotiate(accept, NONE).content_type)


def _respond(document: Object, content_type: str, also: tuple[tuple[str, str], ...] = ()) -> Response:
    if content_type == "application/yaml":
        from seamark.kinds.language import yaml_text

        body = yaml_text.dump(document)
    else:
        body = msgspec.json.encode(document) + b"\n"
    tag = f'"{hashlib.sha256(body).hexdigest()}"'
    return Response(200, body, content_type, (("ETag", tag), ("Vary", "Accept"), *also))
