"""Cluster IPs and node ports: what a Service gets, holds and gives back.

:func:`plan` decides; it looks up what is taken, but writes nothing.  The write path puts the plan's reservations into
the object's own transaction, each of them "must be absent": a race that is lost is noticed there and planned again.
"""

from __future__ import annotations

from collections.abc import Sequence

from seamark.errors import ApiError, Object, internal
from seamark.kinds.allocation import Allocation, Pool
from seamark.kinds.resource import ENDPOINTS, IP_ADDRESSES, SERVICES
from seamark.kinds.service.bands import AddressRange, Band, address_range, lower_band
from seamark.kinds.service.families import keeps_dual_stack, settle
from seamark.kinds.service.ipaddress import parent_mistakes, parent_of
from seamark.kinds.service.types import (
    EXTERNAL_NAME,
    NONE,
    allocates_node_ports,
    has_node_ports,
    needs_health_check,
    node_ports,
)
from seamark.kinds.values.addresses import canonical, network_family
from seamark.kinds.values.fields import FieldError, invalid, refuse

DRY_RUN_PORT = 32768  # dry runs show the ports after this one

FULL = "range is full"
PORT_TAKEN = "provided port is already allocated"


def address_in(cidr: str, number: int) -> str:
    """One address of a range by its number: the API server's own Service has the first, cluster DNS the tenth."""
    found = address_range(cidr)
    return found.text(min(found.first + number - 1, found.last))


def plan(obj: Object, old: Object | None, pool: Pool, *, dry_run: bool) -> Allocation:
    """Settle families, fill in addresses and node ports, and say what that reserves and releases.

    ``obj`` is edited: to plan again after losing a race, start from the object as it was.  Raises ``Invalid`` for an
    address or port that cannot be had, ``InternalError`` if none is left.
    """
    spec, before = obj["spec"], old["spec"] if old is not None else None
    name = obj["metadata"].get("name", "")
    configured = [found for cidr in pool.ranges if (found := network_family(cidr))]
    errors = settle(spec, before, configured=configured)
    if errors:
        raise refuse(SERVICES, name, errors)
    addresses = _Addresses(obj, pool, dry_run=dry_run)
    release_ips = _plan_addresses(spec, before, addresses)
    ports = _Ports(name, pool, dry_run=dry_run)
    release_ports = _plan_ports(spec, before, ports)
    if dry_run:
        return Allocation()
    return Allocation(
        reserve_ips=tuple(addresses.reserved),
        release_ips=tuple(canonical(address) for address in release_ips),
        reserve_ports=tuple(ports.reserved),
        release_ports=tuple(dict.fromkeys(release_ports)),
    )


def release(obj: Object) -> Allocation:
    """Everything a Service holds, to be given back when it goes.

    Its Endpoints go with it, so that the next Service of that name does not begin with the addresses of the last.
    """
    meta, spec = obj["metadata"], obj["spec"]
    ports = node_ports(spec)
    if needs_health_check(spec) and spec.get("healthCheckNodePort"):
        ports.append(spec["healthCheckNodePort"])
    return Allocation(
        release_ips=tuple(canonical(address) for address in _held_addresses(spec)),
        release_ports=tuple(dict.fromkeys(ports)),
        removes=((ENDPOINTS, meta.get("namespace", ""), meta["name"]),),
    )


def _held_addresses(spec: Object) -> list[str]:
    addresses = spec.get("clusterIPs") or []
    return [] if spec.get("type") == EXTERNAL_NAME or addresses[:1] == [NONE] else list(addresses)


# --- addresses -------------------------------------------------------------------------------------


