"""The operations of every kind, as OpenAPI v3 path items; :func:`as_v2` turns them into the older dialect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from seamark.api.openapi.schemas import DELETE_OPTIONS, PATCH, STATUS, WATCH_EVENT, Dialect, reference
from seamark.errors import Object
from seamark.kinds.kind import Kind
from seamark.kinds.language import shapes
from seamark.kinds.language.shape import Shape
from seamark.kinds.resource import Resource
from seamark.kinds.subresource import Subresource

ANSWERED_IN = ("application/json", "application/yaml")
LISTED_IN = (*ANSWERED_IN, "application/json;stream=watch")
STRATEGIC = "application/strategic-merge-patch+json"
PATCHED_WITH = (
    "application/json-patch+json",
    "application/merge-patch+json",
    STRATEGIC,
    "application/apply-patch+yaml",
)

_METHODS = {"get": "get", "list": "get", "create": "post", "update": "put", "patch": "patch", "delete": "delete"}
_ACTIONS = {"create": "post", "update": "put", "deletecollection": "deletecollection"}
_WORDS = {"get": "read", "update": "replace"}

# Query parameters: name → type and what it does.
_QUERY = {
    "allowWatchBookmarks": ("boolean", "Ask for BOOKMARK events in a watch."),
    "continue": ("string", "Go on with a list where an earlier answer stopped."),
    "dryRun": ("string", "All: do everything but the change itself."),
    "fieldManager": ("string", "The name of who makes the change, as recorded in managedFields."),
    "fieldSelector": ("string", "Restrict the list of returned objects to those with these values of fields."),
    "fieldValidation": ("string", "What becomes of unknown and repeated fields: Ignore, Warn or Strict."),
    "force": ("boolean", "Take fields over from other managers when applying."),
    "gracePeriodSeconds": ("integer", "How long the object has before it is removed."),
    "labelSelector": ("string", "Restrict the list of returned objects to those with these labels."),
    "limit": ("integer", "The largest number of objects in one answer."),
    "orphanDependents": ("boolean", "Deprecated: use propagationPolicy."),
    "pretty": ("string", "Ignored."),
    "propagationPolicy": ("string", "What becomes of dependents: Orphan, Background or Foreground."),
    "resourceVersion": ("string", "Which version of the state to answer from."),
    "resourceVersionMatch": ("string", "How resourceVersion is meant."),
    "sendInitialEvents": ("boolean", "Begin a watch with the current state."),
    "timeoutSeconds": ("integer", "How long a list or watch may take."),
    "watch": ("boolean", "Watch for changes to the described resources instead of listing them."),
}
_LIST_QUERY = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
)
_WRITE_QUERY = ("dryRun", "fieldManager", "fieldValidation")
_DELETE_QUERY = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
_QUERIES = {
    "get": (),
    "list": _LIST_QUERY,
    "create": _WRITE_QUERY,
    "update": _WRITE_QUERY,
    "patch": (*_WRITE_QUERY, "force"),
    "delete": _DELETE_QUERY,
    "deletecollection": (
        *_DELETE_QUERY,
        *(name for name in _LIST_QUERY if name not in ("allowWatchBookmarks", "watch")),
    ),
}


def paths(kinds: Iterable[Kind]) -> Object:
    """Every path of these kinds with its operations."""
    found: Object = {}
    for kind in kinds:
        found |= _of_kind(kind)
        if "watch" in kind.verbs and kind.built_in:
            found |= _watched(kind)
    return dict(sorted(found.items()))


def shapes_of(kinds: Iterable[Kind]) -> list[Shape]:
    """The shapes that these kinds' operations take and give."""
    found = [shapes.of(DELETE_OPTIONS), shapes.of(STATUS)]
    for kind in kinds:
        sent = [_sent(kind, sub)[2] for sub in kind.subresources]
        found += [shape for shape in (kind.shape, kind.list_shape, *sent) if shape is not None]
    return found


def _of_kind(kind: Kind) -> Object:
    resource = kind.resource
    collection = resource.path(namespace="{namespace}")
    item = resource.path(namespace="{namespace}", name="{name}")
    found: Object = {}
    on_collection = [verb for verb in ("list", "create", "deletecollection") if verb in kind.verbs]
    if on_collection:
        found[collection] = _item(kind, None, on_collection, collection)
    if resource.namespaced and "list" in kind.verbs:
        everywhere = resource.path()
        found[everywhere] = _item(kind, None, ["list"], everywhere)
    on_item = [verb for verb in ("get", "update", "patch", "delete") if verb in kind.verbs]
    if on_item:
        found[item] = _item(kind, None, on_item, item)
    for sub in kind.subresources:
        path = f"{item}/{sub.name}"
        verbs = [verb for verb in ("get", "create", "update", "patch", "delete") if verb in sub.verbs]
        found[path] = _item(kind, sub, verbs, path)
    return found


