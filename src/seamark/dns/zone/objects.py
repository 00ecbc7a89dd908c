"""What DNS needs of the cluster's objects: a few fields each, decoded straight from the wire and frozen."""

from __future__ import annotations

import msgspec

SERVICE_NAME_LABEL = "kubernetes.io/service-name"


class Metadata(msgspec.Struct, frozen=True, rename="camel", gc=False):
    name: str
    namespace: str = ""
    uid: str = ""
    deletion_timestamp: str | None = None


class ServicePort(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A port of a Service or of its endpoints; None where an EndpointSlice leaves the port open."""

    port: int | None = None
    name: str | None = None
    protocol: str | None = None


class ServiceSpec(msgspec.Struct, frozen=True, rename="camel", gc=False):
    type: str = "ClusterIP"
    cluster_ip: str = msgspec.field(default="", name="clusterIP")
    cluster_ips: tuple[str, ...] = msgspec.field(default=(), name="clusterIPs")
    external_name: str = ""
    ports: tuple[ServicePort, ...] = ()


class Service(msgspec.Struct, frozen=True, rename="camel", gc=False):
    metadata: Metadata
    spec: ServiceSpec = ServiceSpec()

    @property
    def addresses(self) -> tuple[str, ...]:
        """Its cluster addresses; ``None`` among them means headless."""
        return self.spec.cluster_ips or (self.spec.cluster_ip,)

    @property
    def headless(self) -> bool:
        return self.addresses[0] == "None"

    @property
    def external(self) -> bool:
        return self.spec.type == "ExternalName"


class SliceMetadata(msgspec.Struct, frozen=True, rename="camel", gc=False):
    name: str
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None


class Conditions(msgspec.Struct, frozen=True, gc=False):
    ready: bool | None = None


class TargetReference(msgspec.Struct, frozen=True, gc=False):
    name: str = ""


class SliceEndpoint(msgspec.Struct, frozen=True, rename="camel", gc=False):
    addresses: tuple[str, ...] | None = ()
    conditions: Conditions = Conditions()
    hostname: str | None = None
    target_ref: TargetReference | None = None

    @property
    def ready(self) -> bool:
        """Not said means ready: whoever wrote the slice by hand need not know the condition."""
        return self.conditions.ready is not False


class EndpointSlice(msgspec.Struct, frozen=True, rename="camel", gc=False):
    metadata: SliceMetadata
    endpoints: tuple[SliceEndpoint, ...] | None = ()
    ports: tuple[ServicePort, ...] | None = ()

    @property
    def service(self) -> str:
        """The Service it belongs to; empty if none."""
        return (self.metadata.labels or {}).get(SERVICE_NAME_LABEL, "")


class EndpointAddress(msgspec.Struct, frozen=True, rename="camel", gc=False):
    ip: str = ""
    hostname: str = ""
    target_ref: TargetReference | None = None


class EndpointSubset(msgspec.Struct, frozen=True, gc=False):
    addresses: tuple[EndpointAddress, ...] | None = ()
    ports: tuple[ServicePort, ...] | None = ()


class Endpoints(msgspec.Struct, frozen=True, gc=False):
    """The older form, for clusters without EndpointSlices; addresses that are not ready are not read at all."""

    metadata: Metadata
    subsets: tuple[EndpointSubset, ...] | None = ()


class PodStatus(msgspec.Struct, frozen=True, rename="camel", gc=False):
    phase: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")


class Pod(msgspec.Struct, frozen=True, gc=False):
    metadata: Metadata
    status: PodStatus = PodStatus()

    @property
    def finished(self) -> bool:
        """Its containers run no more (or nobody knows): its address may be another's."""
        return self.status.phase in ("Succeeded", "Failed", "Unknown")


class Namespace(msgspec.Struct, frozen=True, gc=False):
    metadata: Metadata
