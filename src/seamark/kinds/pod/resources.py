"""Resources of Pods and containers: validation of names and amounts, sums, and the quality-of-service class."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from decimal import ROUND_CEILING, Decimal

from seamark.errors import Object
from seamark.kinds.values.fields import (
    Errors,
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
)
from seamark.kinds.values.metadata import dns_label, qualified_name
from seamark.kinds.values.quantity import amount, canonical, measure

MOST_SHOWN = 100  # names of claims in one message
_COMPUTE = ("cpu", "memory")
_HUGE = "hugepages-"
_CONTAINER_RESOURCES = frozenset(("cpu", "memory", "ephemeral-storage"))
_COUNTED_NAMES = """pods resourcequotas services replicationcontrollers secrets configmaps persistentvolumeclaims
services.nodeports services.loadbalancers"""
_COUNTED = frozenset(_COUNTED_NAMES.split())
_STANDARD = (
    _CONTAINER_RESOURCES
    | _COUNTED
    | frozenset(f"{kind}.{name}" for kind in ("requests", "limits") for name in _CONTAINER_RESOURCES)
    | frozenset(("storage", "requests.storage"))
)
_POD_LEVEL = ("cpu", "hugepages-", "memory")


# --- names -------------------------------------------------------------------------------------------------


def is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def is_extended(name: str) -> bool:
    """Whether this is an extended resource: of another domain, and counted in whole numbers."""
    return not is_native(name) and not name.startswith("requests.") and not qualified_name(f"requests.{name}")


def is_counted(name: str) -> bool:
    return name in _COUNTED or is_extended(name)


def may_overcommit(name: str) -> bool:
    return is_native(name) and not name.startswith(_HUGE)


def name_mistakes(name: str, path: str) -> Errors:
    if sentences := qualified_name(name):
        return [invalid(path, name, sentence) for sentence in sentences]
    if "/" not in name and name not in _STANDARD and not name.startswith((_HUGE, f"requests.{_HUGE}")):
        return [invalid(path, name, "must be a standard resource type or fully qualified")]
    return []


def container_name_mistakes(name: str, path: str) -> Errors:
    errors = name_mistakes(name, path)
    if "/" not in name:
        if name not in _CONTAINER_RESOURCES and not name.startswith(_HUGE):
            errors.append(invalid(path, name, "must be a standard resource for containers"))
    elif not is_native(name) and not is_extended(name):
        errors.append(invalid(path, name, "doesn't follow extended resource name standard"))
    return errors


def _pod_name_mistakes(name: str, path: str) -> Errors:
    errors = name_mistakes(name, path)
    if not errors and name not in _COMPUTE and not name.startswith(_HUGE):
        errors.append(not_supported(path, name, _POD_LEVEL))
    return errors


# --- amounts -----------------------------------------------------------------------------------------------


def quantity_mistakes(name: str, quantity: str, path: str) -> Errors:
    errors: Errors = []
    much = measure(quantity)
    if much < 0:
        errors.append(invalid(path, quantity, "must be greater than or equal to 0"))
    if is_counted(name) and much % 1:
        errors.append(invalid(path, quantity, "must be an integer"))
    return errors


def container_mistakes(resources: Object, path: str, claims: set[str]) -> Errors:
    """What is wrong with the ``resources`` of a container; ``claims`` are the names of the Pod's resource claims."""
    return _requirement_mistakes(resources, path, claims, container_name_mistakes)


