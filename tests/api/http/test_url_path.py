"""Paths: what they mean."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.api.http.url import parse
from seamark.errors import NotFound
from seamark.kinds.table import KINDS, NEVER_STORED, Kinds

ALL = Kinds((*KINDS, *NEVER_STORED))


@pytest.mark.parametrize(
    ("path", "plural", "namespace", "name", "subresource", "watch"),
    [
        ("/api/v1/nodes", "nodes", "", "", "", False),
        ("/api/v1/nodes/", "nodes", "", "", "", False),
        ("/api/v1/nodes/n1/status", "nodes", "", "n1", "status", False),
        ("/api/v1/pods", "pods", "", "", "", False),
        ("/api/v1/namespaces/ns/pods", "pods", "ns", "", "", False),
        ("/api/v1/namespaces/ns/pods/p", "pods", "ns", "p", "", False),
        ("/api/v1/namespaces/ns/pods/p/log", "pods", "ns", "p", "log", False),
        ("/api/v1/namespaces/ns", "namespaces", "", "ns", "", False),
        ("/api/v1/namespaces/ns/status", "namespaces", "", "ns", "status", False),
        ("/api/v1/namespaces/ns/finalize", "namespaces", "", "ns", "finalize", False),
        ("/api/v1/namespaces/pods/pods/pods", "pods", "pods", "pods", "", False),
        ("/api/v1/watch/pods", "pods", "", "", "", True),
        ("/api/v1/watch/namespaces/ns/pods/p", "pods", "ns", "p", "", True),
        ("/apis/apps/v1/namespaces/ns/deployments/d/scale", "deployments", "ns", "d", "scale", False),
        ("/apis/events.k8s.io/v1/events", "events", "", "", "", False),
        ("/api/v1/namespaces//pods", "pods", "", "", "", False),
    ],
)
def test_paths(path, plural, namespace, name, subresource, watch):
    place = parse(path, ALL)
    target = place.target
    assert target.kind.resource.plural == plural
    assert (target.namespace, target.name, place.watch) == (namespace, name, watch)
    assert (target.subresource.name if target.subresource else "") == subresource


def test_a_proxied_path_goes_on():
    assert parse("/api/v1/nodes/n/proxy/a/b", ALL).target.subresource.name == "proxy"


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1",
        "/api/v1/",
        "/api/v2/pods",
        "/api/v1/widgets",
        "/api/v1/pods/p",  # a namespaced object without its namespace
        "/api/v1/namespaces/ns/nodes",
        "/api/v1/namespaces/ns/pods/p/nothing",
        "/api/v1/namespaces/ns/pods/p/status/more",
        "/apis/apps/v9/deployments",
        "/api/v1/watch",
        "/api//v1/pods",
        "/api/v1/namespaces/ns/pods/../configmaps",
    ],
)
def test_paths_of_nothing(path):
    with pytest.raises(NotFound) as refused:
        parse(path, ALL)
    assert refused.value.message == "the server could not find the requested resource"


@pytest.mark.parametrize(
    "path", ["/", "", "/foo", "/apis", "/apis/nobody.example/v1/things", "/apix/v1/pods", "//api/v1/pods"]
)
def test_paths_outside(path):
    assert parse(path, ALL) is None


STARTS = ["/", "/api/v1/", "/apis/apps/v1/", "/api/v1/namespaces/ns/"]
PARTS = ["", "api", "apis", "v1", "apps", "namespaces", "nodes", "pods", "..", "\0", "ä", "watch", "status"]


@given(st.sampled_from(STARTS), st.lists(st.sampled_from(PARTS), max_size=6))
def test_no_path_breaks_the_parser(start, parts):
    path = start + "/".join(parts)
    try:
        place = parse(path, ALL)
    except NotFound:
        return
    if place is not None:
        target = place.target
        assert {target.kind.resource.plural, target.namespace, target.name} <= {*path.split("/"), ""}
