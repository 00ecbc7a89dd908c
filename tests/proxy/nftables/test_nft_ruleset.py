"""From what is there to what should be: which messages, and in which order."""

import pytest

from seamark.linux.netlink import attributes, pairs, string
from seamark.proxy.nftables import ruleset as r

PLAIN = r.SetSpec((r.MARK,), (r.MARK,))
KINDS = {
    r.NEW_TABLE: "table",
    r.DELETE_TABLE: "-table",
    r.NEW_CHAIN: "chain",
    r.DELETE_CHAIN: "-chain",
    r.NEW_RULE: "rule",
    r.DELETE_RULE: "-rules",
    r.NEW_SET: "set",
    r.DELETE_SET: "-set",
    r.NEW_ELEMENTS: "elements",
    r.DELETE_ELEMENTS: "-elements",
}


def rules(*names, hook=None):
    return r.Chain(tuple(r.Rule(name, name.encode()) for name in names), hook)


def ruleset(chains=(), sets=(), elements=()):
    return r.Ruleset(
        {2},
        {(2, name): spec for name, spec in dict(sets).items()},
        {(2, name): chain for name, chain in dict(chains).items()},
        {(2, name): content for name, content in dict(elements).items()},
    )


def told(old, new):
    return [KINDS[message.kind] for message in r.difference("t", old, new)]


def test_everything_from_nothing_in_an_order_that_works():
    new = ruleset({"c": rules("a")}, {"s": PLAIN}, {"s": {b"k---": b"d---"}})
    assert told(r.Ruleset(), new) == ["table", "set", "chain", "rule", "elements"]
    assert told(new, r.Ruleset()) == ["-table"]
    assert told(new, new) == []


def test_what_is_not_needed_any_more_goes_last():
    old = ruleset({"c": rules("a"), "d": rules("b")}, {"s": PLAIN, "u": PLAIN}, {"s": {b"k---": b"d---"}, "u": {}})
    new = ruleset({"c": rules("a")}, {"s": PLAIN}, {"s": {}})
    assert told(old, new) == ["-rules", "-elements", "-set", "-chain"]


def test_an_element_that_leads_elsewhere_is_taken_out_and_put_in():
    old = ruleset(sets={"s": PLAIN}, elements={"s": {b"k---": b"old-", b"same": b"same"}})
    new = ruleset(sets={"s": PLAIN}, elements={"s": {b"k---": b"new-", b"same": b"same"}})
    messages = r.difference("t", old, new)
    assert [KINDS[each.kind] for each in messages] == ["-elements", "elements"]
    assert [len(list(pairs(attributes(each.body)[3]))) for each in messages] == [1, 1]


def test_changed_rules_replace_all_rules_of_their_chain_only():
    old = ruleset({"c": rules("a", "b"), "d": rules("x")})
    new = ruleset({"c": rules("a"), "d": rules("x")})
    messages = r.difference("t", old, new)
    assert [KINDS[each.kind] for each in messages] == ["-rules", "rule"]
    assert string(attributes(messages[1].body)[2]) == "c"


def test_ranges_are_written_as_a_whole():
    spec = r.SetSpec((r.ADDRESS[2],), edges=True)
    old = ruleset(sets={"s": spec}, elements={"s": {b"\x0a\0\0\0\0": b"", b"\x0b\0\0\0\1": b""}})
    new = ruleset(sets={"s": spec}, elements={"s": {b"\x0a\0\0\0\0": b"", b"\x0c\0\0\0\1": b""}})
    assert told(old, new) == ["-elements", "elements"]
    assert told(new, new) == []


@pytest.mark.parametrize(
    "there",
    [
        ruleset({"c": rules("a", hook=r.Hook("nat", 0, -50))}, {"s": PLAIN}),
        ruleset({"c": rules("a", hook=r.Hook("nat", 0, -100))}, {"s": r.SetSpec((r.MARK,))}),
    ],
)
def test_a_table_of_another_shape_is_made_anew(there):
    new = ruleset({"c": rules("a", hook=r.Hook("nat", 0, -100))}, {"s": PLAIN})
    assert told(there, new) == ["-table", "table", "set", "chain", "rule"]


def test_many_elements_are_cut_into_messages_that_fit():
    many = {number.to_bytes(4): b"data" for number in range(5000)}
    messages = r.difference("t", ruleset(sets={"s": PLAIN}), ruleset(sets={"s": PLAIN}, elements={"s": many}))
    assert len(messages) > 1
    assert all(len(each.body) < 65_000 for each in messages)
    assert sum(len(list(pairs(attributes(each.body)[3]))) for each in messages) == 5000


def test_the_signature_of_a_rule_changes_with_its_content():
    assert r.Rule("x", b"1").signature != r.Rule("x", b"2").signature
