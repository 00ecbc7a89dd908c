"""NetworkPolicies that keep traffic from a Service's Pods, for everyone or for the client that was asked about.

Whether a network plugin enforces them cannot be seen in the cluster's objects, so sentences say what policies allow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from seamark.rules import isolation
from seamark.rules.isolation import EGRESS, INGRESS, Door, Party
from seamark.why import evidence
from seamark.why.case import Candidate, Case, listed, plural
from seamark.why.codes import Code
from seamark.why.evidence import Evidence
from seamark.why.finding import Finding, Fix, Severity, look
from seamark.why.views import NetworkPolicy, Pod

_DNS = 53
_ENFORCED = "if the cluster's network plugin enforces NetworkPolicies, as most do"


def findings(case: Case) -> Iterator[Finding]:
    """Ports of ready Pods on which policies let no client in."""
    shut: dict[Door, list[tuple[Candidate, list[NetworkPolicy]]]] = {}
    ready = [each for each in case.ready if not each.pod.spec.host_network]
    for each in ready:
        selecting = isolation.selecting(_policies(case, each.pod), each.pod, INGRESS)
        for port in each.verdict.ports if selecting else ():
            door = isolation.door(each.pod, port.port, port.protocol)
            if isolation.closed(selecting, door):
                shut.setdefault(door, []).append((each, selecting))
    reached = {each.pod.key for each in ready for port in each.verdict.ports if not _shut(shut, each, port.port)}
    for door, closed in shut.items():
        by = _unique(policy for _, selecting in closed for policy in selecting)
        all_closed = len(closed) == len(ready)
        whose = "its Pods" if all_closed else f"{len(closed)} of {plural(len(ready), 'ready Pod')}"
        yield Finding(
            Code.POLICY_CLOSES_PORT,
            Severity.WARNING if reached else Severity.ERROR,
            f"{_named(by)} {'selects' if len(by) == 1 else 'select'} {whose} and let"
            f"{'s' if len(by) == 1 else ''} nothing in on port {door.port}/{door.protocol}: no connection gets there,"
            f" {_ENFORCED}.",
            _open(door, _most_open(by)),
            (
                *_of(by, "ingress"),
                *_pods([each.pod for each, _ in closed]),
                case.pods_found(),
                *case.seen("spec.ports"),
            ),
            weight=len(closed),
            facts=_allowed(by),
        )


def for_client(case: Case, pod: Pod | None, address: str, who: str, port: int | None) -> Iterator[Finding]:
    """What policies do to the connections of one client: a Pod, or an address outside."""
    if not case.world.seen.policies or case.service.external:
        return
    party = Party(pod, _labels(case, pod), (address,) if address else ())
    out = isolation.selecting(_policies(case, pod), pod, EGRESS) if pod is not None else []
    doors = [
        (each, isolation.door(each.pod, to.port, to.protocol))
        for each in case.ready
        for to in each.verdict.ports
        if port is None or to.name in {p.name for p in case.service.spec.ports if p.port == port}
    ]
    if pod is not None or address:
        yield from _kept_out(case, party, pod, who, doors)
    if out and pod is not None and not pod.spec.host_network:
        yield from _kept_in(case, pod, out, doors)


def _kept_out(
    case: Case, party: Party, client: Pod | None, who: str, doors: Sequence[tuple[Candidate, Door]]
) -> Iterator[Finding]:
    refused: list[tuple[Candidate, Door, list[NetworkPolicy]]] = []
    for each, door in doors:
        selecting = isolation.selecting(_policies(case, each.pod), each.pod, INGRESS)
        closed = isolation.closed(selecting, door)
        isolated = bool(selecting) and not each.pod.spec.host_network and not closed
        if isolated and isolation.admitted(selecting, door, party) is False:
            refused.append((each, door, selecting))
    if not refused:
        return
    by = _unique(policy for _, _, selecting in refused for policy in selecting)
    door = refused[0][1]
    meant = _most_open(by)
    yield Finding(
        Code.POLICY_KEEPS_OUT,
        Severity.WARNING if len(refused) < len(doors) else Severity.ERROR,
        f"{_named(by)} {'lets' if len(by) == 1 else 'let'} only some clients in to its Pods on port"
        f" {door.port}/{door.protocol}, and {who}{_labelled(client)} is none of them, {_ENFORCED}.",
        Fix(
            f"If that client should be let in, add a rule for it to NetworkPolicy {meant.metadata.name}"
            + ("." if client is None else ", or give it the labels that a rule asks for."),
            (),
            (look("get", "networkpolicy", meant.metadata.name, "-o", "yaml", namespace=meant.metadata.namespace),),
            certain=False,
        ),
        (
            evidence.Asked(f"from {who}"),
            *_of(by, "ingress"),
            *_pods([each.pod for each, _, _ in refused]),
            *(evidence.of(client, "metadata.labels", "metadata.namespace") if client is not None else ()),
        ),
        weight=len(refused),
        facts=_allowed(by),
    )


def _kept_in(
    case: Case, pod: Pod, out: list[NetworkPolicy], doors: Sequence[tuple[Candidate, Door]]
) -> Iterator[Finding]:
    """Policies that isolate the client, and let it out neither to these Pods nor to DNS."""
    held = [
        (each, door)
        for each, door in doors
        if isolation.let_out(out, door, Party(each.pod, _labels(case, each.pod))) is False
    ]
    client = evidence.of(pod, "metadata.labels", "metadata.namespace")
    names = listed(f"NetworkPolicy {each.metadata.name}" for each in out)
    show = (look("get", "networkpolicy", out[0].metadata.name, "-o", "yaml", namespace=out[0].metadata.namespace),)
    if held:
        door = held[0][1]
        yield Finding(
            Code.POLICY_KEEPS_IN,
            Severity.WARNING if len(held) < len(doors) else Severity.ERROR,
            f"{names} {'lets' if len(out) == 1 else 'let'} Pod {pod.metadata.name} out only to some places, and port"
            f" {door.port}/{door.protocol} of Service {case.name}'s Pods is none of them, {_ENFORCED}.",
            Fix(f"If it should be let out, add an egress rule to NetworkPolicy {out[0].metadata.name}.", (), show),
            (
                *client,
                *_of(out, "egress"),
                *_pods([each.pod for each, _ in held]),
                *case.seen("spec.ports", "spec.clusterIP"),
            ),
            weight=len(held),
            facts=_cluster_ip_allowed(case, out),
        )
    elif not isolation.speaks(out, _DNS):
        yield Finding(
            Code.POLICY_CLOSES_DNS,
            Severity.WARNING,
            f"{names} {'lets' if len(out) == 1 else 'let'} Pod {pod.metadata.name} out, but not to port {_DNS} of"
            f" anything: it cannot look up names, {_ENFORCED}.",
            Fix("Allow egress to port 53, UDP and TCP, of the cluster's DNS.", (), show),
            (*client, *_of(out, "egress")),
        )


def _cluster_ip_allowed(case: Case, out: Sequence[NetworkPolicy]) -> tuple[str, ...]:
    """A remark, if a rule names the Service's own address: a proxy has changed it to a Pod's before policies see it."""
    blocks = [peer.ip_block.cidr for each in out for rule in each.spec.egress for peer in rule.to if peer.ip_block]
    named = [cidr for cidr in blocks for ip in case.service.addresses if ip and isolation.within(ip, cidr)]
    if not named:
        return ()
    return (f"{named[0]} holds the Service's cluster IP, but policies see the addresses of its Pods",)


# --- words -----------------------------------------------------------------------------------------


def _policies(case: Case, pod: Pod) -> list[NetworkPolicy]:
    return case.world.policies_by_namespace.get(pod.metadata.namespace, [])


def _shut(shut: dict[Door, list[tuple[Candidate, list[NetworkPolicy]]]], candidate: Candidate, port: int) -> bool:
    return any(each is candidate for door, closed in shut.items() if door.port == port for each, _ in closed)


def _labels(case: Case, pod: Pod | None) -> dict[str, str] | None:
    """The labels of a Pod's namespace; every namespace has one with its name."""
    if pod is None:
        return None
    name = pod.metadata.namespace
    found = next((each for each in case.world.seen.namespaces or () if each.metadata.name == name), None)
    return {"kubernetes.io/metadata.name": name, **found.metadata.labels} if found is not None else None


