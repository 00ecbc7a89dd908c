"""Paths and query strings: what they mean, and which are refused with which words."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.api.http.url import (
    MOST_PARAMETERS,
    check_timeout,
    delete_options,
    flag,
    integer,
    list_options,
    parse,
    parse_query,
    patch_options,
    write_options,
)
from seamark.api.state import versions
from seamark.errors import BadRequest, Invalid, NotFound
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


# --- queries ---------------------------------------------------------------------------------------


def test_a_query_keeps_every_value():
    assert parse_query("a=1&b=&a=2&c&%61=3&d=%C3%A4%ff") == {
        "a": ["1", "2", "3"],
        "b": [""],
        "c": [""],
        "d": ["ä\ufffd"],
    }
    assert parse_query("") == {}


def test_very_many_parameters_are_refused_before_they_are_read() -> None:
    assert len(parse_query("&".join(f"p{n}=" for n in range(MOST_PARAMETERS)))) == MOST_PARAMETERS
    with pytest.raises(BadRequest):
        parse_query("&" * MOST_PARAMETERS)


@pytest.mark.parametrize(
    ("text", "means"),
    [("", False), ("x=true", True), ("x=", True), ("x", True), ("x=FALSE", False), ("x=0", False), ("x=maybe", True)],
)
def test_flags(text, means):
    assert flag(parse_query(text), "x") is means


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", 'parsing "": invalid syntax'),
        ("x", 'parsing "x": invalid syntax'),
        ("1_0", "invalid syntax"),
        (" 1", "invalid syntax"),
        ("١", "invalid syntax"),
        ("--1", "invalid syntax"),
        ("1.5", "invalid syntax"),
        ("9223372036854775808", "value out of range"),
        ("-9223372036854775809", "value out of range"),
        ("9" * 5000, "value out of range"),
    ],
)
def test_numbers_that_are_none(text, wrong):
    with pytest.raises(BadRequest) as refused:
        integer({"limit": [text]}, "limit")
    assert wrong in refused.value.message


@given(st.integers(-(2**63), 2**63 - 1))
def test_numbers_of_64_bits(number):
    assert integer({"limit": [str(number)]}, "limit") == number
    assert integer({}, "limit") is None


@given(st.text())
def test_versions_are_unsigned_numbers_or_refused(text):
    if text.isascii() and text.isdigit() and int(text) < 2**64:
        assert versions.unsigned(text) == int(text)
    else:
        with pytest.raises(ValueError, match=r"strconv\.ParseUint: parsing"):
            versions.unsigned(text)


def test_versions():
    assert versions.of_read("") == 0
    assert versions.of_read(str(2**64 - 1)) == 2**64 - 1
    for text in (str(2**64), "-1", "abc", "9" * 10_000, "²"):
        with pytest.raises(BadRequest, match="invalid resource version: resourceVersion: Invalid value"):
            versions.of_read(text)


@pytest.mark.parametrize("good", ["", "1s", "1.5h", "-3ms", "1h2m3s", "0", "+0", ".5s", "10µs"])
def test_good_timeouts(good):
    check_timeout({"timeout": [good]})


@pytest.mark.parametrize(
    ("bad", "words"),
    [("x", 'invalid duration "x"'), ("10", 'missing unit in duration "10"'), ("\0", "invalid"), ("1s2", "invalid")],
)
def test_bad_timeouts(bad, words):
    with pytest.raises(BadRequest, match="invalid timeout specified in the request URL") as refused:
        check_timeout({"timeout": [bad]})
    assert words in refused.value.message


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("resourceVersionMatch=Exact", "resourceVersionMatch"),
        ("resourceVersionMatch=Exact&resourceVersion=0", "resourceVersionMatch"),
        ("resourceVersionMatch=Exact&resourceVersion=1&continue=x", "resourceVersionMatch"),
        ("resourceVersionMatch=Nope&resourceVersion=1", "resourceVersionMatch"),
        ("sendInitialEvents=true", "sendInitialEvents"),
        ("watch=1&resourceVersionMatch=NotOlderThan", "resourceVersionMatch"),
        ("watch=1&sendInitialEvents=true", "resourceVersionMatch"),
        ("watch=1&sendInitialEvents=false&resourceVersionMatch=Exact", "resourceVersionMatch"),
    ],
)
def test_lists_that_make_no_sense(query, field):
    with pytest.raises(Invalid) as refused:
        list_options(parse_query(query), watch=False)
    assert field in {cause.field for cause in refused.value.causes}


def test_list_options():
    options = list_options(parse_query("limit=-5&labelSelector=a&fieldSelector=b&timeoutSeconds=7&watch"), watch=False)
    assert (options.limit, options.labels, options.fields, options.timeout_seconds) == (0, "a", "b", 7)
    assert options.watch


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("dryRun=Some", "dryRun"),
        ("dryRun=All&dryRun=Some", "dryRun"),
        ("dryRun=", "dryRun"),
        (f"fieldManager={'x' * 129}", "fieldManager"),
        ("fieldManager=%00", "fieldManager"),
        ("fieldValidation=Sometimes", "fieldValidation"),
    ],
)
def test_writes_that_make_no_sense(query, field):
    with pytest.raises(Invalid) as refused:
        write_options(parse_query(query), "CreateOptions")
    assert [cause.field for cause in refused.value.causes] == [field]
    assert refused.value.message.startswith("CreateOptions.meta.k8s.io")


def test_write_options():
    assert write_options(parse_query("dryRun=All&fieldManager=me"), "x").dry_run
    assert write_options(parse_query("dryRun=All&dryRun=All"), "x").dry_run
    assert not write_options(parse_query("fieldManager=me"), "x").dry_run
    assert patch_options(parse_query("fieldManager=me&force=1"), apply=True).force
    with pytest.raises(Invalid, match="is required for apply patch"):
        patch_options({}, apply=True)
    with pytest.raises(Invalid, match="may not be specified for non-apply patch"):
        patch_options(parse_query("force=1"), apply=False)


def test_delete_options():
    found = delete_options(parse_query("gracePeriodSeconds=5&propagationPolicy=Orphan&dryRun=All"))
    assert (found.grace_seconds, found.propagation, found.dry_run) == (5, "Orphan", ("All",))
    assert delete_options(parse_query("orphanDependents=false")).orphan is False
    for query in ("orphanDependents=true&propagationPolicy=Orphan", "propagationPolicy=Sideways", "dryRun=Half"):
        with pytest.raises(Invalid):
            delete_options(parse_query(query))


@given(
    st.dictionaries(
        st.sampled_from(["limit", "timeoutSeconds", "resourceVersion", "watch", "dryRun", "continue"]),
        st.lists(st.text()),
    )
)
def test_no_query_breaks_the_server(query):
    for read in (
        lambda: list_options(query, watch=False),
        lambda: write_options(query, "CreateOptions"),
        lambda: patch_options(query, apply=False),
        lambda: delete_options(query),
        lambda: check_timeout(query),
    ):
        with contextlib.suppress(BadRequest, Invalid):
            read()
