"""How long ago something was, as ``kubectl get`` says it: two units at most, fewer the longer it is."""

from __future__ import annotations

from datetime import datetime

UNKNOWN = "<unknown>"


def seconds(timestamp: str) -> float:
    """An RFC 3339 time as seconds since 1970."""
    return datetime.fromisoformat(timestamp).timestamp()


def age(timestamp: str | None, now: float) -> str:
    """The cell under AGE."""
    return human(now - seconds(timestamp)) if timestamp else UNKNOWN


def human(elapsed: float) -> str:
    """``119s``, ``2m5s``, ``3h``, ``5d6h``, ``2y40d``."""
    total = int(elapsed)  # towards zero, as Go converts
    if total < -1:
        return "<invalid>"
    if total < 0:
        return "0s"
    if total < 120:
        return f"{total}s"
    minutes = total // 60
    if minutes < 10:
        return _two(minutes, "m", total % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    hours = minutes // 60
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if hours < 24 * 8:
        return _two(days, "d", hours % 24, "h")
    if hours < 24 * 365 * 2:
        return f"{days}d"
    years = days // 365
    if hours < 24 * 365 * 8:
        return _two(years, "y", days % 365, "d")
    return f"{years}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
