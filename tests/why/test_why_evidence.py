"""No claim without evidence: whatever the objects, each finding lists what it was seen by, and it can be seen again.

The worlds are the catalogue's set-ups with fields taken away, changed and exchanged at random.
"""

import asyncio
import copy
import itertools
import re
from collections import Counter

import catalogue_cases
import msgspec
import pytest
from catalogue_clusters import NOW, build, small
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seamark.cli.asking import names
from seamark.kinds.values import times
from seamark.rules import hints
from seamark.why import evidence, observe
from seamark.why.codes import Code
from seamark.why.evidence import Field, Reading, Told
from seamark.why.explain import explain
from seamark.why.explain_name import explain_name, services_meant
from seamark.why.explain_pod import explain_pod
from seamark.why.explain_way import Client, explain_way
from seamark.why.offline import ManifestError, world_of
from seamark.why.report import document
from virtual_time import HastyClock

LOADED = [catalogue_cases.load(path) for path in small()]
CASES = [case for case in LOADED if not case.offline]
MANIFESTS = [case for case in LOADED if case.offline]
ZONE = "cluster.local"
# Names, paths, addresses: words with a sign or a digit in them.  Others are words of the language, and no claims alone.
_TELLING = re.compile(r"[a-z0-9][a-z0-9./:_-]*[0-9./:_-][a-z0-9./:_-]*[a-z0-9]", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w./:=-])\d+(?:,\d{3})*(?![\w:=-]|[./]\w)")
_CPU = "status.allocatable.cpu"
_DURATION = re.compile(r"(?<![\w./:=-])(?:\d+[dhms])+(?![\w./:-])")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT")
# Limits and names of Kubernetes itself that sentences explain; they are no facts about this cluster.
_KNOWN = frozenset(
    (
        "53",
        "1000",
        "1024",
        "kube-proxy",
        "kube-controller-manager",
        "e.g",
        "topology-mode",
        "metadata.name",
        "spec.nodeName",
    )
)


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


def sort(value):
    """Values of one sort can be exchanged; a server takes only a time where a time belongs."""
    return type(value), isinstance(value, str) and bool(_TIME.match(value))


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
        same = [each for other in case.objects for _, each in leaves(other) if sort(each) == sort(value)]
        changed(obj, path, draw(st.sampled_from([None, *same])))
    now = times.parse(case.now) if case.now else NOW
    return case, now + draw(st.sampled_from([0, 0, -3 * 86400 + 7, 45, 3600]))


async def seen(case, now):
    """Every Service of the cluster, as it was observed, and the lookups of names in it."""
    cluster = await build(case)
    world = await observe.observe(cluster, "", clock=HastyClock(now))
    resolvers = catalogue_cases.nowhere()
    walks = [(name, await names._walk(cluster, name, "shop", ZONE, resolvers)) for name in asked(case, world)]
    return world, [(name, names._steps(walk)) for name, walk in walks]


def planned(case):
    """The cluster that the objects would make if they were manifests."""
    documents = [("a file", copy.deepcopy(each)) for each in case.objects if each["kind"] != "Event"]
    return world_of(documents, namespace="shop")


def asked(case, world):
    """Names that clients may ask for: of Services, of Pods in them, of ports, and of what is not there."""
    if case.ask.startswith("name "):
        yield case.key[1]
    for namespace, name in [case.key] if case.key in world.services else list(world.services)[:1]:
        yield f"{name}.{namespace}"
        yield from (f"{pod}.{name}" for where, pod in list(world.pods)[:1] if where == namespace == "shop")
        yield from (f"_{port}._tcp.{name}.{namespace}" for port in ("http", "nothing"))
    yield "nothing-there"


# --- the property ----------------------------------------------------------------------------------


def reports(world, lookups=()):
    yield from (explain(world, key) for key in world.services)
    yield from (explain_pod(world, key) for key in world.pods)
    for key, client in itertools.product(list(world.services)[:2], list(clients(world))):
        for port in (None, 80, 8080):
            yield explain_way(world, key, client, port)
    for name, steps in lookups:
        meant = next((key for key in services_meant(name, "shop", ZONE) if key in world.services), None)
        behind = explain(world, meant) if meant is not None else None
        yield explain_name(
            name,
            steps,
            namespace="shop",
            zone=ZONE,
            services=world.services.values(),
            behind=behind,
            world=world if behind is not None else None,
        )


def clients(world):
    yield Client("outside", "outside")
    yield Client("outside", "198.51.100.7", address="198.51.100.7")
    for pod in list(world.pods.values())[-1:]:
        if pod.spec.node_name:
            yield Client("pod", f"Pod {pod.metadata.name}", pod.spec.node_name, pod.ips[0] if pod.ips else "", pod)
            yield Client("node", f"node {pod.spec.node_name}", pod.spec.node_name)


def text_of(finding):
    shown = msgspec.json.encode([msgspec.to_builtins(each) for each in finding.evidence]).decode()
    return shown.replace("\\n", " ").replace('\\"', '"')


def covered(word, shown):
    return word in shown or word.rstrip(".") in shown or all(part in shown for part in re.split(r"[/:]", word))


