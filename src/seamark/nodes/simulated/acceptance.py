"""Whether a node takes a Pod that was bound to it: what a kubelet checks once, before it starts a Pod.

The scheduler checks the same things, but a Pod may name its node itself, or come from another scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec.structs import replace

from seamark.access.informer import Informer, Key
from seamark.kinds.values import times
from seamark.nodes import resizing
from seamark.nodes.pod_conditions import Finding
from seamark.nodes.scheduling import requests
from seamark.nodes.scheduling.occupancy import Occupancy, Occupant, Room, occupant
from seamark.nodes.simulated.pods.steps import Moments, Note, Step
from seamark.rules import placement
from seamark.rules.objects.node import Node
from seamark.rules.objects.pod import Pod
from seamark.runtime.controller import Again
from seamark.runtime.following import Derived

# A controller replaces a refused Pod at once: this keeps the two from chasing each other.
REFUSE_SECONDS = 1.0
_OS = "linux"  # of all nodes here


class Tenants(Derived):
    """Which Pods are on which node, as informers tell: for kubelets whose scheduler runs in another process."""

    def __init__(self, pods: Informer[Pod], nodes: Informer[Node]) -> None:
        super().__init__("tenants")
        self.occupancy = Occupancy()
        self.watch(nodes, self._node_changed)
        self.watch(pods, self._pod_changed)

    def reset(self) -> None:
        self.occupancy = Occupancy()

    def _node_changed(self, name: Key, old: Node | None, new: Node | None) -> None:
        if new is not None:
            self.occupancy.put_node(new)
        else:
            self.occupancy.remove_node(name)

    def _pod_changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        if new is None or new.finished or not new.spec.node_name:
            self.occupancy.remove(key)
        elif not self.occupancy.knows(new):
            self.occupancy.put(occupant(new, new.spec.node_name))


class Acceptance:
    """Which Pods the nodes of this process have taken.  ``occupancy`` is the scheduler's, or that of tenants."""

    def __init__(self, pods: Informer[Pod], occupancy: Callable[[], Occupancy]) -> None:
        self._pods = pods
        self._occupancy = occupancy
        self._refused: dict[str, float] = {}  # by uid: when a Pod that does not fit is refused
        self._accepted: set[str] = set()  # by uid: Pods whose first status is being written

    def forget(self, uid: str) -> None:
        self._accepted.discard(uid)
        self._refused.pop(uid, None)

    def clear(self) -> None:
        self._accepted.clear()
        self._refused.clear()

    def refusal(self, pod: Pod, now: float) -> Note | None:
        """Why the node does not take a new Pod; what it takes counts against those that come later.

        Raises :class:`~seamark.runtime.controller.Again` if a Pod that does not fit is not to be refused yet.
        """
        if pod.status.start_time is not None or pod.terminating:
            return None
        occupancy, uid = self._occupancy(), pod.metadata.uid
        occupant, room = occupancy.get(pod.metadata.key), occupancy.rooms.get(pod.spec.node_name)
        if occupant is None or room is None or occupant.uid != uid or uid in self._accepted:
            return None
        if not content(pod, occupant, room):
            others = (each for each in occupancy.on(room.name) if each.uid != uid and self._has_taken(each))
            if (why := refusal(pod, occupant, room, others)) is not None:
                if now < (due := self._refused.setdefault(uid, now + REFUSE_SECONDS)):
                    raise Again(due - now)
                return why
        self._accepted.add(uid)
        return None

    def obstacle(self, pod: Pod) -> Finding | None:
        """Why the node cannot give a running Pod the resources that its spec now asks for."""
        occupancy = self._occupancy()
        room = occupancy.rooms.get(pod.spec.node_name)
        if room is None:
            return None
        others = (each for each in occupancy.on(room.name) if each.uid != pod.metadata.uid)
        return obstacle(requests.requested(pod), room, others)

    def _has_taken(self, occupant: Occupant) -> bool:
        other = self._pods.by_key(occupant.key)
        return occupant.uid in self._accepted or (other is not None and other.status.start_time is not None)


# --- what is checked (pure) --------------------------------------------------------------------------


def content(pod: Pod, occupant: Occupant, room: Room) -> bool:
    """Whether the Pod certainly fits, beside all others of the node: true of all that the scheduler placed."""
    if pod.spec.node_selector or pod.spec.affinity or pod.spec.os or occupant.ports:
        return False
    return all(room.used.get(name, 0) <= room.allocatable.get(name, 0) for name in occupant.requests)


def refusal(pod: Pod, occupant: Occupant, room: Room, others: Iterable[Occupant]) -> Note | None:
    """Why the node does not take the Pod; ``others`` are those that it has taken."""
    listed = list(others)
    for name, much in occupant.requests.items():
        used, there = sum(other.requests.get(name, 0) for other in listed), room.allocatable.get(name, 0)
        if much and used + much > there:
            return Note(f"OutOf{name}", _too_little(name, much, used, there))
    wanted = placement.affinity_of(pod.spec.affinity, pod.metadata.namespace)
    if not placement.asked_for(pod.spec, wanted, room.node):
        return _predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
    taken = [port for other in listed for port in other.ports]
    if any(requests.collide(mine, port) for mine in occupant.ports for port in taken):
        return _predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports")
    if pod.spec.os.get("name", _OS) != _OS:
        return Note("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS")
    return None


def obstacle(asked: Mapping[str, int], room: Room, others: Iterable[Occupant]) -> Finding | None:
    """Why a Pod cannot get these resources on a node that has these other Pods: never, or not now."""
    for name in resizing.RESOURCES:
        much, there = asked.get(name, 0), room.allocatable.get(name, 0)
        if much > there:
            numbers = f"requested: {_units(name, much)}, capacity: {_units(name, there)}"
            return Finding("True", "Infeasible", f"Node didn't have enough capacity: {name}, {numbers}")
    listed = list(others)
    for name in resizing.RESOURCES:
        much, there = asked.get(name, 0), room.allocatable.get(name, 0)
        used = sum(other.requests.get(name, 0) for other in listed)
        if much and used + much > there:
            return Finding("True", "Deferred", _too_little(name, much, used, there))
    return None


def _too_little(name: str, much: int, used: int, there: int) -> str:
    numbers = f"requested: {_units(name, much)}, used: {_units(name, used)}, capacity: {_units(name, there)}"
    return f"Node didn't have enough resource: {name}, {numbers}"


def _units(name: str, much: int) -> int:
    """As a kubelet counts: CPUs in thousandths, and all else in whole units."""
    return much if name == "cpu" else much // requests.ONE


def _predicate(name: str, description: str) -> Note:
    return Note(name, f"Predicate {name} failed: {description}")


def rejected(pod: Pod, why: Note, now: float) -> Step:
    """The end of a Pod that its node does not take."""
    status = replace(
        pod.status,
        phase="Failed",
        reason=why.reason,
        message=f"Pod was rejected: {why.message}",
        start_time=times.text(now),
        observed_generation=pod.metadata.generation,
    )
    return Step(status, Moments(now), notes=(why,))
