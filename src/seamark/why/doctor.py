"""Is the discovery machinery itself well?  Checks of clocks, controllers, what they wrote, nodes and their proxies.

The functions are pure: :mod:`seamark.cli.asking.doctor` reads the cluster, and asks DNS and the proxies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum

import msgspec

from seamark.errors import Object
from seamark.kinds.values import times
from seamark.kinds.wellknown import TRIGGER_TIME_ANNOTATION
from seamark.rules.objects.node import Node
from seamark.why.audit import Problem
from seamark.why.case import listed, plural
from seamark.why.views import EndpointSlice

# The Leases of processes that keep endpoints.  Others may be left over from what was uninstalled.
LEADERS = ("kube-controller-manager", "cloud-controller-manager", "seamark-discovery")
SKEW = 2.0  # seconds: servers tell their time in whole ones
LATE = 10.0  # seconds from a change to the slice that shows it


class State(Enum):
    WELL = "well"
    WRONG = "wrong"
    UNKNOWN = "unknown"  # it cannot be seen from here


class Check(msgspec.Struct, frozen=True):
    """What was looked at, how it is, and what to do if it is wrong."""

    about: str
    state: State
    told: str
    fix: str = ""


def clock(server: float | None, before: float, after: float) -> Check:
    """The server's clock beside ours, which was read before and after the server was asked."""
    if server is None:
        return Check("clock", State.UNKNOWN, "the server does not tell its time")
    ahead = server - before if server < before else max(0.0, server - after)
    if abs(ahead) <= SKEW:
        return Check("clock", State.WELL, "the server's agrees with that of this machine")
    side = "ahead of" if ahead > 0 else "behind"
    return Check(
        "clock",
        State.WRONG,
        f"the server's is {abs(ahead):.0f} s {side} that of this machine",
        "Synchronise both (chrony, systemd-timesyncd): leases, certificates and tokens depend on it.",
    )


def leaders(leases: Sequence[Object], now: float) -> Iterator[Check]:
    """Whether the controllers' leaders are alive: each renews its Lease."""
    for lease in leases:
        name, spec = lease["metadata"]["name"], lease.get("spec") or {}
        if name not in LEADERS:
            continue
        holder = spec.get("holderIdentity") or ""
        if not holder:
            yield Check("controllers", State.WRONG, f"{name} has no leader: its Lease was given back", _start(name))
            continue
        silent = now - times.parse(spec["renewTime"]) if spec.get("renewTime") else float("inf")
        if silent > float(spec.get("leaseDurationSeconds") or 15) + SKEW:
            told = f"{holder} leads {name}, but has not renewed its Lease for {times.duration(silent)}"
            yield Check("controllers", State.WRONG, told, _start(name))
        else:
            yield Check("controllers", State.WELL, f"{holder} leads {name}, and renewed its Lease {silent:.0f} s ago")


def _start(name: str) -> str:
    return f"See that {name} runs, and what its log says."


def bookkeeping(problems: Sequence[Problem], slices: int) -> Check:
    """Whether what is written about Services is what the controllers should have written."""
    if not problems:
        return Check("slices", State.WELL, f"{plural(slices, 'EndpointSlice')}, none orphaned, stale or duplicated")
    counts = Counter(each.defect.value for each in problems)
    kinds = listed(f"{count} {defect}" for defect, count in counts.most_common())
    names = listed(f"{each.resource.kind} {'/'.join(each.key)}" for each in problems)
    return Check("slices", State.WRONG, f"{kinds}: {names}", "`seamark audit -A` says why, and what to do.")


def lag(slices: Sequence[EndpointSlice]) -> Check:
    """How long the controllers took from the last change of each Service to its slice."""
    found: dict[str, float] = {}
    for each in slices:
        trigger = each.metadata.annotations.get(TRIGGER_TIME_ANNOTATION)
        written = max((entry.time for entry in each.metadata.managed_fields if entry.time), default="")
        if trigger and written:
            name = f"{each.metadata.namespace}/{each.metadata.name}"
            found[name] = max(0.0, times.parse(written) - times.parse(trigger))
    if not found:
        return Check("lag", State.UNKNOWN, "no EndpointSlice says when its change was triggered")
    worst = max(found, key=lambda name: found[name])
    late = [name for name, took in found.items() if took > LATE]
    if not late:
        return Check("lag", State.WELL, f"each slice was written within {found[worst] + 1:.0f} s of its change")
    told = (
        f"{plural(len(late), 'slice')} came later than {LATE:.0f} s after the change; {worst} took {found[worst]:.0f} s"
    )
    return Check("lag", State.WRONG, told, "See whether the controllers are throttled, restart, or lack CPU.")


def nodes(found: Sequence[Node]) -> Check:
    """Whether all nodes are ready: the Pods of one that is not are no endpoints."""
    down = [each.metadata.name for each in found if not each.ready]
    if down:
        told = f"{len(down)} of {plural(len(found), 'node')} not ready: {listed(down)}"
        return Check("nodes", State.WRONG, told, "`kubectl describe node` says since when and why.")
    return Check("nodes", State.WELL, f"{plural(len(found), 'node')}, all ready")


def proxies(answers: Mapping[str, int | None]) -> Check:
    """What the health endpoint of each node's proxy answered; None if it could not be reached."""
    read = {node: code for node, code in answers.items() if code is not None}
    if not read:
        return Check("proxies", State.UNKNOWN, "no node's proxy can be asked from here (port 10256)")
    ill = sorted(node for node, code in read.items() if code != 200)
    if ill:
        told = (
            f"{len(ill)} of {plural(len(read), 'proxy').replace('proxys', 'proxies')} behind or failing: {listed(ill)}"
        )
        return Check("proxies", State.WRONG, told, "See the log of kube-proxy on these nodes.")
    return Check("proxies", State.WELL, f"{len(read)} of {len(answers)} asked, all up to date")


def names(server: str, compared: Sequence[tuple[str, str, str]], silent: str = "") -> Check:
    """What DNS answered beside what the slices say: (name, said, should be); ``silent`` says why it did not answer."""
    if silent:
        return Check("DNS", State.UNKNOWN, silent)
    if not compared:
        return Check("DNS", State.UNKNOWN, "there is no Service to ask about")
    wrong = [each for each in compared if each[1] != each[2]]
    if wrong:
        name, said, wanted = wrong[0]
        told = f"{server} answers {said} for {name}, which should be {wanted}"
        more = f" ({len(wrong)} of {len(compared)} names differ)" if len(wrong) > 1 else ""
        return Check("DNS", State.WRONG, told + more, "`seamark resolve NAME --server …` shows one name in detail.")
    return Check("DNS", State.WELL, f"{server} answers what the slices say for {plural(len(compared), 'name')}")