class _Addresses:
    """Addresses claimed for one Service."""

    def __init__(self, obj: Object, pool: Pool, *, dry_run: bool) -> None:
        self._obj = obj
        self._pool = pool
        # A dry run takes nothing, so it may show an address of a range that is closed.
        ranges = dict.fromkeys((*pool.ranges, *pool.open_ranges)) if dry_run else pool.open_ranges
        self._ranges = [address_range(cidr) for cidr in ranges]
        self._dry_run = dry_run
        self.reserved: list[str] = []

    def claim(self, family_name: str, wanted: str) -> str:
        """The address wanted, or any if none is."""
        ranges = [found for found in self._ranges if f"IPv{found.version}" == family_name]
        if wanted:
            self._check(wanted, ranges)
            address, shown = canonical(wanted), wanted
        else:
            address = shown = self._choose(ranges)
        if not self._dry_run:
            self._check_parent(address, wanted)
            self.reserved.append(address)
        return shown

    def _check(self, wanted: str, ranges: Sequence[AddressRange]) -> None:
        inside = any(found.holds(wanted) for found in ranges)
        if self._dry_run:
            if not inside:
                bounds = ranges[0].cidr
                raise self._refuse(
                    f"failed to allocate IP {wanted}: the provided IP ({canonical(wanted)}) is not in the valid range. "
                    f"The range of valid IPs is {bounds}"
                )
        elif not inside:
            raise self._refuse(
                f"failed to allocate IP {wanted}: the provided network does not match the current range",
            )
        elif self._pool.has_address(canonical(wanted)):
            raise self._refuse(f"failed to allocate IP {wanted}: provided IP is already allocated")

    def _choose(self, ranges: Sequence[AddressRange]) -> str:
        if self._dry_run:
            # A dry run takes nothing, so it shows an address that no Service can have.
            return ranges[0].text(ranges[0].first - 1)
        for found in ranges:
            address = found.pick(self._pool.has_address, self._pool.random)
            if address is not None:
                return address
        name = self._obj["metadata"].get("name", "")
        raise internal(f'failed to allocate a serviceIP for Service "{name}": {FULL}')

    def _check_parent(self, address: str, wanted: str) -> None:
        """An address cannot be recorded for a Service that cannot be referred to."""
        meta = self._obj["metadata"]
        errors = parent_mistakes(parent_of(meta.get("namespace", ""), meta.get("name", "")))
        if errors:
            reason = refuse(IP_ADDRESSES, address, errors).message
            raise self._refuse(f"failed to allocate IP{f' {wanted}' if wanted else ''}: {reason}")

    def _refuse(self, sentence: str) -> ApiError:
        spec = self._obj["spec"]
        shown = list(spec.get("clusterIPs") or ())
        shown += [""] * (len(spec["ipFamilies"]) - len(shown))
        return refuse(SERVICES, self._obj["metadata"].get("name", ""), [invalid("spec.clusterIPs", shown, sentence)])


def _plan_addresses(spec: Object, before: Object | None, addresses: _Addresses) -> list[str]:
    """Fill in cluster IPs; returns those that are no longer held."""
    if before is None:
        _fill_addresses(spec, addresses)
        return []
    if keeps_dual_stack(spec, before):
        return []
    if before.get("type") == EXTERNAL_NAME:
        _fill_addresses(spec, addresses)
        return []
    held = _held_addresses(before)
    if not held:
        return []
    if spec.get("type") == EXTERNAL_NAME:
        return held
    families, had = spec["ipFamilies"], before.get("ipFamilies") or []
    if len(had) == 1 and len(families) == 2:
        given = spec.get("clusterIPs") or []
        spec["clusterIPs"] = [*given[:1], addresses.claim(families[1], given[1] if len(given) > 1 else "")]
    elif len(had) == 2 and len(families) == 1:
        return held[1:]
    return []


def _fill_addresses(spec: Object, addresses: _Addresses) -> None:
    given = spec.get("clusterIPs") or []
    if spec.get("type") == EXTERNAL_NAME or given[:1] == [NONE]:
        return
    claimed = [addresses.claim(name, given[i] if i < len(given) else "") for i, name in enumerate(spec["ipFamilies"])]
    spec["clusterIPs"] = claimed
    spec["clusterIP"] = claimed[0]


# --- node ports ------------------------------------------------------------------------------------


