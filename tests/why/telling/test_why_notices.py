"""Events and metrics about Services: one for each cause, and none once it is gone."""

from __future__ import annotations

import asyncio
from typing import Any

import catalogue_cases
import msgspec
import pytest
from catalogue_clusters import NOW, build, carry_out, clock

from seamark.cli import main
from seamark.cli.asking.exporter import Exporter
from seamark.controllers.discovery.process import ControllerProcess
from seamark.errors import Forbidden
from seamark.kinds.resource import ENDPOINT_SLICES, EVENTS, SERVICES
from seamark.why.look import Survey, look_at_all
from seamark.why.telling.following import surveys
from seamark.why.telling.gauges import metrics_text
from seamark.why.telling.notices import REFRESH, keep_events, plan, tell
from virtual_time import HastyClock

CASE = catalogue_cases.HERE / "selector-value-typo.yaml"
SLICE = {
    "metadata": {"name": "web-1", "namespace": "shop", "labels": {"kubernetes.io/service-name": "web"}},
    "addressType": "IPv4",
    "endpoints": [{"addresses": ["192.0.2.1"]}],
    "ports": [{"name": "", "port": 80}],
}


async def broken() -> tuple[Any, Survey]:
    cluster = await build(catalogue_cases.load(CASE))
    return cluster, await look_at_all(cluster, "", clock=clock())


async def events(cluster: Any) -> list[dict[str, Any]]:
    return list((await cluster.list(EVENTS, fields="source=seamark-why")).items)


async def test_an_event_comes_with_the_cause_and_goes_with_it() -> None:
    cluster, survey = await broken()
    await tell(cluster, survey, clock=clock())
    await tell(cluster, survey, clock=clock())
    [event] = await events(cluster)
    service = await cluster.get(SERVICES, "web", namespace="shop")
    assert event["involvedObject"] | {"uid": service["metadata"]["uid"], "name": "web"} == event["involvedObject"]
    assert (event["type"], event["reason"], event["count"]) == ("Warning", "SelectorValueTypo", 1)
    finding = survey.reports[0].findings[0]
    assert event["message"].startswith(finding.cause)
    assert finding.fix.commands[0].text() in event["message"]
    await carry_out(cluster, finding.fix.commands[0])
    await tell(cluster, await look_at_all(cluster, "", clock=clock()), clock=clock())
    assert not [each for each in await events(cluster) if each["reason"] == "SelectorValueTypo"]


async def test_a_cause_that_passes_is_not_told() -> None:
    """As at boot, when the Service of the API server stands before its endpoints are written."""
    cluster = await build(catalogue_cases.load(catalogue_cases.HERE / "selectorless-nothing.yaml"))

    class WritingMeanwhile(HastyClock):
        async def sleep(self, seconds: float) -> None:
            await cluster.create(ENDPOINT_SLICES, SLICE)

    survey = await look_at_all(cluster, "", clock=clock())
    assert [each.findings[0].code.value for each in survey.reports] == ["SelectorlessWithoutEndpoints"]
    await tell(cluster, survey, clock=WritingMeanwhile(NOW))
    assert await events(cluster) == []
    await cluster.delete(ENDPOINT_SLICES, "web-1", namespace="shop")
    await tell(cluster, survey, clock=clock())
    assert [each["reason"] for each in await events(cluster)] == ["SelectorlessWithoutEndpoints"]


async def test_events_are_counted_and_refreshed_but_not_written_without_need() -> None:
    cluster, survey = await broken()
    await tell(cluster, survey, clock=clock())
    present = await events(cluster)
    assert plan(survey, present, NOW + 1) == plan(Survey((), 0), [], NOW)
    [(_, later)] = plan(survey, present, NOW + 2 * REFRESH).patch
    assert list(later) == ["lastTimestamp"]
    [(_, other)] = plan(survey, [{**present[0], "message": "something else"}], NOW + 1).patch
    assert (other["count"], other["message"]) == (2, present[0]["message"])


async def test_a_long_message_fits_and_a_colon_is_not_left_over() -> None:
    _, survey = await broken()
    report = survey.reports[0]
    finding = msgspec.structs.replace(report.findings[0], cause="long " * 400)
    long = msgspec.structs.replace(survey, reports=(msgspec.structs.replace(report, findings=(finding,)),))
    [event] = plan(long, [], NOW).create
    assert len(event["message"]) == 1024
    fix = msgspec.structs.replace(finding.fix, text="Delete it:", commands=())
    finding = msgspec.structs.replace(finding, cause="So it is.", fix=fix)
    short = msgspec.structs.replace(survey, reports=(msgspec.structs.replace(report, findings=(finding,)),))
    assert plan(short, [], NOW).create[0]["message"] == "So it is. Delete it."


async def test_what_does_not_exist_has_no_events() -> None:
    _, survey = await broken()
    assert plan(msgspec.structs.replace(survey, uids={}), [], NOW).create == ()


async def test_events_that_may_not_be_written_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    cluster, survey = await broken()

    async def refuse(*_: object, **__: object) -> None:
        raise Forbidden("no")

    cluster.create = refuse
    await tell(cluster, survey, clock=clock())
    assert "an Event was not written: no" in caplog.text


async def test_metrics_have_one_line_for_each_service_and_code() -> None:
    _, survey = await broken()
    lines = metrics_text(survey, NOW).splitlines()
    assert 'seamark_why_finding{namespace="shop",service="web",code="SelectorValueTypo",severity="error"} 1' in lines, (
        lines
    )
    assert 'seamark_why_services{health="broken"} 1' in lines
    assert f'seamark_why_services{{health="healthy"}} {survey.total - 1}' in lines


async def test_surveys_follow_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, survey = await broken()
    following = surveys(cluster, "", clock=clock())
    first = await anext(following)
    assert [each.subject for each in first.reports] == ["service/web"]
    await carry_out(cluster, survey.reports[0].findings[0].fix.commands[0])
    second = await anext(following)
    assert "SelectorValueTypo" not in {f.code.value for each in second.reports for f in each.findings}
    await following.aclose()
    monkeypatch.setattr("seamark.why.telling.following.SAFETY_NET", 0.0)
    following = surveys(cluster, "", clock=clock())
    for _ in range(3):
        assert await anext(following)
    await following.aclose()


async def test_the_exporter_is_ready_once_it_has_looked() -> None:
    cluster, _ = await broken()
    exporter = Exporter(cluster, "shop", clock=clock())
    assert await exporter.ready() == (503, "it has not looked yet\n")
    looking = asyncio.create_task(exporter.keep_looking())
    while not await exporter.metrics():
        await asyncio.sleep(0)
    assert (await exporter.ready())[0] == 200
    assert "seamark_why_finding" in await exporter.metrics()
    looking.cancel()
    await asyncio.gather(looking, return_exceptions=True)


async def test_the_controller_keeps_events_until_it_is_told_to_end() -> None:
    cluster, _ = await broken()
    keeping = asyncio.create_task(keep_events(cluster, clock=clock()))
    while not await events(cluster):
        await asyncio.sleep(0)
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)
    assert [each["reason"] for each in await events(cluster)] == ["SelectorValueTypo"]


async def test_work_beside_the_controllers_is_the_leaders() -> None:
    cluster, _ = await broken()
    begun = asyncio.Event()

    async def work() -> None:
        begun.set()

    process = ControllerProcess(cluster, which=(), beside=[work])
    running = asyncio.create_task(process.run())
    await begun.wait()
    await process.settled.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def test_serving_is_for_all_services(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", "svc/web", "--serve", ":0"]) == 2
    assert "--serve is for all Services" in capsys.readouterr().err
