"""The small parts of definitions: patterns, formats, paths, the order of versions, names."""

from __future__ import annotations

import pytest

from seamark.kinds.extensions import formats, jsonpaths, regex
from seamark.kinds.extensions.definition import DEFINITION
from seamark.kinds.extensions.names import Taken, judged
from seamark.kinds.extensions.versions import priority
from seamark.kinds.language.decode import DecodeError


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        ("^[[:alpha:]]+$", "abc", "ab1"),
        ("^a$", "a", "a\n"),
        (r"^\d{2}\z", "12", "123"),
        ("^[]a]$", "]", "b"),
        ("^[^[a]$", "b", "["),
        ("^(a+)+$", "aaa", f"{'a' * 10_000}b"),  # for ever, if alternatives were tried one after the other
    ],
)
def test_patterns_mean_what_they_mean_in_go(pattern: str, good: str, bad: str) -> None:
    assert regex.compiled(pattern)(good)
    assert not regex.compiled(pattern)(bad)


@pytest.mark.parametrize(
    ("pattern", "said"),
    [("([a-z", "missing closing ]: `[a-z`"), ("(a", "missing closing ): `(a`"), ("a)", "unexpected )")],
)
def test_mistakes_in_patterns(pattern: str, said: str) -> None:
    with pytest.raises(regex.PatternError, match=r"error parsing regexp: ") as error:
        regex.compiled(pattern)
    assert said in str(error.value)


GOOD = {
    "bsonobjectid": "507f1f77bcf86cd799439011",
    "byte": "YQ==",
    "cidr": "10.0.0.0/8",
    "creditcard": "4111 1111 1111 1111",
    "date": "2020-02-29",
    "date-time": "2020-02-29T10:00:00Z",
    "datetime": "2020-02-29T10:00:00.5+01:00",
    "duration": "1h30m",
    "email": "a@b.example",
    "hexcolor": "#fff",
    "hostname": "a.example",
    "ipv4": "1.2.3.4",
    "ipv6": "::1",
    "isbn": "978-3-16-148410-0",
    "isbn10": "0-306-40615-2",
    "isbn13": "978-3-16-148410-0",
    "k8s-long-name": "a.b",
    "k8s-short-name": "a-b",
    "mac": "00:11:22:aa:bb:cc",
    "rgbcolor": "rgb(1,2,3)",
    "ssn": "111-11-1111",
    "uri": "https://a.example/x",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "uuid3": "123e4567-e89b-32d3-a456-426614174000",
    "uuid4": "123e4567-e89b-42d3-a456-426614174000",
    "uuid5": "123e4567-e89b-52d3-a456-426614174000",
}


@pytest.mark.parametrize("name", sorted(formats.CHECKS))
def test_formats(name: str) -> None:
    if name == "password":
        assert formats.CHECKS[name]("anything")
        return
    assert formats.CHECKS[name](GOOD[name])
    assert not formats.CHECKS[name]("-- not that --")


def test_paths() -> None:
    obj = {"spec": {"list": [{"k": "x"}, {"k": "y"}], "a.b": 1}}
    assert jsonpaths.find(obj, jsonpaths.steps(".spec.list[*].k")) == "x"
    assert jsonpaths.find(obj, jsonpaths.steps(".spec.list[1].k")) == "y"
    assert jsonpaths.find(obj, jsonpaths.steps(".spec['a.b']")) == 1
    assert jsonpaths.find(obj, jsonpaths.steps(".spec.list[5].k")) is None
    assert jsonpaths.find(obj, jsonpaths.steps("{}")) is None
    assert jsonpaths.set_at({"spec": {"x": 1}}, ("spec", "deep", "n"), 2) == {"spec": {"x": 1, "deep": {"n": 2}}}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ('.conditions[?(@.type=="Ready")].status', "True"),
        (".conditions[?( @.type == 'Done' )].status", "False"),
        (".conditions[?(@.type=='Gone')].status", None),
        ('.conditions[?(@.type!="Ready")].type', "Done"),
        (".conditions[?(@.since>3)].type", "Done"),
        (".conditions[?(@.since>='3')].type", None),  # no number
        (".conditions[?(@.fresh==true)].type", "Done"),
        (".conditions[?(@.fresh)].type", "Done"),
        (".conditions[*].fresh", True),
        (".conditions[-1].type", "Done"),
        (".conditions[-3].type", None),
        (".labels[*]", "1"),
        (".conditions[?(@)].type", None),
        (".conditions[?(@.type==Ready)].type", None),
    ],
)
def test_paths_that_choose(path: str, found: object) -> None:
    ready = {"type": "Ready", "status": "True", "since": 3}
    done = {"type": "Done", "status": "False", "since": 4, "fresh": True}
    obj = {"conditions": [ready, done], "labels": {"b": "2", "a": "1"}}
    assert jsonpaths.find(obj, jsonpaths.steps(path)) == found


def test_versions_are_ordered_as_clients_prefer_them() -> None:
    given = ["foo10", "v1alpha3", "v1", "v11beta2", "v10", "foo1", "v2", "v1beta1"]
    assert sorted(given, key=priority) == ["v10", "v2", "v1", "v11beta2", "v1beta1", "v1alpha3", "foo1", "foo10"]


def test_an_approved_group_of_kubernetes() -> None:
    definition = {
        "metadata": {"name": "x.k8s.io", "annotations": {"api-approved.kubernetes.io": "https://example.com"}},
        "spec": {"group": "k8s.io", "names": {"plural": "x", "kind": "X"}},
    }
    status = judged(definition, Taken(), "now")
    assert status["conditions"][-1]["reason"] == "ApprovedAnnotation"
    again = judged({**definition, "status": status}, Taken(), "later")
    assert again == status


def test_a_schema_that_cannot_be_read_is_refused_like_any_document() -> None:
    schema = {"type": "array", "items": {"type": "object", "properties": "none"}}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]
    with pytest.raises(DecodeError, match=r"JSONSchemaProps\.properties"):
        DEFINITION.conform({"metadata": {}, "spec": {"group": "g", "names": {}, "scope": "", "versions": versions}})
