"""The environment and the command line of a container, as a kubelet makes them.  Pure."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, Decimal

import msgspec

from seamark.kinds.values.quantity import amount
from seamark.nodes.running.spec import Container, FieldRef, PodToRun, ResourceFieldRef, Variable
from seamark.rules.objects.service import Service

Content = Mapping[str, str]
Find = Callable[[str], Content | None]  # the content of a ConfigMap or Secret by name; None if there is none

_REFERENCE = re.compile(r"\$(?:(\$)|\(([^()]*)\))")
_INDEXED = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")
_MILLI_CPU = Decimal("0.001")


class Unmakeable(Exception):
    """The container cannot be created: what is missing, in a kubelet's words."""


class Around(msgspec.Struct, frozen=True):
    """What a container's environment may refer to beside its Pod's own spec."""

    config_map: Find
    secret: Find
    pod_ips: tuple[str, ...] = ()
    host_ips: tuple[str, ...] = ()
    services: tuple[Service, ...] = ()  # those the Pod is told of by variables
    allocatable: Mapping[str, str] = {}


# --- references ------------------------------------------------------------------------------------


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """The text with ``$(NAME)`` replaced; ``$$`` stands for ``$``, and a name that is unknown stays as it is."""

    def value(found: re.Match[str]) -> str:
        dollar, name = found.groups()
        return "$" if dollar else variables.get(name, found.group())

    return _REFERENCE.sub(value, text)


def filled(text: str, variables: Mapping[str, str]) -> str:
    """Like ``expanded``, but every name must be known."""
    for dollar, name in _REFERENCE.findall(text):
        if not dollar and name not in variables:
            raise Unmakeable(f'missing value for "{name}"')
    return expanded(text, variables)


def command_line(container: Container, variables: Mapping[str, str]) -> tuple[str, ...]:
    """What the Pod asks to run, without what the image has as its own."""
    return tuple(expanded(word, variables) for word in (*container.command, *container.args))


# --- the environment -------------------------------------------------------------------------------


def environment(pod: PodToRun, container: Container, around: Around) -> dict[str, str]:
    """Variables about Services, then those of whole ConfigMaps and Secrets, then the container's own, in order."""
    found = service_variables(around.services)
    for source in container.env_from:
        if source.config_map_ref is not None:
            ref, content, kind = source.config_map_ref, around.config_map(source.config_map_ref.name), "configmap"
        elif source.secret_ref is not None:
            ref, content, kind = source.secret_ref, around.secret(source.secret_ref.name), "secret"
        else:
            continue
        if content is None:
            if ref.optional:
                continue
            raise Unmakeable(f'{kind} "{ref.name}" not found')
        found |= {f"{source.prefix}{key}": value for key, value in content.items()}
    own: dict[str, str] = {}
    for variable in container.env:
        value = _value(pod, container, variable, around, found | own)
        if value is not None:
            own[variable.name] = value
    return found | own


def _value(
    pod: PodToRun, container: Container, variable: Variable, around: Around, known: Mapping[str, str]
) -> str | None:
    source = variable.value_from
    if source is None:
        return expanded(variable.value, known)
    if source.field_ref is not None:
        return field(pod, source.field_ref, around)
    if source.resource_field_ref is not None:
        return resource(pod, container, source.resource_field_ref, around.allocatable)
    for ref, find, kind in (
        (source.config_map_key_ref, around.config_map, "ConfigMap"),
        (source.secret_key_ref, around.secret, "Secret"),
    ):
        if ref is None:
            continue
        content = find(ref.name)
        if content is None:
            if ref.optional:
                return None
            raise Unmakeable(f'{kind.lower()} "{ref.name}" not found')
        if ref.key in content:
            return content[ref.key]
        if ref.optional:
            return None
        raise Unmakeable(f"couldn't find key {ref.key} in {kind} {pod.metadata.namespace}/{ref.name}")
    return ""


