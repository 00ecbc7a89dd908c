"""No claim without evidence: whatever the objects, each finding lists what it was seen by, and it can be seen again.

The worlds are the catalogue's set-ups with fields taken away, changed and exchanged at random.
"""

import asyncio
import copy
import re

import catalogue_cases
import msgspec
import pytest
from catalogue_clusters import NOW, build, small
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seamark.kinds.values import times
from seamark.why import evidence, observe
from seamark.why.codes import Code
from seamark.why.evidence import Reading, Told
from seamark.why.explain import explain
from seamark.why.explain_pod import explain_pod
from seamark.why.report import document
from virtual_time import HastyClock

CASES = [catalogue_cases.load(path) for path in small() if not catalogue_cases.load(path).offline]
# What only says something together with others, or is a word of the language: these are no claims by themselves.
_TELLING = re.compile(r"[a-z0-9][a-z0-9./:_-]*[0-9./:_-][a-z0-9./:_-]*[a-z0-9]", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w./:-])\d[\d,]*(?![\w./:-])")
# Limits and names of Kubernetes itself that sentences explain; they are no facts about this cluster.
_KNOWN = frozenset(("53", "1000", "kube-proxy", "e.g", "topology-mode", "metadata.name", "spec.nodeName"))


# --- random changes --------------------------------------------------------------------------------


def leaves(value, path=()):
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from leaves(entry, (*path, key))
    elif isinstance(value, list):
        for place, entry in enumerate(value):
            yield from leaves(entry, (*path, place))
    else:
        yield path, value


def changed(obj, path, value):
    """The object with another value at a path; without the field for None."""
    here = obj
    for step in path[:-1]:
        here = here[step]
    if value is None:
        del here[path[-1]]
    else:
        here[path[-1]] = value


@st.composite
def clusters(draw):
    """A set-up in which a few values have changed, and the time it is looked at."""
    case = copy.deepcopy(draw(st.sampled_from(CASES)))
    for _ in range(draw(st.integers(0, 4))):
        obj = draw(st.sampled_from(case.objects))
        fields = [(path, value) for path, value in leaves(obj) if path[0] in ("spec", "status", "reason", "message")]
        if not fields:
            continue
        path, value = draw(st.sampled_from(fields))
        same = [each for other in case.objects for _, each in leaves(other) if type(each) is type(value)]
        changed(obj, path, draw(st.sampled_from([None, *same])))
    now = times.parse(case.now) if case.now else NOW
    return case, now + draw(st.sampled_from([0, 0, -3 * 86400 + 7, 45, 3600]))


async def seen(case, now):
    """Every Service of the cluster, as it was observed."""
    cluster = await build(case)
    return await observe.observe(cluster, "", clock=HastyClock(now))


# --- the property ----------------------------------------------------------------------------------


def reports(world):
    yield from (explain(world, key) for key in world.services)
    yield from (explain_pod(world, key) for key in world.pods)


def text_of(finding):
    return msgspec.json.encode([msgspec.to_builtins(each) for each in finding.evidence]).decode()


def covered(word, shown):
    return word in shown or word.rstrip(".") in shown or all(part in shown for part in re.split(r"[/:]", word))


def check(world, finding, vocabulary):
    assert finding.evidence, finding.cause
    for each in finding.evidence:
        assert evidence.again(world, each) == each, (finding.cause, each)
    shown = text_of(finding).replace("\\n", " ").replace('\\"', '"')
    for word in set(_TELLING.findall(finding.cause)) & vocabulary:
        assert covered(word, shown) or word in _KNOWN, (word, finding.cause, shown)
    if finding.code in (Code.READINESS_PROBE_FAILING, Code.LIVENESS_PROBE_FAILING):
        proofs = [each for each in finding.evidence if isinstance(each, Told)]
        clock = [each for each in finding.evidence if isinstance(each, Reading) and each.limit is not None]
        assert proofs or any(each.seconds >= each.limit for each in clock), finding.cause
    if " fails" in finding.cause:
        assert finding.code is not Code.PROBE_PENDING


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(clusters())
def test_every_claim_is_seen_in_a_field_an_event_or_the_clock(made):
    case, now = made
    try:
        world = asyncio.run(seen(case, now))
    except (msgspec.ValidationError, ValueError, AssertionError, KeyError, TypeError):
        return  # no object that a server would have taken
    vocabulary = {word for obj in case.objects for path, value in leaves(obj) for word in _TELLING.findall(str(value))}
    for report in reports(world):
        for finding in report.findings:
            check(world, finding, vocabulary)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_every_set_up_has_its_evidence(case):
    world = await seen(case, times.parse(case.now) if case.now else NOW)
    vocabulary = {word for obj in case.objects for _, value in leaves(obj) for word in _TELLING.findall(str(value))}
    for report in reports(world):
        for finding in report.findings:
            check(world, finding, vocabulary)
        for told in document(report)["findings"]:
            assert told["evidence"], told["cause"]


def test_a_claim_without_its_evidence_is_noticed():
    case = next(each for each in CASES if each.name == "pod-readiness-probe")
    world = asyncio.run(seen(case, NOW))
    [finding, *_] = explain(world, case.key).findings
    vocabulary = {"web-1", "/healthz", "8080"}
    check(world, finding, vocabulary)
    for less in ((), tuple(each for each in finding.evidence if "web-1" not in str(each))):
        with pytest.raises(AssertionError):
            check(world, msgspec.structs.replace(finding, evidence=less), vocabulary)
    made_up = evidence.Field("Pod", "shop", "web-1", "status.phase", "Failed")
    with pytest.raises(AssertionError):
        check(world, msgspec.structs.replace(finding, evidence=(*finding.evidence, made_up)), vocabulary)


def test_paths():
    pod = next(each for each in CASES if each.name == "pod-readiness-probe")
    world = asyncio.run(seen(pod, NOW))
    [found] = world.pods.values()
    assert evidence.read(found, "metadata.labels[app]") == "web"
    assert evidence.read(found, "status.conditions[Ready].status") == "False"
    assert evidence.read(found, "status.containerStatuses[app].state.running.startedAt") == "2026-01-02T00:00:00Z"
    assert evidence.read(found, "spec.containers#") == 1
    assert evidence.read(found, "spec.containers[0].name") == "app"
    assert evidence.read(found, "spec.nothing.here") is None
