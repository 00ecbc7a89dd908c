"""Validation of Pods and of the Pod templates of workloads."""

from __future__ import annotations

import re

from seamark.errors import Object
from seamark.kinds.language import go_names
from seamark.kinds.pod.annotations import annotation_mistakes, profile_annotation_mistakes
from seamark.kinds.pod.containers import (
    Surroundings,
    containers_mistakes,
    ephemeral_containers_mistakes,
    init_containers_mistakes,
    padded_image_mistakes,
)
from seamark.kinds.pod.resources import container_mistakes as resource_mistakes
from seamark.kinds.pod.resources import pod_mistakes as pod_resource_mistakes
from seamark.kinds.pod.scheduling import affinity_mistakes, gate_mistakes, spread_mistakes, toleration_mistakes
from seamark.kinds.pod.security import (
    each_container,
    host_process_mistakes,
    host_user_mistakes,
    pod_security_mistakes,
    system_mistakes,
)
from seamark.kinds.pod.volumes import volume_mistakes
from seamark.kinds.values.addresses import ip_mistakes
from seamark.kinds.values.fields import (
    Errors,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
    too_long,
)
from seamark.kinds.values.metadata import (
    dns_label,
    dns_subdomain,
    qualified_name,
    validate_annotations,
    validate_labels,
)

RESTART_POLICIES = ("Always", "OnFailure", "Never")
DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_LARGEST_INT32 = 2147483647
_search_domain = re.compile(r"[a-z0-9_]([-_a-z0-9]*[a-z0-9_])?(\.[a-z0-9_]([-_a-z0-9]*[a-z0-9_])?)*")


def pod_spec_mistakes(pod: Object) -> Errors:
    """What is wrong with the annotations and the spec of a Pod, new or existing."""
    spec, meta = pod["spec"], pod["metadata"]
    errors: Errors = []
    if annotations := meta.get("annotations"):
        errors += annotation_mistakes(annotations, spec, "metadata.annotations")
    errors += spec_mistakes(spec, "spec", pod_name=meta.get("name", ""), in_pod=True)
    if not spec.get("serviceAccountName") and (volumes := spec.get("volumes")):
        errors += _token_mistakes(volumes)
    for field in ("containers", "initContainers"):
        for i, container in enumerate(spec.get(field) or ()):
            errors += padded_image_mistakes(container, f"spec.{field}[{i}]")
    return errors


def new_pod_mistakes(pod: Object) -> Errors:
    """What is wrong with a new Pod."""
    spec = pod["spec"]
    errors = pod_spec_mistakes(pod)
    if spec.get("ephemeralContainers"):
        errors.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        sentence = "cannot be set until all schedulingGates have been cleared"
        errors.append(forbidden("spec.nodeName", sentence))
    return errors + profile_annotation_mistakes(pod["metadata"].get("annotations") or {}, spec, "spec")


def template_mistakes(template: Object, path: str) -> Errors:
    """What is wrong with a Pod template, for which some rules of Pods do not apply."""
    meta, spec = template.get("metadata") or {}, template["spec"]
    errors: Errors = []
    if labels := meta.get("labels"):
        errors += validate_labels(labels, f"{path}.labels")
    annotations = meta.get("annotations") or {}
    if annotations:
        errors += validate_annotations(annotations, f"{path}.annotations")
        errors += annotation_mistakes(annotations, spec, f"{path}.annotations")
    errors += spec_mistakes(spec, f"{path}.spec", pod_name="", in_pod=False)
    errors += profile_annotation_mistakes(annotations, spec, f"{path}.spec")
    if spec.get("ephemeralContainers"):
        sentence = "ephemeral containers not allowed in pod template"
        errors.append(forbidden(f"{path}.spec.ephemeralContainers", sentence))
    return errors


def _token_mistakes(volumes: list[Object]) -> Errors:
    return [
        forbidden(
            f"spec.volumes[{i}].projected.sources[{j}].serviceAccountToken",
            "must not be specified when serviceAccountName is not set",
        )
        for i, volume in enumerate(volumes)
        for j, source in enumerate((volume.get("projected") or {}).get("sources") or ())
        if source.get("serviceAccountToken") is not None
    ]


