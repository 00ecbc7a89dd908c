"""EndpointSlice: complete, because the EndpointSlice and mirroring controllers write them back."""

from seamark.kinds.values.addresses import Family
from seamark.kinds.wellknown import SERVICE_NAME_LABEL, SLICE_MANAGED_BY_LABEL
from seamark.rules.objects.metadata import ObjectReference, ObjectView, View


class Conditions(View, frozen=True):
    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class HintTarget(View, frozen=True):
    """A zone or a node that should use an endpoint."""

    name: str = ""


class Hints(View, frozen=True):
    for_zones: tuple[HintTarget, ...] | None = None
    for_nodes: tuple[HintTarget, ...] | None = None


class Endpoint(View, frozen=True):
    addresses: tuple[str, ...] = ()
    conditions: Conditions = Conditions()
    hostname: str | None = None
    target_ref: ObjectReference | None = None
    node_name: str | None = None
    zone: str | None = None
    hints: Hints | None = None

    @property
    def ready(self) -> bool:
        """As readers see it: an endpoint without the condition counts as ready, because users may leave it out."""
        return self.conditions.ready is not False

    @property
    def serving(self) -> bool:
        """As readers see it: an endpoint without the condition counts as serving."""
        return self.conditions.serving is not False

    @property
    def terminating(self) -> bool:
        return self.conditions.terminating is True

    @property
    def marked_ready(self) -> bool:
        """As the controllers see it: they always write the condition, and count only endpoints that have it."""
        return self.conditions.ready is True


class SlicePort(View, frozen=True):
    name: str | None = None
    port: int | None = None
    protocol: str | None = None
    app_protocol: str | None = None


class EndpointSlice(ObjectView, frozen=True):
    """``endpoints`` and ``ports`` may be ``null`` on the wire; Seamark never writes them as ``null``."""

    address_type: str = ""
    endpoints: tuple[Endpoint, ...] | None = None
    ports: tuple[SlicePort, ...] | None = None

    def ready_addresses(self) -> list[str]:
        return [each for endpoint in self.endpoints or () if endpoint.ready for each in endpoint.addresses]

    def all_addresses(self) -> list[str]:
        return [each for endpoint in self.endpoints or () for each in endpoint.addresses]

    @property
    def service_name(self) -> str:
        """The Service it belongs to; "" if it does not say."""
        return self.metadata.labels.get(SERVICE_NAME_LABEL, "")

    @property
    def managed_by(self) -> str:
        return self.metadata.labels.get(SLICE_MANAGED_BY_LABEL, "")

    @property
    def family(self) -> Family | None:
        """The family it is for; None for FQDN, which no Pod has."""
        kind = self.address_type
        return "IPv4" if kind == "IPv4" else "IPv6" if kind == "IPv6" else None
