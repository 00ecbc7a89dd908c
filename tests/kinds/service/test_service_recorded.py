"""The rules of Services, Endpoints and EndpointSlices against what a real API server answered."""

from __future__ import annotations

import pytest
import serverless

from seamark.errors import Object

FILES = (
    "service-defaults",
    "service-update",
    "service-validation",
    "endpoints",
    "endpointslices",
    "status",
    "tables",
    "crud",
    "delete",
)
WITHOUT = {
    "service-validation/port-string": "decoding refuses it, before any rule",
    "service-update/name-immutable": "the write path compares names, not the rules",
    "service-update/headless-to-clusterip": "the new version is due to managedFields",
    "delete/service-finalizer-holds-address": "finalizers are the write path's",
}


@pytest.mark.parametrize("case", [pytest.param(c, id=c["name"]) for c in serverless.cases(*FILES, without=WITHOUT)])
def test_case_plays_as_recorded(case: Object) -> None:
    assert serverless.play(case) == []


def test_most_cases_are_played() -> None:
    assert len(serverless.cases(*FILES, without=WITHOUT)) > 140
