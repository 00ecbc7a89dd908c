"""Decisions by roles and bindings: reasons, changes, and agreement with an independent evaluation."""

from __future__ import annotations

import random
import tracemalloc
from itertools import product
from typing import Any

import pytest
from evaluation import allowed
from hypothesis import given, settings
from hypothesis import strategies as st

from seamark.api.authorization import Attributes, User
from seamark.api.rbac.policy import Binding, Policy, Subject
from seamark.api.rbac.rules import Rule, singles, texts, uncovered

Object = dict[str, Any]

ALICE = User("alice", ("devs", "system:authenticated"))


def put(policy: Policy, kind: str, obj: Object) -> None:
    meta = obj["metadata"]
    place = (meta.get("namespace", ""), meta["name"])
    if kind.endswith("Role"):
        policy.put_role(place, tuple(Rule.of(rule) for rule in obj.get("rules") or ()))
    else:
        ref = obj["roleRef"]
        role = (place[0] if ref["kind"] == "Role" else "", ref["name"])
        subjects = tuple(Subject(s["kind"], s["name"], s.get("namespace", "")) for s in obj.get("subjects") or ())
        policy.put_binding(place, Binding(place, role, subjects))


def policy_of(objects: dict[str, list[Object]]) -> Policy:
    policy = Policy()
    for kind, listed in objects.items():
        for obj in listed:
            put(policy, kind, obj)
    return policy


def role(name: str, *rules: Object, namespace: str = "") -> Object:
    return {"metadata": {"name": name, **({"namespace": namespace} if namespace else {})}, "rules": list(rules)}


def binding(name: str, of: str, *subjects: Object, namespace: str = "", kind: str = "ClusterRole") -> Object:
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"metadata": meta, "roleRef": {"kind": kind, "name": of}, "subjects": list(subjects)}


def user(name: str) -> Object:
    return {"kind": "User", "name": name}


def about(verbs: str, resources: str, groups: str = "", names: str = "") -> Object:
    made: Object = {"verbs": verbs.split(), "apiGroups": groups.split() or [""], "resources": resources.split()}
    return made | ({"resourceNames": names.split()} if names else {})


def decide(policy: Policy, who: User, verb: str, resource: str, **more: str) -> tuple[bool, str]:
    decision = policy.decide(who, Attributes(verb, resource=resource, **more))
    return decision.allowed, decision.reason


def test_the_reason_names_the_binding_the_role_and_the_subject() -> None:
    policy = policy_of(
        {
            "Role": [role("reader", about("get", "pods"), namespace="n")],
            "ClusterRole": [role("nodes", about("get", "nodes"))],
            "RoleBinding": [
                binding("rb", "reader", user("alice"), namespace="n", kind="Role"),
                binding("of-cluster", "nodes", {"kind": "ServiceAccount", "name": "bot"}, namespace="n"),
                binding("named", "nodes", {"kind": "ServiceAccount", "name": "b", "namespace": "m"}, namespace="n"),
            ],
            "ClusterRoleBinding": [binding("crb", "nodes", {"kind": "Group", "name": "devs"})],
        }
    )
    by_role = 'RBAC: allowed by RoleBinding "rb/n" of Role "reader" to User "alice"'
    assert decide(policy, ALICE, "get", "pods", namespace="n") == (True, by_role)
    by_group = 'RBAC: allowed by ClusterRoleBinding "crb" of ClusterRole "nodes" to Group "devs"'
    assert decide(policy, ALICE, "get", "nodes") == (True, by_group)
    bot = User("system:serviceaccount:n:bot")
    home = 'RBAC: allowed by RoleBinding "of-cluster/n" of ClusterRole "nodes" to ServiceAccount "bot"'
    assert decide(policy, bot, "get", "nodes", namespace="n") == (True, home)
    other = 'RBAC: allowed by RoleBinding "named/n" of ClusterRole "nodes" to ServiceAccount "b/m"'
    assert decide(policy, User("system:serviceaccount:m:b"), "get", "nodes", namespace="n") == (True, other)
    assert decide(policy, ALICE, "get", "pods", namespace="m") == (False, "")
    assert decide(policy, User("root", ("system:masters",)), "any", "thing") == (True, "")


