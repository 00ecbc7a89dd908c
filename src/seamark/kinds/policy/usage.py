"""What an object uses of a quota, and which quotas count it.  Pure.

A quota counts by names (``requests.cpu``, ``services.nodeports``, ``count/deployments.apps``).  Admission and the
controller that counts anew both ask these functions, so they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import ROUND_CEILING

from seamark.errors import Object
from seamark.kinds.pod.resources import is_extended, is_native, quality_of_service, together
from seamark.kinds.resource import (
    CONFIGMAPS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    REPLICATION_CONTROLLERS,
    RESOURCE_CLAIMS,
    RESOURCE_QUOTAS,
    SECRETS,
    SERVICES,
    Resource,
)
from seamark.kinds.values import times
from seamark.kinds.values.quantity import canonical, measure, plus
from seamark.kinds.values.selectors import from_label_selector

Amounts = dict[str, str]
Use = tuple[tuple[str, str], ...]  # amounts that can be a key

_SHORT_NAMES = (CONFIGMAPS, REPLICATION_CONTROLLERS, RESOURCE_QUOTAS, SECRETS)  # counted without ``count/`` as well
_CLASS = ".storageclass.storage.k8s.io/"
_DEVICES = ".deviceclass.resource.k8s.io/devices"
_MOST_DEVICES = 32  # that one request can be given, so what a request for all of them counts as
_OF_CLAIMS = ("persistentvolumeclaims", "requests.storage")
_OF_SERVICES = ("services", "services.loadbalancers", "services.nodeports")
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_HUGE = ("hugepages-", "requests.hugepages-")
_OF_PODS = frozenset(("pods", *_COMPUTE, *(f"{kind}.{name}" for kind in ("requests", "limits") for name in _COMPUTE)))
# A quota of one of these makes every container say how much it wants of it.
_REQUIRED = frozenset(("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"))


def count_name(resource: Resource) -> str:
    return f"count/{resource.qualified}"


def counted_by(resource: Resource, names: Iterable[str]) -> list[str]:
    """Those of a quota's names that objects of this kind count towards."""
    count = count_name(resource)
    if resource == PODS:
        return [n for n in names if n == count or n in _OF_PODS or n.startswith(_HUGE) or _is_extended_request(n)]
    if resource == SERVICES:
        return [n for n in names if n == count or n in _OF_SERVICES]
    if resource == PERSISTENT_VOLUME_CLAIMS:
        return [n for n in names if n == count or n in _OF_CLAIMS or n.endswith(tuple(_CLASS + c for c in _OF_CLAIMS))]
    if resource == RESOURCE_CLAIMS:
        return [n for n in names if n == count or n.endswith(_DEVICES)]
    short = resource.plural if resource in _SHORT_NAMES else count
    return [n for n in names if n in (count, short)]


def _is_extended_request(name: str) -> bool:
    return name.startswith("requests.") and not is_native(name)


def used_by(resource: Resource, obj: Object, now: str) -> Amounts:
    """What an object uses, by the names of quotas."""
    used = {count_name(resource): "1"}
    if resource == PODS:
        if not _is_over(obj, now):
            used["pods"] = "1"
            used |= _computed(_pod_requests(obj["spec"]), _pod_limits(obj["spec"]))
    elif resource == SERVICES:
        used |= _used_by_service(obj.get("spec") or {})
    elif resource == PERSISTENT_VOLUME_CLAIMS:
        used |= _used_by_claim(obj)
    elif resource == RESOURCE_CLAIMS:
        used |= _used_devices(obj)
    elif resource in _SHORT_NAMES:
        used[resource.plural] = "1"
    return used


def unsaid(resource: Resource, obj: Object, names: Iterable[str]) -> str:
    """What the containers of a Pod must say for a quota with these names, as a sentence; "" if they say all of it."""
    if resource != PODS:
        return ""
    spec = obj["spec"]
    of_pod = spec.get("resources") or {}
    needed = _REQUIRED.intersection(names) - _computed(of_pod.get("requests") or {}, of_pod.get("limits") or {}).keys()
    silent: dict[str, set[str]] = {}
    if needed:
        for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
            resources = container.get("resources") or {}
            said = _computed(resources.get("requests") or {}, resources.get("limits") or {})
            for name in needed - said.keys():
                silent.setdefault(name, set()).add(container.get("name", ""))
    listed = [f"{name} for: {','.join(sorted(silent[name]))}" for name in sorted(silent)]
    return f"must specify {'; '.join(listed)}" if listed else ""


