"""NetworkPolicy: which connections reach and leave which Pods."""

from typing import Any

import msgspec

from seamark.rules.objects.metadata import ObjectView, View


class IPBlock(View, frozen=True):
    cidr: str = ""
    except_: tuple[str, ...] = msgspec.field(name="except", default=())


class Peer(View, frozen=True):
    """Pods by their labels and those of their namespace, or a block of addresses."""

    pod_selector: dict[str, Any] | None = None
    namespace_selector: dict[str, Any] | None = None
    ip_block: IPBlock | None = None


class PolicyPort(View, frozen=True):
    protocol: str = "TCP"
    port: int | str | None = None
    end_port: int | None = None


class IngressRule(View, frozen=True):
    ports: tuple[PolicyPort, ...] = ()
    from_: tuple[Peer, ...] = msgspec.field(name="from", default=())


class EgressRule(View, frozen=True):
    ports: tuple[PolicyPort, ...] = ()
    to: tuple[Peer, ...] = ()


class NetworkPolicySpec(View, frozen=True):
    pod_selector: dict[str, Any] = msgspec.field(default_factory=dict)
    policy_types: tuple[str, ...] = ()
    ingress: tuple[IngressRule, ...] = ()
    egress: tuple[EgressRule, ...] = ()


class NetworkPolicy(ObjectView, frozen=True):
    spec: NetworkPolicySpec = NetworkPolicySpec()

    @property
    def types(self) -> tuple[str, ...]:
        """The directions it is about, with the default that the API server fills in."""
        return self.spec.policy_types or (("Ingress", "Egress") if self.spec.egress else ("Ingress",))
