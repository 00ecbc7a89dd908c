"""Creating and changing: names, versions, preconditions, and many writers of one object."""

import asyncio
import uuid

import pytest

from seamark.api.write.values import new_uid
from seamark.store.sqlite.engine import SqliteStore

BASE = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
MERGE = "application/merge-patch+json"
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
DEPLOYMENT = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}}


def configmap(name="cm", **meta):
    return {"metadata": {"name": name, **meta}}


def test_uids_are_random_uuids():
    made = {new_uid() for _ in range(500)}
    assert len(made) == 500
    for text in made:
        assert (str(uuid.UUID(text)), uuid.UUID(text).version) == (text, 4)
        assert uuid.UUID(text).variant == uuid.RFC_4122


async def test_generated_names(api):
    long = await api.post(BASE, {"metadata": {"generateName": "x" * 80 + "-"}})
    assert len(long["metadata"]["name"]) == 63
    assert long["metadata"]["name"].startswith("x" * 58)
    made = await asyncio.gather(*(api.post(BASE, {"metadata": {"generateName": "a-"}}) for _ in range(50)))
    assert len({m["metadata"]["name"] for m in made}) == 50


async def test_a_generated_name_that_is_taken_is_tried_again_and_given_up(api):
    suffixes = iter(["aaaaa", "bbbbb", *["ccccc"] * 9])
    api.api.operations._creations._suffix = lambda: next(suffixes)
    await api.post(BASE, configmap("x-aaaaa"))
    await api.post(BASE, configmap("x-ccccc"))
    assert (await api.post(BASE, {"metadata": {"generateName": "x-"}}))["metadata"]["name"] == "x-bbbbb"
    answer = await api.ask("POST", BASE, {"metadata": {"generateName": "x-"}})
    assert (answer.status, answer.json["reason"], answer.header("Retry-After")) == (409, "AlreadyExists", "1")
    assert answer.json["message"].endswith("the server was not able to generate a unique name for the object")


async def test_an_address_is_its_own_name_even_where_one_is_to_be_generated(api, monkeypatch):
    path = "/apis/networking.k8s.io/v1/ipaddresses"
    parent = {"resource": "services", "namespace": "default", "name": "web"}
    given = {"metadata": {"generateName": "192.0.2.7"}, "spec": {"parentRef": parent}}
    assert (await api.post(path, given))["metadata"]["name"] == "192.0.2.7"
    tries = []
    commit = SqliteStore.commit

    def counted(self, writes):
        tries.append(writes)
        return commit(self, writes)

    monkeypatch.setattr(SqliteStore, "commit", counted)
    answer = await api.ask("POST", path, given)
    assert (answer.status, answer.json["reason"]) == (409, "AlreadyExists")
    assert len(tries) == 1, "the same name is not tried again"


async def test_what_exists_cannot_be_created(api):
    await api.post(BASE, configmap(finalizers=["x/y"]))
    for query in ("", "dryRun=All"):
        answer = await api.ask("POST", BASE, configmap(), query=query)
        assert (answer.status, answer.json["message"]) == (409, 'configmaps "cm" already exists')
    await api.delete(f"{BASE}/cm")
    answer = await api.ask("POST", BASE, configmap())
    assert answer.json["message"] == 'object is being deleted: configmaps "cm" already exists'


async def test_what_nobody_may_set_is_the_servers(api):
    meta = {"uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z", "deletionTimestamp": "2001-01-01T00:00:00Z"}
    made = await api.post(BASE, configmap(**meta, selfLink="/x", deletionGracePeriodSeconds=5))
    assert made["metadata"]["uid"] != "mine"
    assert not {"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"} & set(made["metadata"])
    changed = await api.put(f"{BASE}/cm", configmap(creationTimestamp="2001-01-01T00:00:00Z", labels={"a": "b"}))
    assert changed["metadata"]["creationTimestamp"] == made["metadata"]["creationTimestamp"]


