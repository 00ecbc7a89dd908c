"""Objects as ``why`` reads them: the shared views, with what only a diagnosis needs added.

Added are the writers of an object (``managedFields``), the probes of containers, workloads of any kind, Events and
Ingresses.
The functions of :mod:`seamark.rules` take these views, too.  Nothing here is ever written back.
"""

from collections.abc import Iterator

import msgspec

from seamark.kinds.wellknown import ENDPOINTS_MANAGED_BY_LABEL
from seamark.rules.objects import endpoints, endpointslice, metadata, networkpolicy, pod, service
from seamark.rules.objects.conditions import Condition
from seamark.rules.objects.metadata import ObjectReference, View

Key = tuple[str, str]  # namespace, name


class Manager(View, frozen=True):
    """A writer of some fields of an object, and when it last wrote."""

    manager: str = ""
    time: str | None = None


class Metadata(metadata.Metadata, frozen=True):
    managed_fields: tuple[Manager, ...] = ()


# --- Service and Pod -------------------------------------------------------------------------------


class Service(service.Service, frozen=True):
    metadata: Metadata

    @property
    def key(self) -> Key:
        return self.metadata.namespace, self.metadata.name


class HttpGet(View, frozen=True):
    path: str = ""
    port: int | str = 0


class Socket(View, frozen=True):
    port: int | str = 0


class Probe(pod.ProbeTimes, frozen=True):
    http_get: HttpGet | None = None
    tcp_socket: Socket | None = None
    grpc: Socket | None = None
    failure_threshold: int = 3

    @property
    def port(self) -> int | str | None:
        """The port it asks; None for a command."""
        return next((each.port for each in (self.http_get, self.tcp_socket, self.grpc) if each), None)

    def __str__(self) -> str:
        if self.http_get is not None:
            return f"GET {self.http_get.path or '/'} on port {self.http_get.port}"
        if self.tcp_socket is not None:
            return f"a TCP connection to port {self.tcp_socket.port}"
        if self.grpc is not None:
            return f"gRPC on port {self.grpc.port}"
        if self.exec is not None:
            return "the command " + " ".join(self.exec.command)
        return "it"


class Container(pod.Container, frozen=True):
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    liveness_probe: Probe | None = None


class PodSpec(pod.PodSpec, frozen=True):
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()


class Pod(pod.Pod, frozen=True):
    metadata: Metadata
    spec: PodSpec = PodSpec()

    @property
    def claims(self) -> list[str]:
        """The names of the PersistentVolumeClaims that it uses."""
        found = (volume.persistent_volume_claim for volume in self.spec.volumes)
        return [each.claim_name for each in found if each is not None]

    @property
    def key(self) -> Key:
        return self.metadata.namespace, self.metadata.name


# --- Endpoints and EndpointSlices ------------------------------------------------------------------


class Endpoints(endpoints.Endpoints, frozen=True):
    metadata: Metadata

    @property
    def key(self) -> Key:
        return self.metadata.namespace, self.metadata.name

    @property
    def made_by_controller(self) -> bool:
        return ENDPOINTS_MANAGED_BY_LABEL in self.metadata.labels


class EndpointSlice(endpointslice.EndpointSlice, frozen=True):
    metadata: Metadata

    @property
    def key(self) -> Key:
        return self.metadata.namespace, self.metadata.name

    @property
    def made_by_controller(self) -> bool:
        """Whether the EndpointSlice controller wrote it; its label alone proves nothing, a user may set that too."""
        if any(owner.kind == "Service" for owner in self.metadata.owner_references):
            return True
        return any(each.target_ref is not None and each.target_ref.kind == "Pod" for each in self.endpoints or ())

    def endpoint_names(self) -> list[str]:
        """The names that DNS has for its ready endpoints: hostnames, or addresses with dashes."""
        ready = [each for each in self.endpoints or () if each.ready and each.addresses]
        return [each.hostname or each.addresses[0].replace(".", "-").replace(":", "-") for each in ready]


