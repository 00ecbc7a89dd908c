"""Warnings about a PodSpec: things that are allowed but probably a mistake, for the ``Warning`` header of a write."""

from __future__ import annotations

from collections.abc import Iterator

from seamark.errors import Object
from seamark.kinds.pod.annotations import APP_ARMOR, SECCOMP_CONTAINER, SECCOMP_POD
from seamark.kinds.pod.security import each_container
from seamark.kinds.values.addresses import ip_warnings
from seamark.kinds.values.quantity import measure

_DEPRECATED_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": (
        'non-functional in v1.16+; use the "priorityClassName" field instead'
    ),
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
DEPRECATED_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
}
DEPRECATED_VOLUMES = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_FILES = (("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName"), ("downwardAPI", "DownwardAPI", None))
_PROJECTED_FILES = (
    ("configMap", "ConfigMap", "name"),
    ("secret", "Secret", "name"),
    ("downwardAPI", "DownwardAPI", None),
    ("serviceAccountToken", "ServiceAccountToken", None),
    ("clusterTrustBundle", "ClusterTrustBundle", "name"),
)
_SINGLE_FILES = ("serviceAccountToken", "clusterTrustBundle")
_MOST_PATHS = 500  # each is compared with each, for a warning only
_TOKEN_VOLUME = "kube-api-access-"
_SECCOMP = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_NULL_SELECTOR = "a null labelSelector results in matching no pod"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def spec_warnings(meta: Object, spec: Object, path: str) -> list[str]:
    """``path`` is empty for a Pod, and that of the template (``spec.template``) for a workload."""
    prefix = f"{path}." if path else ""
    at = f"{prefix}spec"
    annotations, get = meta.get("annotations") or {}, spec.get
    sentences: list[str] = []
    # Few Pods have these fields, so each is checked only if it is set.
    if get("nodeSelector") or get("affinity") or get("topologySpreadConstraints"):
        sentences += _label_warnings(spec, at)
    if annotations:
        where = f"{prefix}metadata.annotations"
        sentences += [f"{where}[{k}]: {v}" for k, v in _DEPRECATED_ANNOTATIONS.items() if k in annotations]
    if volumes := get("volumes"):
        sentences += _volume_warnings(volumes, at)
    if aliases := get("hostAliases"):
        sentences += _repeated(aliases, "ip", f"{at}.hostAliases")
    if secrets := get("imagePullSecrets"):
        sentences += _repeated(secrets, "name", f"{at}.imagePullSecrets")
        empty = [i for i, secret in enumerate(secrets) if not secret.get("name")]
        sentences += [f'{at}.imagePullSecrets[{i}].name: invalid empty name ""' for i in empty]
    if overhead := get("overhead"):
        sentences += fraction_warnings(overhead, f"{at}.overhead")
    sentences += _container_warnings(annotations, spec, prefix, template=bool(path))
    sentences += _port_warnings(spec, at)
    sentences += _late_warnings(spec, at)
    return sentences