async def test_many_writers_of_one_object(api):
    await api.post(BASE, configmap())
    answers = await asyncio.gather(
        *(api.ask("PATCH", f"{BASE}/cm", {"data": {f"k{n}": "v"}}, type=MERGE) for n in range(100))
    )
    assert {answer.status for answer in answers} == {200}
    assert len((await api.get(f"{BASE}/cm"))["data"]) == 100
    assert api.api.operations._changes._turns._lines == {}


async def test_only_one_of_many_with_the_same_version_wins(api):
    made = await api.post(BASE, configmap())
    version = made["metadata"]["resourceVersion"]
    bodies = [{**configmap(resourceVersion=version), "data": {"k": str(n)}} for n in range(20)]
    statuses = [a.status for a in await asyncio.gather(*(api.ask("PUT", f"{BASE}/cm", body) for body in bodies))]
    assert sorted(statuses) == [200] + [409] * 19


@pytest.mark.parametrize(
    ("meta", "status"),
    [
        ({}, 200),
        ({"resourceVersion": "0"}, 200),
        ({"resourceVersion": "1"}, 409),
        ({"resourceVersion": "x"}, 500),
        ({"uid": "x"}, 409),
    ],
)
async def test_preconditions_of_a_put(api, meta, status):
    await api.post(BASE, configmap())
    assert (await api.ask("PUT", f"{BASE}/cm", configmap(**meta))).status == status


async def test_a_write_meant_for_one_that_is_gone(api):
    for path, body in ((BASE, configmap(uid="gone")), ("/api/v1/namespaces/default/endpoints", configmap(uid="gone"))):
        answer = await api.ask("PUT", f"{path}/cm", body)
        assert (answer.status, answer.json["reason"]) == (409, "Conflict")
        assert answer.json["message"].endswith("UID in precondition: gone, UID in object meta: ")
    applied = {"apiVersion": "v1", "kind": "ConfigMap", **configmap(uid="gone")}
    answer = await api.ask("PATCH", f"{BASE}/cm?fieldManager=me", applied, type="application/apply-patch+yaml")
    assert (answer.status, "uid mismatch" in answer.json["message"]) == (409, True)
    assert (await api.ask("GET", f"{BASE}/cm")).status == 404


@pytest.mark.parametrize("type", [MERGE, "application/apply-patch+yaml"])
async def test_no_patch_makes_an_object_another(api, type):
    await api.post(BASE, configmap())
    body = {"apiVersion": "v1", "kind": "ConfigMap", **configmap(uid="other")}
    query = "fieldManager=me" if "apply" in type else ""
    answer = await api.ask("PATCH", f"{BASE}/cm", body, type=type, query=query)
    assert answer.status == 422
    assert answer.json["details"]["causes"][0]["field"] == "metadata.uid"


ORDERED = {"$setElementOrder/containers": [{"name": "c"}], "containers": [{"name": "c", "odd": 1}]}


@pytest.mark.parametrize(
    ("document", "value", "words"),
    [
        ({"metadata": {"labels": "x"}}, "map[metadata:map[labels:x]]", "cannot restore map from string"),
        ({"spec": "x"}, "map[spec:x]", "cannot restore struct from: string"),
        ({"spec": {"template": {"spec": {"volumes": True}}}}, None, "cannot restore slice from bool"),
        ({"spec": {"replicas": "2"}}, "map[spec:map[replicas:2]]", "unrecognized type: int32"),
        ({"spec": {"replicas": 2.5}}, "map[spec:map[replicas:2.5]]", "cannot convert float64 to int32"),
        ({"metadata": {"labels": {"a": 1}}}, None, "cannot convert int64 to string"),
        ({"metadata": {"labels": {"a": True}}}, None, "unrecognized type: string"),
        (
            {"spec": {"strategy": {"rollingUpdate": {"maxSurge": True}}}},
            None,
            "json: cannot unmarshal bool into Go value of type int32",
        ),
        ({"spec": {"odd": None, "more": [{"a": 1}]}}, None, 'strict decoding error: unknown field "spec.more"'),
        (
            {"spec": {"template": {"spec": ORDERED}}},
            "map[spec:map[template:map[spec:map[]]]]",
            'strict decoding error: unknown field "spec.template.spec.containers[0].odd"',
        ),
        (
            {"spec": {"strategy": {"$retainKeys": ["type", "odd"], "type": "Recreate", "odd": 1}}},
            "map[spec:map[strategy:map[odd:1 type:Recreate]]]",
            'strict decoding error: unknown field "spec.strategy.odd"',
        ),
        (
            {"spec": {"strategy": {"$patch": "replace", "odd": 1}}},
            "map[spec:map[strategy:map[odd:1]]]",
            'strict decoding error: unknown field "spec.strategy.odd"',
        ),
    ],
)
async def test_errors_of_strategic_merge_patches_show_the_patch(api, document, value, words):
    await api.post(DEPLOYMENTS, DEPLOYMENT)
    type = "application/strategic-merge-patch+json"
    answer = await api.ask("PATCH", f"{DEPLOYMENTS}/d", document, type=type, query="fieldValidation=Strict")
    assert answer.status == 422
    assert answer.json["message"].startswith(f' "" is invalid: patch: Invalid value: "{value or "map["}')
    assert answer.json["message"].endswith(f'": {words}')