def spec_mistakes(spec: Object, path: str, *, pod_name: str, in_pod: bool) -> Errors:
    """What is wrong with a PodSpec, in the order of Kubernetes' errors."""
    errors: Errors = []
    get = spec.get
    volumes: dict[str, Object] = {}
    if listed := get("volumes"):
        volumes, errors = volume_mistakes(listed, f"{path}.volumes", pod_name=pod_name, in_pod=in_pod)
    if claims := get("resourceClaims"):
        errors += _claim_mistakes(claims, f"{path}.resourceClaims")
    pod = Surroundings.of(spec, volumes)
    errors += containers_mistakes(spec, f"{path}.containers", pod)
    if get("initContainers"):
        errors += init_containers_mistakes(spec, f"{path}.initContainers", pod)
    if get("ephemeralContainers"):
        errors += ephemeral_containers_mistakes(spec, f"{path}.ephemeralContainers", pod)
    if get("resources"):
        errors += pod_resource_mistakes(spec, f"{path}.resources")
    if get("hostNetwork"):
        errors += _host_network_mistakes(spec, path, in_pod=in_pod)
    if (restart := get("restartPolicy")) not in RESTART_POLICIES:
        errors.append(not_supported(f"{path}.restartPolicy", restart, RESTART_POLICIES))
    if (dns := get("dnsPolicy")) not in DNS_POLICIES:
        errors.append(not_supported(f"{path}.dnsPolicy", dns, DNS_POLICIES))
    if labels := get("nodeSelector"):
        errors += validate_labels(labels, f"{path}.nodeSelector")
    errors += pod_security_mistakes(spec, path)
    if affinity := get("affinity"):
        errors += affinity_mistakes(affinity, f"{path}.affinity")
    if dns == "None" or get("dnsConfig") is not None:
        errors += _dns_mistakes(spec, f"{path}.dnsConfig")
    for i, gate in enumerate(get("readinessGates") or ()):
        kind = gate.get("conditionType", "")
        at = f"{path}.readinessGates[{i}].conditionType"
        errors += [invalid(at, kind, sentence) for sentence in qualified_name(kind)]
    if gates := get("schedulingGates"):
        errors += gate_mistakes(gates, f"{path}.schedulingGates")
    if constraints := get("topologySpreadConstraints"):
        errors += spread_mistakes(constraints, f"{path}.topologySpreadConstraints")
    errors += host_process_mistakes(spec, path)
    errors += host_user_mistakes(spec, path)
    if (override := get("hostnameOverride")) is not None:
        errors += _override_mistakes(spec, override, path)
    return errors + _name_mistakes(spec, path) + _late_mistakes(spec, path)


# Fields that name other objects, and the rule for the name.
_NAMES = (("serviceAccountName", dns_subdomain), ("nodeName", dns_subdomain))


def _name_mistakes(spec: Object, path: str) -> Errors:
    errors: Errors = []
    for field, rule in _NAMES:
        if (name := spec.get(field)) and (sentences := rule(name)):
            errors += [invalid(f"{path}.{field}", name, sentence) for sentence in sentences]
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _LARGEST_INT32:
        sentence = f"must be between 1 and {_LARGEST_INT32}, inclusive"
        errors.append(invalid(f"{path}.activeDeadlineSeconds", deadline, sentence))
    for field in ("hostname", "subdomain"):
        if (name := spec.get(field)) and (sentences := dns_label(name)):
            errors += [invalid(f"{path}.{field}", name, sentence) for sentence in sentences]
    return errors


def _override_mistakes(spec: Object, name: str, path: str) -> Errors:
    at = f"{path}.hostnameOverride"
    errors: Errors = []
    if spec.get("setHostnameAsFQDN"):
        errors.append(forbidden(at, "may not be specified when setHostnameAsFQDN is true"))
    if spec.get("hostNetwork"):
        errors.append(forbidden(at, "may not be specified when hostNetwork is true"))
    if len(name) > 64:
        errors.append(too_long(at, 64))
    return errors + [invalid(at, name, sentence) for sentence in dns_subdomain(name)]


def _late_mistakes(spec: Object, path: str) -> Errors:
    errors: Errors = []
    get = spec.get
    if tolerations := get("tolerations"):
        errors += toleration_mistakes(tolerations, f"{path}.tolerations")
    for i, alias in enumerate(get("hostAliases") or ()):
        at, address = f"{path}.hostAliases[{i}]", alias.get("ip", "")
        errors += [invalid(f"{at}.ip", address, sentence) for sentence in ip_mistakes(address)]
        for j, name in enumerate(alias.get("hostnames") or ()):
            errors += [invalid(f"{at}.hostnames[{j}]", name, sentence) for sentence in dns_subdomain(name)]
    for field in ("priorityClassName", "runtimeClassName"):
        if (name := get(field)) or (field == "runtimeClassName" and name is not None):
            errors += [invalid(f"{path}.{field}", name, sentence) for sentence in dns_subdomain(name)]
    policy = get("preemptionPolicy")
    if policy is not None and policy not in PREEMPTION_POLICIES:
        errors.append(not_supported(f"{path}.preemptionPolicy", policy, PREEMPTION_POLICIES))
    if overhead := get("overhead"):
        errors += resource_mistakes({"limits": overhead}, f"{path}.overhead", set())
    if get("os") is not None:
        errors += system_mistakes(spec, path)
    return errors + _variable_file_mistakes(spec, path)


