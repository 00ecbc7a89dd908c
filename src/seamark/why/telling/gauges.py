"""A survey as metrics for Prometheus: one for each Service and code, so that alerts name the cause."""

from __future__ import annotations

from collections import Counter

from seamark.metrics import Registry
from seamark.why.look import Survey
from seamark.why.report import Health


def metrics_text(survey: Survey, now: float) -> str:
    """The text that Prometheus reads."""
    registry = Registry()
    for report in survey.reports:
        for finding in report.findings:
            registry.gauge(
                "seamark_why_finding",
                "1 for each thing that is wrong with a Service; the code is that of `seamark why`.",
                report.namespace,
                report.subject.partition("/")[2],
                finding.code.value,
                finding.severity.value,
                labels=("namespace", "service", "code", "severity"),
            ).set(1.0)
    counts = Counter(report.health for report in survey.reports)
    counts[Health.HEALTHY] = max(0, survey.total - sum(counts.values()))
    for health in Health:
        registry.gauge("seamark_why_services", "How many Services are well.", health.value, labels=("health",)).set(
            float(counts[health])
        )
    registry.gauge("seamark_why_last_look_timestamp_seconds", "When the cluster was last looked at.").set(now)
    return registry.text()
