"""What words on the command line mean, by a server's discovery."""

from __future__ import annotations

import pytest

from seamark.api.openapi import discovery
from seamark.cli.failure import Failure
from seamark.cli.server_kinds import ServerKind, ServerKinds, aggregated, unaggregated
from seamark.cli.targets import Target, parse_targets
from seamark.kinds.resource import Resource
from seamark.kinds.table import KINDS


@pytest.fixture(scope="module")
def kinds() -> ServerKinds:
    """Those of our own server, by its own documents."""
    core = discovery.aggregated(KINDS, core=True)
    groups = discovery.aggregated(KINDS, core=False)
    return ServerKinds(aggregated(core) + aggregated(groups))


def one(kinds: ServerKinds, word: str) -> str:
    found = kinds.find(word)
    assert len(found) == 1, word
    return found[0].resource.qualified


@pytest.mark.parametrize(
    ("word", "means"),
    [
        ("services", "services"),
        ("service", "services"),
        ("Service", "services"),
        ("svc", "services"),
        ("SVC", "services"),
        ("ep", "endpoints"),
        ("endpoints", "endpoints"),
        ("deploy", "deployments.apps"),
        ("deployments.apps", "deployments.apps"),
        ("deployment.v1.apps", "deployments.apps"),
        ("endpointslices", "endpointslices.discovery.k8s.io"),
        ("endpointslices.discovery", "endpointslices.discovery.k8s.io"),
        ("events", "events"),
        ("events.events.k8s.io", "events.events.k8s.io"),
        ("po", "pods"),
        ("no", "nodes"),
        ("ns", "namespaces"),
    ],
)
def test_words_mean_what_they_mean_to_kubectl(kinds: ServerKinds, word: str, means: str) -> None:
    assert one(kinds, word) == means


@pytest.mark.parametrize("word", ["", "servicess", "services.nope", "deployments.v2.apps", "."])
def test_other_words_mean_nothing(kinds: ServerKinds, word: str) -> None:
    assert kinds.find(word) == ()


def test_categories_mean_several(kinds: ServerKinds) -> None:
    found = {kind.resource.plural for kind in kinds.find("all")}
    assert {"pods", "services", "deployments", "replicasets"} <= found
    assert "secrets" not in found


def test_both_forms_of_discovery_say_the_same(kinds: ServerKinds) -> None:
    found = unaggregated("v1", discovery.resource_list(KINDS, "", "v1") or {})
    for group in discovery.group_list(KINDS)["groups"]:
        for version in group["versions"]:
            listed = discovery.resource_list(KINDS, group["name"], version["version"]) or {}
            found += unaggregated(version["groupVersion"], listed)

    def simple(kind: ServerKind) -> tuple[Resource, str, frozenset[str], frozenset[str]]:
        return kind.resource, kind.singular, frozenset(kind.short_names), frozenset(kind.categories)

    assert {simple(kind) for kind in found} == {simple(kind) for kind in kinds.every_version}


def test_the_first_version_is_preferred_and_others_can_be_named() -> None:
    both = ServerKinds(
        [ServerKind(Resource("a.io", version, "things", "Thing"), singular="thing") for version in ("v2", "v1")]
    )
    assert [kind.resource.version for kind in both.find("thing")] == ["v2"]
    assert [kind.resource.version for kind in both.find("things.v1.a.io")] == ["v1"]
    known = both.by_kind("a.io/v1", "Thing")
    assert known is not None
    assert known.resource.version == "v1"
    assert both.by_kind("a.io/v3", "Thing") is None


def test_an_unreachable_version_is_passed_over() -> None:
    document = {
        "items": [{"metadata": {"name": "x"}, "versions": [{"version": "v1", "resources": [{"resource": "y"}]}]}]
    }
    assert aggregated(document) == []


# --- targets ---------------------------------------------------------------------------------------


def targets(kinds: ServerKinds, *words: str) -> list[tuple[str, str]]:
    return [(target.kind.resource.plural, target.name) for target in parse_targets(words, kinds)]


def test_kinds_names_and_pairs(kinds: ServerKinds) -> None:
    assert targets(kinds, "svc") == [("services", "")]
    assert targets(kinds, "svc,ep,services") == [("services", ""), ("endpoints", "")]
    assert targets(kinds, "svc", "b", "a", "b") == [("services", "b"), ("services", "a"), ("services", "b")]
    assert targets(kinds, "svc,ep", "a") == [("services", "a"), ("endpoints", "a")]
    assert targets(kinds, "svc/a", "deploy/b") == [("services", "a"), ("deployments", "b")]
    assert parse_targets(["svc"], kinds) == [Target(kinds.find("svc")[0])]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["nix"], 1, 'the server doesn\'t have a resource type "nix"'),
        (["svc,nix"], 1, 'resource type "nix"'),
        (["nix.example.org"], 1, 'resource type "nix"'),
        ([","], 1, 'resource type ""'),
        (["svc,,ep"], 1, 'resource type ""'),
        (["svc/a", "b"], 2, "no need to specify a resource type as a separate argument"),
        (["svc/"], 2, "must have a single resource and name"),
        (["/a"], 2, "must have a single resource and name"),
        (["svc,ep/a"], 2, "must have a single resource and name"),
        (["svc/a/b"], 2, "may not have more than one slash"),
        (["all/a"], 2, "not one kind"),
    ],
)
def test_what_makes_no_sense_is_said(kinds: ServerKinds, words: list[str], code: int, said: str) -> None:
    with pytest.raises(Failure) as failed:
        parse_targets(words, kinds)
    assert failed.value.code == code
    assert said in str(failed.value)


def test_a_short_name_that_several_kinds_have_is_warned_of() -> None:
    core = ServerKind(Resource("", "v1", "events", "Event"), short_names=("ev",))
    other = ServerKind(Resource("events.k8s.io", "v1", "events", "Event"), short_names=("ev",))
    warnings: list[str] = []
    assert parse_targets(["ev"], ServerKinds([core, other]), warn=warnings.append) == [Target(core)]
    assert warnings == ['short name "ev" could also match lower priority resource events.events.k8s.io']
    parse_targets(["events"], ServerKinds([core, other]), warn=warnings.append)
    assert len(warnings) == 1
