"""The steps of admission: in order, early to edit and late to judge, and only for the kinds they look at."""

import asyncio

import pytest
from served import served

from seamark.kinds.admission import Plugin
from seamark.kinds.resource import CONFIGMAPS, SECRETS

BASE = "/api/v1/namespaces/default/configmaps"


class Noting(Plugin):
    """Writes its name on a ConfigMap, and notes what it was asked about."""

    resources = frozenset({CONFIGMAPS})
    operations = ("CREATE", "UPDATE")

    def __init__(self, word, asked):
        self.word, self.asked = word, asked

    def mutate(self, request):
        data = request.obj.setdefault("data", {})
        data["seen"] = data.get("seen", "") + self.word
        self.asked.append(("mutate", request.operation, request.name, "uid" in request.obj["metadata"]))

    def validate(self, request):
        self.asked.append(("validate", request.operation, request.name, "uid" in request.obj["metadata"]))
        if request.obj["data"].get("stop") == self.word:
            raise request.forbidden(f"{self.word} says no")


class Asking(Plugin):
    """Waits a while for an answer, as a webhook does."""

    resources = frozenset({CONFIGMAPS})
    operations = ("CREATE", "UPDATE")

    def __init__(self, answer):
        self.answer = answer

    async def mutate(self, request):
        request.obj.setdefault("data", {})["asked"] = "yes"
        await self.answer.wait()

    async def validate(self, request):
        await asyncio.sleep(0)
        if request.obj["data"].get("stop"):
            raise request.forbidden("they say no")


class Counting(Plugin):
    """Counts ConfigMaps in a Secret, in their own transaction."""

    resources = frozenset({CONFIGMAPS})

    def validate(self, request):
        counter = request.others.get(SECRETS, "counter", request.namespace)
        if counter is not None:
            # A number in unary, so that a lost update would be visible.
            counter["type"] += "1"
            request.also.append((SECRETS, counter))


def configmap(name="cm", **data):
    return {"metadata": {"name": name}, "data": data}


async def test_steps_run_in_order_before_and_after_the_rules_of_the_kind():
    asked = []
    async with served(plugins=(Noting("a", asked), Noting("b", []))) as api:
        made = await api.post(BASE, {"metadata": {"generateName": "x-"}})
        assert made["data"] == {"seen": "ab"}
        # The server chooses the name after the edits, so only the judges know it.
        name = made["metadata"]["name"]
        assert asked == [("mutate", "CREATE", "x-", False), ("validate", "CREATE", name, True)]
        changed = await api.put(f"{BASE}/{name}", configmap(name))
        assert changed["data"] == {"seen": "ab"}
        assert [entry[:2] for entry in asked[2:]] == [("mutate", "UPDATE"), ("validate", "UPDATE")]


async def test_a_step_refuses_in_its_own_words():
    async with served(plugins=(Noting("a", []), Noting("b", []))) as api:
        answer = await api.ask("POST", BASE, configmap(stop="b"))
        assert (answer.status, answer.json["message"]) == (403, 'configmaps "cm" is forbidden: b says no')
        assert answer.json["details"] == {"name": "cm", "kind": "configmaps"}
        assert (await api.ask("GET", f"{BASE}/cm")).status == 404


async def test_other_kinds_are_not_asked_about():
    asked = []
    async with served(plugins=(Noting("a", asked),)) as api:
        await api.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}})
        assert asked == []


@pytest.mark.parametrize("many", [1, 40])
async def test_what_changes_with_an_object_changes_in_its_transaction(many):
    async with served(plugins=(Counting(),)) as api:
        secrets = "/api/v1/namespaces/default/secrets"
        await api.post(secrets, {"metadata": {"name": "counter"}, "type": "x/"})
        await asyncio.gather(*(api.post(BASE, configmap(f"cm-{i}")) for i in range(many)))
        counter = await api.get(f"{secrets}/counter")
        assert counter["type"] == "x/" + "1" * many
        dry = await api.ask("POST", BASE, configmap("dry"), query="dryRun=All")
        assert dry.status == 201
        assert (await api.get(f"{secrets}/counter"))["type"] == counter["type"]


async def test_a_step_may_wait_for_an_answer():
    answer = asyncio.Event()
    async with served(plugins=(Asking(answer), Noting("a", []))) as api:
        asked = [
            asyncio.create_task(api.ask("POST", BASE, configmap(n, **d))) for n, d in (("x", {}), ("y", {"stop": "1"}))
        ]
        await api.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}})  # others go on
        answer.set()
        made, refused = await asyncio.gather(*asked)
        assert (made.status, made.json["data"]) == (201, {"asked": "yes", "seen": "a"})
        assert (refused.status, refused.json["message"]) == (403, 'configmaps "y" is forbidden: they say no')
        changes = [api.merge(f"{BASE}/x", {"data": {str(i): "here"}}) for i in range(5)]
        await asyncio.gather(*changes)
        assert {"0", "1", "2", "3", "4"} <= (await api.get(f"{BASE}/x"))["data"].keys()


