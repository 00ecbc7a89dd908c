"""Which requests rules select."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.kinds.registration.selecting import matched, rule_matches
from seamark.kinds.resource import AUTOSCALERS, AUTOSCALERS_V1, NAMESPACES, PODS, Resource

ANY = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}


def rule(**fields: Any) -> dict[str, Any]:
    return {**ANY, **fields}


@pytest.mark.parametrize(
    ("given", "resource", "part", "matches"),
    [
        (rule(), PODS, "", True),
        (rule(), PODS, "status", True),
        (rule(resources=["*"]), PODS, "", True),
        (rule(resources=["*"]), PODS, "status", False),
        (rule(resources=["pods"]), PODS, "status", False),
        (rule(resources=["pods/*"]), PODS, "", True),
        (rule(resources=["pods/*"]), PODS, "exec", True),
        (rule(resources=["*/scale"]), PODS, "scale", True),
        (rule(resources=["*/scale"]), PODS, "", False),
        (rule(resources=["services", "pods/status"]), PODS, "status", True),
        (rule(apiGroups=["apps"]), PODS, "", False),
        (rule(apiGroups=[""]), PODS, "", True),
        (rule(apiVersions=["v2"]), PODS, "", False),
        (rule(operations=["UPDATE", "DELETE"]), PODS, "", False),
        (rule(operations=["CREATE"]), PODS, "", True),
        (rule(scope="Cluster"), PODS, "", False),
        (rule(scope="Namespaced"), PODS, "", True),
        (rule(scope="Cluster"), NAMESPACES, "", True),
        (rule(scope="Namespaced"), NAMESPACES, "", False),
        ({}, PODS, "", False),
    ],
)
def test_a_rule_names_requests(given: Any, resource: Resource, part: str, matches: bool) -> None:
    assert rule_matches(given, "CREATE", resource, part) is matches


def test_an_equivalent_is_taken_only_if_no_rule_names_the_resource_itself() -> None:
    both = (AUTOSCALERS, AUTOSCALERS_V1)
    first, second = rule(apiVersions=["v1"]), rule(apiVersions=["v2"])
    assert matched([first], "CREATE", AUTOSCALERS, "", both) == AUTOSCALERS_V1
    assert matched([first], "CREATE", AUTOSCALERS, "") is None
    assert matched([first, second], "CREATE", AUTOSCALERS, "", both) == AUTOSCALERS


words = st.sampled_from(["*", "", "v1", "pods", "pods/status", "*/*"])


@given(st.lists(words), st.lists(words), st.lists(words))
def test_a_rule_that_matches_goes_on_to_do_so_with_more_words(groups: Any, versions: Any, resources: Any) -> None:
    small = rule(apiGroups=groups, apiVersions=versions, resources=resources)
    if rule_matches(small, "CREATE", PODS, "status"):
        large = rule(apiGroups=[*groups, "x"], apiVersions=[*versions, "x"], resources=[*resources, "x"])
        assert rule_matches(large, "CREATE", PODS, "status")
