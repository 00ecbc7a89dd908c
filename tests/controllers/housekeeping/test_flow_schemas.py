"""FlowSchemas say whether their priority level exists."""

from seamark.kinds.resource import FLOW_SCHEMAS, PRIORITY_LEVELS


async def dangling(own, name):
    await own.quiet()
    schema = await own.cluster.get(FLOW_SCHEMAS, name)
    return [(c["type"], c["status"], c["reason"]) for c in schema["status"].get("conditions", ())]


async def test_a_schema_dangles_until_its_level_comes_and_when_it_goes(own):
    async with own.controlled():
        schema = {"metadata": {"name": "s"}, "spec": {"priorityLevelConfiguration": {"name": "l"}}}
        await own.cluster.create(FLOW_SCHEMAS, schema)
        assert await dangling(own, "s") == [("Dangling", "True", "NotFound")]
        level = {
            "metadata": {"name": "l"},
            "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}},
        }
        await own.cluster.create(PRIORITY_LEVELS, level)
        assert await dangling(own, "s") == [("Dangling", "False", "Found")]
        await own.cluster.delete(PRIORITY_LEVELS, "l")
        assert await dangling(own, "s") == [("Dangling", "True", "NotFound")]
        await own.cluster.delete(FLOW_SCHEMAS, "s")
        await own.quiet()