async def test_puts_that_create(api):
    endpoints = "/api/v1/namespaces/default/endpoints/new"
    answer = await api.ask("PUT", endpoints, {"metadata": {"name": "new", "resourceVersion": "7"}})
    assert answer.status == 201
    assert (await api.ask("PUT", f"{BASE}/new", configmap("new"))).status == 404


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (configmap("other"), "does not match the name on the URL"),
        ({"metadata": {}}, "name must be provided"),
        (configmap(namespace="other"), "does not match the namespace"),
        ({"apiVersion": "v2", **configmap()}, 'no kind "ConfigMap" is registered for version "v2"'),
        ({"kind": "Secret", "apiVersion": "v1", **configmap()}, "cannot be handled as a ConfigMap"),
    ],
)
async def test_puts_of_something_else(api, body, words):
    await api.post(BASE, configmap())
    answer = await api.ask("PUT", f"{BASE}/cm", body)
    assert (answer.status, words in answer.json["message"]) == (400, True), answer


@pytest.mark.parametrize(
    ("path", "kind"), [("/api/v1/namespaces", "Namespace"), ("/apis/storage.k8s.io/v1/storageclasses", "StorageClass")]
)
async def test_kinds_in_no_namespace_forget_the_one_that_a_document_names(api, path, kind):
    body = {"metadata": {"name": "wide", "namespace": "default"}}
    if kind == "StorageClass":
        body["provisioner"] = "example.com/none"
    assert "namespace" not in (await api.post(path, body))["metadata"]
    applied = {"apiVersion": path.removeprefix("/apis/").removeprefix("/api/").rpartition("/")[0], "kind": kind, **body}
    query, new = "fieldManager=me", {**applied, "metadata": {"name": "applied", "namespace": "default"}}
    for method, name, sent, type in (
        ("PUT", "wide", body, "application/json"),
        ("PATCH", "wide", body, MERGE),
        ("PATCH", "wide", applied, "application/apply-patch+yaml"),
        ("PATCH", "applied", new, "application/apply-patch+yaml"),
    ):
        answer = await api.ask(method, f"{path}/{name}", sent, type=type, query=query)
        assert answer.status in (200, 201), answer
        assert "namespace" not in answer.json["metadata"]


async def test_a_change_that_changes_nothing_is_no_write(api):
    made = await api.post(BASE, configmap(labels={"a": "b"}))
    assert (await api.merge(f"{BASE}/cm", {"metadata": {"labels": {"a": "b"}}})) == made
    assert (await api.put(f"{BASE}/cm", configmap(labels={"a": "b"})))["metadata"]["resourceVersion"] == made[
        "metadata"
    ]["resourceVersion"]


async def test_dry_runs_show_and_keep_nothing(api):
    await api.post(BASE, configmap())
    before = await api.store.revision()
    shown = await api.merge(f"{BASE}/cm?dryRun=All", {"data": {"k": "v"}})
    assert shown["data"] == {"k": "v"}
    shown = await api.post(f"{BASE}?dryRun=All", configmap("new"))
    assert "resourceVersion" not in shown["metadata"]
    assert await api.store.revision() == before


