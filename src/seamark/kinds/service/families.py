"""IP families of a Service: ``ipFamilyPolicy``, ``ipFamilies`` and ``clusterIPs``, and how they must agree.

``settle`` decides what the user left open.  It runs before addresses are allocated, because they depend on it, so its
errors are reported alone, before other validation.
"""

from __future__ import annotations

from collections.abc import Sequence

from seamark.errors import Object
from seamark.kinds.service.types import CLUSTER_IP, EXTERNAL_NAME, LOAD_BALANCER, NODE_PORT, NONE, is_headless
from seamark.kinds.values.addresses import both_families, family, refuse_ip
from seamark.kinds.values.fields import Errors, duplicate, invalid, not_supported, required

SINGLE_STACK = "SingleStack"
PREFER_DUAL_STACK = "PreferDualStack"
REQUIRE_DUAL_STACK = "RequireDualStack"
POLICIES = (PREFER_DUAL_STACK, REQUIRE_DUAL_STACK, SINGLE_STACK)
FAMILIES = ("IPv4", "IPv6")

_POLICY = "spec.ipFamilyPolicy"
_IPS = "spec.clusterIPs"


def other(family_name: str) -> str:
    return "IPv6" if family_name == "IPv4" else "IPv4"


def _same(spec: Object, old: Object, key: str) -> bool:
    return (spec.get(key) or []) == (old.get(key) or [])


def keeps_dual_stack(spec: Object, old: Object | None) -> bool:
    """Whether a PreferDualStack Service is unchanged; it then stays so, even if the cluster's families changed."""
    return (
        old is not None
        and spec.get("type") == old.get("type")
        and spec.get("type") in (CLUSTER_IP, NODE_PORT, LOAD_BALANCER)
        and spec.get("ipFamilyPolicy") == PREFER_DUAL_STACK
        and old.get("ipFamilyPolicy") in (None, PREFER_DUAL_STACK)
        and _same(spec, old, "clusterIPs")
        and _same(spec, old, "ipFamilies")
    )


def settle(spec: Object, old: Object | None, *, configured: Sequence[str]) -> Errors:
    """Decide policy and families if the user did not; ``configured`` are the cluster's families, the default first."""
    if spec.get("type") == EXTERNAL_NAME or keeps_dual_stack(spec, old):
        return []
    selectorless = spec.get("clusterIP") == NONE and not spec.get("selector")
    if spec.get("ipFamilyPolicy") is None:
        before = old.get("ipFamilyPolicy") if old is not None else None
        # Endpoints of a headless Service without a selector are made by hand, so they may be of both families.
        spec["ipFamilyPolicy"] = before or (REQUIRE_DUAL_STACK if selectorless else SINGLE_STACK)
    errors = cluster_ip_mistakes(spec, old)
    if errors:
        return errors
    errors = _shrink(spec, old) if old is not None else []
    errors += _policy_mistakes(spec)
    errors += _infer(spec, configured)
    if errors:
        return errors
    if not selectorless:
        errors = _unconfigured(spec, configured)
        if errors:
            return errors
    families = list(spec.get("ipFamilies") or configured[:1])
    wants_two = spec["ipFamilyPolicy"] != SINGLE_STACK and len(families) == 1
    # Also in a cluster of one family, handmade endpoints may be of both.
    if wants_two and (selectorless or len(configured) == 2):
        families.append(other(families[0]))
    spec["ipFamilies"] = families
    return []


def _shrink(spec: Object, old: Object) -> Errors:
    """Drop the second address and family on an update to SingleStack; other policies may not lose them."""
    if spec["ipFamilyPolicy"] == SINGLE_STACK:
        for key in ("clusterIPs", "ipFamilies"):
            if _same(spec, old, key) and len(spec.get(key) or ()) > 1:
                spec[key] = spec[key][:1]
        return []
    errors = []
    for key, noun in (("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")):
        if 0 < len(spec.get(key) or ()) < len(old.get(key) or ()):
            sentence = f"must be 'SingleStack' to release the secondary {noun}"
            errors.append(invalid(_POLICY, spec["ipFamilyPolicy"], sentence))
    return errors


