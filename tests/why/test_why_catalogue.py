"""Every set-up of the catalogue: the first cause is the one a good operator would name, and what is healthy is."""

import catalogue_cases
import pytest
from catalogue_clusters import build, clock

from seamark.why.codes import Code
from seamark.why.look import look_at_all

PATHS = catalogue_cases.everything()


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
async def test_names_the_cause(path):
    case = catalogue_cases.load(path)
    report = await catalogue_cases.look(await build(case), case, clock=clock())
    if case.healthy is not None:
        assert [finding.cause for finding in report.findings] == []
        assert report.healthy
        assert sorted(report.ready) == sorted(case.healthy["ready"] or [])
        return
    assert report.cause is not None, report.state
    assert report.cause.code.value == case.cause, [(each.code.value, each.cause) for each in report.findings]
    for words in case.says:
        assert words in report.cause.cause
    for words in case.notes:
        assert words in " ".join(report.cause.facts)
    assert report.cause.fix.text
    assert not report.healthy


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
async def test_says_the_same_among_all_services(path):
    case = catalogue_cases.load(path)
    if case.client:
        return  # a question about one client
    survey = await look_at_all(await build(case), "", clock=clock())
    found = {(each.namespace, each.subject.partition("/")[2]): each for each in survey.reports}
    if case.healthy is not None:
        assert case.key not in found
    elif case.cause != Code.SERVICE_NOT_FOUND.value:
        assert found[case.key].findings[0].code.value == case.cause


def test_is_large_enough():
    healthy = [path for path in PATHS if path.stem.startswith("healthy-")]
    assert len(healthy) >= 15
    assert len(PATHS) - len(healthy) >= 60


def test_every_code_about_a_service_has_its_set_up():
    shown = {catalogue_cases.load(path).cause for path in PATHS}
    elsewhere = {Code.POD_NOT_FOUND, Code.NAME_NOT_FOUND, Code.POD_NOT_SELECTED, Code.SERVICE_WITHOUT_PORTS}
    assert {code.value for code in Code} - shown == {code.value for code in elsewhere}
