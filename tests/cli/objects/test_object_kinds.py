"""What words on the command line mean, by a server's discovery."""

from __future__ import annotations

import pytest

from seamark.api.openapi import discovery
from seamark.cli.failure import Failure
from seamark.cli.objects.kinds import ServerKind, ServerKinds, Target, discovered
from seamark.kinds.resource import Resource
from seamark.kinds.table import KINDS


@pytest.fixture(scope="module")
def kinds() -> ServerKinds:
    """Those of our own server, by its own documents."""
    core = discovery.aggregated(KINDS, core=True)
    groups = discovery.aggregated(KINDS, core=False)
    return ServerKinds(discovered(core) + discovered(groups))


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
    assert discovered(document) == []


# --- targets ---------------------------------------------------------------------------------------


def targets(kinds: ServerKinds, *words: str) -> list[tuple[str, str]]:
    return [(target.kind.resource.plural, target.name) for target in kinds.targets(words)]


def test_kinds_names_and_pairs(kinds: ServerKinds) -> None:
    assert targets(kinds, "svc") == [("services", "")]
    assert targets(kinds, "svc,ep,services") == [("services", ""), ("endpoints", "")]
    assert targets(kinds, "svc", "b", "a", "b") == [("services", "b"), ("services", "a"), ("services", "b")]
    assert targets(kinds, "svc,ep", "a") == [("services", "a"), ("endpoints", "a")]
    assert targets(kinds, "svc/a", "deploy/b") == [("services", "a"), ("deployments", "b")]
    assert kinds.targets(["svc"]) == [Target(kinds.find("svc")[0])]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["nix"], 1, 'the server doesn\'t have a resource type "nix"'),
        (["svc,nix"], 1, 'resource type "nix"'),
        (["nix.example.org"], 1, 'resource type "nix.example.org"'),
        ([","], 1, 'resource type ""'),
        (["svc,,ep"], 1, 'resource type ""'),
        (["svc/a", "b"], 2, "'b' is not of the form KIND/NAME"),
        (["svc/"], 2, "not of the form KIND/NAME"),
        (["/a"], 2, "not of the form KIND/NAME"),
        (["svc,ep/a"], 1, 'resource type "svc,ep"'),
        (["svc/a/b"], 2, "not of the form KIND/NAME"),
        (["all/a"], 2, "stands for several kinds"),
    ],
)
def test_what_makes_no_sense_is_said(kinds: ServerKinds, words: list[str], code: int, said: str) -> None:
    with pytest.raises(Failure) as failed:
        kinds.targets(words)
    assert failed.value.code == code
    assert said in str(failed.value)
