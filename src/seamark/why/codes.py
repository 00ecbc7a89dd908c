"""The stable reason codes of ``why``: what can be wrong, one code each.

A code never changes its meaning and is never reused.  Within a family the more specific codes come before the more
general ones, as an operator would name them.  ``docs/why.md`` lists them all.
"""

from __future__ import annotations

from enum import Enum


class Family(Enum):
    """Groups of causes.  A cause that makes others irrelevant comes before them."""

    OBJECT = "the Service itself"
    EXTERNAL = "ExternalName"
    SELECTOR = "the selector"
    HAND_MADE = "hand-made endpoints"
    FAMILIES = "addresses and families"
    PODS = "Pods"
    PORTS = "ports"
    BOOKKEEPING = "what the controllers wrote"
    NAMES = "DNS names"
    POLICIES = "traffic policies"
    REACH = "ways to it"
    HINTS = "hints"
    RANGES = "address ranges"


# Short, for the table below.
OBJECT, EXTERNAL, SELECTOR, HAND_MADE, FAMILIES, PODS, PORTS, BOOKKEEPING, NAMES, POLICIES, REACH, HINTS, RANGES = (
    Family
)


class Code(Enum):
    """A reason code, with its family and its meaning in a sentence."""

    family: Family
    about: str

    def __new__(cls, value: str, family: Family, about: str) -> Code:
        code = object.__new__(cls)
        code._value_ = value
        code.family = family
        code.about = about
        return code

    # --- the Service itself
    SERVICE_NOT_FOUND = "ServiceNotFound", OBJECT, "there is no such Service"
    POD_NOT_FOUND = "PodNotFound", OBJECT, "there is no such Pod"
    NAME_NOT_FOUND = "NameNotFound", OBJECT, "the DNS name is not found anywhere on the search path"
    NAMESPACE_TERMINATING = "NamespaceTerminating", OBJECT, "the namespace is being deleted, nothing new is made in it"
    SERVICE_TERMINATING = "ServiceTerminating", OBJECT, "the Service is being deleted and waits for a finalizer"
    MANIFEST_REFUSED = "ManifestRefused", OBJECT, "the API server would refuse a manifest"
    # --- ExternalName
    EXTERNAL_NAME_IS_ADDRESS = "ExternalNameIsAddress", EXTERNAL, "externalName is an IP address, DNS cannot alias that"
    EXTERNAL_NAME_LOOP = "ExternalNameLoop", EXTERNAL, "externalName leads back to the Service itself"
    EXTERNAL_NAME_TARGET_MISSING = (
        "ExternalNameTargetMissing",
        EXTERNAL,
        "externalName names a Service that does not exist",
    )
    EXTERNAL_NAME_TARGET_EMPTY = (
        "ExternalNameTargetEmpty",
        EXTERNAL,
        "externalName names a Service that has no ready endpoint",
    )
    EXTERNAL_NAME_IGNORES_SELECTOR = (
        "ExternalNameIgnoresSelector",
        EXTERNAL,
        "an ExternalName Service has a selector, which does nothing",
    )
    EXTERNAL_NAME_LEFTOVERS = (
        "ExternalNameLeftovers",
        EXTERNAL,
        "endpoints are left over from before it became ExternalName",
    )
    # --- the selector
    SELECTOR_VALUE_TYPO = "SelectorValueTypo", SELECTOR, "the selector's value is a typo away from a label Pods have"
    SELECTOR_KEY_TYPO = "SelectorKeyTypo", SELECTOR, "the selector's key is a typo away from a label key Pods have"
    SELECTOR_OTHER_KEY = "SelectorOtherKey", SELECTOR, "Pods have the value under another key"
    SELECTOR_ONE_LABEL_OFF = "SelectorOneLabelOff", SELECTOR, "Pods match all of the selector but one label"
    LABELS_ON_WORKLOAD_ONLY = (
        "LabelsOnWorkloadOnly",
        SELECTOR,
        "the selector matches a workload's own labels, but not those of its Pods",
    )
    WORKLOAD_SCALED_TO_ZERO = "WorkloadScaledToZero", SELECTOR, "the workload that would match has no replicas"
    WORKLOAD_CANNOT_CREATE_PODS = (
        "WorkloadCannotCreatePods",
        SELECTOR,
        "the workload that would match fails to create Pods",
    )
    WORKLOAD_WITHOUT_PODS = "WorkloadWithoutPods", SELECTOR, "the workload that would match has no Pods yet"
    PODS_IN_OTHER_NAMESPACE = "PodsInOtherNamespace", SELECTOR, "the Pods it would select are in another namespace"
    SELECTOR_MATCHES_NOTHING = "SelectorMatchesNothing", SELECTOR, "no Pod matches the selector, or comes close"
    POD_NOT_SELECTED = "PodNotSelected", SELECTOR, "no Service selects the Pod"
    # --- hand-made endpoints
    SLICE_WITHOUT_SERVICE_NAME = (
        "SliceWithoutServiceName",
        HAND_MADE,
        "a hand-made EndpointSlice lacks the label kubernetes.io/service-name",
    )
    SLICE_FOR_OTHER_SERVICE = (
        "SliceForOtherService",
        HAND_MADE,
        "a hand-made EndpointSlice names a Service that does not exist",
    )
    SLICE_MANAGED_BY_CONTROLLER = (
        "SliceManagedByController",
        HAND_MADE,
        "a hand-made EndpointSlice claims to be a controller's",
    )
    SLICE_OF_OTHER_FAMILY = (
        "SliceOfOtherFamily",
        HAND_MADE,
        "an EndpointSlice is of an address type the Service does not use",
    )
    SLICE_PORT_MISMATCH = (
        "SlicePortMismatch",
        HAND_MADE,
        "an EndpointSlice's ports have none of the Service's port names",
    )
    ENDPOINTS_PORT_MISMATCH = (
        "EndpointsPortMismatch",
        HAND_MADE,
        "the Endpoints' ports have none of the Service's port names",
    )
    MIRRORING_SKIPPED_BY_LABEL = (
        "MirroringSkippedByLabel",
        HAND_MADE,
        "Endpoints are not mirrored: the skip-mirror label",
    )
    MIRRORING_SKIPPED_FOR_LEADER = (
        "MirroringSkippedForLeader",
        HAND_MADE,
        "Endpoints are not mirrored: a leader election's annotation",
    )
    ENDPOINTS_INVALID_ADDRESS = (
        "EndpointsInvalidAddress",
        HAND_MADE,
        "Endpoints have addresses that are none, they are not mirrored",
    )
    ENDPOINTS_TOO_MANY_TO_MIRROR = (
        "EndpointsTooManyToMirror",
        HAND_MADE,
        "more than 1000 addresses in one subset, the rest are not mirrored",
    )
    ENDPOINTS_NAMED_OTHERWISE = (
        "EndpointsNamedOtherwise",
        HAND_MADE,
        "Endpoints exist under a name that is not the Service's",
    )
    ENDPOINTS_IN_OTHER_NAMESPACE = (
        "EndpointsInOtherNamespace",
        HAND_MADE,
        "the Endpoints or EndpointSlice written for it are in another namespace",
    )
    ENDPOINTS_TARGET_GONE = (
        "EndpointsTargetGone",
        HAND_MADE,
        "hand-made endpoints point at Pods that do not exist any more",
    )
    ENDPOINTS_NOT_MIRRORED = "EndpointsNotMirrored", HAND_MADE, "Endpoints and their mirrored EndpointSlices disagree"
    ENDPOINT_IS_CLUSTER_IP = (
        "EndpointIsClusterIP",
        HAND_MADE,
        "a hand-made endpoint is the cluster IP of a Service, not of a server",
    )
    FOREIGN_SLICE = (
        "ForeignSlice",
        HAND_MADE,
        "a hand-made EndpointSlice beside the controller's sends part of the traffic elsewhere",
    )
    PROBE_INVALID = "ProbeInvalid", HAND_MADE, "the annotation for health checks is not valid, nothing is checked"
    PROBE_KEEPS_OUT = "ProbeKeepsOut", HAND_MADE, "a health check keeps hand-made addresses out"
    ENDPOINTS_NOT_READY = "EndpointsNotReady", HAND_MADE, "every hand-made address is marked not ready"
    ENDPOINTS_EMPTY = "EndpointsEmpty", HAND_MADE, "the hand-made Endpoints or slices hold no address"
    SELECTORLESS_WITHOUT_ENDPOINTS = (
        "SelectorlessWithoutEndpoints",
        HAND_MADE,
        "no selector, and no endpoints were written for it",
    )
    LEFTOVER_SLICES = (
        "LeftoverSlices",
        HAND_MADE,
        "the controller's slices are left over from before the selector was removed",
    )
    # --- addresses and families
    NO_ADDRESS_OF_FAMILY = "NoAddressOfFamily", FAMILIES, "Pods have no address of the Service's family"
    SECOND_FAMILY_EMPTY = "SecondFamilyEmpty", FAMILIES, "one family of a dual-stack Service has no endpoints"
    # --- Pods
    POD_EVICTED = "PodEvicted", PODS, "the Pod was evicted"
    POD_FINISHED = "PodFinished", PODS, "the Pod has ended, and will not run again"
    POD_TERMINATING = "PodTerminating", PODS, "the Pod is being deleted"
    POD_UNSCHEDULABLE = "PodUnschedulable", PODS, "no node can take the Pod"
    POD_SCHEDULING_GATED = "PodSchedulingGated", PODS, "the Pod waits for a scheduling gate"
    SCHEDULER_MISSING = (
        "SchedulerMissing",
        PODS,
        "the Pod waits for a scheduler of another name, which has said nothing",
    )
    POD_NOT_SCHEDULED = "PodNotScheduled", PODS, "the Pod has no node yet"
    NODE_MISSING = "NodeMissing", PODS, "the Pod's node does not exist"
    NODE_NOT_READY = "NodeNotReady", PODS, "the Pod's node is not ready"
    INIT_CONTAINER_FAILING = "InitContainerFailing", PODS, "an init container fails, so the others never start"
    INIT_CONTAINER_RUNNING = "InitContainerRunning", PODS, "an init container is still at work"
    IMAGE_PULL_FAILED = "ImagePullFailed", PODS, "a container's image cannot be pulled"
    CONTAINER_CONFIG_ERROR = (
        "ContainerConfigError",
        PODS,
        "a container cannot be configured; often a ConfigMap, Secret or key is missing",
    )
    CONTAINER_START_ERROR = "ContainerStartError", PODS, "a container cannot be started"
    CONTAINER_OUT_OF_MEMORY = "ContainerOutOfMemory", PODS, "a container is killed for using too much memory"
    CONTAINER_CRASHING = "ContainerCrashing", PODS, "a container starts and ends again and again"
    CONTAINER_ENDED = "ContainerEnded", PODS, "a container has ended while others run"
    SIDECAR_NOT_STARTED = (
        "SidecarNotStarted",
        PODS,
        "a sidecar among the init containers has not started, so the others wait",
    )
    VOLUME_NOT_MOUNTED = "VolumeNotMounted", PODS, "a volume of the Pod cannot be mounted, as an Event says"
    POD_NETWORK_FAILED = "PodNetworkFailed", PODS, "the Pod's sandbox or network cannot be set up, as an Event says"
    LIVENESS_PROBE_FAILING = (
        "LivenessProbeFailing",
        PODS,
        "a container is killed because its liveness probe fails, as an Event says",
    )
    STARTUP_PROBE_FAILING = "StartupProbeFailing", PODS, "a container's startup probe has not succeeded"
    READINESS_PROBE_FAILING = "ReadinessProbeFailing", PODS, "a container's readiness probe fails"
    PROBE_PENDING = "ProbePending", PODS, "a probe may not have been asked yet, or not often enough to fail"
    READINESS_GATE_NOT_MET = "ReadinessGateNotMet", PODS, "a readiness gate's condition is not True"
    POD_STARTING = "PodStarting", PODS, "the Pod is being started"
    POD_HAS_NO_ADDRESS = "PodHasNoAddress", PODS, "the Pod has no address yet"
    POD_NOT_REPORTED = "PodNotReported", PODS, "the kubelet has not reported whether the Pod is ready"
    POD_STATUS_STUCK = "PodStatusStuck", PODS, "the Pod is not ready although all of its containers are"
    POD_NOT_READY = "PodNotReady", PODS, "the Pod is not ready"
    PUBLISHED_NOT_READY = "PublishedNotReady", PODS, "publishNotReadyAddresses sends traffic to Pods that are not ready"
    # --- ports
    SERVICE_WITHOUT_PORTS = "ServiceWithoutPorts", PORTS, "a Service with a cluster IP has no ports"
    TARGET_PORT_PROTOCOL_MISMATCH = "TargetPortProtocolMismatch", PORTS, "the port exists, for another protocol"
    TARGET_PORT_NAME_NOT_FOUND = "TargetPortNameNotFound", PORTS, "no container declares a port of that name"
    TARGET_PORT_NOT_DECLARED = "TargetPortNotDeclared", PORTS, "containers declare ports, but not the one it sends to"
    SELECTOR_TAKES_OTHERS = (
        "SelectorTakesOthers",
        PORTS,
        "the selector also takes Pods of another workload, which do not declare the port that the others do",
    )
    # --- what the controllers wrote
    CONTROLLER_NOT_RUNNING = "ControllerNotRunning", BOOKKEEPING, "no controller keeps the endpoints current"
    ENDPOINT_SLICES_EDITED = "EndpointSlicesEdited", BOOKKEEPING, "EndpointSlices were edited by hand and not repaired"
    ENDPOINTS_EDITED = "EndpointsEdited", BOOKKEEPING, "the controller's Endpoints were edited by hand"
    ENDPOINTS_STALE = "EndpointsStale", BOOKKEEPING, "Endpoints and EndpointSlices disagree, Endpoints are behind"
    ENDPOINTS_OVER_CAPACITY = "EndpointsOverCapacity", BOOKKEEPING, "more than 1000 addresses, Endpoints are truncated"
    # --- DNS names
    SUBDOMAIN_MISMATCH = (
        "SubdomainMismatch",
        NAMES,
        "Pods' subdomain names no Service, so they have no names of their own",
    )
    # --- traffic policies
    INTERNAL_LOCAL_WITHOUT_ENDPOINT = (
        "InternalLocalWithoutEndpoint",
        POLICIES,
        "internalTrafficPolicy Local, and nodes without a ready Pod",
    )
    EXTERNAL_LOCAL_WITHOUT_ENDPOINT = (
        "ExternalLocalWithoutEndpoint",
        POLICIES,
        "externalTrafficPolicy Local, and nodes without a ready Pod",
    )
    # --- ways to it
    NOT_PROXIED = "NotProxied", REACH, "a label on the Service makes proxies leave it alone"
    ADDRESS_TAKEN = "AddressTaken", REACH, "another Service gets what comes to one of its addresses"
    NODE_PORT_NOT_SERVED = (
        "NodePortNotServed",
        REACH,
        "a proxy could not serve one of its ports, as an Event says, for example because another program has it",
    )
    SOURCE_RANGES_EXCLUDE = (
        "SourceRangesExclude",
        REACH,
        "loadBalancerSourceRanges keep out the client that was asked about",
    )
    PORT_NOT_OFFERED = "PortNotOffered", REACH, "the Service has no such port as was asked about"
    NOT_EXPOSED = "NotExposed", REACH, "nothing leads to the Service from outside the cluster"
    POLICY_CLOSES_PORT = "PolicyClosesPort", REACH, "NetworkPolicies let nothing in on a port it sends to"
    POLICY_KEEPS_OUT = "PolicyKeepsOut", REACH, "NetworkPolicies keep out the client that was asked about"
    POLICY_KEEPS_IN = "PolicyKeepsIn", REACH, "NetworkPolicies do not let the client out to it"
    POLICY_CLOSES_DNS = "PolicyClosesDNS", REACH, "NetworkPolicies do not let the client ask DNS"
    LOAD_BALANCER_PENDING = "LoadBalancerPending", REACH, "no load balancer has given the Service an address"
    INGRESS_PORT_MISSING = "IngressPortMissing", REACH, "an Ingress sends to a port that the Service does not have"
    INGRESS_SERVICE_MISSING = (
        "IngressServiceMissing",
        REACH,
        "an Ingress sends to a Service that does not exist, and this one may be meant",
    )
    INGRESS_CLASS_MISSING = (
        "IngressClassMissing",
        REACH,
        "an Ingress that leads to it names an IngressClass that does not exist",
    )
    # --- hints
    HINTS_NODES_INCOMPLETE = "HintsNodesIncomplete", HINTS, "topology hints are off: nodes lack a zone or CPUs"
    HINTS_ONE_ZONE = "HintsOneZone", HINTS, "topology hints are off: the nodes are in one zone"
    HINTS_TOO_FEW_ENDPOINTS = "HintsTooFewEndpoints", HINTS, "topology hints are off: fewer ready endpoints than zones"
    HINTS_UNBALANCED = "HintsUnbalanced", HINTS, "topology hints are off: a zone would be overloaded"
    HINTS_ENDPOINT_WITHOUT_ZONE = (
        "HintsEndpointWithoutZone",
        HINTS,
        "some endpoints have no zone, so all hints are ignored",
    )
    HINTS_MISSING = "HintsMissing", HINTS, "hints are asked for and possible, but not written"
    # --- address ranges
    CLUSTER_IP_OUT_OF_RANGE = "ClusterIPOutOfRange", RANGES, "the cluster IP lies outside all ServiceCIDRs"
    CLUSTER_IP_SHARED = "ClusterIPShared", RANGES, "another Service has the same cluster IP"


_FAMILIES = {family: position for position, family in enumerate(Family)}
_CODES = {code: position for position, code in enumerate(Code)}


def weight(code: Code) -> tuple[int, int]:
    """Sorts codes, weightiest first: by family, then in the order above."""
    return _FAMILIES[code.family], _CODES[code]
