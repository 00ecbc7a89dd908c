"""The userspace engine: a socket for every frontend that this user can have, and what comes in there forwarded.

An update exchanges what decides about new connections and leaves those that are established alone.  A socket that
cannot be had, because another program has its port, is told and tried again.
"""

from __future__ import annotations

import logging
import resource
import socket
from collections.abc import Sequence

from seamark.clock import SYSTEM_CLOCK, Cancellable, Clock
from seamark.metrics import Registry
from seamark.proxy.engine import Problem, Report, Update, reason_of
from seamark.proxy.userspace.addresses import TakenAddresses, may_take_addresses, own_addresses
from seamark.proxy.userspace.balancing import Balancer
from seamark.proxy.userspace.places import Opening, Place, RoutePicker, openings, serving, without
from seamark.proxy.userspace.settings import UserspaceSettings
from seamark.proxy.userspace.sockets import Sockets, open_socket
from seamark.proxy.userspace.tcp import TcpForwarder, TcpListener, bind_tcp
from seamark.proxy.userspace.udp import UdpForwarder, UdpListener, bind_udp
from seamark.rules.routing.model import Frontend, Kind, ServiceRoutes
from seamark.rules.routing.surroundings import Surroundings, ThisNode, within

log = logging.getLogger(__name__)

RETRY_SECONDS = 5.0
_LOOPBACK = ("127.0.0.0/8", "::1/128")
_FILES_FOR_OTHERS = 256  # descriptors that the rest of the process may need


