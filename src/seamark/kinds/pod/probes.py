"""Validation of a container's probes and lifecycle hooks."""

from __future__ import annotations

import re

from seamark.errors import Object
from seamark.kinds.values.fields import Errors, forbidden, invalid, not_supported, required
from seamark.kinds.values.ports import port_mistakes

_header = re.compile("[-A-Za-z0-9]+")

# In the order in which Kubernetes checks them: the first one that is set is the handler, others are errors.
_PROBE_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOK_HANDLERS = ("exec", "httpGet", "tcpSocket", "sleep")


def probe_mistakes(container: Object, path: str, grace: int | None) -> Errors:
    """What is wrong with the three probes of a container."""
    errors: Errors = []
    for field in ("livenessProbe", "readinessProbe", "startupProbe"):
        if (probe := container.get(field)) is None:
            continue
        at = f"{path}.{field}"
        errors += _one_probe_mistakes(probe, at, grace)
        if field == "readinessProbe":
            if (period := probe.get("terminationGracePeriodSeconds")) is not None:
                errors.append(
                    invalid(f"{at}.terminationGracePeriodSeconds", period, "must not be set for readinessProbes")
                )
        elif probe.get("successThreshold") != 1:
            errors.append(invalid(f"{at}.successThreshold", probe.get("successThreshold", 0), "must be 1"))
    return errors


def _one_probe_mistakes(probe: Object, path: str, grace: int | None) -> Errors:
    errors = _handler_mistakes(probe, _PROBE_HANDLERS, path, grace)
    for field in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"):
        if (value := probe.get(field, 0)) < 0:
            errors.append(invalid(f"{path}.{field}", value, "must be greater than or equal to 0"))
    period = probe.get("terminationGracePeriodSeconds")
    if period is not None and period <= 0:
        errors.append(invalid(f"{path}.terminationGracePeriodSeconds", period, "must be greater than 0"))
    return errors


_SIGNAL_NAMES = """ABRT ALRM BUS CHLD CLD CONT FPE HUP ILL INT IO IOT KILL PIPE POLL PROF PWR QUIT RTMAX RTMIN SEGV
STKFLT STOP SYS TERM TRAP TSTP TTIN TTOU URG USR1 USR2 VTALRM WINCH XCPU XFSZ"""
STOP_SIGNALS = frozenset(
    [f"SIG{name}" for name in _SIGNAL_NAMES.split()]
    + [f"SIGRTMIN+{n}" for n in range(1, 16)]
    + [f"SIGRTMAX-{n}" for n in range(1, 15)]
)
_WINDOWS_SIGNALS = frozenset(("SIGTERM", "SIGKILL"))


def lifecycle_mistakes(lifecycle: Object, path: str, *, grace: int | None, system: str | None) -> Errors:
    """What is wrong with hooks and stop signal; ``grace`` and ``system`` are the Pod's grace period and OS name."""
    errors: Errors = []
    for field in ("postStart", "preStop"):
        if (handler := lifecycle.get(field)) is not None:
            errors += _handler_mistakes(handler, _HOOK_HANDLERS, f"{path}.{field}", grace)
    if (signal := lifecycle.get("stopSignal")) is not None:
        at = f"{path}.stopSignal"
        if system is None:
            errors.append(forbidden(at, "may not be set for containers with empty `spec.os.name`"))
        elif system == "windows" and signal not in _WINDOWS_SIGNALS:
            errors.append(not_supported(at, signal, sorted(_WINDOWS_SIGNALS)))
        elif signal not in STOP_SIGNALS:
            errors.append(not_supported(at, signal, sorted(STOP_SIGNALS)))
    return errors


def _handler_mistakes(handler: Object, kinds: tuple[str, ...], path: str, grace: int | None) -> Errors:
    given = [kind for kind in kinds if handler.get(kind) is not None]
    if not given:
        return [required(path, "must specify a handler type")]
    errors = _action_mistakes(given[0], handler[given[0]], f"{path}.{given[0]}", grace)
    return errors + [forbidden(f"{path}.{kind}", "may not specify more than 1 handler type") for kind in given[1:]]


def _action_mistakes(kind: str, action: Object, path: str, grace: int | None) -> Errors:
    if kind == "exec":
        return [] if action.get("command") else [required(f"{path}.command")]
    if kind == "sleep":
        seconds = action.get("seconds", 0)
        if grace is not None and not 0 <= seconds <= grace:
            sentence = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
            return [invalid(path, seconds, sentence)]
        return []
    errors = port_mistakes(f"{path}.port", action.get("port", 0))
    if kind == "httpGet":
        if not action.get("path"):
            errors.insert(0, required(f"{path}.path"))
        if action.get("scheme") not in ("HTTP", "HTTPS"):
            errors.append(not_supported(f"{path}.scheme", action.get("scheme", ""), ("HTTP", "HTTPS")))
        for header in action.get("httpHeaders") or ():
            name = header.get("name", "")
            if not _header.fullmatch(name):
                sentence = (
                    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex "
                    "used for validation is '[-A-Za-z0-9]+')"
                )
                errors.append(invalid(f"{path}.httpHeaders", name, sentence))
    return errors
