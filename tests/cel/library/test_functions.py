"""The functions of the libraries, in a table."""

from __future__ import annotations

from typing import Any

import pytest

from seamark.cel import Environment, EvaluationError
from seamark.cel.library.authorizer import AUTHORIZER, Answer, Authorizer, Question
from seamark.cel.types import DYN

_ENVIRONMENT = Environment({"d": DYN})


def _value(text: str) -> Any:
    return _ENVIRONMENT.compile(text).evaluate({"d": {"n": None}})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'hello'.charAt(4) + 'hello'.charAt(5)", "o"),
        ("'hello'.indexOf('l') + 'hello'.lastIndexOf('l')", 5),
        ("'hello'.indexOf('l', 3)", 3),
        ("'hello'.lastIndexOf('l', 2)", 2),
        ("'HÉ'.lowerAscii() + 'hé'.upperAscii()", "hÉHé"),
        ("'a-b-c'.replace('-', '', 1)", "ab-c"),
        ("'a-b-c'.split('-', 2)", ["a", "b-c"]),
        ("'abc'.split('')", ["a", "b", "c"]),
        ("'a'.split('-', 0)", []),
        ("'hello'.substring(1, 3) + 'hello'.substring(4)", "elo"),
        (r"' \n a '.trim()", "a"),
        ("['a', 'b'].join() + ['a', 'b'].join('-')", "aba-b"),
        (r"strings.quote('a\"\n')", '"a\\"\\n"'),
        (
            "'%s %d %x %X %o %b %e %.2f %%'.format(['a', 1, 255, 255, 8, 5, 1.5, 2.0])",
            "a 1 ff FF 10 101 1.500000e+00 2.00 %",
        ),
        ("'%s'.format([{'b': [1, 2], 'a': null}])", "{a: null, b: [1, 2]}"),
        ("'%x'.format(['ab'])", "6162"),
        ("[1, 2, 2].isSorted() && !['b', 'a'].isSorted()", True),
        ("[1, 2].sum() + [1].max() + [3, 2].min()", 6),
        ("[1.5, 1.5].sum()", 3.0),
        ("[duration('1s'), duration('2s')].sum() == duration('3s')", True),
        ("[1, 2, 1].indexOf(1) + [1, 2, 1].lastIndexOf(1)", 2),
        ("[1].indexOf(2)", -1),
        ("[1, 2, 3].slice(1, 2)", [2]),
        ("[1, 2, 1].distinct()", [1, 2]),
        ("[1, 2].reverse() + [3, 1].sort()", [2, 1, 1, 3]),
        ("['bb', 'a'].sortBy(x, x.size())", ["a", "bb"]),
        ("lists.range(3)", [0, 1, 2]),
        ("[1, 2].first().value() + [1, 2].last().value()", 3),
        ("sets.contains([1, 2], [2]) && !sets.contains([1], [2])", True),
        ("sets.intersects([1], [1, 2]) && sets.equivalent([1, 1], [1])", True),
        ("'abc 123 45'.find('[0-9]+')", "123"),
        ("'abc'.find('[0-9]+')", ""),
        ("'1 2 3'.findAll('[0-9]')", ["1", "2", "3"]),
        ("'1 2 3'.findAll('[0-9]', 2)", ["1", "2"]),
        ("'ab'.matches('b') && !'ab'.matches('^b')", True),
        ("isIP('10.0.0.1') && !isIP('010.0.0.1') && !isIP('::ffff:1.2.3.4') && !isIP('fe80::1%eth0')", True),
        ("ip('::1').isLoopback() && ip('0.0.0.0').isUnspecified() && ip('fe80::1').isLinkLocalUnicast()", True),
        ("ip('224.0.0.1').isLinkLocalMulticast() && ip('8.8.8.8').isGlobalUnicast()", True),
        ("ip('10.0.0.1') == ip('10.0.0.1') && type(ip('::1')) == net.IP", True),
        ("ip.isCanonical('::1') && !ip.isCanonical('::0:1')", True),
        ("string(cidr('10.1.2.3/16').masked())", "10.1.0.0/16"),
        ("cidr('10.0.0.0/8').containsIP('10.1.1.1') && !cidr('10.0.0.0/8').containsIP(ip('::1'))", True),
        ("cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.0.0.0/16').containsCIDR('10.0.0.0/8')", True),
        ("string(cidr('10.1.2.3/16').ip())", "10.1.2.3"),
        ("isCIDR('10.0.0.0/33') || isCIDR('10.0.0.0')", False),
        ("url('https://user@example.com:80/a b?x=1&x=2').getHost()", "example.com:80"),
        ("url('https://example.com/path with spaces/').getEscapedPath()", "/path%20with%20spaces/"),
        ("url('https://[::1]:80/?x=1&x=2').getHostname()", "::1"),
        ("url('https://[::1]:80/?x=1&x=2').getPort()", "80"),
        ("url('https://a/?x=1&x=2').getQuery()", {"x": ["1", "2"]}),
        ("isURL('/path') && !isURL('a b') && !isURL('http://a:b/')", True),
        ("semver('1.2.3').minor() + semver('v1.2', true).patch()", 2),
        (
            "semver('1.0.0-rc.1').isLessThan(semver('1.0.0')) && semver('1.0.0-a').compareTo(semver('1.0.0-1')) == 1",
            True,
        ),
        ("isSemver('1.2') || isSemver('01.2.3')", False),
        ("isSemver('v01.2', true)", True),
    ],
)
def test_function(text: str, value: Any) -> None:
    assert _value(text) == value


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("'a'.charAt(2)", "index out of range: 2"),
        ("'abc'.substring(2, 1)", "invalid substring range. start: 2, end: 1"),
        ("[].map(x, 1).min()", "min called on empty list"),
        (
            "'%d'.format(['a'])",
            "error during formatting: decimal clause can only be used on integers, was given string",
        ),
        ("'%d'.format([])", "index 0 out of range"),
        ("d.n.startsWith('a')", "no such overload"),
        ("ip('zz')", 'IP Address "zz" parse error during conversion from string: ParseAddr("zz"): unable to parse IP'),
        ("url('nope')", 'URL parse error during conversion from string: parse "nope": invalid URI for request'),
        ("semver('1.2')", "No Major.Minor.Patch elements found"),
        ("[1, 2].slice(1, 3)", "cannot slice(1, 3), list is length 2"),
    ],
)
def test_failure_of_a_function(text: str, sentence: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        _value(text)
    assert str(caught.value) == sentence


def test_the_authorizer_is_asked() -> None:
    asked: list[Question] = []

    def decide(question: Question) -> Answer:
        asked.append(question)
        return Answer(question.verb == "get", "because")

    environment = Environment({"authorizer": AUTHORIZER})
    check = "authorizer.group('apps').resource('deployments').namespace('a').name('b').check('get')"
    given = {"authorizer": Authorizer(decide)}
    assert environment.compile(f"{check}.allowed()").evaluate(given) is True
    assert environment.compile(f"{check}.reason()").evaluate(given) == "because"
    path = "authorizer.serviceAccount('ns', 'sa').path('/healthz').check('put')"
    assert environment.compile(f"{path}.allowed() || {path}.errored()").evaluate(given) is False
    assert asked[0] == Question("get", group="apps", resource="deployments", namespace="a", name="b")
    assert asked[-1] == Question("put", "/healthz", service_account=("ns", "sa"))