def test_missing_roles_show_in_a_refusal() -> None:
    policy = policy_of(
        {
            "RoleBinding": [binding("a", "gone", user("alice"), namespace="n", kind="Role")],
            "ClusterRoleBinding": [binding("b", "lost", user("alice"))],
        }
    )
    lost, gone = (
        f'{kind}.rbac.authorization.k8s.io "{name}" not found'
        for kind, name in [("clusterrole", "lost"), ("role", "gone")]
    )
    assert decide(policy, ALICE, "get", "pods") == (False, f"rbac: RBAC: {lost}")
    assert decide(policy, ALICE, "get", "pods", namespace="n") == (False, f"rbac: RBAC: [{lost}, {gone}]")
    assert policy.rules_for(ALICE, "n") == ([], [lost, gone])


def test_names_limit_a_rule_to_objects_of_these_names() -> None:
    policy = policy_of(
        {
            "Role": [role("r", about("get list", "pods", names="mine"), namespace="n")],
            "RoleBinding": [binding("b", "r", user("alice"), namespace="n", kind="Role")],
        }
    )
    assert decide(policy, ALICE, "get", "pods", namespace="n", name="mine")[0]
    assert not decide(policy, ALICE, "get", "pods", namespace="n", name="other")[0]
    assert not decide(policy, ALICE, "list", "pods", namespace="n")[0]


def test_every_change_takes_effect_at_once() -> None:
    policy = Policy()
    bound = binding("b", "r", user("alice"), namespace="n", kind="Role")

    def may() -> bool:
        return decide(policy, ALICE, "get", "pods", namespace="n")[0]

    assert not may()
    put(policy, "RoleBinding", bound)
    assert not may()
    put(policy, "Role", role("r", about("get", "pods"), namespace="n"))
    assert may()
    put(policy, "Role", role("r", about("list", "pods"), namespace="n"))
    assert not may()
    put(policy, "Role", role("r", about("*", "*", "*"), namespace="n"))
    assert may()
    put(policy, "RoleBinding", binding("b", "r", user("bob"), namespace="n", kind="Role"))
    assert not may()
    put(policy, "RoleBinding", bound)
    assert may()
    policy.put_role(("n", "r"), None)
    assert not may()
    put(policy, "Role", role("r", about("get", "pods"), namespace="n"))
    policy.put_binding(("n", "b"), None)
    assert not may()


def test_a_change_leaves_the_tables_of_others_alone() -> None:
    policy = policy_of(
        {
            "ClusterRole": [role("a", about("get", "pods")), role("b", about("get", "nodes"))],
            "ClusterRoleBinding": [binding("a", "a", user("alice")), binding("b", "b", user("bob"))],
        }
    )
    assert decide(policy, ALICE, "get", "pods")[0]
    assert decide(policy, User("bob"), "get", "nodes")[0]
    before = policy._tables["User alice", ""]
    put(policy, "ClusterRole", role("b", about("list", "nodes")))
    assert policy._tables == {("User alice", ""): before}


# --- against the independent evaluation ---------------------------------------------------------------------

VERBS = ["get", "list", "create", "*", "escalate"]
GROUPS = ["", "apps", "*"]
RESOURCES = ["pods", "pods/log", "deployments", "*/log", "*/scale", "*", "deployments/scale"]
URLS = ["/metrics", "/logs/*", "*", "/logs", "/x*"]
NAMES = ["", "a", "b"]
NAMESPACES = ["n", "m"]
USERS = ["alice", "bob", "system:serviceaccount:n:bot", "system:serviceaccount:m:bot", ""]
TEAMS = ["devs", "ops", "system:authenticated"]


