"""What people see: cause and fix first, one line for the healthy, eighty columns, colours only where asked for."""

import re

import catalogue_cases
import msgspec
import pytest
from catalogue_clusters import build, clock, small

from seamark.why import render
from seamark.why.codes import Code
from seamark.why.explain_name import Step, explain_name, services_meant
from seamark.why.look import look_at_all, look_at_service
from seamark.why.render import Style, width
from seamark.why.report import as_json, document

ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


async def report_of(path):
    case = catalogue_cases.load(path)
    return await catalogue_cases.look(await build(case), case, clock=clock())


@pytest.mark.parametrize("path", small(), ids=lambda path: path.stem)
async def test_eighty_columns(path):
    report = await report_of(path)
    text = render.report(report, Style())
    lines = text.splitlines()
    if report.healthy:
        assert len(lines) == 1 or len(" ".join(lines)) > 80 or report.ways or report.subject.startswith("dns/")
    else:
        assert any(line.startswith("cause  ") for line in lines[1:3])
        assert any(line.startswith("fix    ") for line in lines[2:9])
    commands = {f"  {command.text()}" for each in report.findings for command in each.fix.commands}
    commands |= {f"see    {command.text()}" for each in report.findings for command in each.fix.look}
    assert all(width(line) <= 80 for line in lines if line not in commands)
    assert "\x1b" not in text
    coloured = render.report(report, Style(colour=True))
    assert ESCAPES.sub("", coloured) == text
    assert coloured != text


@pytest.mark.parametrize("columns", [40, 60, 80, 132])
async def test_wide_characters_keep_the_columns(columns):
    """Names come from a narrow alphabet, but messages, annotations and contexts do not."""
    path = catalogue_cases.HERE / "pod-image-pull.yaml"
    report = await report_of(path)
    message = "镜像拉取失败：仓库不存在或需要登录，请检查镜像名称 — 이미지를 가져올 수 없습니다"
    row = msgspec.structs.replace(report.pods[0], why=message)
    finding = msgspec.structs.replace(report.findings[0], cause=message, facts=(message,))
    report = msgspec.structs.replace(report, pods=(row, row), findings=(finding,))
    style = Style(columns=columns, kubectl=["--context=生产环境"])
    lines = render.report(report, style).splitlines()
    assert any("'--context=生产环境'" in line for line in lines)
    assert all(width(line) <= columns for line in lines if "kubectl" not in line)
    header = next(line for line in lines if line.startswith("POD "))
    first = next(line for line in lines[lines.index(header) + 1 :] if "web-1" in line)
    if columns == 40:  # no room beside the other columns
        assert lines[lines.index(first) + 1].startswith("    镜")
        return
    start = width(header[: header.index("WHY")])
    assert width(first[: first.index("镜")]) == start


async def test_the_table_of_all_services():
    case = catalogue_cases.load(catalogue_cases.HERE / "healthy-neighbours-misspelt.yaml")
    survey = await look_at_all(await build(case), "", clock=clock())
    text = render.summary(survey.reports, survey.total, Style(), where="in all namespaces")
    lines = text.splitlines()
    assert lines[0] == "1 of 2 Services in all namespaces needs attention"
    assert lines[2].split() == ["NAMESPACE", "SERVICE", "READY", "CAUSE"]
    assert lines[3].split()[:3] == ["shop", "broken", "0"]
    assert all(width(line) <= 80 for line in lines)
    assert "all healthy" in render.summary((), 2, Style(), where="in all namespaces")


async def test_the_broken_come_before_the_degraded():
    broken, degraded = [await report_of(catalogue_cases.HERE / f"{name}.yaml") for name in
                        ("selector-value-typo", "pods-partly-crashing")]  # fmt: skip
    assert render.worst_first([degraded, broken]) == [broken, degraded]


async def test_for_programs():
    told = document(await report_of(catalogue_cases.HERE / "selector-value-typo.yaml"))
    again = msgspec.json.decode(as_json(told))
    assert again["health"] == "broken"
    assert again["cause"]["code"] == "SelectorValueTypo"
    assert again["cause"]["fix"]["commands"][0].startswith("kubectl patch service web -n shop ")
    assert again["cause"]["fix"]["certain"] is False
    assert again["pods"][0]["reasons"] == ["LabelMismatch"]
    healthy = document(await report_of(catalogue_cases.HERE / "healthy-plain.yaml"))
    assert healthy["cause"] is None
    assert healthy["ready"] == ["10.1.0.1"]


def test_codes_are_distinct_and_say_something():
    values = [code.value for code in Code]
    assert len(values) == len(set(values))
    assert all(value.isidentifier() and code.about for value, code in zip(values, Code, strict=True))


# --- names -----------------------------------------------------------------------------------------


def test_what_a_name_may_mean():
    zone = "cluster.local"
    assert services_meant("web", "shop", zone) == [("shop", "web")]
    assert services_meant("web.back", "shop", zone) == [("back", "web"), ("shop", "back")]
    assert services_meant("web.back.svc.cluster.local.", "shop", zone)[0] == ("back", "web")
    assert services_meant("web-0.web.back.svc", "shop", zone) == [("back", "web")]
    assert services_meant("_http._tcp.web", "shop", zone) == [("shop", "web")]
    assert services_meant("a.b.c.example.com", "shop", zone) == []


async def test_a_headless_name_without_endpoints():
    case = catalogue_cases.load(catalogue_cases.HERE / "workload-statefulset-scaled-to-zero.yaml")
    cluster = await build(case)
    behind = await look_at_service(cluster, case.key, clock=clock())
    from seamark.why.observe import observe_services

    steps = [
        Step("db.shop.svc.cluster.local.", kind, "NXDOMAIN", "headless, no ready endpoints") for kind in ("A", "AAAA")
    ]
    report = explain_name(
        "db", steps, namespace="shop", zone="cluster.local", services=await observe_services(cluster), behind=behind
    )
    assert report.cause.code is Code.NAME_NOT_FOUND
    assert "headless and has no ready endpoint" in report.cause.cause
    assert "scaled to zero" in report.cause.cause
    assert report.tables[0].rows == (
        ("db.shop.svc.cluster.local.", "A,AAAA", "NXDOMAIN", "headless, no ready endpoints"),
    )


async def test_a_name_in_another_namespace():
    case = catalogue_cases.load(catalogue_cases.HERE / "service-in-other-namespace.yaml")
    from seamark.why.observe import observe_services

    services = await observe_services(await build(case))
    step = Step("web.shop.svc.cluster.local.", "A", "NXDOMAIN", "no such Service")
    report = explain_name("web", [step], namespace="shop", zone="cluster.local", services=services, behind=None)
    assert "web.back" in report.cause.fix.text
    found = Step("web.back.svc.cluster.local.", "A", "found", "", ("web.back.svc.cluster.local. 5 IN A 10.96.0.9",))
    report = explain_name("web.back", [found], namespace="shop", zone="cluster.local", services=services, behind=None)
    assert report.healthy
    assert report.ready == ("10.96.0.9",)
