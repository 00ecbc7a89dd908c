"""FlowSchemas: which level a request belongs to, the headers that say so, and who is exempt from waiting."""

from __future__ import annotations

from typing import Any

import pytest
from served import ADMIN, OTHER, Served, served

from seamark.api import bootstrap
from seamark.api.authorization import AUTHENTICATED, MASTERS, Attributes, User
from seamark.api.http.levels import Level
from seamark.kinds.resource import FLOW_SCHEMAS, PRIORITY_LEVELS

FLOWS = "/apis/flowcontrol.apiserver.k8s.io/v1"
UID = "x-kubernetes-pf-flowschema-uid"


async def names(api: Served) -> dict[str, str]:
    """The FlowSchemas by uid."""
    found = await api.get(f"{FLOWS}/flowschemas")
    return {each["metadata"]["uid"]: each["metadata"]["name"] for each in found["items"]}


async def told(api: Served, path: str, token: str, header: str = UID) -> str | None:
    return (await api.ask("GET", path, token=token)).header(header)


GET_POD = Attributes("get", "", "v1", "pods", "", "default", "p")
CASES = [
    (User("admin", (MASTERS, AUTHENTICATED)), GET_POD, "exempt"),
    (User("ann", (AUTHENTICATED,)), GET_POD, "global-default"),
    (User("ann", (AUTHENTICATED,)), Attributes("get", path="/healthz"), "probes"),
    (User("ann", (AUTHENTICATED,)), Attributes("get", path="/version"), "global-default"),
    (User("nobody"), GET_POD, ""),
    (User("system:node:a", ("system:nodes", AUTHENTICATED)), GET_POD, "system-nodes"),
    (
        User("system:node:a", ("system:nodes", AUTHENTICATED)),
        Attributes("patch", "", "v1", "nodes", "status", "", "a"),
        "system-node-high",
    ),
    (User("system:kube-scheduler", (AUTHENTICATED,)), GET_POD, "kube-scheduler"),
    (
        User("system:kube-scheduler", (AUTHENTICATED,)),
        Attributes("update", "coordination.k8s.io", "v1", "leases", "", "kube-system", "l"),
        "system-leader-election",
    ),
    (User("system:serviceaccount:kube-system:x", (AUTHENTICATED,)), GET_POD, "kube-system-service-accounts"),
    (
        User("system:serviceaccount:default:x", ("system:serviceaccounts", AUTHENTICATED)),
        GET_POD,
        "service-accounts",
    ),
]


@pytest.mark.parametrize(("user", "asked", "expected"), CASES)
async def test_the_first_schema_that_matches_counts(user: User, asked: Attributes, expected: str) -> None:
    async with served() as api:
        await bootstrap.make_priority_levels(api.api.cluster("apiserver"))
        found: Level = api.api._levels.of(user, asked)
        uids = [value for name, value in found.headers if name.lower() == UID]
        known = await names(api)
        assert [known[uid] for uid in uids] == ([expected] if expected else [])
        assert found.exempt == (expected in ("exempt", "probes"))


def schema(name: str, user: str, precedence: int, level: str) -> dict[str, Any]:
    rule = {
        "subjects": [{"kind": "User", "user": {"name": user}}],
        "resourceRules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["default"]}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["/version"]}],
    }
    spec = {"matchingPrecedence": precedence, "priorityLevelConfiguration": {"name": level}, "rules": [rule]}
    return {"metadata": {"name": name}, "spec": spec}


async def test_answers_name_their_schema_once_somebody_has_made_one() -> None:
    async with served() as api:
        await bootstrap.make_priority_levels(api.api.cluster("apiserver"))
        pod = "/api/v1/namespaces/default/pods/p"
        assert await told(api, pod, OTHER) is None
        made = await api.post(f"{FLOWS}/flowschemas", schema("mine", "other", 7, "workload-low"))
        assert await told(api, pod, OTHER) == made["metadata"]["uid"]
        level = await api.get(f"{FLOWS}/prioritylevelconfigurations/workload-low")
        assert await told(api, pod, OTHER, "x-kubernetes-pf-prioritylevel-uid") == level["metadata"]["uid"]
        assert await told(api, "/version", OTHER) == made["metadata"]["uid"]
        known = await names(api)
        assert known[await told(api, "/api/v1/pods", OTHER) or ""] == "global-default"
        assert known[await told(api, "/api/v1/pods", ADMIN) or ""] == "exempt"
        # A schema whose level does not exist catches nothing.
        await api.post(f"{FLOWS}/flowschemas", schema("dangling", "other", 5, "nowhere"))
        assert known[await told(api, pod, OTHER) or ""] == "mine"
        for name in ("mine", "dangling"):
            await api.delete(f"{FLOWS}/flowschemas/{name}")
        assert await told(api, pod, OTHER) is None


@pytest.mark.parametrize(("level", "expected"), [("never", 429), ("exempt", 201)])
async def test_without_a_seat_the_level_decides(level: str, expected: int) -> None:
    async with served(max_in_flight=0) as api:
        cluster = api.api.cluster("apiserver")
        reject = {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}
        await cluster.create(PRIORITY_LEVELS, {"metadata": {"name": "never"}, "spec": reject})
        await cluster.create(PRIORITY_LEVELS, {"metadata": {"name": "exempt"}, "spec": {"type": "Exempt"}})
        wanted = schema("all", "admin", 7, level)
        wanted["spec"]["rules"][0]["resourceRules"][0] |= {"verbs": ["*"], "resources": ["*"]}
        await cluster.create(FLOW_SCHEMAS, wanted)
        config_map = {"metadata": {"name": "c"}}
        assert (await api.ask("POST", "/api/v1/namespaces/default/configmaps", config_map)).status == expected
