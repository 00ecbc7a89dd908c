"""Whom the Impersonate headers make of a sender, and which rights that needs."""

from __future__ import annotations

import pytest

from seamark.api.authorization import ANONYMOUS, AUTHENTICATED, Attributes, Decision, GroupAuthorizer, User
from seamark.api.impersonation import NODE_OF_POD, Impersonation
from seamark.errors import BadRequest, Forbidden, Object

MASTER = User("root", ("system:masters", AUTHENTICATED))
ANN = User("ann", (AUTHENTICATED,))
GET_POD = Attributes("get", "", "v1", "pods", "", "ns", "p")


class Granting:
    """Allows exactly what it was given, as ``verb resource[/subresource] name``; remembers nothing else."""

    def __init__(self, *rights: str) -> None:
        self.rights = set(rights)

    def trusts(self, user: User) -> bool:
        return False

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        group = f".{attributes.group}" if attributes.group else ""
        part = f"/{attributes.subresource}" if attributes.subresource else ""
        what = attributes.path or f"{attributes.resource}{group}{part} {attributes.name}".strip()
        return Decision(f"{attributes.verb} {what}" in self.rights)

    def rules(self, user: User, namespace: str) -> Object:
        return {}


def acting(sender: User, rights: tuple[str, ...] | None = None, asked: Attributes = GET_POD, **headers: str) -> User:
    authorizer = GroupAuthorizer() if rights is None else Granting(*rights)
    named = {f"impersonate-{name.replace('_', '-')}": value for name, value in headers.items()}
    found = Impersonation(authorizer).acting(sender, named, asked)
    return sender if found is None else found.user


def refusal(sender: User, rights: tuple[str, ...], asked: Attributes = GET_POD, **headers: str) -> str:
    with pytest.raises(Forbidden) as refused:
        acting(sender, rights, asked, **headers)
    return refused.value.message


def test_an_admin_can_be_anybody() -> None:
    groups = ("readers, all", "writers", AUTHENTICATED)
    assert acting(MASTER, user="bob", group="readers, all\nwriters", uid="u") == User("bob", groups, "u")
    assert acting(MASTER, user=ANONYMOUS.name).groups == ANONYMOUS.groups
    account = acting(MASTER, user="system:serviceaccount:ns:robot")
    assert account.groups == ("system:serviceaccounts", "system:serviceaccounts:ns", AUTHENTICATED)
    assert acting(MASTER, user="system:node:a").groups == ("system:nodes", AUTHENTICATED)
    assert acting(MASTER, user="bob", group="system:masters").groups == ("system:masters", AUTHENTICATED)
    extra = acting(MASTER, user="bob", **{"extra_acme.com%2fproject": "p\nq", "extra_scopes": "s"}).extra
    assert extra == (("acme.com/project", ("p", "q")), ("scopes", ("s",)))


def test_headers_without_a_user_make_no_sense() -> None:
    with pytest.raises(
        BadRequest, match=r'Groups:\[\]string\{"g", "h"\}, Extra:map\[string\]\[\]string\(nil\)\} without'
    ):
        acting(MASTER, group="g\nh")
    assert acting(MASTER, user="") is MASTER


def test_legacy_rights_are_asked_for_each_thing_said() -> None:
    rights = (
        "impersonate users bob",
        "impersonate groups g",
        "impersonate uids.authentication.k8s.io 7",
        "impersonate userextras.authentication.k8s.io/scopes dev",
    )
    assert acting(ANN, rights, user="bob", group="g", uid="7", extra_scopes="dev").name == "bob"
    for left_out in rights:
        rest = tuple(right for right in rights if right != left_out)
        with pytest.raises(Forbidden):
            acting(ANN, rest, user="bob", group="g", uid="7", extra_scopes="dev")
    assert acting(ANN, ("impersonate serviceaccounts robot",), user="system:serviceaccount:ns:robot")


def test_constrained_rights_are_for_a_user_and_for_what_is_done() -> None:
    who, what = "impersonate:user-info users.authentication.k8s.io bob", "impersonate-on:user-info:get pods p"
    assert acting(ANN, (who, what), user="bob").groups == (AUTHENTICATED,)
    assert 'cannot impersonate:user-info resource "users" in API group "authentication.k8s.io"' in refusal(
        ANN, (what,), user="bob"
    )
    missing = 'pods "p" is forbidden: User "ann" cannot impersonate-on:user-info:get resource "pods" in API group "" '
    assert refusal(ANN, (who,), user="bob").startswith(missing)
    path = Attributes("get", path="/metrics")
    sentence = 'forbidden: User "ann" cannot impersonate-on:user-info:get path "/metrics"'
    assert refusal(ANN, (who,), path, user="bob") == sentence
    assert acting(ANN, (who, "impersonate-on:user-info:get /metrics"), path, user="bob")


def test_nobody_becomes_a_master_by_constrained_rights() -> None:
    rights = (
        "impersonate-on:user-info:get pods p",
        "impersonate:user-info users.authentication.k8s.io bob",
        "impersonate:user-info groups.authentication.k8s.io system:masters",
    )
    assert "the system:masters group is not allowed" in refusal(ANN, rights, user="bob", group="system:masters")


def test_a_service_account_may_be_its_own_node() -> None:
    rights = (
        "impersonate-on:associated-node:get pods p",
        "impersonate:associated-node nodes.authentication.k8s.io *",
    )
    agent = User("system:serviceaccount:ns:agent", (AUTHENTICATED,), extra=((NODE_OF_POD, ("a",)),))
    assert acting(agent, rights, user="system:node:a").groups == ("system:nodes", AUTHENTICATED)
    with pytest.raises(Forbidden):
        acting(agent, rights, user="system:node:b")
    with pytest.raises(Forbidden):
        acting(ANN, rights, user="system:node:a")
    any_node = ("impersonate-on:arbitrary-node:get pods p", "impersonate:arbitrary-node nodes.authentication.k8s.io b")
    assert acting(ANN, any_node, user="system:node:b")


def test_the_way_that_worked_last_says_why_not() -> None:
    impersonation = Impersonation(Granting("impersonate users bob"))
    classic = 'users "eve" is forbidden: User "ann" cannot impersonate resource "users" in API group "" at the cluster'
    with pytest.raises(Forbidden, match="impersonate-on:user-info"):
        impersonation.acting(ANN, {"impersonate-user": "eve"}, GET_POD)
    bob = impersonation.acting(ANN, {"impersonate-user": "bob"}, GET_POD)
    assert bob is not None
    assert (bob.user.name, bob.constraint) == ("bob", "")
    with pytest.raises(Forbidden) as refused:
        impersonation.acting(ANN, {"impersonate-user": "eve"}, GET_POD)
    assert refused.value.message.startswith(classic)
