"""Pods that fit on no node, in groups with exactly the same requirements: which of them to try again, and when (pure).

One Pod of each group is tried after something that could help: a Node changes, or a Pod goes.  The most important
groups are tried first, of equal ones those that waited longest.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from seamark.rules.objects.pod import Pod
from seamark.runtime.queue import Key

Group = bytes  # identifies Pods with the same requirements


class Parked:
    """The groups, empty at first."""

    def __init__(self) -> None:
        self._pods: dict[Group, dict[Key, bool]] = {}  # by Pod: whether a change of other Pods could help
        self._lines: dict[int, dict[Group, None]] = {}  # the groups by priority; those tried longest ago come first
        self._group_of: dict[Key, Group] = {}
        self._tried: dict[Group, int] = {}  # when a group was last tried: the number of events seen by then
        self._events = 0  # that could help
        self._last_for_all = 0

    def __bool__(self) -> bool:
        return bool(self._pods)

    def clear(self) -> None:
        for kept in (self._pods, self._lines, self._group_of, self._tried):
            kept.clear()

    def put(self, pod: Pod, *, hopes: bool) -> None:
        """Park a Pod; it ``hopes`` if a change of other Pods could help."""
        key, group = pod.metadata.key, _group(pod)
        if self._group_of.get(key, group) != group:
            self.remove(key)
        self._group_of[key] = group
        if group not in self._pods:
            self._pods[group], self._tried[group] = {}, self._events
            self._lines.setdefault(pod.spec.priority, {})[group] = None
        self._pods[group][key] = hopes

    def remove(self, key: Key) -> Group | None:
        """Forget a Pod; returns the group in which it was."""
        group = self._group_of.pop(key, None)
        if group is not None:
            parked = self._pods[group]
            del parked[key]
            if not parked:
                del self._pods[group], self._tried[group]
                priority = next(p for p, line in self._lines.items() if group in line)
                del self._lines[priority][group]
                if not self._lines[priority]:
                    del self._lines[priority]
        return group

    def first(self, group: Group) -> Key | None:
        return next(iter(self._pods.get(group, ())), None)

    def note(self, *, all_groups: bool) -> None:
        """Something happened that could help; unless it helps ``all_groups``, only those that hope for other Pods."""
        self._events += 1
        if all_groups:
            self._last_for_all = self._events

    def due(self) -> Iterator[Key | None]:
        """For each group that was not tried since the last event, the Pod to try; None if no event could help it.

        A group counts as tried as soon as it is yielded.
        """
        for priority in sorted(self._lines, reverse=True):
            line = self._lines[priority]
            while self._tried[group := next(iter(line))] != self._events:
                del line[group]
                line[group] = None
                before, self._tried[group] = self._tried[group], self._events
                key, hopes = next(iter(self._pods[group].items()))
                yield key if hopes or before < self._last_for_all else None


def _group(pod: Pod) -> Group:
    spec, meta = pod.spec, pod.metadata
    return msgspec.json.encode(
        (
            meta.namespace,
            sorted(meta.labels.items()),
            spec.node_selector,
            spec.affinity,
            spec.tolerations,
            spec.topology_spread_constraints,
            [(c.resources, c.ports, c.restart_policy) for c in (*spec.containers, *spec.init_containers)],
            spec.resources,
            spec.overhead,
            spec.priority,
            spec.preemption_policy,
            [volume.persistent_volume_claim or meta.name for volume in spec.volumes if volume.of_claim],
        )
    )
