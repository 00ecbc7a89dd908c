"""What is measured of requests, and how long it is kept."""

from __future__ import annotations

from seamark.api.audit.measuring import AGGREGATED, Measures
from seamark.metrics import Registry


def test_what_was_measured_of_aggregated_servers_goes_with_them() -> None:
    metrics, groups = Registry(), {"stays.example.com"}
    measures = Measures(metrics, lambda: groups)
    measures.count("get", f"{AGGREGATED}stays.example.com", 200, 0.0)
    for number in range(100):
        groups.add(f"g{number}.example.com")
        measures.count("get", f"{AGGREGATED}g{number}.example.com", 200, 0.0)
        groups.discard(f"g{number}.example.com")
    text = metrics.text()
    assert text.count("seamark_api_requests_total{") == 2
    assert f'resource="{AGGREGATED}stays.example.com"' in text
    measures.count("get", "pods", 200, 0.0)
    measures.forget("pods")
    assert 'resource="pods"' not in metrics.text()