def pod_mistakes(spec: Object, path: str) -> Errors:
    """What is wrong with the Pod-level ``resources``, also compared with those of its containers."""
    resources = spec["resources"]
    if (spec.get("os") or {}).get("name") == "windows":
        return [forbidden(path, "may not be set for a windows pod")]
    errors: Errors = []
    if resources.get("claims"):
        errors.append(forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level"))
    errors += _requirement_mistakes(resources, path, set(), _pod_name_mistakes)
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for name, together in sorted(sum_of_containers(spec, "requests").items()):
        if name in requests and amount(together) > amount(requests[name]):
            sentence = f"must be greater than or equal to aggregate container requests of {together}"
            errors.append(invalid(f"{path}.requests[{name}]", requests[name], sentence))
    for name, together in sorted(sum_of_containers(spec, "limits").items()):
        if name.startswith(_HUGE) and name in limits and amount(together) > amount(limits[name]):
            sentence = f"must be greater than or equal to aggregate container limits of {together}"
            errors.append(invalid(f"{path}.limits[{name}]", limits[name], sentence))
    for i, container in enumerate(spec.get("containers") or ()):
        for name, limit in sorted(_of(container, "limits").items()):
            if name in limits and amount(limit) > amount(limits[name]):
                sentence = f"must be less than or equal to pod limits of {limits[name]}"
                errors.append(invalid(f"{path}.containers[{i}][{name}].limits", limit, sentence))
    return errors


def _requirement_mistakes(
    resources: Object, path: str, claims: set[str], name_mistakes: Callable[[str, str], Errors]
) -> Errors:
    errors: Errors = []
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for field, quantities in (("limits", limits), ("requests", requests)):
        # Sorted for a stable order; Kubernetes iterates over maps in random order.
        for name in sorted(quantities):
            quantity, at = quantities[name], f"{path}.{field}[{name}]"
            errors += name_mistakes(name, at)
            errors += quantity_mistakes(name, quantity, at)
            if field == "requests":
                errors += _against_limit(name, quantity, limits.get(name), path)
            if name.startswith(_HUGE) and not _divides(name, quantity):
                sentence = f"{quantity} is not positive integer multiple of {name}"
                errors.append(invalid(at, quantity, sentence))
    names = {*limits, *requests}
    if any(name.startswith(_HUGE) for name in names) and not names & set(_COMPUTE):
        errors.append(forbidden(path, "HugePages require cpu or memory"))
    if listed := resources.get("claims"):
        errors += _claim_mistakes(listed, f"{path}.claims", claims)
    return errors


def _against_limit(name: str, request: str, limit: str | None, path: str) -> Errors:
    if limit is None:
        if may_overcommit(name):
            return []
        return [required(f"{path}.limits", "Limit must be set for non overcommitable resources")]
    if amount(request) != amount(limit) and not may_overcommit(name):
        return [invalid(f"{path}.requests", request, f"must be equal to {name} limit of {limit}")]
    if amount(request) > amount(limit):
        return [invalid(f"{path}.requests", request, f"must be less than or equal to {name} limit of {limit}")]
    return []


def _divides(name: str, quantity: str) -> bool:
    try:
        page = measure(name.removeprefix(_HUGE))
    except ValueError:
        return False
    # Whole billionths, the finest that quantities have: decimals do not divide by very small ones.
    return page > 0 and int(measure(quantity).scaleb(9)) % int(page.scaleb(9)) == 0


def _claim_mistakes(listed: list[Object], path: str, claims: set[str]) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    # Not all of very many: each claim that is wrong would be answered with all of them.
    some = sorted(claims)[:MOST_SHOWN] + ["…"] * (len(claims) > MOST_SHOWN)
    known = f": {', '.join(some)}" if claims else " which is empty"
    requested: set[str] = set()  # the claims of which single requests were seen
    for i, claim in enumerate(listed):
        at, name, request = f"{path}[{i}]", claim.get("name", ""), claim.get("request", "")
        if not name:
            errors.append(required(at))
            continue
        if request:
            errors += [invalid(f"{at}.request", request, sentence) for sentence in dns_label(request)]
        key = f"{name}/{request}" if request else name
        if name in seen or (not request and name in requested):
            errors.append(duplicate(at, name))
        elif key in seen:
            errors.append(duplicate(at, key))
        seen.add(key)
        if request:
            requested.add(name)
        if name not in claims:
            missing = not_found(at, name)
            sentence = f"{missing.message}: must be one of the names in pod.spec.resourceClaims{known}"
            errors.append(FieldError(at, missing.reason, sentence))
    return errors


def round_up(resources: dict[str, str]) -> None:
    """Round amounts up to thousandths, the finest that Kubernetes keeps."""
    for name, quantity in resources.items():
        if quantity and quantity[-1] in "nu":
            resources[name] = canonical(f"{(measure(quantity) * 1000).to_integral_value(ROUND_CEILING):f}m")


def total(quantities: Iterable[str]) -> str:
    """The sum of quantities, with the kind of suffix that the first one has."""
    listed = list(quantities)
    if len(listed) == 1:
        return listed[0]
    summed = sum(map(measure, listed), Decimal(0))
    if listed and listed[0].endswith("i"):
        return canonical(f"{(summed / 1024).normalize():f}Ki")
    return canonical(f"{summed.normalize():f}")


# --- sums --------------------------------------------------------------------------------------------------


def quality_of_service(spec: Object) -> str:
    """Guaranteed, Burstable or BestEffort."""
    level = spec.get("resources")
    if level and (level.get("requests") or level.get("limits")):
        askers = [level]
    else:
        askers = [container.get("resources") or {} for container in _all_containers(spec)]
        if not any(askers):
            return "BestEffort"
    requests: dict[str, Decimal] = {}
    limits: dict[str, Decimal] = {}
    guaranteed = True
    for resources in askers:
        limited = set()
        for field, sums in (("requests", requests), ("limits", limits)):
            for name, quantity in (resources.get(field) or {}).items():
                if name in _COMPUTE and (much := measure(quantity)) > 0:
                    sums[name] = sums.get(name, Decimal(0)) + much
                    if field == "limits":
                        limited.add(name)
        guaranteed = guaranteed and len(limited) == len(_COMPUTE)
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


def _all_containers(spec: Object) -> Iterator[Object]:
    yield from spec.get("containers") or ()
    yield from spec.get("initContainers") or ()


def _of(container: Object, field: str) -> dict[str, str]:
    return (container.get("resources") or {}).get(field) or {}


def sum_of_containers(spec: Object, field: str) -> dict[str, str]:
    """The larger of two amounts: what all containers need together, and what the largest init container needs.

    Sidecars (init containers that always restart) run beside the containers and beside later init containers.
    """
    running: dict[str, list[str]] = {}
    for container in spec.get("containers") or ():
        for name, quantity in _of(container, field).items():
            running.setdefault(name, []).append(quantity)
    sidecars: dict[str, list[str]] = {}
    peaks: dict[str, str] = {}
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            for name, quantity in _of(container, field).items():
                sidecars.setdefault(name, []).append(quantity)
            continue
        for name, quantity in _of(container, field).items():
            together = total([quantity, *sidecars.get(name, ())])
            if name not in peaks or amount(together) > amount(peaks[name]):
                peaks[name] = together
    sums = {name: total([*running.get(name, ()), *sidecars.get(name, ())]) for name in {**running, **sidecars}}
    for name, peak in peaks.items():
        if name not in sums or amount(peak) > amount(sums[name]):
            sums[name] = peak
    return sums


def together(spec: Object, field: str) -> dict[str, str]:
    """The requests or limits of a Pod: those of the Pod itself where it has them, else those of its containers."""
    sums = sum_of_containers(spec, field)
    for name, quantity in ((spec.get("resources") or {}).get(field) or {}).items():
        if name in _COMPUTE or name.startswith(_HUGE):
            sums[name] = quantity
    return sums


def default_pod_resources(spec: Object) -> None:
    """Fill in the Pod-level resources, if the user set any of them.

    Huge pages cannot be overcommitted, so their limit is the containers' limit.  Missing requests become the
    containers' requests, else the Pod's own limits.  If the user set no limits at all, they become the containers'
    limits, for resources that every container limits.
    """
    level = spec["resources"]
    limits, requests = dict(level.get("limits") or {}), dict(level.get("requests") or {})
    had_limits = bool(limits)
    if not (limits or requests):
        return
    container_limits = sum_of_containers(spec, "limits")
    for name, quantity in container_limits.items():
        if name.startswith(_HUGE) and name not in requests:
            limits.setdefault(name, quantity)
    if limits:
        for name, quantity in sum_of_containers(spec, "requests").items():
            if name in _COMPUTE:
                requests.setdefault(name, quantity)
        for name, quantity in limits.items():
            if name in _COMPUTE or name.startswith(_HUGE):
                requests.setdefault(name, quantity)
    if not had_limits:
        for name, quantity in container_limits.items():
            if name in _COMPUTE and all(name in _of(container, "limits") for container in _all_containers(spec)):
                limits.setdefault(name, quantity)
    if requests:
        level["requests"] = requests
    if limits:
        level["limits"] = limits
