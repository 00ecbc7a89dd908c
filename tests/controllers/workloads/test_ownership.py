"""Ownership: which workload a change wakes, what is adopted and released; and what is made from templates."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from workload_objects import pod, replica_set

from seamark.access.informer import Informer
from seamark.controllers.workloads.owners import Dependants, Owners, claim
from seamark.controllers.workloads.shares import resolve
from seamark.controllers.workloads.templates import ALPHABET, name_prefix, pod_from, short_hash
from seamark.controllers.workloads.workload import difference
from seamark.kinds.resource import PODS, REPLICA_SETS
from seamark.rules.objects.pod import Pod
from seamark.runtime.following import Following


class Scene:
    """Two informers that the test feeds directly."""

    def __init__(self):
        self.pods = Informer(None, PODS, as_=Pod)
        self.sets = Informer(None, REPLICA_SETS, as_=type(replica_set()))
        self.owners = Owners(REPLICA_SETS, self.sets)
        self.dependants = Dependants(self.pods)
        self.woken = []
        self.dependants.follow(self.owners, lambda key, old, new: self.woken.append(key))
        Following(self.owners, self.dependants).connect()

    def put_set(self, rs):
        self.sets._take(f"default/{rs.metadata.name}", rs)

    def put(self, found):
        """Add or change a Pod; returns the keys that this wakes."""
        self.woken.clear()
        self.pods._take(f"default/{found.metadata.name}", found)
        return sorted(self.woken)

    def drop(self, name):
        self.woken.clear()
        self.pods._take(f"default/{name}", None)
        return sorted(self.woken)


@pytest.fixture
def scene():
    found = Scene()
    found.put_set(replica_set("web-1"))
    expressions = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "www"]}]}
    found.put_set(replica_set("wide", selector=expressions))
    found.put_set(replica_set("db", selector={"matchLabels": {"app": "db"}}))
    return found


def test_only_the_owner_hears_of_an_owned_pod(scene):
    owned = pod("p", owner="uid-web-1")
    assert scene.put(owned) == ["default/web-1"]
    assert scene.put(pod("p", owner="uid-web-1", ready=False)) == ["default/web-1"]
    assert scene.put(pod("p", owner="uid-web-1", ready=False)) == []
    assert [p.metadata.name for p in scene.dependants.of("uid-web-1")] == ["p"]
    assert scene.drop("p") == ["default/web-1"]
    assert scene.dependants.of("uid-web-1") == ()


def test_an_owner_of_another_uid_is_another(scene):
    assert scene.put(pod("p", owner="uid-of-its-predecessor")) == []


def test_everybody_who_would_adopt_hears_of_an_orphan(scene):
    assert scene.put(pod("p")) == ["default/web-1", "default/wide"]
    assert scene.put(pod("p", ready=False)) == [], "nothing that matters to adoption"
    assert scene.put(pod("p", labels={"app": "www"})) == ["default/wide"]
    assert scene.put(pod("p", labels={"app": "other"})) == []
    assert scene.put(pod("q", terminating=True)) == []


def test_a_pod_that_changes_hands_wakes_both(scene):
    scene.put(pod("p", owner="uid-db"))
    assert scene.put(pod("p", owner="uid-web-1")) == ["default/db", "default/web-1"]
    assert scene.put(pod("p")) == ["default/web-1", "default/web-1", "default/wide"]


def test_orphans_are_found_by_any_selector(scene):
    scene.put(pod("a"))
    scene.put(pod("b", labels={"app": "www"}))
    scene.put(pod("c", labels={"app": "db"}))
    scene.put(pod("d", owner="uid-db"))
    for name, expected in (("web-1", ["a"]), ("wide", ["a", "b"]), ("db", ["c"])):
        selector = scene.sets.get(name, "default").selector
        found = scene.dependants.orphans("default", selector)
        assert sorted(p.metadata.name for p in found) == expected
        assert scene.dependants.orphans("elsewhere", selector) == []


def test_a_changed_selector_is_followed(scene):
    scene.put_set(replica_set("db", selector={"matchLabels": {"app": "new"}}))
    assert scene.put(pod("p", labels={"app": "db"})) == []
    assert scene.put(pod("q", labels={"app": "new"})) == ["default/db"]
    scene.sets._take("default/db", None)
    assert scene.put(pod("r", labels={"app": "new"})) == []


def test_claims():
    rs = replica_set("web-1")
    mine, stray = pod("mine", owner="uid-web-1"), pod("stray", owner="uid-web-1", labels={"app": "aside"})
    orphan, leaving = pod("orphan"), pod("leaving", terminating=True)
    claimed = claim(rs, [mine, stray], [orphan, leaving])
    assert (claimed.kept, claimed.adopted, claimed.released) == ((mine,), (orphan,), (stray,))
    ending = replica_set("web-1", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    claimed = claim(ending, [mine, stray], [orphan])
    assert (claimed.kept, claimed.adopted, claimed.released) == ((mine,), (), ())
    picky = claim(rs, [mine], [orphan], fits=lambda p: p.metadata.name == "other")
    assert (picky.kept, picky.adopted, picky.released) == ((), (), (mine,))


counts = st.integers(0, 2)
statuses = st.builds(
    lambda a, b, c: msgspec.structs.replace(
        replica_set().status, replicas=a, ready_replicas=b, terminating_replicas=c, conditions=()
    ),
    counts,
    counts,
    st.none() | counts,
)


@settings(deadline=None)
@given(statuses, statuses)
def test_the_difference_turns_one_status_into_the_other(old, new):
    def written(status):
        return {"replicas": 0, **msgspec.to_builtins(status)}

    patch = difference(old, new, always=("replicas",))
    patched = {field: value for field, value in {**written(old), **patch}.items() if value is not None}
    assert patched == written(new)
    assert bool(patch) == (old != new)


@pytest.mark.parametrize(
    ("share", "whole", "up", "down"),
    [(3, 10, 3, 3), ("25%", 10, 3, 2), ("0%", 10, 0, 0), ("100%", 7, 7, 7), ("1%", 1, 1, 0), ("50%", 0, 0, 0)],
)
def test_shares(share, whole, up, down):
    assert resolve(share, whole, rounding="up") == up
    assert resolve(share, whole, rounding="down") == down


@settings(deadline=None)
@given(st.dictionaries(st.text(), st.integers()), st.integers(0, 10**6))
def test_hashes_are_stable_safe_and_change_with_collisions(content, collisions):
    found = short_hash(content)
    backwards = dict(reversed(content.items()))
    assert short_hash(backwards) == found
    assert set(found) <= set(ALPHABET)
    assert len(found) <= 10
    assert short_hash(content, collisions) != short_hash(content, collisions + 1)


def test_a_pod_has_from_its_template_what_belongs_to_it():
    template = {
        "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["e/f"], "name": "not this"},
        "spec": {"containers": []},
    }
    made = pod_from(template, owner={"uid": "x"}, labels={"g": "h"})
    assert made["metadata"] == {
        "labels": {"a": "b", "g": "h"},
        "annotations": {"c": "d"},
        "finalizers": ["e/f"],
        "ownerReferences": [{"uid": "x"}],
    }
    assert template["metadata"]["labels"] == {"a": "b"}
    assert (name_prefix("web"), len(name_prefix("w" * 253))) == ("web-", 253)