def _watched(kind: Kind) -> Object:
    """The old paths that are watches by themselves; Kubernetes still serves them, and generated clients have them."""
    resource = kind.resource
    scopes = [
        ("{namespace}", ""),
        ("{namespace}", "{name}"),
        ("", ""),
    ]  # the first and the last are one if not namespaced
    found: Object = {}
    for namespace, name in scopes:
        root, _, rest = resource.path(namespace=namespace, name=name).partition(f"/{resource.version}/")
        path = f"{root}/{resource.version}/watch/{rest}"
        item = _item(kind, None, ["list"], path)
        operation = item["get"]
        operation["description"] = f"deprecated: watch changes by a list of {resource.plural} with the parameter watch"
        operation["operationId"] = operation["operationId"].replace("list", "watch", 1)
        operation["x-kubernetes-action"] = "watch" if name else "watchlist"
        if not name:
            head, kind_name, tail = operation["operationId"].rpartition(resource.kind)
            operation["operationId"] = f"{head}{kind_name}List{tail}"
        schema = {"schema": reference(WATCH_EVENT, "v3")}
        operation["responses"]["200"]["content"] = dict.fromkeys(LISTED_IN, schema)
        found[path] = item
    return found


def documents(kinds: Iterable[Kind]) -> Object:
    """The paths of the documents that say what is served."""
    found = {
        "/version/": _document("getCodeVersion", "version"),
        "/api/": _document("getCoreAPIVersions", "core"),
        "/apis/": _document("getAPIVersions", "apis"),
    }
    for resource in (kind.resource for kind in kinds):
        words, root = _words(resource.group), f"/apis/{resource.group}/" if resource.group else "/api/"
        if resource.group:
            found[root] = _document(f"get{words}APIGroup", resource.group.removesuffix(".k8s.io"))
        operation = f"get{words}{resource.version.capitalize()}APIResources"
        found[f"{root}{resource.version}/"] = _document(operation, _tag(resource))
    return found


def _document(operation: str, tag: str) -> Object:
    content = {media_type: {"schema": {"type": "object"}} for media_type in ANSWERED_IN}
    responses = {"200": {"description": "OK", "content": content}, "401": {"description": "Unauthorized"}}
    return {"get": {"tags": [tag], "operationId": operation, "parameters": [], "responses": responses}}


def _item(kind: Kind, sub: Subresource | None, verbs: Sequence[str], path: str) -> Object:
    everywhere = kind.resource.namespaced and "{namespace}" not in path
    item: Object = {
        "delete" if verb == "deletecollection" else _METHODS[verb]: _operation(kind, sub, verb, everywhere=everywhere)
        for verb in verbs
    }
    placeholders = {"name": f"name of the {kind.resource.kind}", "namespace": "object name and auth scope"}
    parameters = [
        {"name": name, "in": "path", "required": True, "description": text, "schema": {"type": "string"}}
        for name, text in placeholders.items()
        if f"{{{name}}}" in path
    ]
    if parameters:
        item["parameters"] = parameters
    return item


def _operation(kind: Kind, sub: Subresource | None, verb: str, *, everywhere: bool) -> Object:
    api_version, sent, shape = _sent(kind, sub)
    group, _, version = api_version.rpartition("/")
    operation: Object = {
        "tags": [_tag(kind.resource)],
        "description": f"{verb} {kind.resource.plural}" + (f"/{sub.name}" if sub else ""),
        "operationId": _operation_id(kind.resource, sub, verb, everywhere=everywhere),
        "parameters": [
            {"name": name, "in": "query", "description": _QUERY[name][1], "schema": {"type": _QUERY[name][0]}}
            for name in (*_QUERIES[verb], "pretty")
        ],
        "responses": _responses(verb, kind.list_shape if verb == "list" else shape, kind),
        "x-kubernetes-action": "connect" if shape is None else _ACTIONS.get(verb, verb),
        "x-kubernetes-group-version-kind": {"group": group, "kind": sent, "version": version},
    }
    if body := _request(verb, shape, kind):
        operation["requestBody"] = body
    return operation