def _unique(policies: Iterable[NetworkPolicy]) -> list[NetworkPolicy]:
    return list({each.metadata.name: each for each in policies}.values())


def _most_open(policies: Sequence[NetworkPolicy]) -> NetworkPolicy:
    """The one to add a rule to: one with rules, rather than one that denies everything by default."""
    return next((each for each in policies if each.spec.ingress), policies[0])


def _named(policies: Sequence[NetworkPolicy]) -> str:
    return listed(f"NetworkPolicy {each.metadata.name}" for each in policies)


def _labelled(pod: Pod | None) -> str:
    if pod is None:
        return ""
    labels = ",".join(f"{key}={value}" for key, value in sorted(pod.metadata.labels.items())) or "none"
    return f" (namespace {pod.metadata.namespace}, labels {labels})"


def _of(policies: Sequence[NetworkPolicy], side: str) -> tuple[Evidence, ...]:
    return evidence.each(policies, "spec.podSelector", f"spec.{side}", "spec.policyTypes")


def _pods(pods: Sequence[Pod]) -> tuple[Evidence, ...]:
    return evidence.each(pods, "metadata.labels", "spec.containers")


def _allowed(policies: Sequence[NetworkPolicy]) -> tuple[str, ...]:
    """Which ports the policies are open on."""
    ports = sorted(
        {
            f"{'any' if port.port is None else port.port}/{port.protocol}"
            for each in policies
            for rule in each.spec.ingress
            for port in rule.ports
        }
    )
    return (f"open to some are {listed(ports, 5)}",) if ports else ()


def _open(door: Door, policy: NetworkPolicy) -> Fix:
    name, namespace = policy.metadata.name, policy.metadata.namespace
    return Fix(
        f"If clients should reach it, allow port {door.port}/{door.protocol} in an ingress rule of NetworkPolicy"
        f" {name}, or in a policy of its own.",
        (),
        (look("get", "networkpolicy", name, "-o", "yaml", namespace=namespace),),
        certain=False,
    )
