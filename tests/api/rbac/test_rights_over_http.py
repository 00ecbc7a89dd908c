"""Random roles, bindings and requests through the whole request path, decided by the independent evaluation too.

Senders come with tokens, certificates and none of these, and act as others.  They write roles and bindings themselves:
a way to more rights than one has would be found.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from typing import Any
from urllib.parse import urlencode

import pytest
from evaluation import acting, allowed, gathered, may_write, question_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from own_cluster import managed
from served import ADMIN, TOKENS, Served, served

from seamark.access.informers import Informers
from seamark.api.authorization import User
from seamark.api.certificates import Authority
from seamark.api.http.wire.messages import Request, Response, Streaming
from seamark.controllers.housekeeping.role_aggregation import RoleAggregation
from seamark.runtime.manager import Manager
from turns import drained

Object = dict[str, Any]

RBAC = "/apis/rbac.authorization.k8s.io/v1"
PLURALS = {
    "Role": "roles",
    "ClusterRole": "clusterroles",
    "RoleBinding": "rolebindings",
    "ClusterRoleBinding": "clusterrolebindings",
}
# Who sends requests: name and groups; how they prove it is in Fuzz.credentials.
KNOWN = "system:authenticated"
ACCOUNTS = ["system:serviceaccounts", "system:serviceaccounts:n", KNOWN]
SENDERS: dict[str, list[str]] = {
    "alice": ["devs", KNOWN],
    "bob": [KNOWN],
    "carol": ["devs", KNOWN],
    "system:serviceaccount:n:bot": ACCOUNTS,
    "system:anonymous": ["system:unauthenticated"],
}
TEAMS = ["devs", "ops", KNOWN, "system:unauthenticated", "system:serviceaccounts"]

# --- what is made ---------------------------------------------------------------------------------------------


def some(*words: str, most: int = 2) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(words), min_size=1, max_size=most, unique=True)


VERBS = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "*"]
ACTING = ["impersonate", "impersonate:user-info", "impersonate:serviceaccount", "impersonate-on:user-info:get"]
RESOURCES = ["configmaps", "leases", "deployments/scale", "deployments", "*/status", "*/eviction", "namespaces", "*"]
NAMES = ["a", "b"]
rules = st.one_of(
    st.fixed_dictionaries(
        {
            "verbs": some(*VERBS, most=6),
            "apiGroups": some("", "apps", "coordination.k8s.io", "*", most=3),
            "resources": some(*RESOURCES, most=4),
        },
        optional={"resourceNames": some(*NAMES)},
    ),
    st.fixed_dictionaries(
        {
            "verbs": some(*ACTING, "*", most=3),
            "apiGroups": some("", "authentication.k8s.io", "*"),
            "resources": some("users", "groups", "serviceaccounts", "uids", "userextras/example.com/a", "*", most=3),
        },
        optional={"resourceNames": some("bob", "ops", "bot", "7")},
    ),
    st.fixed_dictionaries(
        {
            "verbs": some("create", "update", "escalate", "bind", "*"),
            "apiGroups": st.just(["rbac.authorization.k8s.io"]),
            "resources": some(*PLURALS.values(), "*", most=4),
        }
    ),
)
urls = st.fixed_dictionaries(
    {"verbs": some("get", "post", "*"), "nonResourceURLs": some("/metrics", "/api*", "/x/*", "*")}
)
subjects = st.one_of(
    st.builds(lambda name: {"kind": "User", "name": name}, st.sampled_from(list(SENDERS))),
    *[st.builds(lambda name: {"kind": "Group", "name": name}, st.sampled_from(TEAMS))] * 2,
    st.just({"kind": "ServiceAccount", "name": "bot", "namespace": "n"}),
)
role_names, places = st.sampled_from(["r", "s", "t"]), st.sampled_from(["n", "m"])
labels = st.sampled_from([{}, {"to": "r"}, {"to": "s"}])


@st.composite
def objects_of_rbac(draw: st.DrawFn, kind: str = "", name: str = "", place: str = "") -> tuple[str, Object]:
    kind = kind or draw(st.sampled_from(list(PLURALS)))
    meta: Object = {"name": name or draw(role_names)}
    if not kind.startswith("Cluster"):
        meta["namespace"] = place or draw(places)
    if kind.endswith("Binding"):
        of = "ClusterRole" if kind == "ClusterRoleBinding" else draw(st.sampled_from(["Role", "ClusterRole"]))
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": of, "name": draw(role_names)}
        return kind, {"metadata": meta, "roleRef": ref, "subjects": draw(st.lists(subjects, min_size=1, max_size=3))}
    made: Object = {"metadata": meta, "rules": draw(st.lists(rules, min_size=1, max_size=3))}
    if kind == "ClusterRole":
        made["rules"] += draw(st.lists(urls, max_size=1))
        meta["labels"] = draw(labels)
        if draw(st.sampled_from([False, False, True])):
            made["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {"to": meta["name"]}}]}
    return kind, made


IN_N = "/api/v1/namespaces/n/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/n/leases"
DEPLOYMENTS = "/apis/apps/v1/namespaces/m/deployments"
# Method, path, and what is sent.  Objects called "a" are there, those called "b" are not.
REQUESTS: list[tuple[str, str, Object | None]] = [
    *(("GET", path, None) for path in ["/metrics", "/api", "/apis/apps", "/x/y", "/version", "/api/v1", "/"]),
    *(("GET", f"{IN_N}{name}", None) for name in ["", "/a", "/b"]),
    *(("GET", path, None) for path in ["/api/v1/configmaps", "/api/v1/namespaces/m/configmaps/a", "/api/v1/nodes"]),
    *(("GET", path, None) for path in ["/api/v1/watch/namespaces/n/configmaps", "/api/v1/namespaces/n/things/a"]),
    *(("GET", path, None) for path in ["/api/v1/namespaces/n", "/api/v1/namespaces/n/status", "/api/v1/namespaces"]),
    *(("GET", path, None) for path in [f"{DEPLOYMENTS}/a", f"{DEPLOYMENTS}/a/scale", f"{DEPLOYMENTS}/a/status"]),
    *(("GET", path, None) for path in [LEASES, f"{LEASES}/a", "/apis/none.example/v1/things/a", "/apis/apps/v1/nodes"]),
    ("POST", IN_N, {"metadata": {"name": "b"}}),
    ("POST", "/api/v1/namespaces/n/serviceaccounts/bot/token", {"spec": {}}),
    ("POST", "/api/v1/namespaces/n/pods/a/eviction", {"metadata": {"name": "a"}}),
    ("PUT", f"{IN_N}/a", {"metadata": {"name": "a"}}),
    ("PUT", f"{IN_N}/b", {"metadata": {"name": "b"}}),
    ("PUT", f"{LEASES}/b", {"metadata": {"name": "b"}}),
    ("PATCH", f"{IN_N}/a", {"data": {"c": "d"}}),
    ("PATCH", f"{DEPLOYMENTS}/a/scale", {"spec": {"replicas": 2}}),
    ("APPLY", f"{IN_N}/a", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}),
    ("APPLY", f"{IN_N}/b", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}),
    ("DELETE", f"{IN_N}/a", None),
    ("DELETE", IN_N, None),
]
queries = st.sampled_from([{}, {}, {"fieldSelector": "metadata.name=a"}, {"watch": "true"}])
others = st.fixed_dictionaries(
    {
        "user": st.sampled_from(["bob", "dave", "system:serviceaccount:n:bot"]),
        "groups": st.one_of(st.just([]), some("ops", "devs", "system:masters")),
        "uid": st.sampled_from(["", "", "7"]),
        "extra": st.sampled_from([{}, {}, {"example.com/a": "1"}]),
    }
)
senders = st.sampled_from(list(SENDERS))
as_others = st.one_of(st.none(), st.none(), others)
asks = st.tuples(st.just("asks"), senders, as_others, queries)  # each for everything in the list
steps = st.one_of(
    st.tuples(st.just("admin writes"), objects_of_rbac()),
    st.tuples(st.just("writes"), senders, as_others, objects_of_rbac()),
    asks,
    asks,
)


# What there is at the beginning: without roles for most users, nearly everything would be refused.
beginnings = st.tuples(
    *(objects_of_rbac(kind, name) for kind in ("ClusterRole", "ClusterRoleBinding") for name in ("r", "s", "t")),
    *(objects_of_rbac(kind, name, "n") for kind in ("Role", "RoleBinding") for name in ("r", "s")),
)


class Fuzz:
    """A server, the controller that gathers roles, and what the last steps have made."""

    def __init__(self, api: Served, manager: Manager, certificate: bytes) -> None:
        self._api = api
        self._manager = manager
        self._certificate = certificate
        self._token = ""
        self.objects: dict[str, list[Object]] = {kind: [] for kind in PLURALS}

    async def prepare(self) -> None:
        for name in "nm":
            await self._api.post("/api/v1/namespaces", {"metadata": {"name": name}})
        await self._api.post("/api/v1/namespaces/n/serviceaccounts", {"metadata": {"name": "bot"}})
        made = await self._api.post("/api/v1/namespaces/n/serviceaccounts/bot/token", {"spec": {}})
        self._token = made["status"]["token"]
        await self._api.post(IN_N, {"metadata": {"name": "a"}})
        await self._api.post(LEASES, {"metadata": {"name": "a"}})
        pods = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": pods}
        await self._api.post(DEPLOYMENTS, {"metadata": {"name": "a"}, "spec": spec})

    async def status(self, sender: str, wanted: Object | None, method: str, path: str, body: Any, query: Object) -> int:
        """Send a request, and do nothing that lasts unless it writes roles or bindings."""
        headers = {"content-type": "application/json"}
        if method == "PATCH":
            headers["content-type"] = "application/merge-patch+json"
        if method == "APPLY":
            method, headers["content-type"] = "PATCH", "application/apply-patch+yaml"
            query = {**query, "fieldManager": "x"}
        if sender in TOKENS_OF:
            headers["authorization"] = f"Bearer {TOKENS_OF[sender]}"
        elif sender.startswith("system:serviceaccount:"):
            headers["authorization"] = f"Bearer {self._token}"
        if wanted is not None:
            headers["impersonate-user"] = wanted["user"]
            if wanted["groups"]:
                headers["impersonate-group"] = "\n".join(wanted["groups"])
            if wanted["uid"]:
                headers["impersonate-uid"] = wanted["uid"]
            headers |= {f"impersonate-extra-{key.replace('/', '%2f')}": value for key, value in wanted["extra"].items()}
        sent = b"" if body is None else json.dumps(body).encode()
        certificate = self._certificate if sender == "carol" else None
        request = Request(method, path, urlencode(query), headers, sent, certificate=certificate)
        # As over a socket: the head is looked at first, and may be refused before the body has come.
        answer: Any = self._api.api.application.admit(request) or self._api.api.application(request)
        if not isinstance(answer, Response | Streaming):
            answer = await answer
        return int(answer.status)

    async def look(self) -> None:
        """Take in what is stored, once the gathering of roles has come to rest."""
        quiet, revision = 0, -1
        while quiet < 2:
            await drained(self._api.store)  # type: ignore[arg-type]
            idle = self._manager.idle and revision == self._api.api.cache.revision
            quiet, revision = quiet + 1 if idle else 0, self._api.api.cache.revision
        self.objects = {kind: (await self._api.get(f"{RBAC}/{plural}"))["items"] for kind, plural in PLURALS.items()}
        stored = json.dumps(self.objects["ClusterRole"])
        gathered(self.objects["ClusterRole"])
        assert _allowing(json.loads(stored)) == _allowing(self.objects["ClusterRole"]), "roles are gathered"

    async def write(self, kind: str, obj: Object, sender: str, wanted: Object | None) -> int:
        place = f"{RBAC}/namespaces/{obj['metadata']['namespace']}" if "namespace" in obj["metadata"] else RBAC
        if sender == ADMIN:
            # The next version of the object, whatever it was.
            await self._api.ask("DELETE", f"{place}/{PLURALS[kind]}/{obj['metadata']['name']}")
            return (await self._api.ask("POST", f"{place}/{PLURALS[kind]}", obj)).status
        return await self.status(sender, wanted, "POST", f"{place}/{PLURALS[kind]}", obj, {"dryRun": "All"})

    def expected(self, sender: str, wanted: Object | None, asked: Object) -> tuple[bool, str, list[str]]:
        """Whether the evaluation allows it, and as whom the sender acts."""
        name, groups = sender, SENDERS[sender]
        if wanted is not None:
            acts = acting(self.objects, sender, groups, wanted, asked)
            if acts is None:
                return False, name, groups
            name, groups = wanted["user"], acts
        return allowed(self.objects, name, groups, asked), name, groups

    async def step(self, step: Any) -> None:
        if step[0] == "admin writes":
            kind, obj = step[1]
            assert await self.write(kind, obj, ADMIN, None) == 201
            await self.look()
        elif step[0] == "writes":
            _, sender, wanted, (kind, obj) = step
            asked = {"verb": "create", "group": "rbac.authorization.k8s.io", "resource": PLURALS[kind]}
            asked["namespace"] = obj["metadata"].get("namespace", "")
            may, name, groups = self.expected(sender, wanted, asked)
            may = may and may_write(self.objects, name, groups, kind, obj)
            if obj.get("aggregationRule"):
                return  # the evaluation does not know who may do that
            found = await self.write(kind, obj, sender, wanted)
            assert (found not in (403, 404)) == may, (found, step, self.objects)
        else:
            _, sender, wanted, query = step
            for method, path, body in REQUESTS:
                await self.ask(sender, wanted, method, path, body, query)

    async def ask(
        self, sender: str, wanted: Object | None, method: str, path: str, body: Object | None, query: Object
    ) -> None:
        query = query if method in ("GET", "DELETE") else {}
        if method != "GET":
            query = {**query, "dryRun": "All"}
        asked = question_of("PATCH" if method == "APPLY" else method, path, query)
        may, name, groups = self.expected(sender, wanted, asked)
        if (method, path) in (("APPLY", f"{IN_N}/b"), ("PUT", f"{LEASES}/b")):
            # The object is not there, so it would be made.
            may = may and allowed(self.objects, name, groups, {**asked, "verb": "create"})
        found = await self.status(sender, wanted, method, path, body, query)
        assert (found != 403) == may, (found, sender, wanted, asked, self.objects)


TOKENS_OF = {"alice": "alice-token", "bob": "bob-token"}


def _allowing(roles: list[Object]) -> dict[str, set[str]]:
    """The rules of each role as a set: in which order an aggregated role has them does not matter."""
    return {
        role["metadata"]["name"]: {json.dumps(rule, sort_keys=True) for rule in role.get("rules") or []}
        for role in roles
    }


@pytest.fixture(scope="module")
def certificate(authority: Authority) -> bytes:
    pem, _ = authority.client("carol", ["devs"])
    return ssl.PEM_cert_to_DER_cert(pem.decode())


def play(beginning: tuple[Any, ...], steps: list[Any], certificate: bytes) -> None:
    async def main() -> None:
        users = {token: User(name, tuple(SENDERS[name])) for name, token in TOKENS_OF.items()}
        async with served(rbac=True, tokens={**TOKENS, **users}) as api:
            trusted = api.api.cluster("apiserver")
            manager = Manager(Informers(trusted))
            manager.add(RoleAggregation(manager, trusted))
            async with managed(manager):
                fuzz = Fuzz(api, manager, certificate)
                await fuzz.prepare()
                for kind, obj in beginning:
                    assert await fuzz.write(kind, obj, ADMIN, None) == 201
                await fuzz.look()
                for step in steps:
                    await fuzz.step(step)

    asyncio.run(main())


@settings(max_examples=20, derandomize=True, suppress_health_check=list(HealthCheck))
@given(beginning=beginnings, steps=st.lists(steps, min_size=8, max_size=30))
def test_no_request_is_decided_otherwise_than_by_the_evaluation(
    beginning: tuple[Any, ...], steps: list[Any], certificate: bytes
) -> None:
    play(beginning, steps, certificate)


@pytest.mark.soak
@settings(max_examples=10_000, suppress_health_check=list(HealthCheck))
@given(beginning=beginnings, steps=st.lists(steps, min_size=20, max_size=120))
def test_no_request_of_many_is_decided_otherwise(
    beginning: tuple[Any, ...], steps: list[Any], certificate: bytes
) -> None:
    play(beginning, steps, certificate)
