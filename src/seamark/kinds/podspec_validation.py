"""Everything that can be wrong with a PodSpec, in a Pod and in the template of a workload alike."""

from __future__ import annotations

from seamark.errors import Object
from seamark.kinds.fields import Errors, duplicate, invalid, not_supported, required
from seamark.kinds.metadata import dns_label

RESTART_POLICIES = ("Always", "OnFailure", "Never")
DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")


def spec_mistakes(spec: Object, path: str) -> Errors:
    errors: Errors = []
    containers = spec.get("containers") or ()
    if not containers:
        errors.append(required(f"{path}.containers"))
    seen = set()
    for i, container in enumerate(containers):
        name = container.get("name", "")
        at = f"{path}.containers[{i}]"
        if not name:
            errors.append(required(f"{at}.name"))
        else:
            errors += [invalid(f"{at}.name", name, sentence) for sentence in dns_label(name)]
            if name in seen:
                errors.append(duplicate(f"{at}.name", name))
            seen.add(name)
        if not container.get("image"):
            errors.append(required(f"{at}.image"))
    if spec.get("restartPolicy") not in RESTART_POLICIES:
        errors.append(not_supported(f"{path}.restartPolicy", spec.get("restartPolicy"), RESTART_POLICIES))
    if spec.get("dnsPolicy") not in DNS_POLICIES:
        errors.append(not_supported(f"{path}.dnsPolicy", spec.get("dnsPolicy"), DNS_POLICIES))
    return errors


def template_mistakes(template: Object, path: str) -> Errors:
    return spec_mistakes(template.get("spec") or {}, f"{path}.spec")