class UserspaceEngine:
    """Forwards on behalf of all Services.  ``problems`` are the places that cannot be served, and why.

    Node ports answer on ``node_ports_at``, or else where the surroundings say.  Backends in ``silent`` networks are
    never dialed: nothing can answer there.
    """

    def __init__(
        self,
        settings: UserspaceSettings = UserspaceSettings(),  # noqa: B008 - frozen
        *,
        node_ports_at: Sequence[str] = (),
        silent: Sequence[str] = (),
        take_addresses: bool = True,
        sockets: Sockets | None = None,
        report: Report = lambda problem: None,
        clock: Clock = SYSTEM_CLOCK,
        metrics: Registry | None = None,
    ) -> None:
        self.problems: dict[Place, Problem] = {}
        self._settings = settings
        self.node_ports_at = tuple(node_ports_at)
        self._silent = tuple(silent)
        self._taken = TakenAddresses() if take_addresses and may_take_addresses() else None
        self._sockets = sockets
        self._report = report
        self._clock = clock
        self._metrics = metrics or Registry()
        self._tcp: TcpForwarder
        self._udp: UdpForwarder
        self._services: dict[str, dict[Place, Opening]] = {}
        self._listeners: dict[Place, TcpListener | UdpListener] = {}
        self._balancers: dict[str, dict[tuple[str, ...], Balancer]] = {}  # by Service, then by port
        self._surroundings = Surroundings(ThisNode(""))
        self._here: tuple[str, ...] = ()
        self._addresses: dict[str, set[str]] = {}  # by Service; only if addresses are taken
        self._retry: Cancellable | None = None
        read = self._metrics.measured
        read("seamark_proxy_listeners", "Sockets on which Services are served.", lambda: float(len(self._listeners)))
        read(
            "seamark_proxy_places_not_served",
            "Addresses and ports of Services that could not be opened, for example because another program has them.",
            lambda: float(len(self.problems)),
        )

    @property
    def rules(self) -> int:
        return len(self._listeners)

    async def start(self) -> None:
        self.node_ports_at = tuple(filter(_exists, self.node_ports_at))
        self._here = tuple(own_addresses())
        most = self._settings.connections or max(1, (more_files() - self._settings.flows - _FILES_FOR_OTHERS) // 2)
        self._tcp = TcpForwarder(
            most=most,
            dial_seconds=self._settings.dial_seconds,
            sockets=self._sockets,
            clock=self._clock,
            metrics=self._metrics,
        )
        self._udp = UdpForwarder(
            most=self._settings.flows, sockets=self._sockets, clock=self._clock, metrics=self._metrics
        )
        if self._taken is not None:
            await self._taken.start()

    async def apply(self, update: Update) -> None:
        if update.everything or update.surroundings != self._surroundings:
            taken = set().union(*self._addresses.values())
            self._here = tuple(each for each in own_addresses() if each not in taken)
        self._surroundings = update.surroundings
        after = {key: {} if routes is None else self._openings(routes) for key, routes in update.routes.items()}
        if update.everything:
            after |= {key: {} for key in self._services.keys() - after.keys()}
        if self._taken is not None:
            await self._take(self._taken, update)
        before = {key: self._services.pop(key, {}) for key in after}
        self._services |= {key: places for key, places in after.items() if places}
        wanted = {place for places in after.values() for place in places}
        for places in before.values():
            for place in places.keys() - wanted:
                self._shut(place)
        for places in after.values():
            for place, opening in places.items():
                self._open(place, opening)
        for key in after.keys() - self._services.keys():
            self._forget(key)
        self._try_again_later()

    async def close(self) -> None:
        """End: sockets and connections are this process's and go with it."""
        if self._retry is not None:
            self._retry.cancel()
        self._tcp.close()
        self._udp.close()
        self._listeners.clear()
        if self._taken is not None:
            await self._taken.close()

    # --- places ----------------------------------------------------------------------------------------

    def _openings(self, routes: ServiceRoutes) -> dict[Place, Opening]:
        found = openings(without(routes, self._silent), self._surroundings, self._node_port_addresses())
        return {place: opening for place, opening in found if self.can_have(opening.frontend)}

    def _node_port_addresses(self) -> Sequence[str]:
        return self.node_ports_at or [each for each in self._here if self._surroundings.serves_node_ports(each)]

    def can_have(self, frontend: Frontend) -> bool:
        """Whether to try: without rights, only the machine's own addresses can be had."""
        if self._taken is not None or frontend.kind is Kind.NODE_PORT:
            return True
        return within(frontend.address, _LOOPBACK) or frontend.address in self._here

    async def _take(self, taken: TakenAddresses, update: Update) -> None:
        """Answer for the addresses of all Services, also of those without endpoints, so that the kernel refuses."""
        addresses = {} if update.everything else dict(self._addresses)
        for key, routes in update.routes.items():
            addresses[key] = set() if routes is None else _addresses_of(routes)
        if addresses != self._addresses:
            # An address that connections still use is kept until a later change: without it they would end.
            await taken.change(set().union(*addresses.values()) | self._tcp.local_addresses())
            self._addresses = {key: each for key, each in addresses.items() if each}

    def _open(self, place: Place, opening: Opening) -> None:
        """Serve a place from now on, or serve it in another way."""
        balancers = self._balancers.setdefault(opening.route.service, {})
        balancer = balancers.get(opening.route.key)
        if balancer is None:
            balancer = balancers[opening.route.key] = Balancer(clock=self._clock)
        picker = RoutePicker(opening, self._surroundings, balancer)
        listener = self._listeners.get(place)
        if listener is None:
            try:
                listener = self._listen(place, picker)
            except OSError as error:
                self._tell(place, opening, error)
                return
            self._listeners[place] = listener
            self._solved(place)
        listener.picker = picker
        if isinstance(listener, UdpListener):
            still = serving(opening.route)
            listener.end_flows(lambda target: target not in still)

    def _listen(self, place: Place, picker: RoutePicker) -> TcpListener | UdpListener:
        free = self._taken is not None
        if place.protocol == "UDP":
            return self._udp.listen(bind_udp(place.address, place.port, free=free), picker)
        return self._tcp.listen(bind_tcp(place.address, place.port, free=free), picker)

    def _shut(self, place: Place) -> None:
        self._solved(place)
        if listener := self._listeners.pop(place, None):
            listener.close()

    def _tell(self, place: Place, opening: Opening, error: OSError) -> None:
        text = f"{opening.frontend.kind.value} {place} cannot be served: {reason_of(error)}"
        problem = Problem(opening.route.service, text)
        if self.problems.get(place) != problem:
            self.problems[place] = problem
            log.warning("%s: %s; it is tried again", problem.service, text)
            self._report(problem)

    def _solved(self, place: Place) -> None:
        if problem := self.problems.pop(place, None):
            log.info("%s: no longer: %s", problem.service, problem.text)
            self._report(None)

    def _try_again_later(self) -> None:
        if self.problems and self._retry is None:
            self._retry = self._clock.call_later(RETRY_SECONDS, self._try_again)

    def _try_again(self) -> None:
        self._retry = None
        for places in self._services.values():
            for place in places.keys() & self.problems.keys():
                self._open(place, places[place])
        self._try_again_later()

    def _forget(self, service: str) -> None:
        """A Service that is not served leaves no affinity behind."""
        self._balancers.pop(service, None)


def _addresses_of(service: ServiceRoutes) -> set[str]:
    frontends = (each for route in service.routes for each in route.frontends)
    return {*service.addresses, *(each.address for each in frontends if each.address)}


def _exists(address: str) -> bool:
    """Whether this machine has the address: ::1 is missing where IPv6 is switched off."""
    try:
        with open_socket(socket.SOCK_DGRAM, address) as sock:
            sock.bind((address, 0))
    except OSError:
        return False
    return True


def more_files() -> int:
    """Allow this process as many open files as the administrator permits; returns how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 1 << 20 if hard == resource.RLIM_INFINITY else hard
    if soft != resource.RLIM_INFINITY and soft < most:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        except (OSError, ValueError):  # macOS has a lower limit of its own
            return soft
    return most
