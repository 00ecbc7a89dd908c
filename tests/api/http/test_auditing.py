"""Requests and answers as the audit log sees them."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import msgspec
import pytest
from served import ADMIN, OTHER, Served, served

from seamark.api.audit.log import AuditLog
from seamark.api.audit.policy import API_VERSION, Policy, Rule
from seamark.api.http.body import PROTOBUF
from seamark.api.http.fairness import LONG_LIST
from seamark.clock import SYSTEM_CLOCK
from seamark.haste import LARGE
from seamark.kinds.core.configmap import CONFIG_MAP
from seamark.kinds.language import protobuf_writing as protobuf
from seamark.kinds.language import yaml_body
from seamark.metrics import Registry

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
REFERENCE = {"resource": "configmaps", "namespace": "default", "apiVersion": "v1"}
RBAC = "/apis/rbac.authorization.k8s.io/v1"
BOB = {"impersonate-user": "bob"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "audit.log"


def log(file: Path, level: Any = "RequestResponse", **more: Any) -> AuditLog:
    rules = (Rule(level, omit_stages=("RequestReceived",), **more),)
    return AuditLog(file, policy=Policy(API_VERSION, "Policy", rules), clock=SYSTEM_CLOCK, metrics=Registry())


def last(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text().splitlines()[-1])


async def test_a_large_body_in_yaml_is_parsed_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []
    parse = yaml_body.read
    monkeypatch.setattr(yaml_body, "read", lambda body: (read.append(body), parse(body))[1])
    async with served(audit=log(file)) as api:
        text = "x" * LARGE
        body = f"metadata: {{name: c}}\ndata:\n  k: {text}\n".encode()
        for verb, path, type in (
            ("POST", CONFIGMAPS, "application/yaml"),
            ("PATCH", f"{CONFIGMAPS}/d?fieldManager=m", "application/apply-patch+yaml"),
        ):
            sent = body if verb == "POST" else b"apiVersion: v1\nkind: ConfigMap\n" + body.replace(b"c}", b"d}")
            answer = await api.ask(verb, path, sent, type=type)
            assert answer.status == 201
            assert read == [sent]
            assert last(file)["requestObject"]["data"] == {"k": text}
            read.clear()
        await api.ask("POST", CONFIGMAPS, b"metadata: [", type="application/yaml")
        assert (last(file)["responseStatus"]["code"], "requestObject" in last(file)) == (400, False)


@pytest.mark.parametrize("omitted", [False, True])
async def test_a_long_list_is_logged_as_it_is_sent(file: Path, omitted: bool) -> None:
    async with served(audit=log(file, omit_managed_fields=omitted)) as api:
        for number in range(3):
            await api.post(CONFIGMAPS, {"metadata": {"name": f"c{number}"}, "data": {"k": "x" * LONG_LIST}})
        answer = await api.ask("GET", CONFIGMAPS)
        items = last(file)["responseObject"]["items"]
        assert [item["data"] for item in items] == [item["data"] for item in msgspec.json.decode(answer.body)["items"]]
        assert {"managedFields" in item["metadata"] for item in items} == {not omitted}


@pytest.mark.parametrize("path", ["/api/v1/namespaces/default", "/api/v1/namespaces/none", "/api", "/nothing"])
async def test_an_answer_names_its_entry_in_the_log(file: Path, path: str) -> None:
    """By the client's own word for it, if it sends one."""
    async with served(audit=log(file)) as api:
        first = await api.ask("GET", path)
        second = await api.ask("GET", path, headers={"audit-id": "mine"})
    logged = [json.loads(line) for line in file.read_text().splitlines()]
    ids = [each["auditID"] for each in logged if each["stage"] == "ResponseComplete" and each["requestURI"] == path]
    assert ids == [first.header("Audit-Id"), "mine"]
    assert second.header("Audit-Id") == "mine"


@pytest.mark.parametrize(
    "path", ["/api/v1/namespaces/default", "/api/v1/namespaces/none", "/api", "/nothing", "/healthz"]
)
async def test_an_answer_that_is_not_logged_has_a_name_all_the_same(path: str) -> None:
    async with served() as api:
        first, second = await api.ask("GET", path), await api.ask("GET", path)
        assert uuid.UUID(first.header("Audit-Id")) != uuid.UUID(second.header("Audit-Id"))
        assert (await api.ask("GET", path, headers={"audit-id": "mine"})).header("Audit-Id") == "mine"


@pytest.mark.parametrize(("said", "kept"), [("x" * 70, "x" * 64), ("ä", None), ("a\tb", None), ("", None)])
async def test_a_name_that_no_header_can_have_is_replaced(said: str, kept: str | None) -> None:
    async with served() as api:
        found = (await api.ask("GET", "/healthz", headers={"audit-id": said})).header("Audit-Id")
        assert found == kept or (kept is None and uuid.UUID(found))


async def grant(api: Served, name: str, *, verbs: list[str], resources: list[str], group: str = "") -> None:
    """Give the user "other" a right everywhere."""
    rule = {"apiGroups": [group], "resources": resources, "verbs": verbs}
    await api.post(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": [rule]})
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "other"}]
    await api.post(f"{RBAC}/clusterrolebindings", {"metadata": {"name": name}, "roleRef": ref, "subjects": subjects})


