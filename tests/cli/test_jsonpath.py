"""kubectl's JSONPath templates, by tables; what is expected was printed by kubectl."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from seamark.cli.go_text import json_text, printed
from seamark.cli.jsonpath import JsonPathError, evaluate, parse, relaxed

PORTS = [{"name": "http", "port": 80}, {"name": "admin", "port": 81, "secure": True}, {"port": 9000}]
SERVICE: dict[str, Any] = {
    "kind": "Service",
    "metadata": {"name": "web", "labels": {"app": "web", "example.org/part": "a<b"}, "nothing": None},
    "spec": {"ports": PORTS, "weight": 1.5},
}
LIST: dict[str, Any] = {"kind": "List", "items": [SERVICE, {"kind": "Service", "metadata": {"name": "db"}, "spec": {}}]}


def text(template: str, value: Any) -> str:
    def shown(each: Any) -> str:
        return json_text(each) if isinstance(each, dict | list | None) else printed(each)

    return "".join(" ".join(map(shown, found)) for found in evaluate(parse(template), value))


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("plain", "plain"),
        ("", ""),
        ("{.metadata.name}", "web"),
        ("{$.metadata.name}", "web"),
        ("{@.metadata.name}", "web"),
        ("{ .metadata.name }", "web"),
        ("a{.kind}b{.kind}c", "aServicebServicec"),
        ("{.metadata['name']}", "web"),
        ("{.metadata['name','nope']}", "web"),
        (r"{.metadata.labels.example\.org/part}", "a<b"),
        (r"{.metadata.labels['example\.org/part']}", "a<b"),
        ("{.metadata.labels['example.org/part']}", ""),
        ("{.metadata.nope.deeper}", ""),
        ("{.metadata.name.deeper}", ""),
        ("{.metadata.nothing}", "null"),
        ("{.metadata.nothing.deeper}", ""),
        ("{.}", ""),
        ("{@.spec.weight}", "1.5"),
        ("{.metadata.labels}", '{"app":"web","example.org/part":"a\\u003cb"}'),
        ("{.spec.ports[0].port}", "80"),
        ("{.spec.ports[-1].port}", "9000"),
        ("{.spec.ports[*].port}", "80 81 9000"),
        ("{.spec.ports[:].port}", "80 81 9000"),
        ("{.spec.ports[0:2].port}", "80 81"),
        ("{.spec.ports[1:].port}", "81 9000"),
        ("{.spec.ports[:-1].port}", "80 81"),
        ("{.spec.ports[::2].port}", "80 9000"),
        ("{.spec.ports[0,2].port}", "80 9000"),
        ("{.spec.ports[1:1]}", ""),
        ("{.spec.ports[0]}", '{"name":"http","port":80}'),
        ("{.spec.ports.port}", ""),
        ("{..port}", "80 81 9000"),
        ("{.spec..name}", "http admin"),
        ("{.metadata.labels.*}", "web a<b"),
        ('{.spec.ports[?(@.name=="admin")].port}', "81"),
        ("{.spec.ports[?(@.name=='admin')].port}", "81"),
        ('{.spec.ports[?(@.name!="admin")].port}', "80"),
        ("{.spec.ports[?(@.name)].port}", "80 81"),
        ("{.spec.ports[?(@.port>80)].port}", "81 9000"),
        ("{.spec.ports[?( @.port >= 81 )].port}", "81 9000"),
        ("{.spec.ports[?(@.port<81)].port}", "80"),
        ("{.spec.ports[?(80<=@.port)].port}", "80 81 9000"),
        ("{.spec.ports[?(@.secure==true)].name}", "admin"),
        ('{.spec.ports[?(@.name==")]}")].port}', ""),
        (r'{"a\tb\u00e9\x41\101\n"}', "a\tb\u00e9AA\n"),
        (r"{'it\'s'}", "it's"),
        ("{3}{-2}{true}{1.50}", "3-2true1.5"),
        ('{.metadata.name "x"}', "x"),
        ('{range .spec.ports[*]}{.port},{end}{"!"}', "80,81,9000,!"),
        ('{range .spec.ports[*]}{.port}{"\\n"}', "80\n81\n9000\n\n"),
        ("{range .nope[*]}{.port},{end}!", "!"),
        ("{range .spec}{range .ports[0:2]}[{.port}]{end};{end}.", "[80][81];."),
    ],
)
def test_of_one_object(template: str, expected: str) -> None:
    assert text(template, SERVICE) == expected


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{.items[*].metadata.name}", "web db"),
        ("{.items[*].spec.ports[*].port}", "80 81 9000"),
        ('{.items[?(@.metadata.name=="db")].kind}', "Service"),
        (
            '{range .items[*]}{.metadata.name}:{range .spec.ports[*]} {.port}{end}{"\\n"}{end}done',
            "web: 80 81 9000\ndb:\ndone",
        ),
    ],
)
def test_of_a_list(template: str, expected: str) -> None:
    assert text(template, LIST) == expected


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{.a", "unclosed action"),
        ("{.a\n}", "unclosed action"),
        ("{.a[0}", "unterminated array"),
        ("{.a[?(@.x}", "unterminated filter"),
        ('{"a}', "unterminated quoted string"),
        ('{.a["x"]}', 'invalid array index "x"'),
        ("{.a[x]}", "invalid array index x"),
        ("{.a[1:2:3:4]}", "invalid array index 1:2:3:4"),
        ("{....a}", "invalid multiple recursive descent"),
        ("{#}", "unrecognized character in action: U+0023 '#'"),
        ("{1.2.3}", "cannot parse number 1.2.3"),
        (r'{"\q"}', r'unquote string "\q" error invalid syntax'),
        (r'{"\UFFFFFFFF"}', "invalid syntax"),
        ("{foo}", "unrecognized identifier foo"),
        ("{end}", "not in range, nothing to end"),
        ("{.spec.ports[3]}", "array index out of bounds: index 3, length 3"),
        ("{.spec.ports[-4]}", "array index out of bounds: index -1, length 3"),
        ("{.spec.ports[0:4]}", "array index out of bounds: index 3, length 3"),
        ("{.spec.ports[2:1]}", "starting index 2 is greater than ending index 1"),
        ("{.spec.ports[::0]}", "step must be > 0"),
        ("{.metadata.name[0]}", "string is not array or slice"),
        ("{.metadata[?(@.x)]}", "cannot be filtered"),
        ('{.spec.ports[?(@.port=="x")]}', "incompatible types for comparison"),
        ("{.spec.ports[?(@.secure>true)]}", "invalid type for comparison"),
        ("{.spec.ports[?(@ == 1)]}", "invalid type for comparison"),
        ("{.spec.ports[?(@.port=<3)]}", "unrecognized filter operator =<"),
        ("{.spec.ports[?(@.* == 1)]}", "can only compare one element at a time"),
    ],
)
def test_what_is_wrong_with_it(template: str, said: str) -> None:
    with pytest.raises(JsonPathError) as refused:
        text(template, SERVICE)
    assert said in str(refused.value)


@given(some.text(alphabet="{}.[]()?@$*:,-\"'\\ab10=<>! \n", max_size=30))
def test_any_text_is_a_template_or_an_error(template: str) -> None:
    """Never anything else, and applying it ends."""
    with contextlib.suppress(JsonPathError):
        text(template, SERVICE)


@given(some.text(alphabet=some.characters(blacklist_characters="{")))
def test_text_without_braces_is_itself(template: str) -> None:
    assert text(template, SERVICE) == template


@pytest.mark.parametrize("path", ["metadata.name", ".metadata.name", "{metadata.name}", "{.metadata.name}"])
def test_paths_where_braces_may_be_left_out(path: str) -> None:
    assert relaxed(path) == parse("{.metadata.name}")


@pytest.mark.parametrize("path", ["", "{.a", "{.a}{.b}", "{}"])
def test_paths_that_are_none(path: str) -> None:
    with pytest.raises(JsonPathError, match="unexpected path string"):
        relaxed(path)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "<nil>"),
        (True, "true"),
        ({"b": [1, "x"], "a": {}}, "map[a:map[] b:[1 x]]"),
        ([], "[]"),
        (1.0, "1"),
        (0.00001, "1e-05"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (2.5, "2.5"),
    ],
)
def test_values_as_go_prints_them(value: Any, shown: str) -> None:
    assert printed(value) == shown
