"""Validation of Services, in the order in which Kubernetes reports errors."""

from __future__ import annotations

from seamark.errors import Object
from seamark.kinds.service.defaults import TRAFFIC_POLICIES
from seamark.kinds.service.families import cluster_ip_change_mistakes, cluster_ip_mistakes, family_change_mistakes
from seamark.kinds.service.types import (
    CLUSTER_IP,
    EXTERNAL_NAME,
    LOAD_BALANCER,
    NODE_PORT,
    NONE,
    TYPES,
    externally_accessible,
    is_headless,
    needs_health_check,
)
from seamark.kinds.values.addresses import parse, refuse_cidr, refuse_endpoint_ip, refuse_ip
from seamark.kinds.values.fields import Errors, duplicate, forbidden, invalid, not_supported, required
from seamark.kinds.values.metadata import dns_label, dns_subdomain, qualified_name, validate_labels
from seamark.kinds.values.ports import app_protocol_mistakes, port_mistakes, port_number_mistakes, protocol_mistakes
from seamark.kinds.wellknown import OLD_TOPOLOGY_ANNOTATION, TOPOLOGY_ANNOTATION, TRAFFIC_DISTRIBUTIONS

SOURCE_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"

LONGEST_AFFINITY = 86400
IP_MODES = ("Proxy", "VIP")
_ONLY_BALANCERS = "may only be used when `type` is 'LoadBalancer'"


def mistakes(obj: Object, old: Object | None) -> Errors:
    """What is wrong with the object itself; some checks do not apply to values that ``old`` already had."""
    spec = obj["spec"]
    old_spec = old["spec"] if old is not None else None
    ports = spec.get("ports") or []
    errors = _topology_mistakes(obj)
    if not ports and not is_headless(spec) and spec["type"] != EXTERNAL_NAME:
        errors.append(required("spec.ports"))
    errors += _type_mistakes(spec)
    errors += _own_port_mistakes(ports)
    errors += validate_labels(spec.get("selector") or {}, "spec.selector")
    errors += _affinity_mistakes(spec)
    errors += cluster_ip_mistakes(spec, old_spec)
    errors += _external_ip_mistakes(spec, old_spec)
    if spec["type"] not in TYPES:
        errors.append(not_supported("spec.type", spec["type"], TYPES))
    errors += _node_port_mistakes(spec)
    errors += _same_port_mistakes(ports)
    errors += _source_range_mistakes(obj, old)
    if spec.get("allocateLoadBalancerNodePorts") is not None and spec["type"] != LOAD_BALANCER:
        errors.append(forbidden("spec.allocateLoadBalancerNodePorts", _ONLY_BALANCERS))
    errors += _balancer_class_mistakes(spec)
    errors += _external_policy_mistakes(spec)
    errors += _internal_policy_mistakes(spec)
    distribution = spec.get("trafficDistribution")
    if distribution is not None and distribution not in TRAFFIC_DISTRIBUTIONS:
        errors.append(not_supported("spec.trafficDistribution", distribution, TRAFFIC_DISTRIBUTIONS))
    return errors


def change_mistakes(obj: Object, old: Object) -> Errors:
    """What is wrong with the change from ``old`` to the object."""
    spec, before = obj["spec"], old["spec"]
    errors = cluster_ip_change_mistakes(spec, before)
    errors += family_change_mistakes(spec, before)
    balancers = spec["type"] == before.get("type") == LOAD_BALANCER
    if balancers and spec.get("loadBalancerClass") != before.get("loadBalancerClass"):
        errors.append(invalid("spec.loadBalancerClass", spec.get("loadBalancerClass"), "may not change once set"))
    errors += _balancer_class_mistakes(spec)
    if needs_health_check(before) and needs_health_check(spec):
        same = spec.get("healthCheckNodePort", 0) == before.get("healthCheckNodePort", 0)
        errors += [] if same else [forbidden("spec.healthCheckNodePort", "field is immutable")]
    return errors