def countable(finding):
    """Every number that the evidence shows: values, lengths of lists, alone and in all, and how many objects agree."""
    values = [value for each in finding.evidence for value in parts(msgspec.to_builtins(each))]
    found = {len(value) for value in values if isinstance(value, list | tuple | dict)}
    found |= {0 for value in values if value in (None, "")}  # a number that is not set, or a name
    found |= {int(each.replace(",", "")) for value in values for each in _NUMBER.findall(text_alone(value))}
    fields = [each for each in finding.evidence if isinstance(each, Field)]
    entries = Counter()
    for each in fields:
        entries[each.kind, each.path] += len(each.value) if isinstance(each.value, list | tuple) else 1
    found |= set(entries.values())
    found |= set(Counter((each.kind, each.path, str(each.value)) for each in fields).values())
    return found


def calculated(world, finding):
    """How many endpoints hints would need, which the rules calculate from the nodes, if the evidence shows them all."""
    shown = {each.name for each in finding.evidence if isinstance(each, Field) and each.path == _CPU}
    if not shown or shown != set(world.nodes or {}):
        return set()
    shares = hints.ZoneCpus(world.nodes.values()).shares
    outcomes = [hints.needs(shares, count) for count in countable(finding)]
    return {each.needed for each in outcomes if isinstance(each, hints.Refusal)}


def spans(finding):
    """Every length of time that the evidence shows: values, and what was read from the clock."""
    values = [value for each in finding.evidence for value in parts(msgspec.to_builtins(each))]
    return {times.duration(float(value)) for value in values if isinstance(value, int | float)}


def text_alone(value):
    return "" if isinstance(value, list | tuple | dict) else str(value)


def parts(value):
    yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        yield from parts(each)


def check(world, finding, vocabulary):
    assert finding.evidence, finding.cause
    for each in finding.evidence:
        assert evidence.again(world, each) == each, (finding.cause, each)
    shown, numbers = text_of(finding), countable(finding) | calculated(world, finding)
    durations = spans(finding)
    for text in (finding.cause, finding.fix.text, *finding.facts):
        for word in set(_TELLING.findall(text)) & vocabulary:
            assert covered(word, shown) or word in _KNOWN, (word, text, shown)
        for number in _NUMBER.findall(text):
            assert int(number.replace(",", "")) in numbers or number in _KNOWN, (number, text, shown)
        for duration in _DURATION.findall(text):
            assert duration in durations or duration in shown, (duration, text, shown)
    if finding.code in (Code.READINESS_PROBE_FAILING, Code.LIVENESS_PROBE_FAILING):
        proofs = [each for each in finding.evidence if isinstance(each, Told)]
        clock = [each for each in finding.evidence if isinstance(each, Reading) and each.limit is not None]
        assert proofs or any(each.seconds >= each.limit for each in clock), finding.cause
    if " fails" in finding.cause:
        assert finding.code is not Code.PROBE_PENDING


def check_all(case, world, lookups=()):
    """Every claim; returns the reports that make them."""
    vocabulary = {word for obj in case.objects for _, value in leaves(obj) for word in _TELLING.findall(str(value))}
    made = list(reports(world, lookups))
    for report in made:
        for finding in report.findings:
            check(world, finding, vocabulary)
    return made


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(clusters())
def test_every_claim_is_seen_in_a_field_an_event_or_the_clock(made):
    case, now = made
    try:
        world, lookups = asyncio.run(seen(case, now))
    except (msgspec.ValidationError, ValueError, AssertionError, KeyError, TypeError):
        return  # no object that a server would have taken
    check_all(case, world, lookups)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(clusters())
def test_every_claim_about_manifests_is_seen_in_them(made):
    case, _ = made
    try:
        world = planned(case)
    except (ManifestError, ValueError, KeyError, TypeError, AttributeError):
        return  # no object at all
    check_all(case, world)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_every_set_up_has_its_evidence(case):
    world, lookups = await seen(case, times.parse(case.now) if case.now else NOW)
    for report in check_all(case, world, lookups):
        for told in document(report)["findings"]:
            assert told["evidence"], told["cause"]


@pytest.mark.parametrize("case", MANIFESTS, ids=lambda case: case.name)
def test_every_set_up_of_manifests_has_its_evidence(case):
    check_all(case, planned(case))


def test_a_claim_without_its_evidence_is_noticed():
    case = next(each for each in CASES if each.name == "pod-readiness-probe")
    world, _ = asyncio.run(seen(case, NOW))
    [finding, *_] = explain(world, case.key).findings
    vocabulary = {"web-1", "/healthz", "8080"}
    check(world, finding, vocabulary)
    for less in ((), tuple(each for each in finding.evidence if "web-1" not in str(each))):
        with pytest.raises(AssertionError):
            check(world, msgspec.structs.replace(finding, evidence=less), vocabulary)
    for claim in ("It has 47 endpoints.", "Its Pod was made 5h ago."):
        with pytest.raises(AssertionError):
            check(world, msgspec.structs.replace(finding, facts=(claim,)), vocabulary)
    made_up = evidence.Field("Pod", "shop", "web-1", "status.phase", "Failed")
    with pytest.raises(AssertionError):
        check(world, msgspec.structs.replace(finding, evidence=(*finding.evidence, made_up)), vocabulary)


def test_paths():
    pod = next(each for each in CASES if each.name == "pod-readiness-probe")
    world, _ = asyncio.run(seen(pod, NOW))
    [found] = world.pods.values()
    assert evidence.read(found, "metadata.labels[app]") == "web"
    assert evidence.read(found, "status.conditions[Ready].status") == "False"
    assert evidence.read(found, "status.containerStatuses[app].state.running.startedAt") == "2026-01-02T00:00:00Z"
    assert evidence.read(found, "spec.containers#") == 1
    assert evidence.read(found, "spec.containers[0].name") == "app"
    assert evidence.read(found, "spec.nothing.here") is None