class Hanging(Plugin):
    """Waits for an answer that never comes, about objects that say so."""

    resources = frozenset({CONFIGMAPS})
    operations = ("CREATE", "UPDATE", "DELETE")

    def __init__(self):
        self.asked, self.answer = asyncio.Event(), asyncio.Event()

    def validate(self, request):
        return self.ask() if (request.obj.get("data") or {}).get("hang") else None

    async def ask(self):
        self.asked.set()
        await self.answer.wait()


async def test_a_write_that_waits_for_an_answer_delays_no_other_of_the_same_object():
    hanging = Hanging()
    async with served(plugins=(hanging,), max_in_flight=1) as api:
        await api.post(BASE, configmap())
        waiting = asyncio.create_task(api.ask("PUT", f"{BASE}/cm", configmap(hang="yes")))
        await hanging.asked.wait()
        # The only seat is free, and so is the turn with this object.
        await api.merge(f"{BASE}/cm", {"data": {"other": "1"}})
        hanging.answer.set()
        assert (await waiting).json["data"] == {"hang": "yes"}  # it was sent without a version, so it is tried again


async def test_deletions_are_admitted():
    hanging = Hanging()
    async with served(plugins=(hanging,)) as api:
        hanging.answer.set()
        await api.post(BASE, configmap(hang="yes"))
        hanging.answer.clear()
        waiting = asyncio.create_task(api.ask("DELETE", f"{BASE}/cm"))
        await hanging.asked.wait()
        await api.get(f"{BASE}/cm")
        hanging.answer.set()
        assert (await waiting).status == 200


class Editing(Plugin):
    """Edits a ConfigMap for an outsider, who has a say in the first round only."""

    resources = frozenset({CONFIGMAPS})

    def mutate(self, request):
        if request.round == 0:
            request.obj = {**request.obj, "data": {**request.obj["data"], "edited": "yes"}}
            request.changed = True


async def test_what_an_outsider_changed_is_shown_to_all_steps_once_more():
    async with served(plugins=(Noting("a", []), Editing(), Noting("b", []))) as api:
        made = await api.post(BASE, configmap())
        assert made["data"] == {"seen": "abab", "edited": "yes"}


# --- RuntimeClasses ----------------------------------------------------------------------------------------

PODS = "/api/v1/namespaces/default/pods"
CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
CLASS = {
    "metadata": {"name": "sandboxed"},
    "handler": "gvisor",
    "overhead": {"podFixed": {"cpu": "10m", "memory": "1Mi"}},
    "scheduling": {
        "nodeSelector": {"sandbox": "yes"},
        "tolerations": [{"key": "sandbox", "operator": "Exists", "effect": "NoSchedule"}],
    },
}


def runtime_pod(**spec):
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


async def test_a_pod_takes_over_what_its_class_says(api):
    await api.post(CLASSES, CLASS)
    spec = (await api.post(PODS, runtime_pod(runtimeClassName="sandboxed", nodeSelector={"disk": "ssd"})))["spec"]
    assert spec["overhead"] == {"cpu": "10m", "memory": "1Mi"}
    assert spec["nodeSelector"] == {"disk": "ssd", "sandbox": "yes"}
    assert CLASS["scheduling"]["tolerations"][0] in spec["tolerations"]


async def test_a_class_that_says_nothing_changes_nothing(api):
    await api.post(CLASSES, {"metadata": {"name": "bare"}, "handler": "runc"})
    spec = (await api.post(PODS, runtime_pod(runtimeClassName="bare")))["spec"]
    assert "overhead" not in spec
    assert "nodeSelector" not in spec


async def test_tolerations_that_the_class_covers_are_left_out(api):
    wide = {"operator": "Exists"}
    await api.post(CLASSES, {"metadata": {"name": "any"}, "handler": "h", "scheduling": {"tolerations": [wide]}})
    own = [{"key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute", "tolerationSeconds": 5}]
    spec = (await api.post(PODS, runtime_pod(runtimeClassName="any", tolerations=own)))["spec"]
    assert spec["tolerations"] == [wide]


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"runtimeClassName": "absent"}, 'pod rejected: RuntimeClass "absent" not found'),
        (
            {"overhead": {"cpu": "1"}},
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
        (
            {"runtimeClassName": "sandboxed", "overhead": {"cpu": "1"}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            {"runtimeClassName": "sandboxed", "nodeSelector": {"sandbox": "no"}},
            "conflict: runtimeClass.scheduling.nodeSelector[sandbox] = yes; pod.spec.nodeSelector[sandbox] = no",
        ),
    ],
)
async def test_what_a_class_refuses(api, spec, reason):
    await api.post(CLASSES, CLASS)
    answer = await api.ask("POST", PODS, runtime_pod(**spec))
    assert (answer.status, answer.json["message"]) == (403, f'pods "p" is forbidden: {reason}')


async def test_the_same_overhead_in_other_words_is_accepted(api):
    await api.post(CLASSES, CLASS)
    same = runtime_pod(runtimeClassName="sandboxed", overhead={"cpu": "0.01", "memory": "1024Ki"})
    assert (await api.ask("POST", PODS, same)).status == 201