async def test_scales(api):
    await api.post(DEPLOYMENTS, DEPLOYMENT)
    path = f"{DEPLOYMENTS}/d/scale"
    scale = await api.get(path)
    scale["spec"]["replicas"] = 3
    assert (await api.put(path, scale))["spec"] == {"replicas": 3}
    assert (await api.ask("PUT", path, scale)).status == 409  # its version is old by now
    assert (await api.get(f"{DEPLOYMENTS}/d"))["metadata"]["generation"] == 2
    for meta in ({"name": "e"}, {}, {"name": "d", "namespace": "other"}):
        assert (await api.ask("PUT", path, {"metadata": meta, "spec": {"replicas": 1}})).status == 400
    assert (await api.merge(f"{path}?dryRun=All", {"spec": {"replicas": 9}}))["spec"]["replicas"] == 9
    assert (await api.get(path))["spec"]["replicas"] == 3
    managers = (await api.get(f"{DEPLOYMENTS}/d"))["metadata"]["managedFields"]
    assert [m.get("subresource", "") for m in managers] == ["", "scale"]


OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}


@pytest.mark.parametrize(
    ("owners", "kept", "uids"),
    [
        ([OWNER, OWNER], 1, "u"),
        ([OWNER, {**OWNER, "uid": "v"}, OWNER, {**OWNER, "uid": "v"}], 2, "u, v"),
        ([OWNER, {**OWNER, "controller": False}], 2, ""),
    ],
)
async def test_owners_named_twice_are_named_once(api, owners, kept, uids):
    def said(moment):
        sentence = (
            f'299 - ".metadata.ownerReferences contains duplicate entries{moment}; API server dedups owner references '
            "in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) "
            f'observed: {uids}"'
        )
        return [sentence] if uids else []

    meta = {"name": "cm", "ownerReferences": owners}
    late = " after mutating admission happens"
    for method, path, document, moment in (
        ("POST", BASE, {"metadata": meta}, ""),
        ("PUT", f"{BASE}/cm", {"metadata": {**meta, "labels": {"a": "b"}}}, ""),
        ("PATCH", f"{BASE}/cm", {"metadata": {"ownerReferences": owners}}, late),
    ):
        answer = await api.ask(method, path, document, type=MERGE if method == "PATCH" else "application/json")
        assert answer.warnings == said(moment)
        assert len(answer.json["metadata"]["ownerReferences"]) == kept


@pytest.mark.parametrize("version", ["", "/", "a/", "a/b/c"])
async def test_owners_need_a_version(api, version):
    owner = {**OWNER, "apiVersion": version}
    answer = await api.ask("POST", BASE, {"metadata": {"name": "cm", "ownerReferences": [owner]}})
    assert [cause["field"] for cause in answer.json["details"]["causes"]] == ["metadata.ownerReferences[0].apiVersion"]


async def test_scales_can_be_applied(api):
    await api.post(f"{DEPLOYMENTS}?fieldManager=maker", DEPLOYMENT)
    path = f"{DEPLOYMENTS}/d/scale"

    async def apply(replicas, query):
        scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}}
        if replicas is not None:
            scale["spec"] = {"replicas": replicas}
        return await api.ask("PATCH", f"{path}?{query}", scale, type="application/apply-patch+yaml")

    async def owners():
        entries = (await api.get(f"{DEPLOYMENTS}/d"))["metadata"]["managedFields"]
        return [
            (entry["manager"], entry["operation"], entry["apiVersion"], entry.get("subresource"))
            for entry in entries
            if "f:replicas" in entry["fieldsV1"].get("f:spec", {})
        ]

    assert await owners() == [("maker", "Update", "apps/v1", None)]
    answer = await apply(7, "fieldManager=scaler")
    assert (answer.status, answer.json["details"]["causes"][0]["field"]) == (409, ".spec.replicas")
    answer = await apply(7, "fieldManager=scaler&force=true")
    assert (answer.status, answer.json["spec"]) == (200, {"replicas": 7})
    assert await owners() == [("scaler", "Apply", "apps/v1", "scale")]
    assert (await apply(7, "fieldManager=second")).status == 200
    assert {owner[0] for owner in await owners()} == {"scaler", "second"}
    assert (await apply(8, "fieldManager=second")).status == 409
    assert (await apply(None, "fieldManager=second")).status == 200
    assert await owners() == [("scaler", "Apply", "apps/v1", "scale")]
    assert (await api.get(f"{DEPLOYMENTS}/d"))["spec"]["replicas"] == 7
    answer = await api.ask("PATCH", f"{DEPLOYMENTS}/none/scale?fieldManager=x", {}, type="application/apply-patch+yaml")
    assert answer.status == 404  # nothing is made by scaling it


