"""Says of every FlowSchema whether its priority level exists: the condition ``Dangling``."""

from __future__ import annotations

from seamark.access.cluster import Cluster, Receipt
from seamark.errors import NotFound
from seamark.kinds.resource import FLOW_SCHEMAS, PRIORITY_LEVELS
from seamark.kinds.values import times
from seamark.rules.objects.conditions import Condition
from seamark.rules.objects.metadata import ObjectView, View
from seamark.runtime.controller import Controller
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key

NAME = "api-priority-and-fairness-config-consumer-v1"
DANGLING = "Dangling"


class LevelReference(View, frozen=True):
    name: str = ""


class FlowSchemaSpec(View, frozen=True):
    priority_level_configuration: LevelReference = LevelReference()


class FlowSchemaStatus(View, frozen=True):
    conditions: tuple[Condition, ...] = ()


class FlowSchema(ObjectView, frozen=True):
    spec: FlowSchemaSpec = FlowSchemaSpec()
    status: FlowSchemaStatus = FlowSchemaStatus()


def verdict(level: str, *, exists: bool) -> tuple[str, str, str]:
    """Status, reason and message of the condition."""
    message = f'This FlowSchema references the PriorityLevelConfiguration object named "{level}" '
    if exists:
        return "False", "Found", message + "and it exists"
    return "True", "NotFound", message + "but there is no such object"


class FlowSchemaStatusController(Controller):
    """Writes the condition when a FlowSchema comes, or its level comes or goes."""

    def __init__(self, manager: Manager, cluster: Cluster) -> None:
        super().__init__("flow-schema-status", manager)
        self._cluster = cluster
        self._clock = manager.clock
        self._levels = self.watch(manager.informers.of(PRIORITY_LEVELS, as_=ObjectView), self._level_changed)
        self._schemas = self.watch(manager.informers.of(FLOW_SCHEMAS, as_=FlowSchema), self._changed)

    def _changed(self, key: Key, old: FlowSchema | None, new: FlowSchema | None) -> None:
        self.queue.add(key)

    def _level_changed(self, key: Key, old: ObjectView | None, new: ObjectView | None) -> None:
        if old is None or new is None:
            for schema in self._schemas.objects():
                if schema.spec.priority_level_configuration.name == key:
                    self.queue.add(schema.metadata.name)

    async def reconcile(self, key: Key) -> None:
        schema = self._schemas.by_key(key)
        if schema is None:
            return
        level = schema.spec.priority_level_configuration.name
        status, reason, message = verdict(level, exists=self._levels.by_key(level) is not None)
        said = [(c.status, c.reason, c.message) for c in schema.status.conditions if c.type == DANGLING]
        if said == [(status, reason, message)]:
            return
        condition = {"type": DANGLING, "status": status, "reason": reason, "message": message}
        condition["lastTransitionTime"] = times.text(self._clock.time())
        try:
            await self._cluster.patch(
                FLOW_SCHEMAS,
                key,
                {"status": {"conditions": [condition]}},
                subresource="status",
                type="strategic",
                as_=Receipt,
            )
        except NotFound:
            return  # it is gone, so there is nothing to say of it
