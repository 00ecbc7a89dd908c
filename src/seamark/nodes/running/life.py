"""The life of one Pod: carries out what :mod:`decisions` says, and keeps the records of its containers.

Every start and every stop is a task of its own; when one has changed a record, the kubelet is told and decides anew.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from seamark import errors
from seamark.nodes import resizing
from seamark.nodes.running import decisions, endings
from seamark.nodes.running.attempts import Attempts
from seamark.nodes.running.checks import Checks
from seamark.nodes.running.decisions import NEVER, Decision, Doom, Ended, Record
from seamark.nodes.running.home import PodHome, namespace_of
from seamark.nodes.running.hooks import Hooks
from seamark.nodes.running.host import Host
from seamark.nodes.running.machine.machine import Process
from seamark.nodes.running.machine.messages import Start
from seamark.nodes.running.pod_status import Sandbox
from seamark.nodes.running.preparing.environment import Unmakeable
from seamark.nodes.running.preparing.images import Image, NoImage
from seamark.nodes.running.preparing.starting import Home, start_of
from seamark.nodes.running.preparing.volumes import Unmountable
from seamark.nodes.running.probes import Answer, Prober
from seamark.nodes.running.spec import Action, Container, PodToRun, Probe
from seamark.nodes.running.streaming.consoles import Console
from seamark.nodes.running.streaming.container_logs import LogFile

log = logging.getLogger(__name__)

CANNOT_START = 128
TOO_MANY = "TooManyProcesses"
_LEAST_PATIENCE = 2.0  # seconds between the signal and the end, if a preStop hook took the rest
_EVICTED_WITHIN = 1.0  # seconds that the containers of a Pod have to end when it is evicted
IMAGE_BACK_OFF = 10.0
_SHOWN = 2.0  # seconds for which it is shown that an image could not be pulled, before it waits for the next try
_RETRY = 1.0  # seconds after which a start that failed is tried again, at first


class OpenContainer(msgspec.Struct, frozen=True):
    """A container that runs, for those who want to look inside or to be attached."""

    process: Process
    start: Start
    console: Console
    run: int  # 0 for the first
    stop_signal: str = ""  # as its image says
    image: str = ""  # the directory of its image


class PodLife:
    """One Pod on this machine.  ``changed`` is called after each change of a record."""

    def __init__(self, pod: PodToRun, sandbox: Sandbox, host: Host, folder: Path, changed: Callable[[], None]) -> None:
        self.pod = pod
        self.sandbox = sandbox
        self.records: dict[str, Record] = {}
        self.doomed: Doom | None = None
        self.over = False  # its processes and its files are gone
        self._host = host
        self.folder = folder
        self._changed = changed
        self.open: dict[str, OpenContainer] = {}  # the containers that run
        self._processes: dict[str, Process] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}  # starts, watches and stops under way, by what they do
        self._attempts = Attempts(host.clock)
        self._told: dict[str, str] = {}  # runs of containers whose back-off was told
        self._excess: dict[str, str] = {}  # why containers are ended that have too many processes
        self._deadline: float | None = None  # when what is being stopped must have ended
        self._instead: dict[str, int] = {}  # signals in whose place containers were killed
        self._starting = asyncio.Lock()  # containers start one after the other, each with its hook
        self._home = PodHome(host, folder, sandbox)
        self._checks = Checks(host.machine, pod.spec.node_name, (*sandbox.pod_ips, "")[0])
        self._hooks = Hooks(pod.metadata.key, ask=self._ask, tell=self._warn, clock=host.clock)

    @property
    def namespace(self) -> str:
        """The name of its namespaces."""
        return namespace_of(self.pod)

    # --- carrying out ------------------------------------------------------------------------------

    def carry_out(self, decision: Decision, *, deadline: float | None = None) -> float | None:
        """Begin what was decided; returns when to decide again, at the latest.

        ``deadline`` is when containers that are stopped must have ended, if the Pod is being deleted.
        """
        again = decision.again
        now = self._host.clock.time()
        if self._home.is_made and (due := self._host.renewal(self.pod)) is not None:
            if now >= due:
                self.refresh()
            else:
                again = due if again is None else min(again, due)
        for name in decision.start:
            due = self._attempts.due(name)
            if now < due:
                due = self._back_off_image(name, now, due)
                again = due if again is None else min(again, due)
            else:
                self._begin(f"start {name}", self._start(self._container(name)))
        for name, _ in decision.back_off:
            self._tell_back_off(name)
        for name in decision.stop:
            if deadline is not None and deadline < (self._deadline or deadline):
                self._cancel(f"stop {name}")  # and begun again when it has ended
            self._begin(f"stop {name}", self._stop(self._container(name), deadline))
        self._deadline = deadline
        return again

    def _cancel(self, what: str) -> None:
        if (task := self._tasks.get(what)) is not None:
            task.cancel()

    def _tell_back_off(self, name: str) -> None:
        """Once for each run that ended."""
        identity = self.records[name].identity
        if self._told.get(name) != identity:
            self._told[name] = identity
            meta = self.pod.metadata
            where = f"{name} in pod {meta.name}_{meta.namespace}({meta.uid})"
            self._host.tell(self.pod, "Warning", "BackOff", f"Back-off restarting failed container {where}", name)

    def _begin(self, what: str, work: Coroutine[Any, Any, None]) -> None:
        if what in self._tasks:
            work.close()
            return
        task = self._tasks[what] = asyncio.create_task(work, name=f"{self.pod.metadata.key}: {what}")
        task.add_done_callback(lambda done: self._done(what, done))

    def _done(self, what: str, task: asyncio.Task[None]) -> None:
        self._tasks.pop(what, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s: %s failed", self.pod.metadata.key, what, exc_info=error)
        self._changed()

    def _warn(self, reason: str, message: str, container: str) -> None:
        self._host.tell(self.pod, "Warning", reason, message, container)

    def _container(self, name: str) -> Container:
        spec = self.pod.spec
        return next(
            each for each in (*spec.containers, *spec.init_containers, *spec.ephemeral_containers) if each.name == name
        )

    def _put(self, name: str, record: Record) -> None:
        if self.records.get(name, NEVER) != record:
            self.records[name] = record
            self._changed()

    def _change(self, name: str, how: Callable[[Record], Record]) -> None:
        self._put(name, how(self.records[name]))

    def refresh(self) -> None:
        """Bring the content of its volumes up to date."""
        if self._home.is_made:
            self._begin("refresh", self._refresh())

    async def _refresh(self) -> None:
        try:
            await self._home.refresh(self.pod)
        except (Unmakeable, errors.ApiError) as error:  # what is there stays
            log.info("%s: volumes are not up to date: %s", self.pod.metadata.key, error)
            await self._host.clock.sleep(_RETRY)

    def follow(self, pod: PodToRun) -> None:
        """Its spec or its metadata changed: other images or resources, more containers, other labels."""
        before = {each.name: each for each in (*self.pod.spec.containers, *self.pod.spec.init_containers)}
        self.pod = pod
        for container in (*pod.spec.containers, *pod.spec.init_containers):
            record = self.records.get(container.name, NEVER)
            if (opened := self.open.get(container.name)) is not None and opened.start.cgroup:
                self._host.limited(pod, container)
            was, words = before.get(container.name, container), ""
            if was.image != container.image:
                self._attempts.forget(container.name)
                words = f"Container {container.name} definition changed, will be restarted"
            elif resizing.restarts(container.resize_policy, was.resources, container.resources):
                words = f"Container {container.name} resize requires restart"
            if words and record.running:
                self._put(container.name, decisions.condemned(record, words))
        self.refresh()

    # --- starting ----------------------------------------------------------------------------------

    async def _start(self, container: Container) -> None:
        async with self._starting:
            await self._try_to_start(container)

    async def _try_to_start(self, container: Container) -> None:
        record = self.records.get(container.name, NEVER)
        try:
            home = await self._home.settle(self.pod)
            image = await self._host.image(container.image)
            words = f'Container image "{container.image}" already present on machine and can be accessed by the pod'
            self._host.tell(self.pod, "Normal", "Pulled", words, container.name)
            start = await self._prepared(container, image, home)
        except NoImage as error:
            self._no_image(container, error)
            return
        except Unmountable as error:  # it goes on being created
            self._host.tell(self.pod, "Warning", "FailedMount", str(error))
            self._attempts.put_off(container.name, _RETRY)
            return
        except Unmakeable as error:
            self._failed(container, "CreateContainerConfigError", f"{error}")
            return
        except errors.ApiError as error:  # the API server is away, or does not let us
            self._failed(container, "CreateContainerConfigError", error.message)
            return
        except OSError as error:
            self._failed(container, "CreateContainerError", error.strerror or str(error))
            return
        self._host.tell(self.pod, "Normal", "Created", "Container created", container.name)
        await self._run(container, start, record, image)

    async def _prepared(self, container: Container, image: Image, home: Home) -> Start:
        around = await self._host.around(self.pod, self.sandbox)
        start = await start_of(self.pod, container, image, around, home)
        return replace(start, cgroup=self._host.limited(self.pod, container))

    async def _run(self, container: Container, start: Start, record: Record, image: Image) -> None:
        name, now = container.name, self._host.clock.time()
        identity = f"seamark://{uuid4().hex}{uuid4().hex}"
        number = record.restarts + (record.ended is not None)
        file = LogFile(self.folder / "logs" / name / f"{number}.log")
        console = Console(container, file)
        try:
            process = await self._host.machine.run(start, console.files)
        except OSError as error:
            how = Ended(CANNOT_START, now, now, "StartError", endings.start_error(start, error), identity=identity)
            begun = decisions.running(record, identity=identity, now=now, booted=False)
            self._host.tell(self.pod, "Warning", "Failed", f"Error: {how.message}", name)
            self._put(name, decisions.ended(begun, how))
            self._begin(f"close {name} {number}", console.finish())
            return
        finally:
            console.handed_over()
        self._processes[name] = process
        self.open[name] = OpenContainer(process, start, console, number, image.config.stop_signal, image.root or "")
        self._host.meter.begun.set()
        self._attempts.forget(name)
        begun = decisions.running(record, identity=identity, now=now, booted=False, image_id=image.digest or image.name)
        hook = container.lifecycle.post_start
        self._put(name, replace(begun, held=hook is not None))
        self._host.tell(self.pod, "Normal", "Started", "Container started", name)
        self._begin(f"watch {name} {number}", self._watch(container, process, console, file, start.cgroup))
        if hook is not None:
            passed = await self._hooks.carry_out(hook, "PostStart", container, process=process, start=start)
            if not passed:
                self._change(name, partial(decisions.condemned, why="FailedPostStartHook"))
                return
        if process.ended.done():
            return
        booted = container.startup_probe is None
        self._change(name, partial(decisions.begun, booted=booted, ready=booted and container.readiness_probe is None))
        if container.startup_probe or container.liveness_probe or container.readiness_probe:
            self._begin(_probing(name), self._prober(container, start).run())

    def _prober(self, container: Container, start: Start) -> Prober:
        async def ask(probe: Probe) -> Answer:
            return await self._ask(probe, container, start, probe.timeout_seconds)

        restarts = (container.restart_policy or self.pod.spec.restart_policy) != "Never"
        return Prober(
            container,
            ask=ask,
            tell=partial(self._warn, container=container.name),
            change=partial(self._change, container.name),
            restarts=restarts,
            clock=self._host.clock,
        )

    async def _ask(self, action: Action, container: Container, start: Start, timeout: float | None) -> Answer:
        """A probe or hook; ports may be named by any container of the Pod, this one first."""
        containers = (container, *self.pod.spec.containers, *self.pod.spec.init_containers)
        return await self._checks.ask(action, containers, start, timeout)

    async def _watch(self, container: Container, process: Process, console: Console, file: LogFile, group: str) -> None:
        """Until the container has ended, and all it wrote is in its log."""
        told = await process.ended
        self._cancel(_probing(container.name))
        await console.finish()
        record = self.records[container.name]
        self._processes.pop(container.name, None)
        self.open.pop(container.name, None)
        if (instead := self._instead.pop(container.name, None)) is not None and told.signal == signal.SIGKILL:
            told = replace(told, code=128 + instead, signal=instead)
        reason = "Completed" if told.code == 0 else "Error"
        if group and self._host.ran_out_of_memory(group) and told.signal == signal.SIGKILL:
            reason = "OOMKilled"
        message = endings.message(container, self.folder, file, failed=told.code != 0)
        if excess := self._excess.pop(container.name, ""):
            reason, message = TOO_MANY, excess
        now = self._host.clock.time()
        how = Ended(told.code, record.started, now, reason, message, told.signal, record.identity)
        self._put(container.name, decisions.ended(record, how))

    def _no_image(self, container: Container, error: NoImage) -> None:
        image, name = container.image, container.name
        if container.image_pull_policy == "Never":
            words = f'Container image "{image}" is not present with pull policy of Never'
            self._host.tell(self.pod, "Warning", "ErrImageNeverPull", words, name)
            self._failed(container, "ErrImageNeverPull", words, told="ErrImageNeverPull", first=IMAGE_BACK_OFF)
            return
        self._host.tell(self.pod, "Normal", "Pulling", f'Pulling image "{image}"', name)
        self._host.tell(self.pod, "Warning", "Failed", f'Failed to pull image "{image}": {error}', name)
        self._failed(container, error.reason, str(error), told=error.reason, first=IMAGE_BACK_OFF)

    def _back_off_image(self, name: str, now: float, due: float) -> float:
        """Shortly after an image could not be pulled its container waits for the next try, as a status of its own."""
        record = self.records.get(name, NEVER)
        if record.reason != "ErrImagePull":
            return due
        shown = self._attempts.failed(name) + _SHOWN
        if now < shown:
            return min(shown, due)
        words = f'Back-off pulling image "{self._container(name).image}"'
        self._host.tell(self.pod, "Normal", "BackOff", words, name)
        self._host.tell(self.pod, "Warning", "Failed", "Error: ImagePullBackOff", name)
        self._put(name, decisions.waiting(record, "ImagePullBackOff", f"{words}: ErrImagePull: {record.message}"))
        return due

    def _failed(
        self, container: Container, reason: str, message: str, *, told: str = "", first: float = _RETRY
    ) -> None:
        """A container that could not be created waits, and is tried again after a while."""
        self._attempts.put_off(container.name, first)
        self._host.tell(self.pod, "Warning", "Failed", f"Error: {told or message}", container.name)
        self._put(container.name, decisions.waiting(self.records.get(container.name, NEVER), reason, message))

    # --- stopping ----------------------------------------------------------------------------------

    async def _stop(self, container: Container, deadline: float | None) -> None:
        """Ask the container to end, and end it when its time is over."""
        process = self._processes.get(container.name)
        if process is None:
            return
        run, clock = self.open[container.name], self._host.clock
        began = clock.time()
        record = self.records[container.name]
        patience: float = self.pod.spec.termination_grace_period_seconds if record.grace is None else record.grace
        if deadline is not None:
            patience = max(0.0, deadline - began)
        if not record.stopping:  # otherwise it is only given less time
            self._put(container.name, replace(record, stopping=True))
            words = record.condemned or f"Stopping container {container.name}"
            self._host.tell(self.pod, "Normal", "Killing", words, container.name)
            hook = container.lifecycle.pre_stop
            if hook is not None and patience:
                await self._hooks.carry_out(
                    hook, "PreStop", container, process=process, start=run.start, timeout=patience
                )
                patience = max(_LEAST_PATIENCE, patience - (clock.time() - began))
        if patience and not process.ended.done():
            number = endings.stop_signal(container.lifecycle.stop_signal or run.stop_signal)
            if await self._host.machine.signal(process.name, number):
                await asyncio.wait([process.ended], timeout=patience)
            else:  # the kernel would have ended any other process than the first of a container
                self._instead[container.name] = number
        if not process.ended.done():
            await self._host.machine.signal(process.name, signal.SIGKILL)
            await asyncio.wait([process.ended])

    def crowded(self, name: str, processes: int, *, still: bool) -> None:
        """A container has more processes than it may: told, and if it ``still`` has, the container is ended."""
        words = f"has {processes} processes and threads; it may have {self._host.processes}"
        if not still:
            self._host.tell(self.pod, "Warning", TOO_MANY, f"Container {name} {words}", name)
        elif name not in self._excess:
            self._excess[name] = f"the container had {processes} processes and threads of {self._host.processes}"
            self._host.tell(self.pod, "Normal", "Killing", f"Container {name} {words}, and is ended", name)
            self._begin(f"end {name}", self._host.machine.end(self._processes[name].name))

    def evict(self, message: str) -> None:
        """The Pod has to end, because it uses what others need."""
        if self.doomed is None:
            self.doomed = Doom("Evicted", message, self._host.clock.time() + _EVICTED_WITHIN)
            self._host.tell(self.pod, "Warning", "Evicted", message)
            self._changed()

    async def lose_power(self) -> None:
        """End its processes at once, as when their machine is switched off."""
        for process in list(self._processes.values()):
            await self._host.machine.signal(process.name, signal.SIGKILL)

    async def end(self) -> None:
        """End its processes and its network; of its files only its logs stay."""
        for process in list(self._processes.values()):
            await self._host.machine.signal(process.name, signal.SIGKILL)
        for task in list(self._tasks.values()):
            if not task.get_name().rpartition(": ")[2].startswith("watch"):
                task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        await self._home.disconnect(self.pod)
        if not self.over:
            await self._home.clear(self.pod)
            self.over = True

    async def remove(self) -> None:
        """End, and remove its files."""
        await self.end()
        await self._home.remove()


def _probing(container: str) -> str:
    return f"probe {container}"
