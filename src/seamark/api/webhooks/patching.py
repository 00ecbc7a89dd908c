"""What the patch in a webhook's answer makes of the object, and of the request."""

from __future__ import annotations

from seamark.api.fields.patch import Inapplicable, edited
from seamark.api.webhooks.review import Document, headed
from seamark.errors import Object, internal
from seamark.kinds.admission import Request
from seamark.kinds.kind import Kind
from seamark.kinds.language import inner_json
from seamark.kinds.language.decode import DecodeError
from seamark.kinds.language.scalars import found
from seamark.kinds.subresource import Part, View


def patched(name: str, shown: Document, patch: bytes) -> Object:
    """The document as the patch of the webhook ``name`` leaves it, in the normal form of its kind."""
    kind, obj = shown.kind, shown.obj
    if obj is None or kind is None:
        raise internal(
            f'admission webhook "{name}" attempted to modify the object, which is not supported for this operation'
        )
    try:
        operations = inner_json.read(patch)
    except inner_json.Unreadable as error:
        raise internal(f"invalid patch: {error}") from error
    if not isinstance(operations, list) or not all(isinstance(each, dict) for each in operations):
        raise internal(f"json: cannot unmarshal {found(operations)} into Go value of type jsonpatch.Patch")
    try:
        result = edited(operations, obj)
    except (Inapplicable, RecursionError) as error:
        raise internal(str(error)) from error
    return _conformed(kind, result)


def _conformed(kind: Kind, result: object) -> Object:
    resource = kind.resource
    if not isinstance(result, dict) or not isinstance(result.get("metadata", {}), dict):
        raise internal(f"json: cannot unmarshal {found(result)} into Go value of type {resource.kind}")
    if (result.get("kind"), result.get("apiVersion")) != (resource.kind, resource.api_version):
        text = f'{result.get("kind")} in version "{result.get("apiVersion")}" cannot be handled as a {resource.kind}'
        raise internal(text)
    try:
        obj, _ = kind.conform(result)
    except DecodeError as error:
        raise internal(f'{resource.kind} in version "{resource.version}" cannot be handled: {error}') from error
    obj.setdefault("metadata", {})
    return obj


async def moved(obj: Object, kind: Kind, to: Kind) -> Object:
    """An object in another version of its kind."""
    if kind is to:
        return obj
    if kind.conversion is None:
        return to.from_stored(kind.to_stored(obj))
    return to.conform(await kind.conversion.moved(obj, to.resource.version))[0]


async def in_version(kind: Kind, own: Document, to: Kind) -> Document:
    """The documents of a request for an object of this kind, in another version."""
    obj = None if own.obj is None else headed(to.resource, await moved(own.obj, kind, to))
    old = None if own.old is None else headed(to.resource, await moved(own.old, kind, to))
    return Document(to.resource, to, obj, old)


async def take(request: Request, new: Object, shown_as: Kind) -> None:
    """Let the object be what an outsider made of it, with its defaults."""
    kind, sub = request.kind, request.sub
    if isinstance(sub, View):
        request.obj = sub.change(kind, headed(kind.resource, request.obj), new)
    elif isinstance(sub, Part):
        request.obj = await moved(new, shown_as, kind)
        sub.default(kind, request.obj)
    else:
        request.obj = new
