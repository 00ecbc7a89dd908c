"""What keeps proxies from serving a Service that has endpoints: labels, addresses of two Services, and ports in use."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator

from seamark.kinds.wellknown import HEADLESS_LABEL, PROXY_NAME_LABEL
from seamark.rules.routing.frontends import addresses_of, families_of, frontends_of, ignored, place_of
from seamark.rules.routing.model import HEALTH_CHECK_NOT_SERVED, NOT_SERVED, Ignored, Kind
from seamark.why import evidence
from seamark.why.case import Case
from seamark.why.codes import Code
from seamark.why.finding import Finding, Fix, Severity, label, look
from seamark.why.views import Service

_CLAIMED = (
    "metadata.namespace",
    "spec.ports",
    "spec.externalIPs",
    "status.loadBalancer.ingress",
    "metadata.creationTimestamp",
)


def findings(case: Case) -> Iterator[Finding]:
    if case.service.external or case.service.headless:
        return
    yield from _not_proxied(case)
    yield from _taken(case)
    yield from _not_served(case)


def _not_proxied(case: Case) -> Iterator[Finding]:
    match ignored(case.service):
        case Ignored.OTHER_PROXY:
            name, proxy = PROXY_NAME_LABEL, case.service.metadata.labels[PROXY_NAME_LABEL]
            yield Finding(
                Code.NOT_PROXIED,
                Severity.WARNING,
                f'It has the label {name}, so kube-proxy leaves it alone: only a proxy called "{proxy}" serves its'
                " addresses, and whether there is one cannot be seen from here.",
                Fix(
                    "If there is no such proxy, remove the label:",
                    (label("service", case.key, f"{name}-"),),
                    certain=False,
                ),
                case.seen(f"metadata.labels[{name}]", "spec.clusterIP"),
            )
        case Ignored.HEADLESS_LABEL:
            yield Finding(
                Code.NOT_PROXIED,
                Severity.ERROR,
                f"It has a cluster IP, but also the label {HEADLESS_LABEL}, which is for headless Services: proxies"
                " leave it alone.",
                Fix("Remove the label:", (label("service", case.key, f"{HEADLESS_LABEL}-"),)),
                case.seen(f"metadata.labels[{HEADLESS_LABEL}]", "spec.clusterIP"),
            )


def _taken(case: Case) -> Iterator[Finding]:
    """Addresses that another Service asks for as well, and gets: the older one, or the one whose cluster IP it is."""
    if ignored(case.service) is not None:
        return
    key = case.service.metadata.key
    for family in families_of(case.service):
        addresses = addresses_of(case.service, family)
        for port in case.service.spec.ports:
            for frontend in frontends_of(case.service, port, addresses):
                winner = case.world.claims.winner(place_of(frontend, family))
                if winner == key or frontend.kind is Kind.CLUSTER_IP:
                    continue  # two Services with one cluster IP have a finding of their own
                where = f"{frontend.address} port {frontend.port}" if frontend.address else f"node port {frontend.port}"
                yield Finding(
                    Code.ADDRESS_TAKEN,
                    Severity.WARNING,
                    f"What comes to {where}/{frontend.protocol} goes to Service {winner}, which asks for it, too, and"
                    " comes first.",
                    Fix("Give one of the two another address or port."),
                    (*case.seen(*_CLAIMED), *evidence.each(_service(case, winner), *_CLAIMED)),
                )


def _service(case: Case, key: str | None) -> list[Service]:
    namespace, _, name = (key or "").partition("/")
    found = case.world.services.get((namespace, name))
    return [found] if found is not None else []


def _not_served(case: Case) -> Iterator[Finding]:
    """Ports that a proxy could not serve, in the words of its Events, if the Service still has these ports."""
    for event in case.world.events_by_object.get(("Service", *case.key), ()):
        if event.reason not in (NOT_SERVED, HEALTH_CHECK_NOT_SERVED):
            continue
        ports = (*case.service.node_ports, *(each.port for each in case.service.spec.ports))
        # Neither within a longer number nor within an address.
        port = next((each for each in ports if re.search(rf"(?<![\d.]){each}(?!\.?\d)", event.message)), None)
        if port is None:
            continue
        if os.strerror(errno.EACCES) in event.message:
            advice = (
                f"Let that user listen on port {port} (on Linux: `sysctl net.ipv4.ip_unprivileged_port_start`), or give"
                " the Service a port from 1024 on."
            )
        else:
            advice = (
                f"See on that node which program has port {port} (`ss -ltnup`) and stop it, or give the Service another"
                f" {'node ' if port in case.service.node_ports else ''}port."
            )
        yield Finding(
            Code.NODE_PORT_NOT_SERVED,
            Severity.WARNING,
            f"A proxy said at {event.time or 'an unknown time'}: {event.message}.",
            Fix(
                advice,
                (),
                (look("get", "events", "--field-selector", f"reason={event.reason}", namespace=case.namespace),),
            ),
            (evidence.told(event), *case.seen("spec.ports")),
            facts=("the Event stays for a while after the port is served again, and nothing else tells of that",),
        )
        return
