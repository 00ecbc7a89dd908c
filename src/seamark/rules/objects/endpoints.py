"""Endpoints: complete, because the Endpoints controller writes them back."""

from seamark.kinds.wellknown import LEADER_ANNOTATION
from seamark.rules.objects.metadata import ObjectReference, ObjectView, View


class EndpointAddress(View, frozen=True):
    ip: str = ""
    hostname: str = ""
    node_name: str | None = None
    target_ref: ObjectReference | None = None


class EndpointPort(View, frozen=True):
    name: str = ""
    port: int = 0
    protocol: str = "TCP"
    app_protocol: str | None = None


class EndpointSubset(View, frozen=True):
    addresses: tuple[EndpointAddress, ...] = ()
    not_ready_addresses: tuple[EndpointAddress, ...] = ()
    ports: tuple[EndpointPort, ...] = ()


class Endpoints(ObjectView, frozen=True):
    subsets: tuple[EndpointSubset, ...] | None = None

    def ready(self) -> list[EndpointAddress]:
        return [address for subset in self.subsets or () for address in subset.addresses]

    def not_ready(self) -> list[EndpointAddress]:
        return [address for subset in self.subsets or () for address in subset.not_ready_addresses]

    def ports(self) -> list[EndpointPort]:
        return [port for subset in self.subsets or () for port in subset.ports]

    @property
    def leader_lock(self) -> bool:
        """Whether it is the lock of a leader election, and not a list of addresses."""
        return LEADER_ANNOTATION in self.metadata.annotations
