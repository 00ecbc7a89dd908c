"""Updates of a Pod's status: which old values are kept, and validation."""

from __future__ import annotations

import re

from seamark.errors import Object
from seamark.kinds.language import go_names
from seamark.kinds.values.addresses import both_families, plain, refuse_ip
from seamark.kinds.values.fields import Errors, duplicate, forbidden, immutable, invalid
from seamark.kinds.values.metadata import dns_subdomain, qualified_name

_own = re.compile(rb'"(podIP|hostIP|ip|containerID)":"([^"\\]+)"').findall

_OWN_CONDITIONS = frozenset(("PodScheduled", "Ready", "Initialized"))


def agree_on_addresses(status: Object) -> None:
    """Make ``podIP`` the first of ``podIPs``; if they differ, ``podIP`` wins, because old kubelets send only that."""
    first, listed = status.get("podIP"), status.get("podIPs")
    if first and (not listed or listed[0].get("ip") != first):
        status["podIPs"] = [{"ip": first}]
    elif listed and not first and listed[0].get("ip"):
        status["podIP"] = listed[0]["ip"]


def keep_observed_generations(status: Object, before: Object) -> None:
    """Keep ``observedGeneration`` if the update leaves it out, because old clients do not know the field."""
    if not status.get("observedGeneration") and before.get("observedGeneration"):
        status["observedGeneration"] = before["observedGeneration"]
    seen: dict[str, list[int]] = {}
    for condition in before.get("conditions") or ():
        seen.setdefault(condition.get("type", ""), []).append(condition.get("observedGeneration", 0))
    for condition in status.get("conditions") or ():
        known = seen.get(condition.get("type", ""))
        generation = known.pop(0) if known else 0
        if generation and not condition.get("observedGeneration"):
            condition["observedGeneration"] = generation


def own_texts(status: bytes) -> dict[bytes, str] | None:
    """The addresses and container IDs in the JSON of a status, with their form.

    None if one is not written as usual (an ID is ``runtime://id``, which no name of a field and no amount is), or if it
    is the text of other fields too.
    """
    found: dict[bytes, str] = {}
    places = _own(status)
    for field, text in places:
        form = _id_form(text) if field == b"containerID" else plain(text.decode())
        if form is None or found.setdefault(text, form) != form:
            return None
    return found if sum(status.count(b'"%b"' % text) for text in found) == len(places) else None


def _id_form(text: bytes) -> str | None:
    return "ID" if b"://" in text else None


def status_mistakes(pod: Object, old: Object) -> Errors:
    status, before = pod["status"], old["status"]
    errors: Errors = []
    for i, condition in enumerate(status.get("conditions") or ()):
        kind, path = condition.get("type", ""), f"status.conditions[{i}]"
        if (generation := condition.get("observedGeneration", 0)) < 0:
            errors.append(invalid(f"{path}.observedGeneration", generation, "must be a non-negative integer"))
        if kind not in _OWN_CONDITIONS and (sentences := qualified_name(kind)):
            errors += [invalid(f"{path}.Type", kind, sentence) for sentence in sentences]
    nominated = status.get("nominatedNodeName")
    if nominated and nominated != before.get("nominatedNodeName"):
        errors += [invalid("status.nominatedNodeName", nominated, sentence) for sentence in dns_subdomain(nominated)]
        if old["spec"].get("nodeName"):
            sentence = "may not be set on pods that are already bound to a node"
            errors.append(forbidden("status.nominatedNodeName", sentence))
    if (generation := status.get("observedGeneration", 0)) < 0:
        errors.append(invalid("status.observedGeneration", generation, "must be a non-negative integer"))
    if status.get("qosClass") != before.get("qosClass"):
        errors.append(immutable("status.qosClass", status.get("qosClass", "")))
    if not _restarts_all(old["spec"]):
        errors += _revived(status, before, "containerStatuses", old["spec"], "containers")
        errors += _revived(status, before, "initContainerStatuses", old["spec"], "initContainers")
    errors += _revived(status, before, "ephemeralContainerStatuses", {}, "")
    errors += _claim_status_mistakes(status.get("resourceClaimStatuses") or [], pod["spec"])
    errors += _address_mistakes(status, before, "podIPs")
    return errors + _host_address_mistakes(status, before)


