"""Coverage-guided fuzzing of DNS messages: ``python tests/fuzz/fuzz_dns.py [CORPUS] [-max_total_time=SECONDS]``.

Whatever octets arrive, the server neither fails nor answers with anything but a message of the same identity; and what
it keeps stays bounded.  Needs ``atheris``, which is not among the dependencies: ``pip install atheris``.
"""

from __future__ import annotations

import sys

import atheris

from virtual_time import VirtualClock

with atheris.instrument_imports(include=["seamark.dns"]):
    from seamark.dns.config import ZoneConfig
    from seamark.dns.measures import Measures
    from seamark.dns.ready import ReadyAnswers
    from seamark.dns.responder import Responder
    from seamark.dns.zone.answers import Authority
    from seamark.dns.zone.state import ClusterZone
    from seamark.kinds.wellknown import SERVICE_NAME_LABEL
    from seamark.metrics import Registry
    from seamark.rules.objects.endpointslice import Endpoint, EndpointSlice, SlicePort
    from seamark.rules.objects.metadata import Metadata
    from seamark.rules.objects.service import Service, ServicePort, ServiceSpec

ENTRIES = 100


def _responder() -> Responder:
    zone = ClusterZone(clock=VirtualClock(1000.0))
    zone.put_namespace("default")
    ports = (ServicePort(80, "http", "TCP"),)
    zone.put_service(
        Service(Metadata("web", namespace="default"), ServiceSpec(cluster_ips=("10.96.0.1", "fd00::1"), ports=ports))
    )
    zone.put_service(Service(Metadata("hl", namespace="default"), ServiceSpec(cluster_ips=("None",), ports=ports)))
    external = ServiceSpec(type="ExternalName", external_name="web.default.svc.cluster.local")
    zone.put_service(Service(Metadata("e", namespace="default"), external))
    places = tuple(Endpoint((f"10.1.0.{n}",), hostname=f"host-{n}") for n in range(1, 200))
    labels = {SERVICE_NAME_LABEL: "hl"}
    zone.put_slice(
        EndpointSlice(
            Metadata("hl", namespace="default", labels=labels), "IPv4", places, (SlicePort("http", 80, "TCP"),)
        )
    )
    return Responder(
        Authority(zone, ZoneConfig(pods="insecure")),
        ready=(
            ReadyAnswers(zone, entries=ENTRIES, octets=1 << 20),
            ReadyAnswers(zone, entries=ENTRIES, octets=1 << 20),
        ),
        measures=Measures(Registry()),
        synced=lambda: True,
    )


RESPONDER = _responder()


def check(octets: bytes) -> None:
    """One message, twice, so that it may be kept, over either transport (the last bit says which)."""
    transport = RESPONDER.udp if octets and octets[-1] & 1 else RESPONDER.tcp
    for _ in range(2):
        reply = RESPONDER.respond(octets, transport)
        if reply is None:
            assert len(octets) < 12 or octets[2] & 0x80, "silence to a query"
            return
        assert isinstance(reply, bytes)
        assert reply[:2] == octets[:2], "a reply to somebody else"
        assert reply[2] & 0x80, "a reply that is none"
        assert len(reply) <= 65535
    assert len(transport.ready) <= 2 * ENTRIES


if __name__ == "__main__":
    atheris.Setup(sys.argv, check)
    atheris.Fuzz()
