"""Where a connection to a Service would go, from a Pod, a node or outside, and why not elsewhere (pure).

Nothing is decided here: :mod:`seamark.rules.routing` is asked, by the functions that the proxies run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from seamark.kinds.values import addresses
from seamark.kinds.values.hosts import bracketed
from seamark.rules.objects.service import ServicePort
from seamark.rules.routing.decision import Decision, Origin, decide
from seamark.rules.routing.model import Backend, Frontend, Ignored, Kind, Reason, Route, ServiceRoutes
from seamark.rules.routing.surroundings import Surroundings, ThisNode
from seamark.rules.routing.table import RouteTable
from seamark.why import evidence
from seamark.why.case import Case, listed, plural
from seamark.why.checks import policies
from seamark.why.codes import Code
from seamark.why.explain import explain, findings
from seamark.why.finding import Finding, Fix, Severity, merge_patch, ranked
from seamark.why.report import EndpointRow, Report, Table, Way, health_of
from seamark.why.views import Key, Pod
from seamark.why.world import World

ENDPOINTS_SHOWN = 10  # of each way; programs get all of them

_VERDICTS = {"accept": "goes to", "refuse": "is refused", "drop": "is dropped"}


class Place(msgspec.Struct, frozen=True):
    """Where a client was said to be: a Pod, a node, or outside, there perhaps with an address."""

    origin: Origin
    name: str = ""
    namespace: str = ""
    address: str = ""


def parse_place(text: str) -> Place:
    """``pod/NAME``, ``pod/NAMESPACE/NAME``, ``node/NAME``, ``outside`` or an address; raises ``ValueError``."""
    kind, _, rest = text.partition("/")
    namespace, _, name = rest.rpartition("/")
    if kind in ("pod", "po", "pods") and name:
        return Place("pod", name, namespace)
    if kind in ("node", "no", "nodes") and name and not namespace:
        return Place("node", name)
    if text == "outside":
        return Place("outside")
    if addresses.parse(text) is not None:
        return Place("outside", address=addresses.canonical(text))
    raise ValueError(f"from {text!r}? Say pod/NAME, pod/NAMESPACE/NAME, node/NAME, outside or an address")


class Client(msgspec.Struct, frozen=True):
    """Who connects.  ``node`` is where the connection meets a proxy; empty for any, as from outside."""

    origin: Origin
    name: str  # for people
    node: str = ""
    address: str = ""
    pod: Pod | None = None

    @property
    def who(self) -> str:
        """As the subject of a sentence."""
        return self.name if self.node or self.address else "a client outside"


def explain_way(world: World, key: Key, client: Client, port: int | None = None) -> Report:
    """The report on connections of a client to a Service, to all of its ports or to one."""
    service = world.services.get(key)
    if service is None:
        return explain(world, key)
    case = Case(world, service)
    nodes = _nodes(world, client)
    tables = [(node, _routes(case, node)) for node in nodes]
    ways = _ways(client, tables)
    asked = [way for way in ways if port in (None, way.port)]
    own = [
        *_about_ports(case, client, ways, port),
        *_about_ways(case, client, asked),
        *policies.for_client(case, client.pod, client.address, client.who, port),
    ]
    # What was found about this client is nearer to the question than the same about all clients.
    told = {finding.code for finding in own}
    found = ranked([*own, *(each for each in findings(case) if each.code not in told)])
    return Report(
        subject=f"service/{case.name}",
        namespace=case.namespace,
        state=f"from {client.name}: {_state(asked, tables[0][1].ignored)}",
        health=health_of(found),
        findings=found,
        facts=tuple(_facts(case, client, nodes)),
        tables=(_table(asked),) if asked else (),
        ready=case.ready_addresses,
        notes=tuple(str(each) for each in world.seen.refused),
        ways=tuple(asked),
    )


def _nodes(world: World, client: Client) -> list[ThisNode]:
    """The nodes whose proxies may get the connection; one without a name where none can be known."""
    known = world.nodes or {}
    if client.node:
        node = known.get(client.node)
        return [ThisNode.of(node) if node is not None else ThisNode(client.node)]
    ready = [ThisNode.of(node) for node in known.values() if node.ready]
    return sorted(ready, key=lambda node: node.name) or [ThisNode("")]


def _routes(case: Case, node: ThisNode) -> ServiceRoutes:
    table = RouteTable(Surroundings(node))
    for service in case.world.services.values():
        table.put_service(service)
    for slice in case.slices:
        table.put_slice(slice)
    routes = table.routes(case.service.metadata.key)
    assert routes is not None
    return routes


# --- ways ------------------------------------------------------------------------------------------


def _ways(client: Client, tables: Iterable[tuple[ThisNode, ServiceRoutes]]) -> list[Way]:
    """The ways on all nodes; those that are the same on several nodes are one."""
    found: dict[Way, list[str]] = {}
    for node, routes in tables:
        for route in routes.routes:
            for frontend in route.frontends:
                if client.origin == "outside" and frontend.kind is Kind.CLUSTER_IP:
                    continue  # no route leads to a cluster IP from outside
                found.setdefault(_way(client, node, route, frontend), []).append(node.name)
    return [msgspec.structs.replace(way, nodes=tuple(filter(None, names))) for way, names in found.items()]


def _way(client: Client, node: ThisNode, route: Route, frontend: Frontend) -> Way:
    decision = decide(route, frontend, client.origin, client.address, Surroundings(node))
    return Way(
        kind=frontend.kind.value,
        address=frontend.address,
        port=frontend.port,
        protocol=frontend.protocol,
        nodes=(),
        verdict=decision.verdict,
        policy=decision.policy,
        why=_why(route, frontend, decision, client),
        blocked=decision.blocked,
        endpoints=tuple(_row(each) for each in decision.choice.backends) if not decision.blocked else (),
        left_out=tuple(_row(each.backend, each.reason) for each in decision.choice.left_out),
    )


def _why(route: Route, frontend: Frontend, decision: Decision, client: Client) -> str:
    ranges = listed(route.source_ranges)
    if decision.blocked:
        return f"{client.address} is not in loadBalancerSourceRanges ({ranges})"
    if decision.verdict == "drop":
        which = "internalTrafficPolicy" if frontend.kind is Kind.CLUSTER_IP else "externalTrafficPolicy"
        return f"{which} is Local, and no endpoint that can serve is on this node"
    if decision.verdict == "refuse":
        return "no endpoint can serve"
    if decision.bypassed:
        return "externalTrafficPolicy Local does not count for clients in the cluster"
    if frontend.kind is Kind.LOAD_BALANCER and ranges and not client.address:
        return f"only for clients in {ranges} (loadBalancerSourceRanges)"
    return ""


def _row(backend: Backend, reason: Reason | None = None) -> EndpointRow:
    return EndpointRow(backend.address, backend.port, backend.node, backend.zone, reason.value if reason else "")


# --- findings --------------------------------------------------------------------------------------


def _about_ports(case: Case, client: Client, ways: Sequence[Way], port: int | None) -> Iterator[Finding]:
    if case.service.external or case.service.headless:
        return
    if client.origin == "outside" and not ways and case.service.spec.ports:
        yield Finding(
            Code.NOT_EXPOSED,
            Severity.ERROR,
            f"It is a {case.service.spec.type} Service without an address for clients outside of the cluster.",
            Fix(
                "Give it node ports (or type LoadBalancer); for one person, `seamark port-forward` is enough:",
                (merge_patch("service", case.key, {"spec": {"type": "NodePort"}}),),
                certain=False,
            ),
            case.seen("spec.type", "spec.ports", "spec.externalIPs", "status.loadBalancer.ingress"),
        )
    elif port is not None and not any(way.port == port for way in ways):
        offered = sorted({way.port for way in ways})
        meant = [each for each in case.service.spec.ports if port in (each.port, each.target_port, each.node_port)]
        yield Finding(
            Code.PORT_NOT_OFFERED,
            Severity.ERROR,
            f"Nothing answers on port {port} from there{_mistaken(meant, port)}; its ports are"
            f" {listed(map(str, offered), 6) or 'none'}.",
            Fix(f"Connect to {_better(meant, client) or listed(map(str, offered), 6) or 'another Service'}."),
            (evidence.Asked(f"port {port} from {client.name}"), *case.seen("spec.ports", "spec.type")),
        )


def _mistaken(meant: Sequence[ServicePort], port: int) -> str:
    """What the port number is instead of a port that clients can connect to, as the end of a sentence."""
    for each in meant:
        if port == each.target_port:
            return f": {port} is where its Pods listen (targetPort)"
        if port == each.node_port:
            return f": {port} is a node port, for addresses of nodes"
        return f": {port} is a port of its cluster IP, which is not for clients outside"
    return ""


def _better(meant: Sequence[ServicePort], client: Client) -> str:
    """The port to use instead."""
    numbers = [each.node_port if client.origin == "outside" else each.port for each in meant]
    return listed([f"port {number}" for number in numbers if number])


def _about_ways(case: Case, client: Client, ways: Sequence[Way]) -> Iterator[Finding]:
    blocked = [way for way in ways if way.blocked]
    if blocked:
        network = f"{client.address}/{128 if ':' in client.address else 32}"
        ranges = [*case.service.spec.load_balancer_source_ranges, network]
        yield Finding(
            Code.SOURCE_RANGES_EXCLUDE,
            Severity.WARNING if any(way.verdict == "accept" for way in ways) else Severity.ERROR,
            f"What {client.who} sends to {_places(blocked)} is dropped: {blocked[0].why}.",
            Fix(
                "If that client should be let in, add its network:",
                (merge_patch("service", case.key, {"spec": {"loadBalancerSourceRanges": ranges}}),),
                certain=False,
            ),
            (evidence.Asked(f"from {client.who} ({client.address})"), *_seen(case)),
            weight=len(blocked),
        )
    for code, policy, inside in (
        (Code.INTERNAL_LOCAL_WITHOUT_ENDPOINT, "internalTrafficPolicy", True),
        (Code.EXTERNAL_LOCAL_WITHOUT_ENDPOINT, "externalTrafficPolicy", False),
    ):
        concerned = [way for way in ways if (way.kind == Kind.CLUSTER_IP.value) == inside]
        dropped = [way for way in concerned if way.verdict == "drop" and way not in blocked]
        if not dropped:
            continue
        nodes = sorted({name for way in dropped for name in way.nodes})
        where = f"on {listed(f'node {name}' for name in nodes)}" if nodes else "on the node that gets it"
        yield Finding(
            code,
            Severity.WARNING if any(way.verdict == "accept" for way in concerned) else Severity.ERROR,
            f"What {client.who} sends to {_places(dropped)} is dropped {where}: {policy} is Local, and no endpoint"
            " that can serve is there.",
            Fix(
                "Run one of its Pods there, or let traffic leave the node:",
                (merge_patch("service", case.key, {"spec": {policy: "Cluster"}}),),
            ),
            (
                evidence.Asked(f"from {client.who} on {', '.join(nodes)}"),
                *_seen(case),
                *evidence.each(case.slices, "endpoints"),
            ),
            weight=len(dropped),
            facts=tuple(_elsewhere(dropped)),
        )


def _seen(case: Case) -> tuple[evidence.Field, ...]:
    """What of the Service decides where connections go."""
    return case.seen(
        "spec.ports",
        "spec.clusterIP",
        "spec.externalIPs",
        "spec.internalTrafficPolicy",
        "spec.externalTrafficPolicy",
        "spec.loadBalancerSourceRanges",
        "status.loadBalancer.ingress",
    )


def _elsewhere(dropped: Iterable[Way]) -> Iterator[str]:
    nodes = sorted(
        {row.node for way in dropped for row in way.left_out if row.why == Reason.ELSEWHERE.value and row.node}
    )
    if nodes:
        yield f"endpoints are on {listed(nodes, 5)}"


# --- for people ------------------------------------------------------------------------------------


def _state(ways: Sequence[Way], ignored: Ignored | None) -> str:
    if not ways:
        return f"no proxy serves it, because {ignored.value}" if ignored is not None else "nothing leads to it"
    verdicts = {way.verdict for way in ways}
    if verdicts == {"accept"}:
        count = len({(row.address, row.port) for way in ways for row in way.endpoints})
        return f"reaches {plural(count, 'endpoint')}"
    if "accept" in verdicts:
        return "some connections get through"
    return "no connection gets through"


def _facts(case: Case, client: Client, nodes: Sequence[ThisNode]) -> Iterator[tuple[str, str]]:
    if client.node or (len(nodes) == 1 and nodes[0].name):
        zone = f" in zone {nodes[0].zone}" if nodes[0].zone else ""
        yield "meets", f"the proxy of node {nodes[0].name}{zone}"
    elif nodes[0].name:
        yield "meets", f"the proxy of one of {plural(len(nodes), 'ready node')}"
    else:
        yield "meets", "the proxy of a node that is not known, for nodes cannot be listed or none is ready"
    if case.service.spec.session_affinity == "ClientIP":
        yield "affinity", "all connections of one client address go to the same endpoint (sessionAffinity ClientIP)"
    if case.service.headless:
        yield "headless", "DNS answers with the endpoints themselves, and clients connect to these without a proxy"


def _place(way: Way) -> str:
    port = f"{way.port}" if way.protocol == "TCP" else f"{way.port}/{way.protocol}"
    return f"{bracketed(way.address)}:{port}" if way.address else f"node port {port}"


def _places(ways: Iterable[Way]) -> str:
    return listed(sorted({_place(way) for way in ways}))


def _table(ways: Sequence[Way]) -> Table:
    rows: list[tuple[str, ...]] = []
    several = len({way.nodes for way in ways}) > 1
    for way in ways:
        head = f"{way.kind} {_place(way)}" if way.address else _place(way)
        why = "; ".join(filter(None, (f"met on {listed(way.nodes)}" if several else "", way.why)))
        chosen = [("or", _endpoint(row), _spot(row)) for row in way.endpoints[:ENDPOINTS_SHOWN]] or [("", "-", "")]
        (_, endpoint, spot), *others = chosen
        rows.append((head, _VERDICTS[way.verdict], endpoint, "; ".join(filter(None, (spot, why)))))
        rows += [("", *each) for each in others]
        for row in way.left_out[:ENDPOINTS_SHOWN]:
            rows.append(("", "not to", _endpoint(row), "; ".join(filter(None, (_spot(row), row.why)))))
        more = sum(max(0, len(each) - ENDPOINTS_SHOWN) for each in (way.endpoints, way.left_out))
        if more:
            rows.append(("", "", f"and {more} more", "-o json lists them all"))
    return Table(("TO", "VERDICT", "ENDPOINT", "WHY"), tuple(rows))


def _endpoint(row: EndpointRow) -> str:
    return f"{bracketed(row.address)}:{row.port}"


def _spot(row: EndpointRow) -> str:
    zone = f" in zone {row.zone}" if row.zone else ""
    return f"on node {row.node}{zone}" if row.node else ""