def in_scope(quota: Object, resource: Resource, obj: Object) -> bool:
    """Whether an object is in all scopes of a quota; only Pods and claims are in any."""
    spec = quota.get("spec") or {}
    wanted = [{"scopeName": scope, "operator": "Exists"} for scope in spec.get("scopes") or ()]
    wanted += (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return all(_in_one(expression, resource, obj) for expression in wanted)


def total(uses: Mapping[Use, int], names: Iterable[str]) -> Amounts:
    """The sums of these names, where so many objects have each use; "0" for names that none has."""
    sums = dict.fromkeys(names, "0")
    for use, count in uses.items():
        for name, quantity in use:
            if name in sums:
                sums[name] = plus(sums[name], _times(count, quantity))
    return sums


def _times(count: int, quantity: str) -> str:
    """By doubling, because a sum of quantities is written as the quantities are."""
    product = "0"
    while count:
        if count & 1:
            product = plus(product, quantity)
        quantity = plus(quantity, quantity)
        count >>= 1
    return product


# --- Pods --------------------------------------------------------------------------------------------------


def _is_over(pod: Object, now: str) -> bool:
    """Whether a Pod has ended, or should be gone by now: such Pods are only counted, by ``count/pods``."""
    if (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
        return True
    meta = pod["metadata"]
    going, grace = meta.get("deletionTimestamp"), meta.get("deletionGracePeriodSeconds")
    return bool(going and grace is not None) and times.parse(now) > times.parse(going) + grace


def _pod_requests(spec: Object) -> Amounts:
    return _with_overhead(spec, together(spec, "requests"), every=True)


def _pod_limits(spec: Object) -> Amounts:
    return _with_overhead(spec, together(spec, "limits"), every=False)


def _with_overhead(spec: Object, amounts: Amounts, *, every: bool) -> Amounts:
    for name, quantity in (spec.get("overhead") or {}).items():
        if every or name in amounts:
            amounts[name] = plus(amounts.get(name, "0"), quantity)
    return amounts


def _computed(requests: Amounts, limits: Amounts) -> Amounts:
    """Requests and limits by the names of quotas."""
    found: Amounts = {}
    for name, quantity in requests.items():
        if name in _COMPUTE or name.startswith("hugepages-"):
            found[name] = found[f"requests.{name}"] = quantity
        elif is_extended(name):
            found[f"requests.{name}"] = quantity
    for name in _COMPUTE:
        if name in limits:
            found[f"limits.{name}"] = limits[name]
    return found


def _in_one(expression: Object, resource: Resource, obj: Object) -> bool:
    scope = expression.get("scopeName", "")
    if resource == PERSISTENT_VOLUME_CLAIMS and scope == "VolumeAttributesClass":
        return any(_selects(expression, name) for name in _attribute_classes(obj) or ("",))
    if resource != PODS:
        return False
    spec = obj["spec"]
    match scope:
        case "Terminating" | "NotTerminating":
            return ("activeDeadlineSeconds" in spec) is (scope == "Terminating")
        case "BestEffort" | "NotBestEffort":
            return (quality_of_service(spec) == "BestEffort") is (scope == "BestEffort")
        case "PriorityClass":
            return _selects(expression, spec.get("priorityClassName", ""))
        case "CrossNamespacePodAffinity":
            return _reaches_other_namespaces(spec.get("affinity") or {})
    return False


def _selects(expression: Object, name: str) -> bool:
    key = expression["scopeName"]
    wanted = {"key": key, "operator": expression.get("operator", ""), "values": expression.get("values") or []}
    return from_label_selector({"matchExpressions": [wanted]}).matches({key: name} if name else {})


def _reaches_other_namespaces(affinity: Object) -> bool:
    for field in ("podAffinity", "podAntiAffinity"):
        kind = affinity.get(field) or {}
        terms = list(kind.get("requiredDuringSchedulingIgnoredDuringExecution") or ())
        preferred = kind.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms += [weighted.get("podAffinityTerm") or {} for weighted in preferred]
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms):
            return True
    return False


# --- Services and claims -----------------------------------------------------------------------------------


def _used_by_service(spec: Object) -> Amounts:
    kind, ports = spec.get("type"), spec.get("ports") or ()
    node_ports = 0
    if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False:
        node_ports = sum(bool(port.get("nodePort")) for port in ports)
    elif kind in ("NodePort", "LoadBalancer"):
        node_ports = len(ports)
    balancers = "1" if kind == "LoadBalancer" else "0"
    return {"services": "1", "services.loadbalancers": balancers, "services.nodeports": str(node_ports)}


def _used_by_claim(claim: Object) -> Amounts:
    spec, status = claim.get("spec") or {}, claim.get("status") or {}
    used = {"persistentvolumeclaims": "1"}
    asked = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if asked is not None:
        given = (status.get("allocatedResources") or {}).get("storage", "0")
        used["requests.storage"] = _whole(given if measure(given) > measure(asked) else asked)
    annotated = (claim["metadata"].get("annotations") or {}).get("volume.beta.kubernetes.io/storage-class")
    if name := annotated or spec.get("storageClassName"):
        used |= {f"{name}{_CLASS}{key}": quantity for key, quantity in used.items()}
    return used


def _used_devices(claim: Object) -> Amounts:
    """How many devices of each class a claim may be given; of alternatives, the one with most counts for its class."""
    used: dict[str, int] = {}
    for request in (claim["spec"].get("devices") or {}).get("requests") or ():
        most: dict[str, int] = {}
        for one in request.get("firstAvailable") or [request.get("exactly") or {}]:
            many = _MOST_DEVICES if one.get("allocationMode") == "All" else one.get("count", 0)
            name = one.get("deviceClassName", "")
            most[name] = max(many, most.get(name, 0))
        for name, many in most.items():
            used[name] = used.get(name, 0) + many
    return {f"{name}{_DEVICES}": str(many) for name, many in used.items()}


def _whole(quantity: str) -> str:
    """Rounded up to whole bytes."""
    much = measure(quantity)
    return quantity if not much % 1 else canonical(f"{much.to_integral_value(ROUND_CEILING):f}")


def _attribute_classes(claim: Object) -> set[str]:
    spec, status = claim.get("spec") or {}, claim.get("status") or {}
    target = (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName")
    names = (spec.get("volumeAttributesClassName"), status.get("currentVolumeAttributesClassName"), target)
    return {name for name in names if name}