def _restarts_all(spec: Object) -> bool:
    """Whether the end of one container can make all of them start again."""
    return any(
        rule.get("action") == "RestartAllContainers"
        for field in ("containers", "initContainers")
        for container in spec.get(field) or ()
        for rule in container.get("restartPolicyRules") or ()
    )


def _restarts(container: Object, spec: Object, code: int) -> bool:
    """Whether a container that ended with this exit code is started again, by its own policy or the Pod's."""
    own = container.get("restartPolicy")
    if own is not None:
        for rule in container.get("restartPolicyRules") or ():
            codes = rule.get("exitCodes") or {}
            if (code in (codes.get("values") or ())) == (codes.get("operator") == "In"):
                return True
    policy = spec.get("restartPolicy") if own is None else own
    return policy == "Always" or (policy == "OnFailure" and code != 0)


def _revived(status: Object, before: Object, field: str, spec: Object, containers: str) -> Errors:
    """Errors about containers that ended for good and would be running or waiting again."""
    errors: Errors = []
    for i, was in enumerate(before.get(field) or ()):
        ended = (was.get("state") or {}).get("terminated")
        if ended is None:
            continue
        of_that_name = (c for c in spec.get(containers) or () if c.get("name") == was.get("name"))
        if _restarts(next(of_that_name, {"restartPolicy": "Never"}), spec, ended.get("exitCode", 0)):
            continue
        errors += [
            forbidden(f"status.{field}[{i}].state", "may not be transitioned to non-terminated state")
            for now in status.get(field) or ()
            if now.get("name") == was.get("name") and (now.get("state") or {}).get("terminated") is None
        ]
    return errors


def _claim_status_mistakes(statuses: list[Object], spec: Object) -> Errors:
    errors: Errors = []
    known = {claim.get("name") for claim in spec.get("resourceClaims") or ()}
    seen = set()
    for i, claim in enumerate(statuses):
        path, name = f"status.resourceClaimStatuses[{i}].name", claim.get("name", "")
        if name not in known:
            errors.append(invalid(path, name, "must match the name of an entry in `spec.resourceClaims`"))
        if name in seen:
            errors.append(duplicate(path, name))
        seen.add(name)
        if (reference := claim.get("resourceClaimName")) is not None:
            at = f"status.resourceClaimStatuses[{i}].resourceClaimName"
            errors += [invalid(at, reference, sentence) for sentence in dns_subdomain(reference)]
    return errors


def _address_mistakes(status: Object, before: Object, field: str) -> Errors:
    listed = status.get(field)
    if not listed:
        return []
    path = f"status.{field}"
    addresses = [entry.get("ip", "") for entry in listed]
    families = {plain(address) for address in addresses}
    if None not in families and len(families) == len(addresses):
        return []  # the usual case: all are canonical, and at most one of each family
    known = [entry.get("ip", "") for entry in before.get(field) or ()]
    errors: Errors = []
    for i, address in enumerate(addresses):
        errors += refuse_ip(f"{path}[{i}]", address, known)
    if len(addresses) > 1:
        shown = [go_names.POD_IP(entry) for entry in listed]
        if len(addresses) > 2 or not both_families(addresses):
            errors.append(invalid(path, shown, "may specify no more than one IP for each IP family"))
    return errors


def _host_address_mistakes(status: Object, before: Object) -> Errors:
    listed = status.get("hostIPs")
    if not listed:
        return []
    errors: Errors = []
    if status.get("hostIP", "") != listed[0].get("ip", ""):
        errors.append(invalid("status.hostIPs[0].ip", listed[0].get("ip", ""), "must be equal to `hostIP`"))
    return errors + _address_mistakes(status, before, "hostIPs")
