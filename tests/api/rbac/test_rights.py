"""A server with RBAC: users do exactly what their roles say; escalation, nodes, reviews and the cluster's own roles."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from granting import CONFIG_MAPS, RBAC, Object, grant, rule
from served import ADMIN, OTHER, Served, served

from seamark.api.authentication import _of_certificate
from seamark.api.certificates import Authority
from seamark.api.http.wire.messages import Request
from seamark.api.rbac import components, roles
from seamark.api.rbac.keeping import make_roles, mended
from seamark.api.rbac.lines import AUTOUPDATE, binding, role
from seamark.errors import Forbidden
from seamark.kinds.resource import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONFIGMAPS,
    DEPLOYMENTS,
    EVENTS,
    NODES,
    REPLICA_SETS,
    SECRETS,
)
from seamark.store.opening import open_store

REVIEWS = "/apis/authorization.k8s.io/v1"


@asynccontextmanager
async def with_roles(**more: Any) -> AsyncIterator[Served]:
    async with served(rbac=True, **more) as api:
        await make_roles(api.api.cluster("apiserver"))
        yield api


@pytest.mark.parametrize("how", ["token", "certificate", "impersonation"])
async def test_a_user_with_a_role_does_exactly_what_it_allows(how: str, authority: Authority) -> None:
    async with with_roles() as api:
        more: Object = {"token": OTHER}
        if how == "impersonation":
            more = {"headers": {"impersonate-user": "other"}}
        elif how == "certificate":
            more = {"token": None}
        certificate = _certificate(authority, "other") if how == "certificate" else None

        async def status(method: str, path: str, body: Any = None) -> int:
            if certificate is None:
                return int((await api.ask(method, path, body, **more)).status)
            answer = api.api.application(Request(method, path, "", {}, b"", certificate=certificate))
            return int((answer if hasattr(answer, "status") else await answer).status)

        await api.post(CONFIG_MAPS, {"metadata": {"name": "c"}})
        assert await status("GET", f"{CONFIG_MAPS}/c") == 403
        await grant(api, "other", rule("get delete", "configmaps"))
        assert await status("GET", f"{CONFIG_MAPS}/c") == 200
        assert await status("GET", CONFIG_MAPS) == 403
        assert await status("GET", "/api/v1/namespaces/kube-system/configmaps/c") == 403
        assert await status("GET", "/api/v1/namespaces/default/secrets/c") == 403
        assert await status("GET", "/apis/apps/v1/namespaces/default/configmaps/c") == 403
        assert await status("DELETE", f"{CONFIG_MAPS}/c") == 200
        await api.delete(f"{RBAC}/namespaces/default/rolebindings/r")
        assert await status("GET", f"{CONFIG_MAPS}/c") == 403


def _certificate(authority: Authority, name: str) -> bytes:
    pem, _ = authority.client(name, [])
    der = ssl.PEM_cert_to_DER_cert(pem.decode())
    assert _of_certificate(der) is not None
    return der


IN_A, CLUSTER = 'in the namespace "a"', "at the cluster scope"


@pytest.mark.parametrize(
    ("method", "path", "subject", "doing", "where"),
    [
        ("GET", "/api/v1/namespaces/a/pods", "pods", 'list resource "pods" in API group ""', IN_A),
        ("GET", "/api/v1/namespaces/a", 'namespaces "a"', 'get resource "namespaces" in API group ""', IN_A),
        ("GET", "/api/v1/namespaces", "namespaces", 'list resource "namespaces" in API group ""', CLUSTER),
        (
            "PUT",
            "/api/v1/namespaces/a/finalize",
            'namespaces "a"',
            'update resource "namespaces/finalize" in API group ""',
            IN_A,
        ),
        ("GET", "/apis/x.y/v1/things", "things.x.y", 'list resource "things" in API group "x.y"', CLUSTER),
        (
            "GET",
            "/apis/x.y/v1/namespaces/a/things/t/part",
            'things.x.y "t"',
            'get resource "things/part" in API group "x.y"',
            IN_A,
        ),
        ("GET", "/api/v1/watch/pods", "pods", 'watch resource "pods" in API group ""', CLUSTER),
        ("GET", "/api/v1/watch/nosuch", "nosuch", 'watch resource "nosuch" in API group ""', CLUSTER),
        ("DELETE", "/api/v2/pods", "pods", 'deletecollection resource "pods" in API group ""', CLUSTER),
        (
            "GET",
            "/api/v1/pods?fieldSelector=metadata.name=p",
            'pods "p"',
            'list resource "pods" in API group ""',
            CLUSTER,
        ),
    ],
)
async def test_refusals_say_what_where(method: str, path: str, subject: str, doing: str, where: str) -> None:
    async with with_roles() as api:
        answer = await api.ask(method, path, token=OTHER)
        sentence = f'{subject} is forbidden: User "other" cannot {doing} {where}'
        assert (answer.status, answer.json["message"]) == (403, sentence)


@pytest.mark.parametrize(("method", "path"), [("GET", "/nothing"), ("POST", "/version"), ("GET", "/healthz/store")])
async def test_refusals_of_paths_name_the_method(method: str, path: str) -> None:
    async with with_roles() as api:
        answer = await api.ask(method, path, token=OTHER)
        sentence = f'forbidden: User "other" cannot {method.lower()} path "{path}"'
        assert (answer.status, answer.json["message"]) == (403, sentence)


async def test_what_everybody_may_see() -> None:
    async with with_roles() as api:
        for path, known, anonymous in [("/version", 200, 200), ("/readyz", 200, 200), ("/api", 200, 403)]:
            assert (await api.ask("GET", path, token=OTHER)).status == known
            assert (await api.ask("GET", path, token=None)).status == anonymous
        assert (await api.ask("GET", "/apis/nosuch", token=OTHER)).status == 404
        assert (await api.ask("GET", "/apis/nosuch/v1/things")).status == 404


async def test_rights_on_names_allow_lists_that_select_the_name() -> None:
    async with with_roles() as api:
        await grant(api, "other", rule("list watch", "configmaps", resourceNames=["mine"]))
        assert (await api.ask("GET", f"{CONFIG_MAPS}?fieldSelector=metadata.name%3Dmine", token=OTHER)).status == 200
        assert (await api.ask("GET", f"{CONFIG_MAPS}?fieldSelector=metadata.name%21%3Dmine", token=OTHER)).status == 403
        assert (await api.ask("GET", f"{CONFIG_MAPS}?fieldSelector=a%3D", token=OTHER)).status == 403


async def test_making_what_is_missing_needs_the_right_to_create_it() -> None:
    """By server-side apply of every kind, and by an update of those that an update may create."""
    async with with_roles() as api:
        await grant(api, "other", rule("update patch", "configmaps"), rule("update", "leases", "coordination.k8s.io"))
        config: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
        apply: Object = {"type": "application/apply-patch+yaml", "query": "fieldManager=x", "token": OTHER}
        answer = await api.ask("PATCH", f"{CONFIG_MAPS}/c", config, **apply)
        assert (answer.status, answer.json["message"]) == (403, 'configmaps "c" is forbidden: ')
        assert answer.json["details"] == {"name": "c", "kind": "configmaps"}
        lease = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l"
        answer = await api.ask("PUT", lease, {"metadata": {"name": "l"}}, token=OTHER)
        assert (answer.status, answer.json["message"]) == (403, 'leases.coordination.k8s.io "l" is forbidden: ')
        await api.post(CONFIG_MAPS, {"metadata": {"name": "c"}})
        assert (await api.ask("PATCH", f"{CONFIG_MAPS}/c", config, **apply)).status == 200
        await grant(api, "other", rule("create", "leases", "coordination.k8s.io"), name="more")
        assert (await api.ask("PUT", lease, {"metadata": {"name": "l"}}, token=OTHER)).status == 201


# --- escalation ---------------------------------------------------------------------------------------------


async def test_rights_that_one_does_not_have_cannot_be_given() -> None:
    async with with_roles() as api:
        place = f"{RBAC}/namespaces/default"
        await grant(api, "other", rule("*", "roles rolebindings", "rbac.authorization.k8s.io"), name="boss")
        await grant(api, "other", rule("get", "configmaps"), name="reader")
        # The verbs of "boss" include escalate and bind, so take these away.
        less = rule("create get update patch delete", "roles rolebindings", "rbac.authorization.k8s.io")
        await api.merge(f"{place}/roles/boss", {"rules": [less]})
        held = {"metadata": {"name": "x"}, "rules": [rule("get", "configmaps")]}
        assert (await api.ask("POST", f"{place}/roles", held, token=OTHER)).status == 201
        more = {"rules": [rule("get list", "configmaps"), rule("get", "secrets")]}
        answer = await api.ask("PATCH", f"{place}/roles/x", more, type="application/merge-patch+json", token=OTHER)
        assert answer.json["message"] == (
            'roles.rbac.authorization.k8s.io "x" is forbidden: user "other" (groups=["system:authenticated"]) is '
            "attempting to grant RBAC permissions not currently held:\n"
            '{APIGroups:[""], Resources:["configmaps"], Verbs:["list"]}\n'
            '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}'
        )
        # Finalizers may go without these rights, labels may not: they can put a role into an aggregated one.
        await api.post(f"{place}/roles", {"metadata": {"name": "z", "finalizers": ["a/b"]}, "rules": [rule("*", "*")]})
        merge = "application/merge-patch+json"
        path = f"{place}/roles/z"
        gone = {"metadata": {"finalizers": None}}
        assert (await api.ask("PATCH", path, gone, type=merge, token=OTHER)).status == 200
        labelled = {"metadata": {"labels": {"a": "b"}}}
        assert (await api.ask("PATCH", path, labelled, type=merge, token=OTHER)).status == 403


async def test_binding_needs_the_rights_of_the_role_or_the_verb_bind() -> None:
    async with with_roles() as api:
        await grant(api, "other", rule("create", "rolebindings", "rbac.authorization.k8s.io"))
        path = f"{RBAC}/namespaces/default/rolebindings"

        def binding(name: str, role: str) -> Object:
            return {"metadata": {"name": name}, "roleRef": {"kind": "ClusterRole", "name": role}}

        assert (await api.ask("POST", path, binding("a", "view"), token=OTHER)).status == 403
        answer = await api.ask("POST", path, binding("a", "absent"), token=OTHER)
        assert (answer.status, answer.json["message"]) == (
            404,
            'rolebindings.rbac.authorization.k8s.io "absent" not found',
        )
        bind = rule("bind", "clusterroles", "rbac.authorization.k8s.io", resourceNames=["view"])
        await grant(api, "other", bind, name="binder")
        assert (await api.ask("POST", path, binding("a", "view"), token=OTHER)).status == 201
        assert (await api.ask("POST", path, binding("b", "edit"), token=OTHER)).status == 403


# --- reviews ------------------------------------------------------------------------------------------------


async def test_reviews_tell_what_roles_allow() -> None:
    async with with_roles() as api:
        await grant(api, "other", rule("get", "configmaps"))
        asked = {"resourceAttributes": {"verb": "get", "resource": "configmaps", "namespace": "default"}}
        mine = await api.post(f"{REVIEWS}/selfsubjectaccessreviews", {"spec": asked}, token=OTHER)
        reason = 'RBAC: allowed by RoleBinding "r/default" of Role "r" to User "other"'
        assert mine["status"] == {"allowed": True, "reason": reason}
        rules = await api.post(f"{REVIEWS}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}}, token=OTHER)
        assert {"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]} in rules["status"]["resourceRules"]
        assert not rules["status"]["incomplete"]
        bad = {"metadata": {"name": "b"}, "roleRef": {"kind": "Role", "name": "gone"}}
        bad["subjects"] = [{"kind": "User", "name": "other"}]
        await api.post(f"{RBAC}/namespaces/default/rolebindings", bad)
        rules = await api.post(f"{REVIEWS}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}}, token=OTHER)
        assert rules["status"]["evaluationError"] == 'role.rbac.authorization.k8s.io "gone" not found'


# --- nodes --------------------------------------------------------------------------------------------------


async def test_a_node_reads_what_its_pods_use_and_writes_its_own_node() -> None:
    async with with_roles() as api:
        volumes = [{"name": "v", "secret": {"secretName": "used"}}, {"name": "w", "configMap": {"name": "c"}}]
        containers = [{"name": "c", "image": "i", "envFrom": [{"secretRef": {"name": "env"}}]}]
        spec = {"nodeName": "n", "containers": containers, "volumes": volumes, "serviceAccountName": "robot"}
        await api.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "robot"}})
        await api.post("/api/v1/namespaces/default/pods", {"metadata": {"name": "p"}, "spec": spec})
        for name in ("used", "env", "other"):
            await api.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": name}})
        for name in ("n", "m"):
            await api.post("/api/v1/nodes", {"metadata": {"name": name}})

        async def status(path: str, node: str = "n", method: str = "GET") -> tuple[int, str]:
            answer = await api.ask(method, path, headers={"impersonate-user": f"system:node:{node}"})
            return answer.status, answer.json.get("message", "").rpartition("node: ")[2]

        secrets = "/api/v1/namespaces/default/secrets"
        assert (await status(f"{secrets}/used"))[0] == 200
        assert (await status(f"{secrets}/env"))[0] == 200
        unrelated = "no relationship found between node '{}' and this object"
        assert await status(f"{secrets}/other") == (403, unrelated.format("n"))
        assert await status(f"{secrets}/used", "m") == (403, unrelated.format("m"))
        assert await status(secrets) == (403, "No Object name found")
        assert (await status("/api/v1/nodes/n"))[0] == 200
        assert await status("/api/v1/nodes/m") == (403, "node 'n' cannot read 'm', only its own Node object")
        assert (await status("/api/v1/services"))[0] == 200
        assert (await status("/apis/apps/v1/deployments"))[0] == 403
        leases = "/apis/coordination.k8s.io/v1/namespaces"
        assert (await status(f"{leases}/kube-node-lease/leases/n"))[0] == 404
        assert (await status(f"{leases}/default/leases/n"))[0] == 403
        assert (await status(f"{leases}/kube-node-lease/leases/m"))[0] == 403
        headers = {"impersonate-user": "system:node:n"}
        rules = await api.post(f"{REVIEWS}/selfsubjectrulesreviews", {"spec": {"namespace": "x"}}, headers=headers)
        assert rules["status"]["incomplete"]


# --- the cluster's own --------------------------------------------------------------------------------------


async def test_own_roles_are_mended_at_the_next_start() -> None:
    async with with_roles() as api:
        await api.merge(
            f"{RBAC}/clusterroles/system:discovery", {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/more"]}]}
        )
        await api.merge(f"{RBAC}/clusterrolebindings/system:discovery", {"subjects": None})
        await api.delete(f"{RBAC}/clusterroles/system:basic-user")
        off = {"metadata": {"annotations": {AUTOUPDATE: "false"}}, "rules": None}
        await api.merge(f"{RBAC}/clusterroles/system:monitoring", off)
        await api.delete(f"{RBAC}/clusterrolebindings/system:monitoring")
        wrong = {"metadata": {"name": "system:monitoring"}, "roleRef": {"kind": "ClusterRole", "name": "view"}}
        await api.post(f"{RBAC}/clusterrolebindings", wrong)
        await make_roles(api.api.cluster("apiserver"))
        assert (await api.get("/api", token=OTHER))["kind"] == "APIVersions"
        discovery = await api.get(f"{RBAC}/clusterroles/system:discovery")
        assert [rule["nonResourceURLs"][0] for rule in discovery["rules"]] == ["/more", "/api"]
        assert (await api.get(f"{RBAC}/clusterroles/system:basic-user"))["rules"]
        assert (await api.get(f"{RBAC}/clusterroles/system:monitoring"))["rules"] is None
        bound = await api.get(f"{RBAC}/clusterrolebindings/system:monitoring")
        assert bound["roleRef"]["name"] == "system:monitoring"
        version = api.api.cache.revision
        await make_roles(api.api.cluster("apiserver"))
        assert api.api.cache.revision == version, "nothing is written if nothing is missing"


async def test_roles_that_an_earlier_version_gave_to_its_parts_are_taken_away() -> None:
    async with with_roles() as api:
        cluster = api.api.cluster("apiserver")
        lines, subjects = "create | core | pods", ("ServiceAccount workload-controllers",)
        for name in ("seamark:kube-controller-manager", "seamark:kept", "other:old"):
            await cluster.create(CLUSTER_ROLES, role(name, lines, components.LABEL))
            await cluster.create(CLUSTER_ROLE_BINDINGS, binding(name, name, subjects, components.LABEL))
        keep = {"metadata": {"annotations": {AUTOUPDATE: "false"}}}
        for plural in ("clusterroles", "clusterrolebindings"):
            await api.merge(f"{RBAC}/{plural}/seamark:kept", keep)
        await api.post(f"{RBAC}/clusterroles", {"metadata": {"name": "seamark:of-a-user"}, "rules": []})
        before = {plural: await names_of(api, plural) for plural in ("clusterroles", "clusterrolebindings")}
        await make_roles(cluster)
        for plural, names in before.items():
            assert await names_of(api, plural) == names - {"seamark:kube-controller-manager"}


async def names_of(api: Served, plural: str) -> set[str]:
    return {each["metadata"]["name"] for each in (await api.get(f"{RBAC}/{plural}"))["items"]}


async def test_rights_are_those_of_the_store_after_a_restart(tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/store.db"
    async with with_roles(store=open_store(url)) as api:
        await grant(api, "other", rule("list", "configmaps"))
    async with served(rbac=True, store=open_store(url)) as api:
        assert (await api.ask("GET", CONFIG_MAPS, token=OTHER)).status == 200
        assert (await api.ask("GET", "/api/v1/configmaps", token=OTHER)).status == 403


def test_an_aggregated_role_gets_its_selectors_back() -> None:
    wanted = next(each for each in roles.cluster_roles() if each["metadata"]["name"] == "view")
    old = {
        "metadata": {"name": "view"},
        "rules": [],
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]},
    }
    selectors = mended(old, wanted)["aggregationRule"]["clusterRoleSelectors"]
    assert selectors == [{"matchLabels": {"a": "b"}}, *wanted["aggregationRule"]["clusterRoleSelectors"]]


# --- our own parts ------------------------------------------------------------------------------------------


async def test_a_part_of_this_process_may_not_do_what_its_role_does_not_say() -> None:
    async with with_roles() as api:
        events = api.api.cluster("event-expiry")
        with pytest.raises(Forbidden, match='User "system:serviceaccount:kube-system:event-expiry" cannot create'):
            await events.create(CONFIGMAPS, {"metadata": {"name": "x"}}, namespace="default")
        with pytest.raises(Forbidden, match='cannot get resource "secrets"'):
            await api.api.cluster("endpointslice-controller").get(SECRETS, "s", namespace="default")
        with pytest.raises(Forbidden, match='cannot patch resource "deployments"'):
            await api.api.cluster("nodes").patch(DEPLOYMENTS, "d", {}, namespace="default")
        await api.api.cluster("nodes").create(NODES, {"metadata": {"name": "n"}})
        assert (await api.api.cluster("informers").list(SECRETS)).items == []
        with pytest.raises(Forbidden):
            await api.api.cluster("informers").delete(NODES, "n")
        await api.api.cluster("apiserver").delete(NODES, "n")
        event = {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}}
        await api.api.cluster("nodes").create(EVENTS, event, namespace="default")
        await events.delete(EVENTS, "e", namespace="default")
        # Taking the binding away takes the rights away, as for every other user.
        await api.delete(f"{RBAC}/clusterrolebindings/seamark:nodes", token=ADMIN)
        with pytest.raises(Forbidden):
            await api.api.cluster("nodes").create(NODES, {"metadata": {"name": "n"}})


def test_a_part_without_rights_is_a_mistake_in_the_program() -> None:
    with pytest.raises(LookupError, match=r"seamark\.api\.rbac\.components"):
        components.user_of("nonesuch")
    assert components.user_of("job-controller").name == "system:serviceaccount:kube-system:job-controller"


@pytest.mark.parametrize(
    ("part", "manager"),
    [
        ("apiserver", "kube-apiserver"),
        ("job-controller", "kube-controller-manager"),
        ("nodes", "kubelet"),
        ("kubelets", "kubelet"),
    ],
)
def test_fields_are_managed_by_the_programs_of_a_cluster(part: str, manager: str) -> None:
    assert components.field_manager(part) == manager


@pytest.mark.parametrize(
    ("part", "account"),
    [
        ("deployment-controller", "deployment-controller"),
        ("replicaset-controller", "replicaset-controller"),
        ("daemonset-controller", "daemon-set-controller"),
        ("statefulset-controller", "statefulset-controller"),
        ("job-controller", "job-controller"),
        ("cronjob-controller", "cronjob-controller"),
        ("endpoint-controller", "endpoint-controller"),
        ("endpointslice-controller", "endpointslice-controller"),
    ],
)
async def test_a_controller_is_who_it_is_in_kubernetes_and_can_do_no_more(part: str, account: str) -> None:
    async with with_roles() as api:
        cluster = api.api.cluster(part)
        with pytest.raises(Forbidden, match=f'User "system:serviceaccount:kube-system:{account}" cannot create'):
            await cluster.create(CONFIGMAPS, {"metadata": {"name": "x"}}, namespace="default")
        if "endpoint" not in part and part not in ("deployment-controller", "cronjob-controller"):
            with pytest.raises(Forbidden, match='cannot create resource "replicasets"'):
                await cluster.create(REPLICA_SETS, {"metadata": {"name": "x"}}, namespace="default")


async def test_controllers_share_one_name_for_the_fields_they_manage() -> None:
    async with with_roles() as api:
        event = {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}}
        made = await api.api.cluster("daemonset-controller").create(EVENTS, event, namespace="default")
        assert [each["manager"] for each in made["metadata"]["managedFields"]] == ["kube-controller-manager"]