def some(values: list[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(values), min_size=1, max_size=2, unique=True)


rules = st.one_of(
    st.fixed_dictionaries(
        {"verbs": some(VERBS), "apiGroups": some(GROUPS), "resources": some(RESOURCES)},
        optional={"resourceNames": some(NAMES[1:])},
    ),
    st.fixed_dictionaries({"verbs": some(VERBS), "nonResourceURLs": some(URLS)}),
)
subjects = st.one_of(
    st.builds(lambda name: {"kind": "User", "name": name}, st.sampled_from(USERS[:3])),
    st.builds(lambda name: {"kind": "Group", "name": name}, st.sampled_from(TEAMS)),
    st.builds(
        lambda place: {"kind": "ServiceAccount", "name": "bot", **({"namespace": place} if place else {})},
        st.sampled_from(["", "n", "m"]),
    ),
)
ROLE_NAMES = st.sampled_from(["r", "s"])
steps = st.one_of(
    st.builds(
        lambda n, r, ns: ("Role", role(n, *r, namespace=ns)),
        ROLE_NAMES,
        st.lists(rules, max_size=3),
        st.sampled_from(NAMESPACES),
    ),
    st.builds(lambda n, r: ("ClusterRole", role(n, *r)), ROLE_NAMES, st.lists(rules, max_size=3)),
    st.builds(
        lambda n, of, s, ns, kind: ("RoleBinding", binding(n, of, *s, namespace=ns, kind=kind)),
        ROLE_NAMES,
        ROLE_NAMES,
        st.lists(subjects, max_size=3),
        st.sampled_from(NAMESPACES),
        st.sampled_from(["Role", "ClusterRole"]),
    ),
    st.builds(
        lambda n, of, s: (
            "ClusterRoleBinding",
            binding(n, of, *[x for x in s if x["kind"] != "ServiceAccount" or "namespace" in x]),
        ),
        ROLE_NAMES,
        ROLE_NAMES,
        st.lists(subjects, max_size=3),
    ),
    st.tuples(
        st.sampled_from(["Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"]),
        ROLE_NAMES,
        st.sampled_from(NAMESPACES),
    ),
)
questions = st.one_of(
    st.fixed_dictionaries(
        {
            "verb": st.sampled_from(["get", "list", "create", "delete"]),
            "group": st.sampled_from(["", "apps"]),
            "resource": st.sampled_from(["pods", "deployments"]),
            "subresource": st.sampled_from(["", "log", "scale"]),
            "namespace": st.sampled_from(["", *NAMESPACES]),
            "name": st.sampled_from(NAMES),
        }
    ),
    st.fixed_dictionaries(
        {
            "verb": st.sampled_from(["get", "list"]),
            "path": st.sampled_from(["/metrics", "/logs", "/logs/a", "/xy", "/"]),
        }
    ),
)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(steps, max_size=14),
    st.lists(
        st.tuples(st.sampled_from(USERS), st.lists(st.sampled_from(TEAMS), max_size=2, unique=True), questions),
        min_size=1,
        max_size=12,
    ),
)
def test_after_any_changes_decisions_are_those_of_the_evaluation(changes: list[Any], asked: list[Any]) -> None:
    policy = Policy()
    current: dict[str, dict[tuple[str, str], Object]] = {
        "Role": {},
        "ClusterRole": {},
        "RoleBinding": {},
        "ClusterRoleBinding": {},
    }
    for change in [None, *changes]:
        if change is not None and len(change) == 3:
            kind, name, namespace = change
            place = ("" if kind.startswith("Cluster") else namespace, name)
            current[kind].pop(place, None)
            (policy.put_role if kind.endswith("Role") else policy.put_binding)(place, None)
        elif change is not None:
            kind, obj = change
            current[kind][obj["metadata"].get("namespace", ""), obj["metadata"]["name"]] = obj
            put(policy, kind, obj)
        objects = {kind: list(listed.values()) for kind, listed in current.items()}
        for name, groups, question in asked:
            decision = policy.decide(User(name, tuple(groups)), Attributes(**question))
            assert decision.allowed == allowed(objects, name, groups, question), (name, groups, question)


@pytest.mark.parametrize("scope", ["", "n", "m"])
def test_verbs_resources_and_scopes_one_by_one(scope: str) -> None:
    """The whole table for one set of roles, each cell decided twice."""
    chance = random.Random(7)
    objects: dict[str, list[Object]] = {
        "ClusterRole": [role(f"c{i}", *_random_rules(chance)) for i in range(6)],
        "Role": [role(f"r{i}", *_random_rules(chance), namespace=ns) for i, ns in product(range(4), NAMESPACES)],
        "ClusterRoleBinding": [
            binding(f"cb{i}", f"c{i}", user(f"u{i}"), {"kind": "Group", "name": f"g{i}"}) for i in range(3)
        ],
        "RoleBinding": [
            binding(f"rb{i}", of, user(f"u{i}"), namespace=ns, kind=kind)
            for ns in NAMESPACES
            for i, (of, kind) in enumerate([("r0", "Role"), ("r1", "Role"), ("c4", "ClusterRole"), ("r3", "Role")])
        ],
    }
    policy = policy_of(objects)
    verbs = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "impersonate"]
    cells = 0
    for who, team, verb, (group, kind), sub, name in product(
        ["u0", "u1", "u2", "u3", "u9"],
        [[], ["g1"]],
        verbs,
        [("", "pods"), ("", "nodes"), ("apps", "deployments"), ("batch", "jobs")],
        ["", "status", "log"],
        ["", "a", "b"],
    ):
        question = {
            "verb": verb,
            "group": group,
            "resource": kind,
            "subresource": sub,
            "namespace": scope,
            "name": name,
        }
        expected = allowed(objects, who, team, question)
        assert policy.decide(User(who, tuple(team)), Attributes(**question)).allowed == expected, (who, question)
        cells += expected
    assert cells > 100, "the table allows something"


