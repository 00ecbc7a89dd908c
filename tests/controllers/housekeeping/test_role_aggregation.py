"""Aggregated ClusterRoles follow those that they gather."""

from seamark.kinds.resource import CLUSTER_ROLES


def role(name, *verbs, labels=None, gathers=None):
    made = {"metadata": {"name": name, "labels": labels or {}}}
    made["rules"] = [{"apiGroups": [""], "resources": ["pods"], "verbs": [verb]} for verb in verbs]
    if gathers:
        made["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": gathers}]}
    return made


async def verbs(own, name):
    await own.quiet()
    rules = (await own.cluster.get(CLUSTER_ROLES, name))["rules"]
    return None if rules is None else [verb for rule in rules for verb in rule["verbs"]]


async def test_rules_come_and_go_with_the_roles_and_their_labels(own):
    async with own.controlled():
        await own.cluster.create(CLUSTER_ROLES, role("all", "delete", gathers={"to": "all"}, labels={"to": "top"}))
        await own.cluster.create(CLUSTER_ROLES, role("top", gathers={"to": "top"}))
        assert await verbs(own, "all") is None
        await own.cluster.create(CLUSTER_ROLES, role("b", "list", "get", labels={"to": "all"}))
        await own.cluster.create(CLUSTER_ROLES, role("a", "get", labels={"to": "all"}))
        assert await verbs(own, "all") == ["get", "list"]
        assert await verbs(own, "top") == ["get", "list"], "through two of them"
        await own.cluster.patch(CLUSTER_ROLES, "a", {"metadata": {"labels": None}})
        assert await verbs(own, "all") == ["list", "get"]
        await own.cluster.delete(CLUSTER_ROLES, "b")
        assert await verbs(own, "top") is None


async def test_nothing_is_written_if_the_rules_are_right(own):
    async with own.controlled():
        await own.cluster.create(CLUSTER_ROLES, role("all", gathers={"to": "all"}))
        await own.cluster.create(CLUSTER_ROLES, role("a", "get", labels={"to": "all"}))
        await own.quiet()
        version = (await own.cluster.get(CLUSTER_ROLES, "all"))["metadata"]["resourceVersion"]
        await own.cluster.create(CLUSTER_ROLES, role("z", "get"))
        await own.quiet()
        assert (await own.cluster.get(CLUSTER_ROLES, "all"))["metadata"]["resourceVersion"] == version


async def test_roles_that_choose_each_other_come_to_rest(own):
    """Each took the rules of the other in the order in which that had them, at the same time, for ever."""
    both = {"to": "both"}
    await own.cluster.create(CLUSTER_ROLES, role("a", "get", "list", gathers=both, labels=both))
    await own.cluster.create(CLUSTER_ROLES, role("z", "list", "get", gathers=both, labels=both))
    async with own.controlled():
        for name in ("a", "z"):
            assert sorted(await verbs(own, name)) == ["get", "list"]
        await own.cluster.create(CLUSTER_ROLES, role("m", "watch", labels=both))
        for name in ("a", "z"):
            assert sorted(await verbs(own, name)) == ["get", "list", "watch"]