async def test_patches_of_a_scale_are_checked(api):
    await api.post(DEPLOYMENTS, DEPLOYMENT)
    path = f"{DEPLOYMENTS}/d/scale"
    for query, document, status in (
        ("", {"spec": {"replicas": "many"}}, 422),
        ("?fieldValidation=Strict", {"spec": {"odd": 1}}, 422),
        ("", {"metadata": {"name": "other"}}, 400),
        ("?fieldValidation=Ignore", {"spec": {"odd": 1}}, 200),
        ("?fieldManager=", {"spec": {"odd": 1}}, 200),
    ):
        answer = await api.ask("PATCH", f"{path}{query}", document, type=MERGE)
        assert answer.status == status
        if status == 422:
            assert [cause["field"] for cause in answer.json["details"]["causes"]] == ["patch"]
    assert answer.warnings == ['299 - "unknown field \\"spec.odd\\""']


async def test_a_status_insists_on_its_version(api):
    await api.post(DEPLOYMENTS, DEPLOYMENT)
    patch = {"metadata": {"resourceVersion": "1"}, "status": {"replicas": 1}}
    assert (await api.ask("PATCH", f"{DEPLOYMENTS}/d/status", patch, type=MERGE)).status == 409


async def test_a_binding_is_for_one_pod_only(api):
    pods = "/api/v1/namespaces/default/pods"
    made = await api.post(pods, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    for uid, status in (("another", 409), (made["metadata"]["uid"], 201), ("", 409)):
        body = {"metadata": {"name": "p", "uid": uid} if uid else {"name": "p"}, "target": {"name": "n"}}
        assert (await api.ask("POST", f"{pods}/p/binding", body)).status == status


async def test_a_terminating_namespace_takes_nothing_new(api):
    await api.post("/api/v1/namespaces", {"metadata": {"name": "ns"}})
    await api.delete("/api/v1/namespaces/ns")
    answer = await api.ask("POST", "/api/v1/namespaces/ns/configmaps", configmap())
    assert (answer.status, answer.json["details"]["causes"][0]["reason"]) == (403, "NamespaceTerminating")
    assert (await api.ask("POST", "/api/v1/namespaces/none/configmaps", configmap())).status == 404


@pytest.mark.parametrize(
    ("version", "status"), [("", 201), ("0", 201), ("x", 201), ("-1", 201), ("1", 500), ("99", 500)]
)
async def test_a_creation_may_name_no_version_that_could_be_one(api, version, status):
    new = {"metadata": {"name": "c", "resourceVersion": version}}
    tried = await api.ask("POST", BASE, new, query="dryRun=All")
    assert tried.status == 201
    answer = await api.ask("POST", BASE, new)
    assert answer.status == status
    if status == 201:
        assert answer.json["metadata"]["resourceVersion"] not in ("", "0", "x", "-1")


async def test_a_creation_waits_for_a_namespace_that_is_being_made(api):
    waiting = asyncio.ensure_future(api.ask("POST", "/api/v1/namespaces/new/configmaps", {"metadata": {"name": "c"}}))
    await asyncio.sleep(0)
    await api.post("/api/v1/namespaces", {"metadata": {"name": "new"}})
    assert (await waiting).status == 201
    assert (await api.ask("POST", "/api/v1/namespaces/none/configmaps", {"metadata": {"name": "c"}})).status == 404
