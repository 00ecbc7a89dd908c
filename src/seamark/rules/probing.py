"""Health checks of members that users wrote by hand: the annotations, the targets, and the thresholds (pure).

Kubernetes has no health checks for endpoints outside of the cluster.  These annotations, on a hand-made EndpointSlice
or Endpoints, ask for them:

    seamark.dev/probe: http://:8080/healthz        http, https, tcp, grpc or exec: how to check each address
    seamark.dev/probe-interval: 10s                how often
    seamark.dev/probe-timeout: 1s                  how long to wait for an answer
    seamark.dev/probe-success-threshold: "1"       so many successes in a row make a member ready …
    seamark.dev/probe-failure-threshold: "3"       … and so many failures make it not ready

The probe is written ``SCHEME[://[HOST][:PORT][/PATH]]`` or ``exec COMMAND``.  The connection always goes to the address
of the member: HOST is only what the request names (``Host``, SNI).  PORT is a number or the name of a port of the
object; without one it is the first TCP port.  The path of a gRPC probe is the name of the service to ask about.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from seamark.kinds.values import times
from seamark.kinds.values.hosts import bracketed
from seamark.kinds.wellknown import ENDPOINTS_MANAGED_BY_LABEL, MIRROR_CONTROLLER, SLICE_CONTROLLER
from seamark.rules.objects.endpoints import EndpointAddress, EndpointPort, Endpoints, EndpointSubset
from seamark.rules.objects.endpointslice import Conditions, Endpoint, EndpointSlice, SlicePort

PROBE_ANNOTATION = "seamark.dev/probe"

# Reasons of the Events; ``why`` looks for them.
UNHEALTHY, HEALTHY, INVALID = "ProbeFailed", "ProbeSucceeded", "ProbeInvalid"

Scheme = Literal["http", "https", "tcp", "grpc", "exec"]
Probed = EndpointSlice | Endpoints

_URL = (  # compiled where it is used: few clusters have a probe
    r"(?P<scheme>https?|tcp|grpc)"
    r"(://(?P<host>[A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(:(?P<port>[a-z0-9-]+))?(?P<path>/[!-~]*)?)?"
)


class Probe(msgspec.Struct, frozen=True):
    """How to check the members of one object.  Times are in seconds."""

    scheme: Scheme
    host: str = ""
    port: str = ""
    path: str = ""
    command: tuple[str, ...] = ()
    interval: float = 10.0
    timeout: float = 1.0
    successes: int = 1
    failures: int = 3


class Target(msgspec.Struct, frozen=True):
    """What is checked: an address and a port.  ``exec`` may do without a port (0)."""

    address: str
    port: int

    def __str__(self) -> str:
        return f"{bracketed(self.address)}:{self.port}" if self.port else self.address


class Result(msgspec.Struct, frozen=True):
    """The outcome of one check, and what was asked and answered in one line."""

    healthy: bool
    said: str


class Health(msgspec.Struct, frozen=True):
    """Whether a member counts as healthy (None: it has never been decided), and how many results in a row disagree."""

    healthy: bool | None
    against: int = 0

    def after(self, healthy: bool, probe: Probe) -> Health:
        """The health after one more result.  For a member without a condition the first result decides."""
        if self.healthy is None or healthy == self.healthy:
            return Health(healthy)
        against = self.against + 1
        return (
            Health(healthy)
            if against >= (probe.successes if healthy else probe.failures)
            else Health(self.healthy, against)
        )


# --- the annotations -------------------------------------------------------------------------------


def parse(annotations: Mapping[str, str]) -> tuple[Probe | None, tuple[str, ...]]:
    """The probe, if one is asked for and valid, and a message about everything that is not."""
    asked = annotations.get(PROBE_ANNOTATION)
    if asked is None:
        return None, ()
    fields: dict[str, Any] = {}
    complaints: list[str] = []
    try:
        fields |= _how(asked.strip())
    except ValueError as error:
        complaints.append(f"annotation {PROBE_ANNOTATION}: {error}")
    for key, text in sorted(annotations.items()):
        if not key.startswith(f"{PROBE_ANNOTATION}-"):
            continue
        word = key.removeprefix(f"{PROBE_ANNOTATION}-")
        if word not in _KNOWN:
            complaints.append(f"unknown annotation {key}: known are {', '.join(_KNOWN)}")
            continue
        field, read, expected = _KNOWN[word]
        try:
            fields[field] = read(text)
        except ValueError:
            complaints.append(f"annotation {key}: {text!r} is not {expected}")
    return (None if complaints else Probe(**fields)), tuple(complaints)


def _how(text: str) -> dict[str, Any]:
    scheme, _, command = text.partition(" ")
    if scheme == "exec":
        words = tuple(shlex.split(command))
        if not words:
            raise ValueError("exec needs a command, such as exec pg_isready -h $ADDRESS")
        return {"scheme": "exec", "command": words}
    found = re.fullmatch(_URL, text)
    if found is None:
        raise ValueError(f"{text!r} is not a probe such as http://:8080/healthz, https, tcp://:5432, grpc or exec …")
    parts = {key: value for key, value in found.groupdict().items() if value}
    port = parts.get("port", "")
    if port.isdigit() and not 1 <= int(port) <= 65535:
        raise ValueError(f"port {port} is not between 1 and 65535")
    if parts["scheme"] == "tcp" and parts.get("path"):
        raise ValueError(f"a tcp probe has no path, but {text!r} has")
    return parts


def _between(lowest: float, highest: float) -> Callable[[str], float]:
    def read(text: str) -> float:
        seconds = times.parse_duration(text)
        if not lowest <= seconds <= highest:
            raise ValueError(text)
        return seconds

    return read


def _threshold(text: str) -> int:
    count = int(text) if text.isascii() and text.isdigit() and len(text) <= 4 else 0
    if not 1 <= count <= 1000:
        raise ValueError(text)
    return count


_COUNT = "a number from 1 to 1000"
_KNOWN: Mapping[str, tuple[str, Callable[[str], Any], str]] = {
    "interval": ("interval", _between(0.1, 86400), "a duration between 100ms and 1d"),
    "timeout": ("timeout", _between(0.01, 60), "a duration between 10ms and 1m"),
    "success-threshold": ("successes", _threshold, _COUNT),
    "failure-threshold": ("failures", _threshold, _COUNT),
}


def hand_made(obj: Probed) -> bool:
    """Whether a user wrote it.  Mirrored slices carry the annotations of their Endpoints, and follow those."""
    if isinstance(obj, Endpoints):
        return ENDPOINTS_MANAGED_BY_LABEL not in obj.metadata.labels and not obj.leader_lock
    return obj.managed_by not in (SLICE_CONTROLLER, MIRROR_CONTROLLER)


# --- from an object to targets ---------------------------------------------------------------------


def members(probe: Probe, obj: Probed) -> tuple[dict[Target, bool | None], tuple[str, ...]]:
    """What to check, with what the object says of it so far, and a message about each port that is not there.

    Where an object lists a target twice, the first counts.
    """
    found: dict[Target, bool | None] = {}
    complaints: dict[str, None] = {}
    for ports, listed in _listed(obj):
        port = _port(probe, ports)
        if port is None:
            asked = f"port {probe.port!r}" if probe.port else "a TCP port"
            complaints[f"{asked} is not among the ports of this object; write the number of a port"] = None
            continue
        for address, said in listed:
            found.setdefault(Target(address, port), said)
    return found, tuple(complaints)


Ports = Sequence[SlicePort] | Sequence[EndpointPort]


def _listed(obj: Probed) -> Iterator[tuple[Ports, list[tuple[str, bool | None]]]]:
    """The addresses that share ports, each with its present health."""
    if isinstance(obj, EndpointSlice):
        yield (
            obj.ports or (),
            [(each.addresses[0], _standing(each.conditions)) for each in obj.endpoints or () if each.addresses],
        )
        return
    for subset in obj.subsets or ():
        ready = [(each.ip, True) for each in subset.addresses]
        yield subset.ports, [*ready, *((each.ip, False) for each in subset.not_ready_addresses)]


def _standing(conditions: Conditions) -> bool | None:
    """An endpoint that is being shut down is never ready; what a probe decides there is whether it still serves."""
    return conditions.serving if conditions.terminating else conditions.ready


def _port(probe: Probe, ports: Ports) -> int | None:
    if probe.port.isdigit():
        return int(probe.port)
    for each in ports:
        fits = each.name == probe.port if probe.port else (each.protocol or "TCP") == "TCP"
        if fits and each.port:
            return each.port
    return 0 if probe.scheme == "exec" and not probe.port else None


# --- from health to what is written ----------------------------------------------------------------


def changes(probe: Probe, obj: Probed, health: Mapping[Target, bool]) -> list[dict[str, Any]]:
    """The JSON patch that makes the object say what the probes found; empty if it says so already.

    It names the version that it was made for, so that it cannot hit an endpoint that has moved in the list.
    """
    if isinstance(obj, EndpointSlice):
        port = _port(probe, obj.ports or ())
        edits = [
            {"op": "add", "path": f"/endpoints/{place}/conditions", "value": conditions}
            for place, endpoint in enumerate(obj.endpoints or ())
            if (conditions := _corrected(endpoint, port, health)) is not None
        ]
    else:
        subsets = [_sorted_out(probe, subset, health) for subset in obj.subsets or ()]
        same = subsets == list(obj.subsets or ())
        edits = [] if same else [{"op": "replace", "path": "/subsets", "value": msgspec.to_builtins(subsets)}]
    version = {"op": "replace", "path": "/metadata/resourceVersion", "value": obj.metadata.resource_version}
    return [version, *edits] if edits else []


def _corrected(endpoint: Endpoint, port: int | None, health: Mapping[Target, bool]) -> dict[str, bool] | None:
    """The conditions of an endpoint; None if they are right."""
    healthy = health.get(Target(endpoint.addresses[0], port)) if endpoint.addresses and port is not None else None
    now = endpoint.conditions
    if healthy is None:
        return None
    right = Conditions(
        ready=healthy and not now.terminating,
        serving=None if now.serving is None and not now.terminating else healthy,
        terminating=now.terminating,
    )
    if right == now:
        return None
    values: dict[str, bool] = msgspec.to_builtins(right)
    return values


def _sorted_out(probe: Probe, subset: EndpointSubset, health: Mapping[Target, bool]) -> EndpointSubset:
    port = _port(probe, subset.ports)
    if port is None:
        return subset
    ready: list[EndpointAddress] = []
    unready: list[EndpointAddress] = []
    for addresses, listed in ((subset.addresses, True), (subset.not_ready_addresses, False)):
        for each in addresses:
            (ready if health.get(Target(each.ip, port), listed) else unready).append(each)
    return msgspec.structs.replace(subset, addresses=tuple(ready), not_ready_addresses=tuple(unready))
