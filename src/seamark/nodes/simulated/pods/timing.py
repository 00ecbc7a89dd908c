"""When the containers of a simulated Pod end by themselves and when they are ready: by orders, commands and probes."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from math import inf

from seamark.nodes.simulated.pods import commands
from seamark.nodes.simulated.pods.orders import Orders
from seamark.nodes.simulated.pods.steps import Rules
from seamark.rules.objects.pod import Container, Pod, ProbeTimes

FAIL_AFTER = 1.0  # seconds that a container with a failing image runs at most
_HAIR = 1e-5  # seconds: a flap is due this much early, because floats since the epoch are not exact


def ending(pod: Pod, orders: Orders, rules: Rules, *, started: float) -> tuple[float, int] | None:
    """When the containers will end by themselves, and with which exit code."""
    endings = [
        (started + after, code)
        for after, code in ((orders.fail_after, orders.exit_code), (orders.complete_after, 0))
        if after is not None
    ]
    usual = rules.complete_after
    if with_image_like(pod, rules.failing_images):
        endings.append((started + min(usual, FAIL_AFTER), orders.exit_code))
    elif not endings and usual < inf:
        if (told := _told(pod.spec.containers)) is not None:
            endings.append((started + told[0], told[1]))
        elif pod.spec.restart_policy != "Always":
            endings.append((started + usual, 0))
    first = min(endings, default=(inf, 0))
    return first if first[0] < inf else None


def with_image_like(pod: Pod, patterns: tuple[str, ...]) -> dict[str, str]:
    """The containers whose images match one of these patterns: image by name of the container."""
    if not patterns:
        return {}
    everything = pod.spec.containers + pod.spec.init_containers
    return {each.name: each.image for each in everything if any(fnmatchcase(each.image, p) for p in patterns)}


def _told(containers: Iterable[Container]) -> commands.End | None:
    """How the containers end by their commands: all together, with the last of them; None if one does not tell."""
    ends = [commands.end(each.command, each.args) for each in containers]
    told = [end for end in ends if end is not None]
    if len(told) < len(ends) or not told:
        return None
    return max(lasts for lasts, _ in told), max(code for _, code in told)


def readiness(pod: Pod, orders: Orders, *, started: float, now: float) -> tuple[bool, float | None]:
    """Whether the containers are ready, and when that changes by itself."""
    if orders.never_ready:
        return False, None
    since = started + max(orders.ready_after, probed_after(pod.spec.containers))
    if now < since:
        return False, since if since < inf else None
    if orders.flap is None:
        return True, None
    turns = int((now - since + _HAIR) / orders.flap)
    return turns % 2 == 0, since + (turns + 1) * orders.flap


def probed_after(containers: Iterable[Container]) -> float:
    """How many seconds after their start the probes of all containers have passed, if each passes the first time.

    Infinite if one never passes: its command tells that it fails.
    """
    longest = 0.0
    for each in containers:
        if (startup := each.startup_probe) is not None:
            longest = max(longest, inf if _fails(startup) else startup.initial_delay_seconds)
        if (ready := each.readiness_probe) is not None:
            further = (ready.success_threshold - 1) * ready.period_seconds
            longest = max(longest, inf if _fails(ready) else ready.initial_delay_seconds + further)
    return longest


def _fails(probe: ProbeTimes) -> bool:
    told = commands.end(probe.exec.command, ()) if probe.exec is not None else None
    return told is not None and told[1] != 0