def field(pod: PodToRun, ref: FieldRef, around: Around) -> str:
    """A field of the Pod as text (the downward API)."""
    path, meta, spec = ref.field_path, pod.metadata, pod.spec
    if (indexed := _INDEXED.fullmatch(path)) is not None:
        kind, key = indexed.groups()
        return (meta.labels if kind == "labels" else meta.annotations).get(key, "")
    plain = {
        "metadata.name": meta.name,
        "metadata.namespace": meta.namespace,
        "metadata.uid": meta.uid,
        "spec.nodeName": spec.node_name,
        "spec.serviceAccountName": spec.service_account_name,
        "status.podIP": (*around.pod_ips, "")[0],
        "status.podIPs": ",".join(around.pod_ips),
        "status.hostIP": (*around.host_ips, "")[0],
        "status.hostIPs": ",".join(around.host_ips),
    }
    if path in plain:
        return plain[path]
    if path in ("metadata.labels", "metadata.annotations"):
        entries = meta.labels if path == "metadata.labels" else meta.annotations
        return "\n".join(f'{key}="{_quoted(value)}"' for key, value in sorted(entries.items()))
    raise Unmakeable(f"unsupported fieldPath: {path}")


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def resource(pod: PodToRun, container: Container, ref: ResourceFieldRef, allocatable: Mapping[str, str]) -> str:
    """A request or limit of a container, divided and rounded up; a limit that is not set is all of the node's."""
    group, _, name = ref.resource.partition(".")
    everyone = (*pod.spec.containers, *pod.spec.init_containers)
    about = next((each for each in everyone if each.name == ref.container_name), container)
    given = (about.resources.limits if group == "limits" else about.resources.requests).get(name)
    if given is None:
        given = allocatable.get(name, "0") if group == "limits" else "0"
    divisor = amount(str(ref.divisor)) or Decimal(1)
    value = amount(str(given))
    if name == "cpu" and divisor == _MILLI_CPU:
        value = value.quantize(_MILLI_CPU, ROUND_CEILING)
    return str(int((value / divisor).to_integral_value(ROUND_CEILING)))


# --- Services --------------------------------------------------------------------------------------


def linked_services(namespace: str, services: Iterable[Service], *, links: bool) -> tuple[Service, ...]:
    """The Services a Pod is told of: ``kubernetes`` always, those of its namespace if it wants links to them."""
    found: dict[str, Service] = {}
    for service in services:
        meta = service.metadata
        if not service.spec.cluster_ip or service.spec.cluster_ip == "None":
            continue
        if meta.namespace == namespace and links:
            found[meta.name] = service
        elif meta.namespace == "default" and meta.name == "kubernetes":
            found.setdefault(meta.name, service)
    return tuple(found[name] for name in sorted(found))


def service_variables(services: Sequence[Service]) -> dict[str, str]:
    found: dict[str, str] = {}
    for service in services:
        if not service.spec.ports:
            continue
        name = _variable(service.metadata.name)
        host, first = service.spec.cluster_ip, service.spec.ports[0]
        found[f"{name}_SERVICE_HOST"] = host
        found[f"{name}_SERVICE_PORT"] = str(first.port)
        for port in service.spec.ports:
            if port.name:
                found[f"{name}_SERVICE_PORT_{_variable(port.name)}"] = str(port.port)
        address = f"[{host}]" if ":" in host else host
        found[f"{name}_PORT"] = f"{first.protocol.lower()}://{address}:{first.port}"
        for port in service.spec.ports:
            prefix = f"{name}_PORT_{port.port}_{port.protocol}"
            found[prefix] = f"{port.protocol.lower()}://{address}:{port.port}"
            found[f"{prefix}_PROTO"] = port.protocol.lower()
            found[f"{prefix}_PORT"] = str(port.port)
            found[f"{prefix}_ADDR"] = host
    return found


def _variable(name: str) -> str:
    return name.upper().replace("-", "_")


def secret_content(data: Mapping[str, str]) -> dict[str, str]:
    """The values of a Secret as text; a value that is no text has its bytes replaced where they cannot be read."""
    found = {}
    for key, value in data.items():
        try:
            found[key] = base64.b64decode(value).decode(errors="replace")
        except binascii.Error:
            continue
    return found
