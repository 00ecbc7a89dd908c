"""The step of admission that charges quotas: what the object uses is added to ``status.used`` in its own transaction.

The quota must still be as it was when its rest was looked at, so objects that are made at the same time, through
whichever server, cannot exceed it together.  What deletions free is found by counting anew (``usage`` says how).
"""

from __future__ import annotations

import msgspec

from seamark.errors import Object
from seamark.kinds.admission import Operation, Plugin, Request
from seamark.kinds.kind import Kind
from seamark.kinds.policy.usage import Amounts, counted_by, in_scope, unsaid, used_by
from seamark.kinds.resource import PERSISTENT_VOLUME_CLAIMS, PODS, RESOURCE_QUOTAS, SERVICES
from seamark.kinds.values.quantity import amount, minus, plus

# All that count an object are written with it.  etcd takes 128 keys and 1.5 MiB in one transaction, and the time that a
# write takes grows with them.
MOST_QUOTAS = 100
MOST_BYTES = 512 << 10

_CHARGED_UPDATES = (
    (SERVICES, ""),
    (PERSISTENT_VOLUME_CLAIMS, ""),
    (PERSISTENT_VOLUME_CLAIMS, "status"),
    (PODS, "resize"),
    (RESOURCE_QUOTAS, ""),
)


class ResourceQuotas(Plugin):
    """ResourceQuota."""

    def concerns(self, kind: Kind, operation: Operation, part: str) -> bool:
        if operation == "CREATE":
            return kind.resource.namespaced and not part
        return operation == "UPDATE" and (kind.resource, part) in _CHARGED_UPDATES

    def contends(self, request: Request) -> bool:
        resource = request.kind.resource
        quotas = request.others.all(RESOURCE_QUOTAS, request.namespace)
        return any(counted_by(resource, (quota["status"].get("hard") or {}).keys()) for quota in quotas)

    def validate(self, request: Request) -> None:
        resource, obj, old = request.kind.resource, request.obj, request.old
        if resource == RESOURCE_QUOTAS and (old is None or _size(obj) > _size(old)):
            _check_room(request)
        if resource == RESOURCE_QUOTAS and old is not None:
            return
        charged: list[tuple[Object, bool]] = []
        for quota in request.others.all(RESOURCE_QUOTAS, request.namespace):
            names = counted_by(resource, (quota["status"].get("hard") or {}).keys())
            if names and in_scope(quota, resource, obj):
                _check(request, quota, names)
                charged.append((quota, old is not None and in_scope(quota, resource, old)))
        if not charged:
            return
        asked = used_by(resource, obj, request.now)
        more = asked if old is None else _growth(asked, used_by(resource, old, request.now))
        for quota, counted_before in charged:
            used = _charged(request, quota, more if counted_before else asked)
            if used != quota["status"]["used"]:
                quota["status"] = {**quota["status"], "used": used}
                request.also.append((RESOURCE_QUOTAS, quota))


def _check_room(request: Request) -> None:
    """Refuse a quota that would be one too many for its namespace, or make all of them too large."""
    name = request.obj["metadata"]["name"]
    sizes = [
        _size(each)
        for each in request.others.all(RESOURCE_QUOTAS, request.namespace)
        if each["metadata"]["name"] != name
    ]
    if len(sizes) >= MOST_QUOTAS:
        raise request.forbidden(f"a namespace has at most {MOST_QUOTAS} resource quotas")
    if sum(sizes) + _size(request.obj) > MOST_BYTES:
        raise request.forbidden(f"the resource quotas of a namespace have at most {MOST_BYTES} bytes together")


def _size(quota: Object) -> int:
    """The bytes of a quota once it has been counted: its status has the amounts twice more."""
    return len(msgspec.json.encode(quota["metadata"])) + 3 * len(msgspec.json.encode(quota.get("spec")))


def _check(request: Request, quota: Object, names: list[str]) -> None:
    """Refuse an object that does not say what it uses, and one whose quota has not been counted yet."""
    name = quota["metadata"]["name"]
    if sentence := unsaid(request.kind.resource, request.obj, names):
        raise request.forbidden(f"failed quota: {name}: {sentence}")
    if not set(names) <= (quota["status"].get("used") or {}).keys():
        raise request.forbidden(f"status unknown for quota: {name}, resources: {','.join(sorted(names))}")


def _growth(asked: Amounts, before: Amounts) -> Amounts:
    """What an update uses more than before; what it frees is counted anew later."""
    grown = {name: minus(quantity, before.get(name, "0")) for name, quantity in asked.items()}
    return {name: quantity for name, quantity in grown.items() if amount(quantity) > 0}


def _charged(request: Request, quota: Object, more: Amounts) -> Amounts:
    """What is used of the quota with this object; raises if that is too much."""
    hard, used = quota["status"]["hard"], quota["status"]["used"]
    added = {name: quantity for name, quantity in more.items() if name in hard and amount(quantity)}
    sums = {name: plus(used.get(name, "0"), quantity) for name, quantity in added.items()}
    exceeded = sorted(name for name, quantity in sums.items() if amount(quantity) > amount(hard[name]))
    if exceeded and request.part != "status":  # what a volume got already is charged, and cannot be refused
        requested, had, limited = (
            ",".join(f"{name}={amounts.get(name, '0')}" for name in exceeded) for amounts in (added, used, hard)
        )
        raise request.forbidden(
            f"exceeded quota: {quota['metadata']['name']}, requested: {requested}, used: {had}, limited: {limited}"
        )
    return {**used, **sums}
