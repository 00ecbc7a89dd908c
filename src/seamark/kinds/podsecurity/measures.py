"""How often Pods and templates were judged, under Kubernetes' names."""

from __future__ import annotations

from functools import lru_cache

from seamark.kinds.admission import Request
from seamark.kinds.podsecurity.policy import PRIVILEGED, Standard
from seamark.kinds.resource import PODS
from seamark.kinds.wellknown import KUBERNETES_MINOR
from seamark.metrics import Registry, Value

NEWEST = int(KUBERNETES_MINOR)
_WHAT = ("request_operation", "resource", "subresource")


class Measures:
    """The counters of one server."""

    def __init__(self, metrics: Registry) -> None:
        self._metrics = metrics
        self._judged: dict[tuple[object, ...], Value] = {}  # so that judging a Pod costs no more than a look-up here

    def judged(self, request: Request, standard: Standard, mode: str, *, refused: bool) -> None:
        version = _version(standard)
        key = (request.operation, request.kind.resource == PODS, request.part, standard.level, version, mode, refused)
        counter = self._judged.get(key)
        if counter is None:
            decision = "deny" if refused else "allow"
            values = (decision, standard.level, version, mode, *_what(request))
            counter = self._judged[key] = self._metrics.counter(
                "pod_security_evaluations_total",
                "Pods and templates of Pods that were judged by the level of their Namespace.",
                *values,
                labels=("decision", "policy_level", "policy_version", "mode", *_WHAT),
            )
        counter.add()

    def misread(self, request: Request) -> None:
        """Count a Pod that was judged by labels of which some mean nothing."""
        self._metrics.counter(
            "pod_security_errors_total",
            "Pods and templates of Pods whose Namespace has a label that could not be read.",
            *("false", *_what(request)),
            labels=("fatal", *_WHAT),
        ).add()


def _what(request: Request) -> tuple[str, str, str]:
    return request.operation.lower(), "pod" if request.kind.resource == PODS else "controller", request.part


@lru_cache(maxsize=256)
def _version(standard: Standard) -> str:
    """The version as a label of the metric: few values, whatever users write."""
    minor = standard.minor
    if minor is None or standard.level == PRIVILEGED:
        return "latest"
    return standard.version if minor <= NEWEST else "future"
