"""The life of one Pod: carries out what :mod:`decisions` says, and keeps the records of its containers.

Every start and every stop is a task of its own; when one has changed a record, the kubelet is told and decides anew.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import signal
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from seamark import errors
from seamark.clock import Clock, doubling
from seamark.nodes import resizing
from seamark.nodes.running import decisions
from seamark.nodes.running.checks import Checks
from seamark.nodes.running.decisions import NEVER, Decision, Doom, Ended, Record
from seamark.nodes.running.machine.machine import Machine, Process
from seamark.nodes.running.machine.messages import Start
from seamark.nodes.running.network import Network
from seamark.nodes.running.pod_status import Sandbox
from seamark.nodes.running.preparing import resources, security
from seamark.nodes.running.preparing.environment import Around, Unmakeable
from seamark.nodes.running.preparing.file_systems import Volume
from seamark.nodes.running.preparing.images import Image, NoImage
from seamark.nodes.running.preparing.starting import MESSAGE, Home, holder, start_of
from seamark.nodes.running.preparing.volumes import Unmountable
from seamark.nodes.running.probes import Answer, Errored, Prober
from seamark.nodes.running.spec import Action, Container, PodToRun, Probe
from seamark.nodes.running.streaming.consoles import Console
from seamark.nodes.running.streaming.container_logs import LogFile
from seamark.nodes.running.streaming.measuring import Meter

log = logging.getLogger(__name__)

CANNOT_START = 128
TOO_MANY = "TooManyProcesses"
_LEAST_PATIENCE = 2.0  # seconds between the signal and the end, if a preStop hook took the rest
_LONGEST_MESSAGE = 4096
_EVICTED_WITHIN = 1.0  # seconds that the containers of a Pod have to end when it is evicted
IMAGE_BACK_OFF = 10.0
_SHOWN = 2.0  # seconds for which it is shown that an image could not be pulled, before it waits for the next try
_RETRY, _LONGEST_RETRY = 1.0, 300.0  # seconds after which a start that failed is tried again


class Host(Protocol):
    """What a Pod's life needs of its node: images, volumes, and what its environment refers to."""

    machine: Machine
    network: Network
    clock: Clock
    processes: int  # how many a container may have; 0 for any number
    nice: int  # by how much other programs of the machine come first
    meter: Meter

    def limited(self, pod: PodToRun, container: Container) -> str:
        """The path of the control group in which the container is limited, newly made; "" if there are none."""

    def ran_out_of_memory(self, group: str) -> bool:
        """Whether the kernel ended what ran in this group; the group is removed."""

    async def image(self, name: str) -> Image:
        """Raises ``NoImage``."""

    async def around(self, pod: PodToRun, sandbox: Sandbox) -> Around:
        """What environments may refer to."""

    async def volumes(self, pod: PodToRun, folder: Path, sandbox: Sandbox) -> Mapping[str, str]:
        """The Pod's volumes by name, each prepared at a path; raises ``Unmakeable``."""

    def host_name(self, pod: PodToRun) -> str:
        """What the kernel says as host name in the Pod."""

    def renewal(self, pod: PodToRun) -> float | None:
        """When a token of its volumes is to be renewed."""

    async def forget(self, pod: PodToRun) -> None:
        """The Pod is gone."""

    async def own_files(self, pod: PodToRun, folder: Path, sandbox: Sandbox) -> list[Volume]:
        """Files that every container of the Pod has: ``/etc/hosts`` and its like."""

    def tell(
        self, pod: PodToRun, kind: Literal["Normal", "Warning"], reason: str, message: str, container: str = ""
    ) -> None:
        """Record an Event."""


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
        self._tries: dict[str, tuple[int, float]] = {}  # starts that failed: how many, and when the next one may be
        self._told: dict[str, str] = {}  # runs of containers whose back-off was told
        self._excess: dict[str, str] = {}  # why containers are ended that have too many processes
        self._deadline: float | None = None  # when what is being stopped must have ended
        self._instead: dict[str, int] = {}  # signals in whose place containers were killed
        self._starting = asyncio.Lock()  # containers start one after the other, each with its hook
        self._settled = asyncio.Lock()
        self._home: Home | None = None  # once its network and its volumes are there
        self._connected = False
        self._held = ""  # the process that holds the PID namespace of all its containers
        self._checks = Checks(host.machine, pod.spec.node_name, (*sandbox.pod_ips, "")[0])

    @property
    def namespace(self) -> str:
        """The name of its namespaces: its own, or its node's if it shares that network."""
        return f"node/{self.pod.spec.node_name}" if self.pod.spec.host_network else self.pod.metadata.uid

    # --- carrying out ------------------------------------------------------------------------------

    def carry_out(self, decision: Decision, *, deadline: float | None = None) -> float | None:
        """Begin what was decided; returns when to decide again, at the latest.

        ``deadline`` is when containers that are stopped must have ended, if the Pod is being deleted.
        """
        again = decision.again
        now = self._host.clock.time()
        if self._home is not None and (due := self._host.renewal(self.pod)) is not None:
            if now >= due:
                self.refresh()
            else:
                again = due if again is None else min(again, due)
        for name in decision.start:
            _, due = self._tries.get(name, (0, 0.0))
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
        if self._home is not None:
            self._begin("refresh", self._refresh())

    async def _refresh(self) -> None:
        try:
            async with self._settled:
                await self._host.volumes(self.pod, self.folder, self.sandbox)
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
                self._tries.pop(container.name, None)
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
            await self._settle()
            image = await self._host.image(container.image)
            words = f'Container image "{container.image}" already present on machine and can be accessed by the pod'
            self._host.tell(self.pod, "Normal", "Pulled", words, container.name)
            start = await self._prepared(container, image)
        except NoImage as error:
            self._no_image(container, error)
            return
        except Unmountable as error:  # it goes on being created
            self._host.tell(self.pod, "Warning", "FailedMount", str(error))
            self._put_off(container.name, _RETRY)
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

    async def _settle(self) -> None:
        """The Pod's network and volumes, once for all of its containers."""
        async with self._settled:
            if not self._connected and not self.pod.spec.host_network:
                spec = self.pod.spec
                await self._host.network.add_pod(
                    self.pod.metadata.uid,
                    spec.node_name,
                    self.sandbox.pod_ips,
                    self._host.host_name(self.pod),
                    settings=security.settings(spec.security_context),
                    shares_memory=spec.host_ipc,
                )
            self._connected = True
            if (process := holder(self.pod)) and not self._held:
                await self._host.machine.hold(process, resources.bound(self._host.processes))
                self._held = process
            if self._home is None:
                self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._tell_limits()
                self._home = Home(
                    self.folder,
                    self.namespace,
                    self._host.host_name(self.pod),
                    await self._host.own_files(self.pod, self.folder, self.sandbox),
                    await self._host.volumes(self.pod, self.folder, self.sandbox),
                    self._host.machine.all_users,
                    self._host.processes,
                    self._host.nice,
                )

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

    def _tell_limits(self) -> None:
        """One Event about all that the Pod asks for and does not get."""
        if ignored := security.not_honoured(self.pod, all_users=self._host.machine.all_users):
            words = f"Not honoured by a node that runs Pods as processes: {', '.join(ignored)}"
            self._host.tell(self.pod, "Warning", "NotHonoured", words)

    async def _prepared(self, container: Container, image: Image) -> Start:
        assert self._home is not None
        around = await self._host.around(self.pod, self.sandbox)
        start = await start_of(self.pod, container, image, around, self._home)
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
            how = Ended(CANNOT_START, now, now, "StartError", _start_error(start, error), identity=identity)
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
        self._tries.pop(name, None)
        begun = decisions.running(record, identity=identity, now=now, booted=False, image_id=image.digest or image.name)
        hook = container.lifecycle.post_start
        self._put(name, replace(begun, held=hook is not None))
        self._host.tell(self.pod, "Normal", "Started", "Container started", name)
        self._begin(f"watch {name} {number}", self._watch(container, process, console, file, start.cgroup))
        if hook is not None and not await self._hook(hook, "PostStart", self.open[name], container, None):
            self._change(name, partial(decisions.condemned, why="FailedPostStartHook"))
            return
        if process.ended.done():
            return
        booted = container.startup_probe is None
        self._change(name, partial(decisions.begun, booted=booted, ready=booted and container.readiness_probe is None))
        if container.startup_probe or container.liveness_probe or container.readiness_probe:
            self._begin(_probing(name), self._prober(container, start).run())

    def _prober(self, container: Container, start: Start) -> Prober:
        def tell(reason: str, message: str) -> None:
            self._host.tell(self.pod, "Warning", reason, message, container.name)

        async def ask(probe: Probe) -> Answer:
            return await self._ask(probe, container, start, probe.timeout_seconds)

        restarts = (container.restart_policy or self.pod.spec.restart_policy) != "Never"
        return Prober(
            container,
            ask=ask,
            tell=tell,
            change=partial(self._change, container.name),
            restarts=restarts,
            clock=self._host.clock,
        )

    async def _ask(self, action: Action, container: Container, start: Start, timeout: float | None) -> Answer:
        """A probe or hook; ports may be named by any container of the Pod, this one first."""
        containers = (container, *self.pod.spec.containers, *self.pod.spec.init_containers)
        return await self._checks.ask(action, containers, start, timeout)

    async def _hook(
        self,
        hook: Action,
        kind: Literal["PostStart", "PreStop"],
        run: OpenContainer,
        container: Container,
        timeout: float | None,
    ) -> bool:
        """Whether the hook succeeded, or the container ended meanwhile."""
        asking = asyncio.create_task(self._asked(hook, run, container, timeout))
        either: list[asyncio.Future[Any]] = [asking, run.process.ended]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not asking.done():
            asking.cancel()
            await asyncio.wait([asking])
            return True
        if why := asking.result():
            log.info("%s: %s of %s failed: %s", self.pod.metadata.key, kind, container.name, why)
            self._host.tell(self.pod, "Warning", f"Failed{kind}Hook", f"{kind}Hook failed", container.name)
        return not why

    async def _asked(self, hook: Action, run: OpenContainer, container: Container, timeout: float | None) -> str:
        """Why the hook failed, if it did."""
        if hook.sleep is not None:
            await self._host.clock.sleep(min(hook.sleep.seconds, timeout or hook.sleep.seconds))
            return ""
        try:
            answer = await self._ask(hook, container, run.start, timeout)
        except Errored as error:
            return str(error)
        return "" if answer.passed else answer.said or "it failed"

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
        message = self._last_words(container, file) if told.code else self._message(container)
        if excess := self._excess.pop(container.name, ""):
            reason, message = TOO_MANY, excess
        now = self._host.clock.time()
        how = Ended(told.code, record.started, now, reason, message, told.signal, record.identity)
        self._put(container.name, decisions.ended(record, how))

    def _message(self, container: Container) -> str:
        """What the container left as its message."""
        try:
            with open(self.folder / "containers" / container.name / MESSAGE, "rb") as opened:
                return opened.read(_LONGEST_MESSAGE).decode(errors="replace")
        except OSError:
            return ""

    def _last_words(self, container: Container, file: LogFile) -> str:
        message = self._message(container)
        if message or container.termination_message_policy != "FallbackToLogsOnError":
            return message
        return file.end()

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
        shown = due - _delay(self._tries[name][0], IMAGE_BACK_OFF) + _SHOWN
        if now < shown:
            return min(shown, due)
        words = f'Back-off pulling image "{self._container(name).image}"'
        self._host.tell(self.pod, "Normal", "BackOff", words, name)
        self._host.tell(self.pod, "Warning", "Failed", "Error: ImagePullBackOff", name)
        self._put(name, decisions.waiting(record, "ImagePullBackOff", f"{words}: ErrImagePull: {record.message}"))
        return due

    def _put_off(self, name: str, first: float) -> None:
        """Try again to start a container, after a while that grows."""
        tries = self._tries.get(name, (0, 0.0))[0] + 1
        self._tries[name] = (tries, self._host.clock.time() + _delay(tries, first))

    def _failed(
        self, container: Container, reason: str, message: str, *, told: str = "", first: float = _RETRY
    ) -> None:
        """A container that could not be created waits, and is tried again after a while."""
        self._put_off(container.name, first)
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
                await self._hook(hook, "PreStop", run, container, patience)
                patience = max(_LEAST_PATIENCE, patience - (clock.time() - began))
        if patience and not process.ended.done():
            number = _stop_signal(container.lifecycle.stop_signal or run.stop_signal)
            if await self._host.machine.signal(process.name, number):
                await asyncio.wait([process.ended], timeout=patience)
            else:  # the kernel would have ended any other process than the first of a container
                self._instead[container.name] = number
        if not process.ended.done():
            await self._host.machine.signal(process.name, signal.SIGKILL)
            await asyncio.wait([process.ended])

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
        if self._held:
            await self._host.machine.signal(self._held, signal.SIGKILL)
            self._held = ""
        if self._connected and not self.pod.spec.host_network:
            self._connected = False
            await self._host.network.remove_pod(self.pod.metadata.uid, self.pod.spec.node_name)
        if not self.over:
            await self._host.forget(self.pod)
            for name in ("volumes", "containers"):
                await asyncio.to_thread(shutil.rmtree, self.folder / name, ignore_errors=True)
            self.over = True

    async def remove(self) -> None:
        """End, and remove its files."""
        await self.end()
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)


def _probing(container: str) -> str:
    return f"probe {container}"


def _stop_signal(name: str) -> int:
    """``SIGUSR1``, ``USR1``, ``SIGRTMIN+3`` or a number; SIGTERM if nothing is said."""
    word, plus, more = name.upper().removeprefix("SIG").partition("+")
    if word.isdecimal():
        return int(word)
    number = getattr(signal, f"SIG{word}", signal.SIGTERM) if word else signal.SIGTERM
    return int(number) + (int(more) if plus and more.isdecimal() else 0)


def _start_error(start: Start, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return f'exec: "{start.arguments[0]}": executable file not found in $PATH'
    return f'exec: "{start.arguments[0]}": {error.strerror or error}'


def _delay(tries: int, first: float) -> float:
    """Seconds until the next start after so many that failed."""
    return doubling(first, _LONGEST_RETRY, tries - 1)