def _variable_file_mistakes(spec: Object, path: str) -> Errors:
    """Files that variables come from must be in a volume that is made for the Pod (emptyDir)."""
    errors: Errors = []
    volumes: dict[str, Object] | None = None
    for container, at in each_container(spec, path):
        for i, variable in enumerate(container.get("env") or ()):
            file = (variable.get("valueFrom") or {}).get("fileKeyRef")
            if file is None:
                continue
            if volumes is None:
                volumes = {volume.get("name", ""): volume for volume in spec.get("volumes") or ()}
            field, name = f"{at}.env[{i}].valueFrom.fileKeyRef.volumeName", file.get("volumeName", "")
            if name not in volumes:
                errors.append(not_found(field, name))
            elif volumes[name].get("emptyDir") is None:
                errors.append(invalid(field, name, "referenced volume must be of type emptyDir"))
    return errors


def _claim_mistakes(claims: list[Object], path: str) -> Errors:
    errors: Errors = []
    seen = set()
    for i, claim in enumerate(claims):
        at, name = f"{path}[{i}]", claim.get("name", "")
        if not name:
            errors.append(required(f"{at}.name"))
        elif name in seen:
            errors.append(duplicate(f"{at}.name", name))
        else:
            errors += [invalid(f"{at}.name", name, sentence) for sentence in dns_label(name)]
            seen.add(name)
        given = [field for field in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(field) is not None]
        if len(given) > 1:
            sentence = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            errors.append(invalid(at, go_names.POD_RESOURCE_CLAIM(claim), sentence))
        elif not given:
            sentence = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            errors.append(invalid(at, go_names.POD_RESOURCE_CLAIM(claim), sentence))
        for field in given:
            errors += [invalid(f"{at}.{field}", claim[field], sentence) for sentence in dns_subdomain(claim[field])]
    return errors


def _host_network_mistakes(spec: Object, path: str, *, in_pod: bool) -> Errors:
    """With ``hostNetwork``, a host port must equal the container port; a template may leave it out."""
    sentence = "must match `containerPort` when `hostNetwork` is true"
    return [
        invalid(f"{path}.containers[{i}].ports[{j}].hostPort", port.get("hostPort", 0), sentence)
        for i, container in enumerate(spec.get("containers") or ())
        for j, port in enumerate(container.get("ports") or ())
        if (in_pod or port.get("hostPort")) and port.get("hostPort", 0) != port.get("containerPort", 0)
    ]


def _dns_mistakes(spec: Object, path: str) -> Errors:
    config = spec.get("dnsConfig")
    if config is None:
        return [required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
    servers, searches = config.get("nameservers") or [], config.get("searches") or []
    if spec.get("dnsPolicy") == "None" and not servers:
        sentence = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        return [required(f"{path}.nameservers", sentence)]
    errors: Errors = []
    if len(servers) > 3:
        errors.append(invalid(f"{path}.nameservers", servers, "must not have more than 3 nameservers"))
    for i, server in enumerate(servers):
        errors += [invalid(f"{path}.nameservers[{i}]", server, sentence) for sentence in ip_mistakes(server)]
    if len(searches) > 32:
        errors.append(invalid(f"{path}.searches", searches, "must not have more than 32 search paths"))
    if len(" ".join(searches)) > 2048:
        sentence = "must not have more than 2048 characters (including spaces) in the search list"
        errors.append(invalid(f"{path}.searches", searches, sentence))
    for i, search in enumerate(searches):
        bare = search.removesuffix(".")
        if search != "." and not (_search_domain.fullmatch(bare) and len(bare) <= 253):
            errors += [invalid(f"{path}.searches[{i}]", bare, sentence) for sentence in _search_sentences(bare)]
    for i, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            errors.append(required(f"{path}.options[{i}]", "must not be empty"))
    return errors


def _search_sentences(name: str) -> list[str]:
    wrong = ["must be no more than 253 characters"] if len(name) > 253 else []
    if not _search_domain.fullmatch(name):
        wrong.append(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-', '_' or '.', and "
            "must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
            r"'[a-z0-9_]([-_a-z0-9]*[a-z0-9_])?(\.[a-z0-9_]([-_a-z0-9]*[a-z0-9_])?)*')"
        )
    return wrong
