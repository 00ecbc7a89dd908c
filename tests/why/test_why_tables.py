"""Tables that cut nothing, whatever room they have."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.why import render
from seamark.why.case import pairs, visible
from seamark.why.codes import Code
from seamark.why.explain import explain
from seamark.why.finding import Finding, Fix, Severity, delete, merge_patch
from seamark.why.offline import world_of
from seamark.why.render import UNLIMITED, Style, table, width
from seamark.why.report import Health, Report

HEADER = ("POD", "ADDRESS", "WHY")
words = st.lists(st.text("abcde-.:", min_size=1, max_size=30), min_size=1, max_size=6)
cells = st.tuples(
    st.text("abc-", min_size=1, max_size=60),
    st.lists(st.ip_addresses().map(str), min_size=1, max_size=5).map(",".join),
    words.map(" ".join),
)


@given(rows=st.lists(cells, min_size=1, max_size=5), columns=st.integers(50, 140))
def test_every_word_and_address_is_whole(rows: list[tuple[str, ...]], columns: int) -> None:
    lines = table(HEADER, rows, columns)
    assert all(width(line) <= columns or width(line.split()[-1]) > columns - 9 for line in lines)
    text = " ".join(lines)
    for name, addresses, why in rows:
        for address in addresses.split(","):
            assert address in text
        assert all(word in text for word in why.split())
        assert name in text


@given(rows=st.lists(cells, min_size=1, max_size=5))
def test_in_a_pipe_a_row_is_a_line(rows: list[tuple[str, ...]]) -> None:
    lines = table(HEADER, rows, UNLIMITED)
    assert len(lines) == 1 + len(rows)
    for line, row in zip(lines[1:], rows, strict=True):
        assert all(cell in line for cell in row)


def test_the_last_cell_goes_under_the_others_before_cells_get_lines_of_their_own() -> None:
    row = ("web-7d4b9c8f6-x2x4z", "2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff", "readiness probe fails")
    assert table(HEADER, [row], 120)[1].split("  ") == list(row)
    assert table(HEADER, [row], 65) == [
        "POD                  ADDRESS",
        "    WHY",
        "web-7d4b9c8f6-x2x4z  2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff",
        "    readiness probe fails",
    ]
    assert table(HEADER, [row], 50) == [
        "POD      web-7d4b9c8f6-x2x4z",
        "ADDRESS  2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff",
        "WHY      readiness probe fails",
    ]


def test_the_summary_has_every_cause_to_its_end() -> None:
    cause = "The readiness probe of container app fails " + "again and " * 30 + "again."
    found = Finding(Code.POD_UNSCHEDULABLE, Severity.ERROR, cause, Fix("Wait."), ())
    told = Report("service/web", "shop", "no ready endpoints", Health.BROKEN, (found,))
    for style in (Style(), Style(columns=60), Style(table_columns=UNLIMITED)):
        text = render.summary([told], 1, style, where="in all namespaces")
        assert cause in re.sub(r"\s+", " ", text)


def test_no_colon_without_a_fix_after_it() -> None:
    finding = Finding(
        Code.POD_UNSCHEDULABLE, Severity.ERROR, "It is left over.", Fix("Delete it:", (delete("pod", ("a", "b")),)), ()
    )
    told = Report("service/web", "shop", "planned", Health.BROKEN, (finding,))
    assert "Delete it:\n  kubectl delete pod b -n a" in render.report(told, Style())
    assert "fix    Delete it." in render.report(told, Style(planned=True))
    patched = Finding(finding.code, finding.severity, "", Fix("Change it:", (merge_patch("pod", ("a", "b"), {}),)), ())
    told = Report("service/web", "shop", "planned", Health.BROKEN, (patched,))
    assert "Change it:\n  in pod/b: {}" in render.report(told, Style(planned=True))


@pytest.mark.parametrize(("value", "shown"), [("web", "web"), ("web ", '"web "'), ("", ""), (" ", '" "')])
def test_spaces_in_values_are_seen(value: str, shown: str) -> None:
    assert visible(value) == shown
    assert pairs({"app": value}) == f"app={shown}"


def test_manifests_have_no_addresses_yet() -> None:
    service = {"kind": "Service", "metadata": {"name": "web"}}
    service["spec"] = {"clusterIP": "None", "selector": {"app": "web"}, "ports": [{"port": 80}]}
    pod = {"kind": "Pod", "metadata": {"name": "web-0", "labels": {"app": "web"}}}
    pod["spec"] = {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}]}
    report = explain(world_of([("a", service), ("b", pod)]), ("default", "web"))
    assert dict(report.facts)["DNS"].endswith("→ the addresses its Pods will have (headless: its ready endpoints)")
    assert "192.0.2." not in str(report)