# --- workloads and Events --------------------------------------------------------------------------


class TemplateMetadata(View, frozen=True):
    labels: dict[str, str] = msgspec.field(default_factory=dict)


class Template(View, frozen=True):
    metadata: TemplateMetadata = TemplateMetadata()
    spec: PodSpec = PodSpec()


class JobSpec(View, frozen=True):
    template: Template = Template()


class JobTemplate(View, frozen=True):
    spec: JobSpec = JobSpec()


class Ordinals(View, frozen=True):
    start: int = 0


class WorkloadSpec(View, frozen=True):
    replicas: int | None = None
    paused: bool = False
    suspend: bool = False
    schedule: str = ""
    service_name: str = ""
    ordinals: Ordinals = Ordinals()
    template: Template = Template()
    job_template: JobTemplate | None = None


class WorkloadStatus(View, frozen=True):
    replicas: int = 0
    desired_number_scheduled: int | None = None
    conditions: tuple[Condition, ...] = ()


class AnyWorkload(View, frozen=True):
    """A workload of any kind that makes Pods from a template."""

    metadata: Metadata
    kind: str = ""
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()

    @property
    def wanted(self) -> int | None:
        """How many Pods it should have; None if it does not say by itself."""
        if self.kind == "DaemonSet":
            return self.status.desired_number_scheduled
        if self.kind in ("Job", "CronJob"):
            return None
        return 1 if self.spec.replicas is None else self.spec.replicas

    def of_kind(self, kind: str) -> "AnyWorkload":
        """With its kind, which lists leave out; the template of a CronJob is found where that of the others is."""
        spec, within = self.spec, self.spec.job_template
        if within is not None:
            spec = msgspec.structs.replace(spec, template=within.spec.template)
        return msgspec.structs.replace(self, kind=kind, spec=spec)

    def __str__(self) -> str:
        return f"{self.kind} {self.metadata.name}"


class Event(View, frozen=True):
    """Something that a component noticed about an object."""

    metadata: Metadata
    involved_object: ObjectReference = ObjectReference()
    type: str = ""
    reason: str = ""
    message: str = ""
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None
    count: int = 0

    @property
    def time(self) -> str:
        return self.last_timestamp or self.event_time or self.first_timestamp or ""


# --- Ingress and NetworkPolicy ---------------------------------------------------------------------


class BackendPort(View, frozen=True):
    name: str = ""
    number: int = 0

    def __str__(self) -> str:
        return self.name or str(self.number)


class BackendService(View, frozen=True):
    name: str = ""
    port: BackendPort = BackendPort()


class Backend(View, frozen=True):
    service: BackendService | None = None


class HttpPath(View, frozen=True):
    path: str = ""
    backend: Backend = Backend()


class HttpRule(View, frozen=True):
    paths: tuple[HttpPath, ...] = ()


class IngressRule(View, frozen=True):
    host: str = ""
    http: HttpRule | None = None


class IngressSpec(View, frozen=True):
    ingress_class_name: str | None = None
    default_backend: Backend | None = None
    rules: tuple[IngressRule, ...] = ()


class Ingress(View, frozen=True):
    metadata: Metadata
    spec: IngressSpec = IngressSpec()
    status: service.ServiceStatus = service.ServiceStatus()  # both have load balancers, told alike

    def backends(self) -> Iterator[tuple[str, BackendService]]:
        """The Services it sends to, each with the path of the field that names it."""
        default = self.spec.default_backend
        if default is not None and default.service is not None:
            yield "spec.defaultBackend.service", default.service
        for place, rule in enumerate(self.spec.rules):
            for step, path in enumerate(rule.http.paths if rule.http is not None else ()):
                if path.backend.service is not None:
                    yield f"spec.rules[{place}].http.paths[{step}].backend.service", path.backend.service


class IngressClass(View, frozen=True):
    metadata: Metadata


class NetworkPolicy(networkpolicy.NetworkPolicy, frozen=True):
    metadata: Metadata
