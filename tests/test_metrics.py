"""Metrics, as Prometheus reads them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.metrics import LATENCY_BUCKETS, Distribution, Registry, measure_process


def test_the_text_of_everything():
    registry = Registry()
    registry.counter("b_total", "Things.", "get", 'a"\\\n', labels=("verb", "what")).add(2)
    registry.gauge("c", "A gauge.").set(1.5)
    registry.measured("a", "Looked up.", lambda: 7.0)
    seconds = registry.histogram("d_seconds", "Time.", "x", labels=("l",), buckets=(0.1, 1))
    for value in (0.05, 0.1, 0.5, 3):
        seconds.observe(value)
    assert registry.text() == (
        "# HELP a Looked up.\n# TYPE a gauge\na 7\n"
        '# HELP b_total Things.\n# TYPE b_total counter\nb_total{verb="get",what="a\\"\\\\\\n"} 2\n'
        "# HELP c A gauge.\n# TYPE c gauge\nc 1.5\n"
        "# HELP d_seconds Time.\n# TYPE d_seconds histogram\n"
        'd_seconds_bucket{l="x",le="0.1"} 2\nd_seconds_bucket{l="x",le="1"} 3\nd_seconds_bucket{l="x",le="+Inf"} 4\n'
        'd_seconds_sum{l="x"} 3.65\nd_seconds_count{l="x"} 4\n'
    )


def test_the_same_child_is_given_again():
    registry = Registry()
    assert registry.counter("x", "X.", "a", labels=("l",)) is registry.counter("x", "X.", "a", labels=("l",))
    assert registry.counter("x", "X.", "a", labels=("l",)) is not registry.counter("x", "X.", "b", labels=("l",))


@given(st.lists(st.floats(0, 1e6)), st.lists(st.floats(0, 1e6), unique=True, min_size=1).map(sorted))
def test_every_observation_is_in_its_bucket(values, bounds):
    distribution = Distribution(bounds)
    for value in values:
        distribution.observe(value)
    lines = list(distribution.lines("x", ""))
    for bound, line in zip(bounds, lines, strict=False):
        assert int(line.rpartition(" ")[2]) == sum(value <= bound for value in values)
    assert lines[-1] == f"x_count {len(values)}"
    assert distribution.total == pytest.approx(sum(values))


@pytest.mark.parametrize(
    ("value", "shown"),
    [(float("inf"), "+Inf"), (float("-inf"), "-Inf"), (float("nan"), "NaN"), (2.0, "2"), (0.25, "0.25")],
)
def test_numbers_as_prometheus_writes_them(value, shown):
    registry = Registry()
    registry.gauge("x", "X.").set(value)
    assert registry.text().endswith(f"\nx {shown}\n")


async def test_what_this_process_takes():
    registry = Registry()
    measure_process(registry)
    shown = dict(line.split() for line in registry.text().splitlines() if not line.startswith("#"))
    assert int(shown["seamark_tasks"]) >= 1
    if Path("/proc/self/statm").exists():
        before = int(shown["process_open_fds"])
        assert int(shown["process_resident_memory_bytes"]) > 1e6
        with Path("/dev/null").open():
            assert f"process_open_fds {before + 1}\n" in registry.text()


def test_what_is_gone_is_forgotten_by_all_metrics_that_name_it() -> None:
    registry = Registry()
    for resource in ("widgets", "pods"):
        registry.counter("asked", "Requests.", "get", resource, labels=("verb", "resource")).add()
        registry.histogram("took", "Seconds.", resource, labels=("resource",)).observe(1.0)
    registry.counter("others", "Anything else.", "widgets", labels=("name",)).add()
    registry.forget_all("resource", "widgets")
    text = registry.text()
    assert 'resource="widgets"' not in text
    assert text.count('resource="pods"') == 1 + len(LATENCY_BUCKETS) + 3
    assert 'others{name="widgets"} 1' in text
