"""Every set-up of the catalogue: the first cause is the one a good operator would name, and what is healthy is."""

import catalogue_cases
import pytest
from catalogue_clusters import build, clock, look, repaired

from seamark.why.codes import Code
from seamark.why.look import look_at_all

PATHS = catalogue_cases.everything()


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
async def test_names_the_cause(path):
    case = catalogue_cases.load(path)
    report = await look(case)
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
    for words in case.advises:
        assert words in report.cause.fix.text
    everything = " ".join(text for each in report.findings for text in (each.cause, each.fix.text, *each.facts))
    for words in case.never:
        assert words not in everything
    assert report.cause.fix.text
    assert not report.healthy


# A cluster in memory gives no node ports; a running server does.
FIXABLE = [
    path
    for path in PATHS
    if catalogue_cases.kept(path).fix and "$repeat" not in path.read_text() and path.stem != "reach-not-exposed"
]


@pytest.mark.parametrize("path", FIXABLE, ids=lambda path: path.stem)
async def test_the_proposed_commands_repair_it(path):
    case = catalogue_cases.load(path)
    cluster = await build(case)
    report = await catalogue_cases.look(cluster, case, clock=clock(case))
    assert report.cause.fix.commands
    namespace, _, name = case.fix["service"].partition("/") if "service" in case.fix else (case.key[0], "", case.key[1])
    after = await repaired(case, cluster, report.cause.fix.commands, (namespace, name))
    assert report.cause.code not in [each.code for each in after.findings]
    if "ready" in case.fix:
        assert sorted(after.ready) == sorted(case.fix["ready"])


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
async def test_says_the_same_among_all_services(path):
    case = catalogue_cases.load(path)
    if case.client or case.offline or not case.ask.startswith("service "):
        return  # a question about one client, one name or manifests
    cluster = await build(case)
    survey = await look_at_all(cluster, "", clock=clock(case))
    alone = await look_at_all(cluster, case.key[0], clock=clock(case))
    assert causes(survey).get(case.key) == causes(alone).get(case.key)
    assert {key for key in causes(alone) if key[0] != case.key[0]} == set()
    assert alone.total == sum(
        obj["kind"] == "Service" and obj["metadata"]["namespace"] == case.key[0] for obj in case.objects
    )
    found = {(each.namespace, each.subject.partition("/")[2]): each for each in survey.reports}
    if case.healthy is not None:
        assert case.key not in found
    elif case.cause != Code.SERVICE_NOT_FOUND.value:
        assert found[case.key].findings[0].code.value == case.cause


def causes(survey):
    return {
        (each.namespace, each.subject.partition("/")[2]): [finding.cause for finding in each.findings]
        for each in survey.reports
    }


def test_is_large_enough():
    healthy = [path for path in PATHS if path.stem.startswith("healthy-")]
    assert len(healthy) >= 110
    assert len(PATHS) - len(healthy) >= 380


def test_every_code_about_a_service_has_its_set_up():
    shown = {catalogue_cases.kept(path).cause for path in PATHS}
    elsewhere = {Code.POD_NOT_FOUND, Code.POD_NOT_SELECTED, Code.SERVICE_WITHOUT_PORTS}
    assert {code.value for code in Code} - shown == {code.value for code in elsewhere}
