"""The step of admission that fills in what LimitRanges say, and refuses what they do not allow."""

from __future__ import annotations

from collections.abc import Iterator

from seamark.errors import Object
from seamark.kinds.admission import Operation, Plugin, Request
from seamark.kinds.kind import Kind
from seamark.kinds.pod.resources import together
from seamark.kinds.resource import LIMIT_RANGES, PERSISTENT_VOLUME_CLAIMS, PODS
from seamark.kinds.values.fields import one_message
from seamark.kinds.values.quantity import amount, measure

ANNOTATION = "kubernetes.io/limit-ranger"

Amounts = dict[str, str]
Pair = tuple[Amounts, Amounts]  # requests and limits


class LimitRanges(Plugin):
    """LimitRanger."""

    def concerns(self, kind: Kind, operation: Operation, part: str) -> bool:
        if kind.resource == PODS:
            return (operation, part) in (("CREATE", ""), ("UPDATE", "resize"))
        return kind.resource == PERSISTENT_VOLUME_CLAIMS and not part and operation in ("CREATE", "UPDATE")

    def mutate(self, request: Request) -> None:
        if request.kind.resource == PODS and request.old is None:
            for limit_range in request.others.all(LIMIT_RANGES, request.namespace):
                fill_in(request.obj, limit_range)

    def validate(self, request: Request) -> None:
        for limit_range in request.others.all(LIMIT_RANGES, request.namespace):
            if "deletionTimestamp" in request.obj["metadata"]:
                return
            mistakes = _claim_mistakes if request.kind.resource == PERSISTENT_VOLUME_CLAIMS else _pod_mistakes
            sentences = list(dict.fromkeys(mistakes(request.obj, request.old, _items(limit_range))))
            if sentences:
                raise request.forbidden(one_message(sentences))


def _items(limit_range: Object) -> list[Object]:
    return (limit_range.get("spec") or {}).get("limits") or []


# --- defaults ----------------------------------------------------------------------------------------------


def fill_in(pod: Object, limit_range: Object) -> None:
    """Give each container the requests and limits that it does not have, and say so in an annotation."""
    limits: Amounts = {}
    requests: Amounts = {}
    for item in _items(limit_range):
        if item.get("type") == "Container":
            limits |= item.get("default") or {}
            requests |= item.get("defaultRequest") or {}
    said: list[str] = []
    for field, word in (("containers", "container"), ("initContainers", "init container")):
        for container in pod["spec"].get(field) or ():
            for kind, defaults in (("requests", requests), ("limits", limits)):
                resources = container.get("resources") or {}
                missing = sorted(defaults.keys() - (resources.get(kind) or {}).keys())
                if missing:
                    amounts = {**(resources.get(kind) or {}), **{name: defaults[name] for name in missing}}
                    container["resources"] = {**resources, kind: amounts}
                    said.append(f"{', '.join(missing)} {kind[:-1]} for {word} {container.get('name', '')}")
    if said:
        meta = pod["metadata"]
        sentence = f"LimitRanger plugin set: {'; '.join(said)}"
        meta["annotations"] = {**(meta.get("annotations") or {}), ANNOTATION: sentence}


# --- refusals ----------------------------------------------------------------------------------------------


def _pod_mistakes(pod: Object, old: Object | None, items: list[Object]) -> Iterator[str]:
    for item in items:
        if item.get("type") == "Pod":
            before = None if old is None else _of_pod(old)
            yield from _mistakes("Pod", item, _of_pod(pod), before)
        elif item.get("type") == "Container":
            for field in ("containers", "initContainers"):
                was = {c.get("name"): c for c in ((old or {}).get("spec") or {}).get(field) or ()}
                for container in pod["spec"].get(field) or ():
                    earlier = was.get(container.get("name"))
                    before = None if earlier is None else _of_container(earlier)
                    yield from _mistakes("Container", item, _of_container(container), before)


def _of_pod(pod: Object) -> Pair:
    return together(pod["spec"], "requests"), together(pod["spec"], "limits")


def _of_container(container: Object) -> Pair:
    resources = container.get("resources") or {}
    return resources.get("requests") or {}, resources.get("limits") or {}


def _claim_mistakes(claim: Object, old: Object | None, items: list[Object]) -> Iterator[str]:
    """Of claims only the requests count."""
    requests, before = (
        (((o or {}).get("spec") or {}).get("resources") or {}).get("requests") or {} for o in (claim, old)
    )
    for item in items:
        if item.get("type") == "PersistentVolumeClaim":
            for field, check in (("min", _below), ("max", _above_request)):
                for name, bound in sorted((item.get(field) or {}).items()):
                    if name not in requests or name not in before or amount(requests[name]) != amount(before[name]):
                        yield from check("PersistentVolumeClaim", name, bound, requests.get(name), None)


def _mistakes(word: str, item: Object, now: Pair, before: Pair | None) -> Iterator[str]:
    """What an update does not change is not looked at again."""
    for field, check in (("min", _below), ("max", _above), ("maxLimitRequestRatio", _too_wide)):
        for name, bound in sorted((item.get(field) or {}).items()):
            request, limit = now[0].get(name), now[1].get(name)
            if before is None or not (_same(request, before[0].get(name)) and _same(limit, before[1].get(name))):
                yield from check(word, name, bound, request, limit)


def _same(one: str | None, other: str | None) -> bool:
    return one == other or (one is not None and other is not None and amount(one) == amount(other))


def _below(word: str, name: str, bound: str, request: str | None, limit: str | None) -> Iterator[str]:
    start = f"minimum {name} usage per {word} is {bound}"
    if request is None:
        yield f"{start}.  No request is specified"
    elif amount(request) < amount(bound):
        yield f"{start}, but request is {request}"
    elif limit is not None and amount(limit) < amount(bound):
        yield f"{start}, but limit is {limit}"


def _above(word: str, name: str, bound: str, request: str | None, limit: str | None) -> Iterator[str]:
    start = f"maximum {name} usage per {word} is {bound}"
    if limit is None:
        yield f"{start}.  No limit is specified"
    elif amount(limit) > amount(bound):
        yield f"{start}, but limit is {limit}"
    elif request is not None and amount(request) > amount(bound):
        yield f"{start}, but request is {request}"


def _above_request(word: str, name: str, bound: str, request: str | None, limit: str | None) -> Iterator[str]:
    start = f"maximum {name} usage per {word} is {bound}"
    if request is None:
        yield f"{start}.  No request is specified"
    elif amount(request) > amount(bound):
        yield f"{start}, but request is {request}"


def _too_wide(word: str, name: str, bound: str, request: str | None, limit: str | None) -> Iterator[str]:
    start = f"{name} max limit to request ratio per {word} is {bound}"
    if request is None or not amount(request):
        yield f"{start}, but no request is specified or request is 0"
    elif limit is None or not amount(limit):
        yield f"{start}, but no limit is specified or limit is 0"
    elif abs(measure(limit)) > abs(measure(request)) * measure(bound):
        yield f"{start}, but provided ratio is {abs(measure(limit) / measure(request)):.6f}"