def _sent(kind: Kind, sub: Subresource | None) -> tuple[str, str, Shape | None]:
    """What travels on a path: its apiVersion, its kind and, if it has one, its shape."""
    resource = kind.resource
    api_version, name = resource.api_version, resource.kind
    if sub is not None:
        name = sub.kind
        if sub.version:
            api_version = f"{sub.group}/{sub.version}" if sub.group else sub.version
    if (api_version, name) == (resource.api_version, resource.kind):
        return api_version, name, kind.shape
    built_in = shapes.load()
    return api_version, name, built_in.get(built_in.kinds.get((api_version, name), ""))


def _request(verb: str, shape: Shape | None, kind: Kind) -> Object | None:
    if verb == "patch":
        taken = [media_type for media_type in PATCHED_WITH if kind.strategic_merge or media_type != STRATEGIC]
        content = {media_type: {"schema": reference(PATCH, "v3")} for media_type in taken}
        return {"content": content, "required": True}
    if verb in ("delete", "deletecollection"):
        return {"content": {"*/*": {"schema": reference(DELETE_OPTIONS, "v3")}}}
    if verb in ("create", "update") and shape is not None:
        return {"content": {"*/*": {"schema": reference(shape.name, "v3")}}, "required": True}
    return None


def _responses(verb: str, shape: Shape | None, kind: Kind) -> Object:
    codes = {
        "create": ("200", "201", "202"),
        "update": ("200", "201"),
        "patch": ("200", "201"),
        "delete": ("200", "202"),
    }
    if verb == "deletecollection" or (verb == "delete" and not kind.delete_answers_object):
        schema = reference(STATUS, "v3")
    else:
        schema = {"type": "string"} if shape is None else reference(shape.name, "v3")
    content = {media_type: {"schema": schema} for media_type in (LISTED_IN if verb == "list" else ANSWERED_IN)}
    words = {"200": "OK", "201": "Created", "202": "Accepted"}
    answers: Object = {code: {"description": words[code], "content": content} for code in codes.get(verb, ("200",))}
    return answers | {"401": {"description": "Unauthorized"}}


def _tag(resource: Resource) -> str:
    return f"{resource.group.removesuffix('.k8s.io') or 'core'}_{resource.version}"


def _words(group: str) -> str:
    """``RbacAuthorization``, ``Core``"""
    return "".join(word.capitalize() for word in (group.removesuffix(".k8s.io") or "core").split("."))


def _operation_id(resource: Resource, sub: Subresource | None, verb: str, *, everywhere: bool) -> str:
    """``readCoreV1NamespacedPodStatus``: the names generated clients have for it."""
    where = _words(resource.group) + resource.version.capitalize()
    if verb == "deletecollection":
        verb, where = "delete", f"{where}Collection"
    scope = "Namespaced" if resource.namespaced and not everywhere else ""
    suffix = "ForAllNamespaces" if everywhere else sub.name.capitalize() if sub else ""
    return f"{_WORDS.get(verb, verb)}{where}{scope}{resource.kind}{suffix}"


# --- v2 --------------------------------------------------------------------------------------------


def as_v2(items: Object) -> Object:
    """The same paths in the older dialect: bodies are parameters, media types belong to the operation."""
    return {path: {part: _part_as_v2(part, value) for part, value in item.items()} for path, item in items.items()}


def _part_as_v2(part: str, value: Object | list[Object]) -> Object | list[Object]:
    if isinstance(value, list):
        return [_parameter_as_v2(parameter) for parameter in value]
    operation = {key: item for key, item in value.items() if key not in ("requestBody", "responses", "parameters")}
    operation["parameters"] = [_parameter_as_v2(parameter) for parameter in value["parameters"]]
    operation["schemes"] = ["https"]
    operation["consumes"] = ["*/*"]
    if request := value.get("requestBody"):
        schema = next(iter(request["content"].values()))["schema"]
        body = {"name": "body", "in": "body", "required": request.get("required", False), "schema": _to_v2(schema)}
        operation["parameters"].insert(0, body)
        if part == "patch":
            operation["consumes"] = list(request["content"])
    operation["produces"] = list(ANSWERED_IN)
    operation["responses"] = {}
    for code, response in value["responses"].items():
        answer: Object = {"description": response["description"]}
        if content := response.get("content"):
            operation["produces"] = list(content)
            answer["schema"] = _to_v2(next(iter(content.values()))["schema"])
        operation["responses"][code] = answer
    return operation


def _parameter_as_v2(parameter: Object) -> Object:
    plain = {key: value for key, value in parameter.items() if key != "schema"}
    return plain | {"type": parameter["schema"]["type"], "uniqueItems": True}


def _to_v2(schema: Object) -> Object:
    dialect: Dialect = "v2"
    return reference(schema["$ref"].rsplit("/", 1)[-1], dialect) if "$ref" in schema else schema