def _label_warnings(spec: Object, at: str) -> Iterator[str]:
    for key in sorted(spec.get("nodeSelector") or ()):
        if key in DEPRECATED_LABELS:
            yield f"{at}.nodeSelector[{key}]: {DEPRECATED_LABELS[key]}"
    node = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    where = f"{at}.affinity.nodeAffinity"
    for i, term in enumerate((node.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()):
        yield from node_term_warnings(term, f"{where}.{_REQUIRED}.nodeSelectorTerms[{i}]")
    for i, term in enumerate(node.get(_PREFERRED) or ()):
        yield from node_term_warnings(term.get("preference") or {}, f"{where}.{_PREFERRED}[{i}].preference")
    for i, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        key = constraint.get("topologyKey", "")
        if key in DEPRECATED_LABELS:
            yield f"{at}.topologySpreadConstraints[{i}].topologyKey: {key} is {DEPRECATED_LABELS[key]}"
        if constraint.get("labelSelector") is None:
            yield f"{at}.topologySpreadConstraints[{i}].labelSelector: {_NULL_SELECTOR}"


def node_term_warnings(term: Object, path: str) -> Iterator[str]:
    for i, expression in enumerate(term.get("matchExpressions") or ()):
        key = expression.get("key", "")
        if key in DEPRECATED_LABELS:
            yield f"{path}.matchExpressions[{i}].key: {key} is {DEPRECATED_LABELS[key]}"


def label_selector_warnings(selector: Object, path: str) -> Iterator[str]:
    """Warn of old labels in a selector of nodes."""
    yield from node_term_warnings(selector, path)
    for key in selector.get("matchLabels") or ():
        if key in DEPRECATED_LABELS:
            yield f"{path}.matchLabels.{key}: {DEPRECATED_LABELS[key]}"


def _volume_warnings(volumes: list[Object], at: str) -> Iterator[str]:
    for i, volume in enumerate(volumes):
        for field, sentence in DEPRECATED_VOLUMES.items():
            if volume.get(field) is not None:
                yield f"{at}.volumes[{i}].{'storageOS' if field == 'storageos' else field}: {sentence}"
        if (claim := (volume.get("ephemeral") or {}).get("volumeClaimTemplate")) is not None:
            requests = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
            path = f"{at}.volumes[{i}].ephemeral.volumeClaimTemplate.spec.resources.requests"
            yield from fraction_warnings(requests, path, ("storage",))
    for volume in volumes:
        if not volume.get("name", "").startswith(_TOKEN_VOLUME):  # which nearly every Pod has, and which is right
            yield from _path_warnings(volume)


def _path_warnings(volume: Object) -> Iterator[str]:
    """Files of one volume that have the same path, or one of which is where another needs a directory."""
    name = volume.get("name", "")
    for field, word, named in _FILES:
        source = volume.get(field) or {}
        what = word if named is None else f'{word} "{source.get(named, "")}"'
        yield from _overlaps(_paths(source), f'volume "{name}" ({what})')
    known: list[str] = []
    for source in (volume.get("projected") or {}).get("sources") or ():
        if not source:
            yield f'volume "{name}" (Projected) has no sources provided'
        for field, word, named in _PROJECTED_FILES:
            inner = source.get(field) or {}
            paths = _paths(inner) if field not in _SINGLE_FILES else [inner.get("path", "")] if inner else []
            if paths:
                what = word if named is None else f'{word} "{inner.get(named, "")}"'
                yield from _overlaps(paths, f'volume "{name}" (Projected {what})')
                own = sorted(set(paths))
                yield from _overlaps(sorted(own + known), f'volume "{name}" (Projected {what})')
                known = sorted({*known, *own})
                break


def _paths(source: Object) -> list[str]:
    return [item.get("path", "") for item in source.get("items") or ()]


def _overlaps(paths: list[str], what: str) -> Iterator[str]:
    if not 1 < len(paths) <= _MOST_PATHS:
        return
    seen: dict[str, None] = {}
    for path in (path.rstrip("/") for path in paths):
        # As Kubernetes compares them: a path that another begins with counts, whole directories or not.
        other = next((o for o in seen if o and path and (f"{o}/".startswith(path) or f"{path}/".startswith(o))), "")
        if other:
            yield f'{what}: overlapping paths: "{path}" with "{other}"'
        seen[path] = None


def _repeated(entries: list[Object], field: str, path: str) -> Iterator[str]:
    seen = set()
    for i, entry in enumerate(entries):
        value = entry.get(field, "")
        if value in seen:
            yield f'{path}[{i}].{field}: duplicate {field} "{value}"'
        seen.add(value)


def fraction_warnings(
    resources: dict[str, str], path: str, names: tuple[str, ...] = ("memory", "ephemeral-storage")
) -> Iterator[str]:
    """Warnings about resources of these names, which are counted in bytes."""
    for name in names:
        if name in resources and measure(resources[name]) % 1:
            yield f'{path}[{name}]: fractional byte value "{resources[name]}" is invalid, must be an integer'


def _container_warnings(annotations: dict[str, str], spec: Object, prefix: str, *, template: bool) -> Iterator[str]:
    context = spec.get("securityContext") or {}
    where = f"{prefix}metadata.annotations"
    if context.get("seccompProfile") is None and SECCOMP_POD in annotations:
        yield f"{where}[{SECCOMP_POD}]: {_SECCOMP}"
    for container, path in each_container(spec, f"{prefix}spec"):
        if annotations:
            own, name = container.get("securityContext") or {}, container.get("name", "")
            key = SECCOMP_CONTAINER + name
            if own.get("seccompProfile") is None and key in annotations:
                yield f"{where}[{key}]: {_SECCOMP}"
            key = APP_ARMOR + name
            armored = context.get("appArmorProfile") is not None or own.get("appArmorProfile") is not None
            if template and not armored and key in annotations:
                yield f'{where}[{key}]: deprecated since v1.30; use the "appArmorProfile" field instead'
        if resources := container.get("resources"):
            yield from _resource_warnings(resources, f"{path}.resources")
        if variables := container.get("env"):
            yield from _variable_warnings(variables, f"{path}.env")


def _resource_warnings(resources: Object, path: str) -> Iterator[str]:
    for name in ("memory", "ephemeral-storage"):
        for field in ("limits", "requests"):
            quantities = resources.get(field)
            if quantities and name in quantities:
                yield from fraction_warnings({name: quantities[name]}, f"{path}.{field}")


def _variable_warnings(variables: list[Object], path: str) -> Iterator[str]:
    seen = set()
    for i, variable in enumerate(variables):
        name, value = variable.get("name", ""), variable.get("value", "")
        if name in seen:
            reference = f"$({name})"
            # A second definition that refers to the first one is intended.
            if variable.get("valueFrom") is not None or value == reference or reference not in value:
                yield f'{path}[{i}]: hides previous definition of "{name}", which may be dropped when using apply'
        seen.add(name)


def _port_warnings(spec: Object, at: str) -> Iterator[str]:
    known: dict[tuple[int, str], list[tuple[str, Object]]] = {}
    for container, path in each_container(spec, at):
        for i, port in enumerate(container.get("ports") or ()):
            where = f"{path}.ports[{i}]"
            if port.get("hostIP") and not port.get("hostPort"):
                yield f"{where}: hostIP set without hostPort: {_printed(port)}"
            others = known.setdefault((port.get("containerPort", 0), port.get("protocol", "")), [])
            for other_path, other in others:
                if sentence := _clash(port, other):
                    yield f"{where}: {sentence} port definition with {other_path}"
            others.append((where, port))


def _printed(port: Object) -> str:
    """A port as Go prints the struct."""
    name, number, protocol = port.get("name", ""), port.get("containerPort", 0), port.get("protocol", "")
    return f"{{Name:{name} HostPort:0 ContainerPort:{number} Protocol:{protocol} HostIP:{port['hostIP']}}}"


def _clash(port: Object, other: Object) -> str:
    host, other_host = port.get("hostPort", 0), other.get("hostPort", 0)
    address, other_address = port.get("hostIP", ""), other.get("hostIP", "")
    if (host, address) == (other_host, other_address):
        return "duplicate"
    if not host or not other_host:
        return "overlapping"
    if host == other_host and bool(address) != bool(other_address):
        return "dangerously ambiguous"
    return ""


def _late_warnings(spec: Object, at: str) -> Iterator[str]:
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        yield f"{at}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"
    if affinity := spec.get("affinity"):
        yield from _affinity_warnings(affinity, at)
    for i, server in enumerate((spec.get("dnsConfig") or {}).get("nameservers") or ()):
        yield from ip_warnings(f"{at}.dnsConfig.nameservers[{i}]", server)
    for i, alias in enumerate(spec.get("hostAliases") or ()):
        yield from ip_warnings(f"{at}.hostAliases[{i}].ip", alias.get("ip", ""))


def _affinity_warnings(affinity: Object, at: str) -> Iterator[str]:
    for field in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(field) or {}
        for i, term in enumerate(terms.get(_REQUIRED) or ()):
            if term.get("labelSelector") is None:
                yield f"{at}.affinity.{field}.{_REQUIRED}[{i}].labelSelector: {_NULL_SELECTOR}"
        for i, weighted in enumerate(terms.get(_PREFERRED) or ()):
            if (weighted.get("podAffinityTerm") or {}).get("labelSelector") is None:
                yield f"{at}.affinity.{field}.{_PREFERRED}[{i}].podAffinityTerm.labelSelector: {_NULL_SELECTOR}"