class _Ports:
    """Node ports claimed for one Service."""

    def __init__(self, name: str, pool: Pool, *, dry_run: bool) -> None:
        self._name = name
        self._pool = pool
        self._first, self._last = pool.node_ports
        self._dry_run = dry_run
        self.reserved: list[int] = []

    def claim(self, port: int) -> str:
        """Reserve this port; returns why that is impossible, "" if it is not."""
        # A dry run does not look at the range: its own made-up ports lie outside.
        if not self._dry_run and not self._first <= port <= self._last:
            bounds = f"{self._first}-{self._last}"
            return f"provided port is not in the valid range. The range of valid ports is {bounds}"
        if self._in_use(port):
            return PORT_TAKEN
        self.reserved.append(port)
        return ""

    def claim_at(self, port: int, path: str) -> None:
        if reason := self.claim(port):
            errors: list[FieldError] = [invalid(path, port, reason)]
            raise refuse(SERVICES, self._name, errors)

    def any(self, purpose: str = "a nodePort") -> int:
        """Reserve any port."""
        port = self._made_up() if self._dry_run else self._pick()
        if port is None:
            raise internal(f"failed to allocate {purpose}: {FULL}")
        self.reserved.append(port)
        return port

    def _in_use(self, port: int) -> bool:
        return port in self.reserved or self._pool.has_port(port)

    def _pick(self) -> int | None:
        upper = self._first + lower_band(self._last - self._first + 1, step=32, most=128)
        for band in (Band(upper, self._last), Band(self._first, upper - 1)):
            port = band.pick(self._in_use, self._pool.random)
            if port is not None:
                return port
        return None

    def _made_up(self) -> int:
        return max(self.reserved, default=DRY_RUN_PORT) + 1


def _plan_ports(spec: Object, before: Object | None, ports: _Ports) -> list[int]:
    """Fill in node ports; returns those that are no longer held."""
    released: list[int] = []
    if before is None:
        if has_node_ports(spec):
            _fill_new_ports(spec, ports)
    else:
        held = node_ports(before)
        if has_node_ports(spec):
            _fill_changed_ports(spec, held, ports)
            kept = set(node_ports(spec))
            released += [port for port in held if port not in kept]
        elif has_node_ports(before):
            released += held
    needed = before is not None and needs_health_check(before)
    if needs_health_check(spec) and not needed:
        _fill_health_check_port(spec, ports)
    elif needed and not needs_health_check(spec) and before is not None and before.get("healthCheckNodePort"):
        released.append(before["healthCheckNodePort"])
    return released


def _fill_new_ports(spec: Object, ports: _Ports) -> None:
    """On creation, ports of the same number (TCP and UDP, say) share one node port."""
    given: dict[int, int] = {}
    listed = spec.get("ports") or []
    for i, port in enumerate(listed):
        number, wanted = port.get("port", 0), port.get("nodePort", 0)
        if not wanted and not allocates_node_ports(spec):
            continue
        if number not in given:
            asked = next((p["nodePort"] for p in listed if p.get("port", 0) == number and p.get("nodePort")), 0)
            if asked:
                ports.claim_at(asked, f"spec.ports[{i}].nodePort")
            given[number] = port["nodePort"] = asked or ports.any()
        elif not wanted:
            port["nodePort"] = given[number]
        elif wanted != given[number]:
            ports.claim_at(wanted, f"spec.ports[{i}].nodePort")


def _fill_changed_ports(spec: Object, held: list[int], ports: _Ports) -> None:
    """On an update no port is shared, unless it was before or the user asks for it."""
    seen = set()
    for i, port in enumerate(spec.get("ports") or ()):
        wanted, protocol = port.get("nodePort", 0), port.get("protocol", "")
        if not wanted:
            if not allocates_node_ports(spec):
                continue
            wanted = port["nodePort"] = ports.any()
        elif wanted not in held and wanted not in ports.reserved:
            ports.claim_at(wanted, f"spec.ports[{i}].nodePort")
        if (protocol, wanted) in seen:
            raise ApiError(f"duplicate nodePort: {{{protocol} {wanted}}}")
        seen.add((protocol, wanted))


def _fill_health_check_port(spec: Object, ports: _Ports) -> None:
    wanted = spec.get("healthCheckNodePort", 0)
    if not wanted:
        spec["healthCheckNodePort"] = ports.any("a HealthCheck NodePort 0")
    elif reason := ports.claim(wanted):
        raise internal(f"failed to allocate requested HealthCheck NodePort {wanted}: {reason}")
