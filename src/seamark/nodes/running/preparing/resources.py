"""The limits of a container's control group, from the resources that its spec names.  Pure."""

from __future__ import annotations

from decimal import Decimal

from seamark.kinds.values.quantity import measure
from seamark.rules.objects.pod import Resources

PERIOD = 100_000  # microseconds, of which the group gets a part
_LEAST_QUOTA = 1000
_LEAST_SHARES, _MOST_SHARES, _MOST_WEIGHT = 2, 262_144, 10_000
_MOST_MEMORY = 2**63 - 1
NO_LIMIT = "max"
_GIVEN_ONCE = 300


def limits(resources: Resources, *, processes: int) -> dict[str, str]:
    """The files of the group: a memory limit ends all its processes together, as a kubelet asks for it."""
    cpu, memory = resources.limits.get("cpu"), resources.limits.get("memory")
    asked = resources.requests.get("cpu", cpu)
    return {
        "cpu.max": f"{_quota(measure(str(cpu)))} {PERIOD}" if cpu else f"{NO_LIMIT} {PERIOD}",
        "cpu.weight": str(weight(measure(str(asked)) if asked else Decimal())),
        "memory.max": str(min(int(measure(str(memory))), _MOST_MEMORY)) if memory else NO_LIMIT,
        "memory.oom.group": "1",
        "pids.max": str(bound(processes) or NO_LIMIT),
    }


def bound(processes: int) -> int:
    """How many the kernel allows if a container may have so many processes, so that it is seen that one wants more.

    Of the numbers in a PID namespace the kernel gives the first 300 once only; later processes share the rest.
    """
    return processes + processes // 4 + _GIVEN_ONCE if processes else 0


def _quota(cpu: Decimal) -> int:
    return max(int(cpu * PERIOD), _LEAST_QUOTA)


def weight(cpu: Decimal) -> int:
    """Shares of the older control groups, 1024 for a CPU, mapped to weights from 1 to 10,000."""
    shares = min(max(int(cpu * 1024), _LEAST_SHARES), _MOST_SHARES)
    return 1 + (shares - _LEAST_SHARES) * (_MOST_WEIGHT - 1) // (_MOST_SHARES - _LEAST_SHARES)