def status_mistakes(obj: Object, old: Object) -> Errors:
    """What is wrong with ``status.loadBalancer``."""
    path = "status.loadBalancer.ingress"
    ingresses = obj["status"]["loadBalancer"].get("ingress") or []
    if ingresses and obj["spec"].get("type") != LOAD_BALANCER:
        return [forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")]
    errors: Errors = []
    before = [ingress.get("ip") for ingress in old["status"]["loadBalancer"].get("ingress") or () if ingress.get("ip")]
    for i, ingress in enumerate(ingresses):
        at = f"{path}[{i}]"
        address, mode, hostname = ingress.get("ip", ""), ingress.get("ipMode"), ingress.get("hostname", "")
        if address:
            errors += refuse_ip(f"{at}.ip", address, before)
        if address and mode is None:
            errors.append(required(f"{at}.ipMode", "must be specified when `ip` is set"))
        elif not address and mode is not None:
            errors.append(forbidden(f"{at}.ipMode", "may not be specified when `ip` is not set"))
        elif mode is not None and mode not in IP_MODES:
            errors.append(not_supported(f"{at}.ipMode", mode, IP_MODES))
        if hostname:
            errors += [invalid(f"{at}.hostname", hostname, sentence) for sentence in dns_subdomain(hostname)]
            if parse(hostname) is not None:
                errors.append(invalid(f"{at}.hostname", hostname, "must be a DNS name, not an IP address"))
    return errors


def _topology_mistakes(obj: Object) -> Errors:
    annotations = obj["metadata"].get("annotations") or {}
    mode, hints = annotations.get(TOPOLOGY_ANNOTATION), annotations.get(OLD_TOPOLOGY_ANNOTATION)
    if mode is None or hints is None or mode == hints:
        return []
    sentence = f"must match annotations[{OLD_TOPOLOGY_ANNOTATION}] when both are specified"
    return [invalid(f"metadata.annotations[{TOPOLOGY_ANNOTATION}]", mode, sentence)]


def _type_mistakes(spec: Object) -> Errors:
    kind = spec["type"]
    if kind in (LOAD_BALANCER, NODE_PORT) and is_headless(spec):
        return [invalid("spec.clusterIPs[0]", NONE, f"may not be set to 'None' for {kind} services")]
    if kind != EXTERNAL_NAME:
        return []
    errors = [
        forbidden(f"spec.{key}", "may not be set for ExternalName services")
        for key in ("clusterIPs", "ipFamilies", "ipFamilyPolicy")
        if spec.get(key) not in (None, [])
    ]
    # The name may end with a dot, which makes it absolute.
    name = spec.get("externalName", "").removesuffix(".")
    if not name:
        return [*errors, required("spec.externalName")]
    return errors + [invalid("spec.externalName", name, sentence) for sentence in dns_subdomain(name)]


def _own_port_mistakes(ports: list[Object]) -> Errors:
    """What is wrong with each port, and duplicate port names."""
    errors: Errors = []
    names = set()
    for i, port in enumerate(ports):
        at = f"spec.ports[{i}]"
        name = port.get("name", "")
        if name:
            errors += [invalid(f"{at}.name", name, sentence) for sentence in dns_label(name)]
            if name in names:
                errors.append(duplicate(f"{at}.name", name))
            names.add(name)
        elif len(ports) > 1:
            errors.append(required(f"{at}.name"))
        errors += port_number_mistakes(f"{at}.port", port.get("port", 0))
        errors += protocol_mistakes(f"{at}.protocol", port.get("protocol", ""))
        errors += port_mistakes(f"{at}.targetPort", port.get("targetPort", 0))
        errors += app_protocol_mistakes(f"{at}.appProtocol", port.get("appProtocol"))
    return errors


def _node_port_mistakes(spec: Object) -> Errors:
    """Node ports in a Service of type ClusterIP, and node ports that two ports of one protocol share."""
    ports = spec.get("ports") or ()
    errors: Errors = []
    if spec.get("type") == CLUSTER_IP:
        for i, port in enumerate(ports):
            if port.get("nodePort"):
                errors.append(forbidden(f"spec.ports[{i}].nodePort", "may not be used when `type` is 'ClusterIP'"))
    seen = set()
    for i, port in enumerate(ports):
        if node_port := port.get("nodePort"):
            key = (port.get("protocol"), node_port)
            if key in seen:
                errors.append(duplicate(f"spec.ports[{i}].nodePort", node_port))
            seen.add(key)
    return errors


def _same_port_mistakes(ports: list[Object]) -> Errors:
    """Port numbers that are used twice with the same protocol."""
    errors: Errors = []
    seen = set()
    for i, port in enumerate(ports):
        protocol, number = port.get("protocol", ""), port.get("port", 0)
        if (protocol, number) in seen:
            # Kubernetes' message prints its internal struct, with only these two fields set.
            shown = {
                "Name": "",
                "Protocol": protocol,
                "AppProtocol": None,
                "Port": number,
                "TargetPort": 0,
                "NodePort": 0,
            }
            errors.append(duplicate(f"spec.ports[{i}]", shown))
        seen.add((protocol, number))
    return errors


def _affinity_mistakes(spec: Object) -> Errors:
    affinity = spec["sessionAffinity"]
    if affinity not in ("ClientIP", "None"):
        return [not_supported("spec.sessionAffinity", affinity, ("ClientIP", "None"))]
    if affinity == "None":
        return []
    seconds = spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"]
    if 0 < seconds <= LONGEST_AFFINITY:
        return []
    sentence = f"must be greater than 0 and less than {LONGEST_AFFINITY}"
    return [invalid("spec.sessionAffinityConfig.clientIP.timeoutSeconds", seconds, sentence)]


def _external_ip_mistakes(spec: Object, old: Object | None) -> Errors:
    errors: Errors = []
    before = (old.get("externalIPs") if old is not None else None) or ()
    for i, address in enumerate(spec.get("externalIPs") or ()):
        at = f"spec.externalIPs[{i}]"
        errors += refuse_ip(at, address, before) or refuse_endpoint_ip(at, address)
    return errors


def _source_range_mistakes(obj: Object, old: Object | None) -> Errors:
    """Source ranges are in the spec or in an older annotation; both allow blanks around them."""
    spec = obj["spec"]
    errors: Errors = []
    if ranges := spec.get("loadBalancerSourceRanges"):
        path = "spec.LoadBalancerSourceRanges"
        if spec["type"] != LOAD_BALANCER:
            errors.append(forbidden(path, _ONLY_BALANCERS))
        before = (old["spec"].get("loadBalancerSourceRanges") if old is not None else None) or ()
        accepted = {value.strip() for value in before}
        for i, value in enumerate(ranges):
            errors += refuse_cidr(f"{path}[{i}]", value.strip(), accepted)
        return errors
    annotated = (obj["metadata"].get("annotations") or {}).get(SOURCE_RANGES)
    if annotated is None:
        return errors
    path = f"metadata.annotations[{SOURCE_RANGES}]"
    if spec["type"] != LOAD_BALANCER:
        errors.append(forbidden(path, _ONLY_BALANCERS))
    unchanged = old is not None and (old["metadata"].get("annotations") or {}).get(SOURCE_RANGES) == annotated
    if annotated.strip() and not unchanged:
        for value in annotated.strip().split(","):
            errors += refuse_cidr(path, value.strip())
    return errors


def _balancer_class_mistakes(spec: Object) -> Errors:
    name = spec.get("loadBalancerClass")
    if name is None:
        return []
    if spec["type"] != LOAD_BALANCER:
        return [forbidden("spec.loadBalancerClass", _ONLY_BALANCERS)]
    return [invalid("spec.loadBalancerClass", name, sentence) for sentence in qualified_name(name)]


def _external_policy_mistakes(spec: Object) -> Errors:
    path, policy = "spec.externalTrafficPolicy", spec.get("externalTrafficPolicy", "")
    errors: Errors = []
    if not externally_accessible(spec):
        if policy:
            errors.append(invalid(path, policy, "may only be set for externally-accessible services"))
    elif policy not in TRAFFIC_POLICIES:
        errors.append(not_supported(path, policy, TRAFFIC_POLICIES))
    path, port = "spec.healthCheckNodePort", spec.get("healthCheckNodePort", 0)
    if needs_health_check(spec):
        errors += port_number_mistakes(path, port) if port else [required(path)]
    elif port:
        sentence = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        errors.append(invalid(path, port, sentence))
    return errors


def _internal_policy_mistakes(spec: Object) -> Errors:
    path, policy = "spec.internalTrafficPolicy", spec.get("internalTrafficPolicy")
    if policy is None:
        return [required(path)] if spec["type"] in (CLUSTER_IP, NODE_PORT, LOAD_BALANCER) else []
    return [] if policy in TRAFFIC_POLICIES else [not_supported(path, policy, TRAFFIC_POLICIES)]
