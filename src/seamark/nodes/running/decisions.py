"""What a kubelet does next with the containers of a Pod: which to start, which to stop, when it is over.  Pure.

A decision follows from the Pod's spec and a :class:`Record` of each container, and from nothing else; it is made anew
after every change, so it does not matter in which order things happen.

    init containers one after the other; those with restartPolicy Always (sidecars) stay and the next one goes on
        ──▶ all other containers, together ──▶ over when none of them runs or is started again
        ──▶ sidecars are stopped, the last one first
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from seamark.clock import doubling
from seamark.nodes.running.spec import Container, Spec

BACK_OFF = 10.0
LONGEST_BACK_OFF = 300.0
FORGET_CRASHES_AFTER = 600.0  # after running for so many seconds, earlier crashes no longer count


class Ended(msgspec.Struct, frozen=True):
    """How one run of a container ended."""

    code: int
    started: float
    finished: float
    reason: str = "Error"
    message: str = ""
    signal: int = 0
    identity: str = ""


class Record(msgspec.Struct, frozen=True):
    """What is known of one container.  It waits, runs, or has ended."""

    state: Literal["waiting", "running", "ended"] = "waiting"
    reason: str = ""  # why it waits
    message: str = ""
    identity: str = ""  # of the run it is in, or was in last
    image_id: str = ""
    started: float = 0.0
    booted: bool = False  # its startup probe has passed, or it has none
    ready: bool = False
    stopping: bool = False
    held: bool = False  # its postStart hook is at work
    condemned: str = ""  # why it must be stopped while its Pod goes on, in the words of an Event
    grace: int | None = None  # seconds that it has to end if it is condemned; None for those of its Pod
    ended: Ended | None = None  # how its last run ended
    before: Ended | None = None  # how the run before that ended
    restarts: int = 0
    crashes: int = 0  # restarts in a row that count for the back-off

    @property
    def running(self) -> bool:
        return self.state == "running"

    @property
    def has_run(self) -> bool:
        return self.running or self.ended is not None

    @property
    def succeeded(self) -> bool:
        return self.state == "ended" and self.ended is not None and self.ended.code == 0


class Doom(msgspec.Struct, frozen=True):
    """Why a Pod has to end although it was not deleted; it has failed then."""

    reason: str
    message: str
    deadline: float | None = None  # when its containers must have ended, if earlier than their grace period says


TOO_LATE = Doom("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
NEVER = Record()
Records = Mapping[str, Record]


class Decision(msgspec.Struct, frozen=True):
    """What to do now.  ``again`` is the moment at which to decide anew if nothing changes before."""

    start: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    back_off: tuple[tuple[str, float], ...] = ()  # containers that wait to be started again, and for how long in all
    again: float | None = None
    over: Literal["", "Succeeded", "Failed"] = ""
    reason: str = ""
    message: str = ""


def decide(
    spec: Spec,
    records: Records,
    *,
    now: float,
    accepted: float = 0.0,
    terminating: bool = False,
    doomed: Doom | None = None,
    back_off: float = BACK_OFF,
) -> Decision:
    """The next steps of a Pod that was accepted at that moment, and may have to end."""
    deadline = None if spec.active_deadline_seconds is None else accepted + spec.active_deadline_seconds
    if doomed is None and deadline is not None and now >= deadline:
        doomed = TOO_LATE
    if terminating or doomed is not None:
        ending = _ending(spec, records)
        if doomed is not None and not terminating:
            over: Literal["", "Failed"] = "Failed" if ending.over else ""
            return msgspec.structs.replace(ending, over=over, reason=doomed.reason, message=doomed.message)
        return ending
    found = _Living(spec, records, now, back_off).decide()
    if deadline is not None and not found.over:
        found = msgspec.structs.replace(found, again=min(deadline, found.again or deadline))
    return found


class _Living:
    """Decides about a Pod that should run."""

    def __init__(self, spec: Spec, records: Records, now: float, back_off: float) -> None:
        self.spec, self.records, self.now, self.back_off = spec, records, now, back_off
        self.start: list[str] = []
        self.waits: list[tuple[str, float]] = []
        self.again: float | None = None

    def decide(self) -> Decision:
        settled = self._initialize()
        if settled == "failed":
            return _ending(self.spec, self.records, "Failed")
        if settled == "ready":
            if self._over():
                return _ending(self.spec, self.records)
            for container in self.spec.containers:
                self._keep_going(container, self._policy(container))
        for container in self.spec.ephemeral_containers:  # started once, and never again
            if self.records.get(container.name, NEVER) == NEVER:
                self.start.append(container.name)
        stop = tuple(name for name, record in self.records.items() if record.running and record.condemned)
        return Decision(tuple(self.start), stop, tuple(self.waits), self.again)

    def _initialize(self) -> Literal["ready", "busy", "failed"]:
        for container in self.spec.init_containers:
            record = self.records.get(container.name, NEVER)
            if container.sidecar:
                self._keep_going(container, "Always")
                if not (record.running and record.booted) and not self._began():
                    return "busy"
            elif not record.succeeded and not self._began():
                if record.state == "ended" and self.spec.restart_policy == "Never":
                    return "failed"
                self._keep_going(container, "OnFailure")
                return "busy"
        return "ready"

    def _began(self) -> bool:
        """Whether the containers proper were started: then init containers are not run again."""
        return any(self.records.get(container.name, NEVER).has_run for container in self.spec.containers)

    def _policy(self, container: Container) -> str:
        return container.restart_policy or self.spec.restart_policy

    def _over(self) -> bool:
        """Whether all containers proper have ended, and none is started again."""
        return all(
            (record := self.records.get(container.name, NEVER)).state == "ended"
            and not _again(record, self._policy(container))
            for container in self.spec.containers
        )

    def _keep_going(self, container: Container, policy: str) -> None:
        """Have a container started unless it runs, is over, or must wait."""
        record = self.records.get(container.name, NEVER)
        if record.running:
            return
        if record.state == "ended" and not _again(record, policy):
            return
        if record.ended is not None and (delay := self._delay(record)):
            due = record.ended.finished + delay
            if self.now < due:
                self.waits.append((container.name, delay))
                self.again = due if self.again is None else min(self.again, due)
                return
        self.start.append(container.name)

    def _delay(self, record: Record) -> float:
        """None before the first restart, then growing."""
        return doubling(self.back_off, LONGEST_BACK_OFF, record.crashes - 1) if record.crashes else 0.0


def _again(record: Record, policy: str) -> bool:
    return policy == "Always" or (policy == "OnFailure" and not record.succeeded)


def _ending(spec: Spec, records: Records, phase: Literal["", "Failed"] = "") -> Decision:
    """Stop what runs: the containers proper and init containers at once, then sidecars, the last one first."""
    first = [
        each.name
        for each in (*spec.containers, *spec.ephemeral_containers, *spec.init_containers)
        if not each.sidecar or each in spec.containers
    ]
    if running := [name for name in first if records.get(name, NEVER).running]:
        return Decision(stop=tuple(running))
    for container in reversed(spec.init_containers):
        if container.sidecar and records.get(container.name, NEVER).running:
            return Decision(stop=(container.name,))
    failed = any(not _well(records.get(each.name, NEVER)) for each in spec.containers)
    return Decision(over=phase or ("Failed" if failed else "Succeeded"))


def _well(record: Record) -> bool:
    return record.ended is not None and record.ended.code == 0


# --- records ---------------------------------------------------------------------------------------


def waiting(record: Record, reason: str, message: str = "") -> Record:
    return msgspec.structs.replace(
        record, state="waiting", reason=reason, message=message, ready=False, booted=False, stopping=False
    )


def begun(record: Record, *, booted: bool, ready: bool) -> Record:
    """A container whose postStart hook, if it has one, is done."""
    return msgspec.structs.replace(record, held=False, booted=booted, ready=ready)


def condemned(record: Record, why: str, grace: int | None = None) -> Record:
    """A container that runs and must be stopped, although its Pod goes on."""
    return msgspec.structs.replace(record, condemned=why, grace=grace)


def running(record: Record, *, identity: str, now: float, booted: bool, image_id: str = "") -> Record:
    """A container that starts, for the first time or again."""
    again = record.ended is not None
    return msgspec.structs.replace(
        record,
        state="running",
        reason="",
        message="",
        identity=identity,
        image_id=image_id,
        started=now,
        booted=booted,
        ready=False,
        stopping=False,
        held=False,
        condemned="",
        grace=None,
        before=record.ended,
        restarts=record.restarts + again,
        crashes=record.crashes + again,
    )


def ended(record: Record, how: Ended) -> Record:
    lived = how.finished - how.started
    return msgspec.structs.replace(
        record,
        state="ended",
        ready=False,
        booted=False,
        stopping=False,
        held=False,
        ended=how,
        crashes=0 if lived >= FORGET_CRASHES_AFTER else record.crashes,
    )