def _policy_mistakes(spec: Object) -> Errors:
    policy = spec["ipFamilyPolicy"]
    if policy != SINGLE_STACK:
        return []
    return [
        invalid(_POLICY, policy, f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {noun} are specified")
        for key, noun in (("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families"))
        if len(spec.get(key) or ()) == 2
    ]


def _infer(spec: Object, configured: Sequence[str]) -> Errors:
    """Derive families that are not given from the given addresses."""
    errors: Errors = []
    addresses = spec.get("clusterIPs") or []
    families = list(spec.get("ipFamilies") or ())
    if addresses[:1] == [NONE]:
        return errors
    for i, address in enumerate(addresses):
        if i < len(families):
            continue
        found = family(address) or "unknown"
        if found in configured:
            families.append(found)
        else:
            errors.append(invalid(f"{_IPS}[{i}]", addresses, f"{found} is not configured on this cluster"))
    if families:
        spec["ipFamilies"] = families
    return errors


def _unconfigured(spec: Object, configured: Sequence[str]) -> Errors:
    errors: Errors = []
    policy = spec["ipFamilyPolicy"]
    if policy == REQUIRE_DUAL_STACK and len(configured) < 2:
        errors.append(invalid(_POLICY, policy, "this cluster is not configured for dual-stack services"))
    for i, name in enumerate(spec.get("ipFamilies") or ()):
        if name not in configured:
            errors.append(invalid(f"spec.ipFamilies[{i}]", name, "not configured on this cluster"))
    return errors


def cluster_ip_mistakes(spec: Object, old: Object | None) -> Errors:
    """What is wrong with cluster IPs, families and policy as given."""
    if spec.get("type") == EXTERNAL_NAME:
        return []
    single, addresses = spec.get("clusterIP", ""), spec.get("clusterIPs") or []
    errors: Errors = []
    if single and not addresses:
        errors.append(required(_IPS))
    elif single and addresses[0] != single:
        errors.append(invalid(_IPS, addresses, "first value must match `clusterIP`"))
    elif addresses and not single:
        errors.append(invalid(_IPS, addresses, "must be empty when `clusterIP` is not specified"))
    errors += _family_mistakes(spec)
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in POLICIES:
        errors.append(not_supported(_POLICY, policy, POLICIES))

    unreadable: Errors = []
    before = (old.get("clusterIPs") if old is not None else None) or ()
    for i, address in enumerate(addresses):
        if i > 0 or address != NONE:
            unreadable += refuse_ip(f"{_IPS}[{i}]", address, before)
        elif len(addresses) > 1:
            unreadable.append(invalid(_IPS, addresses, "'None' must be the first and only value"))
    errors += unreadable
    if len(addresses) > 2:
        errors.append(invalid(_IPS, addresses, "may only hold up to 2 values"))
    # An address that cannot be parsed has no family to check.
    return errors if unreadable else errors + _stack_mistakes(spec, addresses)


def _family_mistakes(spec: Object) -> Errors:
    errors: Errors = []
    seen = set()
    for i, name in enumerate(spec.get("ipFamilies") or ()):
        at = f"spec.ipFamilies[{i}]"
        if name not in FAMILIES:
            errors.append(not_supported(at, name, FAMILIES))
        if name in seen:
            errors.append(duplicate(at, name))
        seen.add(name)
    return errors


def _stack_mistakes(spec: Object, addresses: list[str]) -> Errors:
    errors: Errors = []
    if len(addresses) > 1 and not both_families(addresses):
        errors.append(invalid(_IPS, addresses, "may specify no more than one IP for each IP family"))
    if not is_headless(spec):
        pairs = zip(addresses, spec.get("ipFamilies") or (), strict=False)
        for i, (address, name) in enumerate(pairs):
            if name in FAMILIES and family(address) != name:
                sentence = f"expected an {name} value as indicated by `ipFamilies[{i}]`"
                errors.append(invalid(f"{_IPS}[{i}]", address, sentence))
    return errors


# --- changes ---------------------------------------------------------------------------------------


def cluster_ip_change_mistakes(spec: Object, old: Object) -> Errors:
    """A second address may be added or released, but addresses may not be replaced, except via type ExternalName."""
    if EXTERNAL_NAME in (spec.get("type"), old.get("type")) or (is_headless(spec) and is_headless(old)):
        return []
    before, now = old.get("clusterIPs") or [], spec.get("clusterIPs") or []
    fixed = "may not change once set"
    if len(before) == len(now):
        changed = [i for i, address in enumerate(before) if address != now[i]]
        return [invalid(f"{_IPS}[{i}]", now, fixed) for i in changed]
    errors: Errors = []
    if not now:
        errors.append(invalid(f"{_IPS}[0]", now, "primary clusterIP can not be unset"))
    elif before and now[0] != before[0]:
        errors.append(invalid(f"{_IPS}[0]", now, fixed))
    if len(before) > len(now) == 1 and spec.get("ipFamilyPolicy") != SINGLE_STACK:
        sentence = "must be set to 'SingleStack' when releasing the secondary clusterIP"
        errors.append(invalid(_POLICY, spec.get("ipFamilyPolicy"), sentence))
    return errors


def family_change_mistakes(spec: Object, old: Object) -> Errors:
    """The same rule for families; headless Services, which have no addresses, may change them freely."""
    if EXTERNAL_NAME in (spec.get("type"), old.get("type")) or is_headless(spec) or is_headless(old):
        return []
    before, now = old.get("ipFamilies") or [], spec.get("ipFamilies") or []
    addresses = spec.get("clusterIPs") or []
    first, fixed = "spec.ipFamilies[0]", "may not change once set"
    if len(before) == len(now):
        return [invalid(first, now, fixed) for i, name in enumerate(before) if name != now[i]]
    errors: Errors = []
    if len(before) > len(now) and not addresses:
        errors.append(invalid(first, now, "primary ipFamily can not be unset"))
    if before and now and now[0] != before[0]:
        errors.append(invalid(first, addresses, fixed))
    if len(before) > len(now) == 1 and spec.get("ipFamilyPolicy") != SINGLE_STACK:
        sentence = "must be set to 'SingleStack' when releasing the secondary ipFamily"
        errors.append(invalid(_POLICY, spec.get("ipFamilyPolicy"), sentence))
    return errors