async def test_who_acts_as_another_is_named_beside_them(file: Path) -> None:
    """Who really asked, as whom, and by which right: a log of the borrowed name alone would accuse the wrong one."""
    async with served(audit=log(file), rbac=True) as api:
        answer = await api.ask("GET", CONFIGMAPS, token=OTHER, headers=BOB)
        assert answer.status == 403
        refused = last(file)
        await grant(api, "legacy", verbs=["impersonate"], resources=["users"])
        await api.ask("GET", CONFIGMAPS, token=OTHER, headers=BOB)
        legacy = last(file)
        await api.ask("GET", "/metrics", token=ADMIN, headers=BOB)
        constrained = last(file)
    assert (refused["user"]["username"], "impersonatedUser" in refused) == ("other", False)
    assert "annotations" not in refused  # no authorizer was asked yet whether bob may
    assert (legacy["user"]["username"], legacy["impersonatedUser"]["username"]) == ("other", "bob")
    assert "authenticationMetadata" not in legacy
    assert legacy["annotations"]["authorization.k8s.io/decision"] == "forbid"
    assert (constrained["user"]["username"], constrained["impersonatedUser"]["username"]) == ("admin", "bob")
    assert constrained["authenticationMetadata"] == {"impersonationConstraint": "impersonate:user-info"}


async def test_the_policy_is_about_who_really_asks(file: Path) -> None:
    async with served(audit=log(file, users=("admin",))) as api:
        await api.ask("GET", CONFIGMAPS, headers=BOB)
        await api.ask("GET", CONFIGMAPS, token=OTHER)
    assert [json.loads(line)["user"]["username"] for line in file.read_text().splitlines()] == ["admin"]


async def test_the_decision_is_the_authorizers_and_says_by_which_binding(file: Path) -> None:
    async with served(audit=log(file), rbac=True) as api:
        await grant(api, "making", verbs=["create"], resources=["pods"])
        await api.merge(
            "/api/v1/namespaces/default", {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}}
        )
        spec = {"hostNetwork": True, "containers": [{"name": "c", "image": "i"}]}
        pod = {"metadata": {"name": "p"}, "spec": spec}
        answer = await api.ask("POST", "/api/v1/namespaces/default/pods", pod, token=OTHER)
        assert answer.status == 403, answer  # by admission, which is asked after the authorizer has allowed it
    found = last(file)
    assert found["responseStatus"]["reason"] == "Forbidden"
    noted = found["annotations"]
    assert noted["authorization.k8s.io/decision"] == "allow"
    assert noted["authorization.k8s.io/reason"] == (
        'RBAC: allowed by ClusterRoleBinding "making" of ClusterRole "making" to User "other"'
    )


async def test_what_is_created_or_replaced_is_named_at_every_level(file: Path) -> None:
    async with served(audit=log(file, level="Metadata")) as api:
        made = await api.post(CONFIGMAPS, {"metadata": {"name": "a"}})
        assert last(file)["objectRef"] == {**REFERENCE, "name": "a"}
        await api.ask("POST", CONFIGMAPS, b"metadata: {name: b}", type="application/yaml")
        assert last(file)["objectRef"] == {**REFERENCE, "name": "b"}
        await api.post(CONFIGMAPS, {"metadata": {"generateName": "c"}})
        assert last(file)["objectRef"] == REFERENCE  # as it was sent
        meta = made["metadata"]
        await api.put(f"{CONFIGMAPS}/a", made)
        sent = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
        assert last(file)["objectRef"] == {**REFERENCE, "name": "a", **sent}
        for odd in ({"metadata": {"name": 1}}, {"metadata": []}, []):
            await api.ask("POST", CONFIGMAPS, odd)
            assert last(file)["objectRef"] == REFERENCE
        await api.ask("GET", f"{CONFIGMAPS}?fieldSelector=metadata.name=a")
        assert last(file)["objectRef"] == {**REFERENCE, "name": "a"}


async def test_rows_of_a_table_have_no_managed_fields_either(file: Path) -> None:
    async with served(audit=log(file, omit_managed_fields=True)) as api:
        await api.post(CONFIGMAPS, {"metadata": {"name": "a"}})
        accept = {"accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
        await api.ask("GET", f"{CONFIGMAPS}?includeObject=Object", headers=accept)
    rows = last(file)["responseObject"]["rows"]
    assert [(row["object"]["metadata"]["name"], "managedFields" in row["object"]["metadata"]) for row in rows] == [
        ("a", False)
    ]


async def test_a_long_user_agent_is_cut(file: Path) -> None:
    async with served(audit=log(file)) as api:
        await api.ask("GET", "/version", headers={"user-agent": "x" * 5000})
    assert last(file)["userAgent"] == "x" * 1024 + "...TRUNCATED"


async def test_contents_in_protobuf_are_logged_as_json(file: Path) -> None:
    """As kubectl and most clients in Go send and want them."""
    both = {"type": PROTOBUF, "headers": {"accept": f"{PROTOBUF},application/json"}}
    sent = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "data": {"k": "v"}}
    message = protobuf.envelope("v1", "ConfigMap", protobuf.write(sent, CONFIG_MAP.shape))
    async with served(audit=log(file)) as api:
        answer = await api.ask("POST", CONFIGMAPS, message, **both)
        assert (answer.status, answer.type) == (201, PROTOBUF)
        created = last(file)
        await api.ask("POST", CONFIGMAPS, message, **both)
        refused = last(file)
        await api.ask("GET", CONFIGMAPS, headers=both["headers"])
        listed = last(file)
    asked, made = created["requestObject"], created["responseObject"]
    assert (asked["metadata"], asked["data"]) == ({"name": "a"}, {"k": "v"})  # as it came, before it was filled in
    assert (made["kind"], made["data"], "uid" in made["metadata"]) == ("ConfigMap", {"k": "v"}, True)
    assert refused["responseStatus"]["message"] == 'configmaps "a" already exists'
    assert refused["responseObject"]["reason"] == "AlreadyExists"
    assert [item["metadata"]["name"] for item in listed["responseObject"]["items"]] == ["a"]