def _random_rules(chance: random.Random) -> list[Object]:
    words = ["get", "list", "watch", "create", "update", "patch", "delete", "*"]
    made = []
    for _ in range(3):
        rule = about(
            " ".join(chance.sample(words, 3)),
            " ".join(chance.sample(["pods", "pods/status", "nodes", "deployments", "jobs", "*/log", "pods/log"], 3)),
        )
        rule["apiGroups"] = chance.sample(["", "apps", "batch"], 2)
        if chance.random() < 0.3:
            rule["resourceNames"] = ["a"]
        made.append(rule)
    return made


def test_namespaces_that_come_and_go_leave_no_verdicts() -> None:
    policy = policy_of(
        {
            "ClusterRole": [role("viewer", about("get", "pods"))],
            "ClusterRoleBinding": [binding("all", "viewer", user("alice"))],
            "RoleBinding": [binding("here", "viewer", user("bob"), namespace="n")],
        }
    )
    assert decide(policy, User("bob"), "get", "pods", namespace="n")[0]
    for number in range(50):
        assert decide(policy, ALICE, "get", "pods", namespace=f"space-{number}")[0]
        assert not decide(policy, User("bob"), "get", "pods", namespace=f"space-{number}")[0]
    assert len(policy._verdicts) == 3
    policy.put_binding(("n", "here"), None)
    assert not decide(policy, User("bob"), "get", "pods", namespace="n")[0]


@given(st.lists(st.integers(), min_size=2, max_size=2))
@settings(max_examples=100)
def test_what_is_uncovered_is_what_the_owned_rules_do_not_allow(seeds: list[int]) -> None:
    owned, wanted = (_random_rules(random.Random(seed)) for seed in seeds)
    policy = policy_of({"ClusterRole": [role("r", *owned)], "ClusterRoleBinding": [binding("b", "r", user("alice"))]})
    found = set(uncovered(map(Rule.of, owned), map(Rule.of, wanted)))
    for single in (each for rule in wanted for each in singles(Rule.of(rule))):
        verb, group, resource = single.verbs[0], single.api_groups[0], single.resources[0]
        if "*" in (verb, group) or resource.startswith("*"):
            continue  # a right to everything is no request that could be decided
        plural, _, part = resource.partition("/")
        named = single.resource_names[0] if single.resource_names else ""
        asked = Attributes(verb, group, "v1", plural, part, name=named)
        assert (single in found) != policy.decide(ALICE, asked).allowed


def words(letter: str, number: int) -> tuple[str, ...]:
    return tuple(f"{letter}{i}" for i in range(number))


def test_a_short_rule_with_very_many_combinations_is_not_taken_apart() -> None:
    billions = Rule(words("v", 1000), words("g", 1000), words("r", 1000))
    assert uncovered([Rule(("*",), ("*",), ("*",))], [billions]) == []
    assert uncovered([Rule(("*",), ("*",), words("r", 999))], [billions]) == [billions]
    assert uncovered([], [Rule(("get",), ("",), ("pods",)), billions]) == [Rule(("get",), ("",), ("pods",)), billions]
    assert len(texts([billions])) == 1
    # The same words again are no more rights.
    repeated = Rule(("get",) * 1000, ("",) * 1000, ("pods",) * 1000)
    assert uncovered([Rule(("get",), ("",), ("services", "pods"))], [repeated] * 1000) == []


def test_a_binding_of_very_many_combinations_takes_no_more_memory_than_its_words() -> None:
    many = {"verbs": ["get"], "apiGroups": list(words("g", 1000)), "resources": list(words("r", 1000))}
    policy = policy_of({"ClusterRole": [role("r", many)], "ClusterRoleBinding": [binding("b", "r", user("alice"))]})
    tracemalloc.start()
    try:
        assert decide(policy, ALICE, "get", "r7", group="g999")[0]
        assert not decide(policy, ALICE, "get", "r7", group="h")[0]
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
