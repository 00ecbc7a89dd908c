"""What the nodes of this machine have in common: the machine itself, its network, images, and what Pods refer to."""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import shutil
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from seamark import errors
from seamark.access.cluster import Cluster
from seamark.access.events import EventRecorder, Reference
from seamark.access.informer import Informer
from seamark.clock import Clock
from seamark.kinds.resource import (
    CONFIGMAPS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
    Resource,
)
from seamark.kinds.values.quantity import measure
from seamark.linux import cgroups
from seamark.linux.cgroups import Cgroups, NotDelegated
from seamark.nodes.running import network_files
from seamark.nodes.running.disk import DiskWatch
from seamark.nodes.running.machine.machine import Machine
from seamark.nodes.running.network import Network, NodeNetwork
from seamark.nodes.running.pod_status import Sandbox
from seamark.nodes.running.preparing import images, resources, unpacking, volumes
from seamark.nodes.running.preparing.environment import Around, Unmakeable, linked_services, secret_content
from seamark.nodes.running.preparing.file_systems import Volume
from seamark.nodes.running.preparing.images import HOST, Image, NoImage
from seamark.nodes.running.preparing.volumes import Sources, TokenWanted
from seamark.nodes.running.settings import PodSettings
from seamark.nodes.running.spec import Container, PodToRun
from seamark.nodes.running.streaming.measuring import Meter
from seamark.nodes.simulated.node_objects import System
from seamark.nodes.simulated.settings import NodeSettings
from seamark.rules.objects.service import Service

if TYPE_CHECKING:
    from seamark.nodes.running.life import PodLife

log = logging.getLogger(__name__)

_LONGEST_HOST_NAME = 64
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}  # as Go calls them
_REMEDY = "systemd delegates a group by: systemd-run --user --scope -p Delegate=yes seamark up …"
_RENEWED, _LONGEST_TOKEN = 0.8, 86400.0  # a token is renewed after this part of its life, or after a day


class Attach(Protocol):
    """Connects the rest of Seamark to the machine, for as long as the context lasts."""

    async def machine(self) -> Machine:
        """One that nothing runs on yet."""

    def fabric(self, machine: Machine, network: Network) -> AbstractAsyncContextManager[None]:
        """The API server and DNS listen in the fabric."""

    def node(self, machine: Machine, node: NodeNetwork) -> AbstractAsyncContextManager[None]:
        """The proxy writes its rules into the node's network."""


class Hosting:
    """Nothing may be asked of it before it is ``ready``, while ``run`` runs."""

    machine: Machine
    network: Network

    def __init__(
        self,
        cluster: Cluster,
        *,
        services: Informer[Service],
        events: EventRecorder,
        clock: Clock,
        settings: PodSettings,
        nodes: NodeSettings,
        folder: Path,
        domain: str,
        dns: Sequence[str],
        attach: Attach,
    ) -> None:
        self._cluster = cluster
        self._services = services
        self._events = events
        self.clock = clock
        self._rules = images.parse(settings.images)
        self.usual = "processes" if settings.mode == "processes" else "simulated"
        self._nodes = nodes
        self.folder = folder
        self._domain = domain
        self._dns = tuple(dns)
        self._attach = attach
        self._attached = AsyncExitStack()
        self._unpacking = asyncio.Lock()
        self._tokens: dict[str, dict[TokenWanted, tuple[str, float]]] = {}  # by Pod, with when to renew them
        self.system = this_system()
        self.ready = asyncio.Event()
        self.lives: dict[str, PodLife] = {}  # by the Pod's uid
        self.processes = settings.processes
        self.nice = settings.nice
        self.meter = Meter(self.lives, clock, processes=settings.processes)
        self._disk = DiskWatch(self.lives, folder, clock, least=int(measure(settings.free_disk)))
        self._mounted: dict[str, list[str]] = {}  # the volumes in memory of each Pod
        self._groups: Cgroups | None = None
        self._unlimited = ""  # why there are no groups

    async def run(self) -> None:
        """Start the machine, and stay until it is gone or this is cancelled; then every process of every Pod ends."""
        try:
            self._groups = await asyncio.to_thread(Cgroups.take)
        except (NotDelegated, OSError) as error:
            self._unlimited = f"limits of CPU and memory have no effect on Pods: {error}; {_REMEDY}"
            log.warning("%s", self._unlimited)
        self.machine = await self._attach.machine()
        try:
            self.network = await Network.create(self.machine, self._nodes.node_ranges)
            try:
                async with self._attached, self._attach.fabric(self.machine, self.network):
                    self.ready.set()
                    watching = [
                        asyncio.create_task(self.meter.run(self.machine), name="measure what Pods use"),
                        asyncio.create_task(self._disk.run(), name="look after the disk of Pods"),
                    ]
                    try:
                        await self.machine.gone.wait()
                    finally:
                        for each in watching:
                            each.cancel()
                        await asyncio.gather(*watching, return_exceptions=True)
                    raise RuntimeError("the machine that Pods run on has ended")
            finally:
                self.network.close()
        finally:
            await self.machine.close()

    async def add_node(self, node: NodeNetwork) -> None:
        await self.network.add_node(node)
        await self._attached.enter_async_context(self._attach.node(self.machine, node))
        if self._unlimited:
            about = Reference(NODES.kind, node.name, uid=node.name, api_version=NODES.api_version)
            self._events.record(about, "Warning", reason="LimitsNotEnforced", message=self._unlimited)

    # --- what a Pod's life asks for ----------------------------------------------------------------

    def limited(self, pod: PodToRun, container: Container) -> str:
        if self._groups is None:
            return ""
        wanted = resources.limits(container.resources, processes=self.processes)
        return self._groups.make(pod.metadata.uid, container.name, wanted)

    def ran_out_of_memory(self, group: str) -> bool:
        killed = cgroups.events(group, "memory.events").get("oom_kill", 0)
        with suppress(OSError):
            os.rmdir(group)
        return killed > 0

    async def image(self, name: str) -> Image:
        rule = images.rule_of(name, self._rules)
        place, kind = rule.place, images.kind_of(rule.place)
        if kind == HOST:
            return Image(name, None)
        if kind == "program":
            return Image.of_program(name, place, rule.words)
        if kind == "directory":
            return Image(name, place)
        async with self._unpacking:
            found = await asyncio.to_thread(
                unpacking.unpack, place, self.folder / "images", owners=self.machine.all_users
            )
        return Image(name, found.root, found.config, found.digest)

    async def around(self, pod: PodToRun, sandbox: Sandbox) -> Around:
        namespace = pod.metadata.namespace
        wanted = {
            CONFIGMAPS: [s.config_map_ref for c in _everyone(pod) for s in c.env_from if s.config_map_ref]
            + [
                v.value_from.config_map_key_ref
                for c in _everyone(pod)
                for v in c.env
                if v.value_from and v.value_from.config_map_key_ref
            ],
            SECRETS: [s.secret_ref for c in _everyone(pod) for s in c.env_from if s.secret_ref]
            + [
                v.value_from.secret_key_ref
                for c in _everyone(pod)
                for v in c.env
                if v.value_from and v.value_from.secret_key_ref
            ],
        }
        found: dict[Resource, dict[str, Mapping[str, str]]] = {CONFIGMAPS: {}, SECRETS: {}}
        for resource, refs in wanted.items():
            for name in {ref.name for ref in refs}:
                obj = await self._read(resource, name, namespace)
                if obj is not None:
                    data = obj.get("data") or {}
                    found[resource][name] = secret_content(data) if resource is SECRETS else data
        return Around(
            found[CONFIGMAPS].get,
            found[SECRETS].get,
            sandbox.pod_ips,
            sandbox.host_ips,
            linked_services(namespace, self._services.objects(), links=pod.spec.enable_service_links),
            {"cpu": self._nodes.cpu, "memory": self._nodes.memory, "ephemeral-storage": self._nodes.storage},
        )

    async def volumes(self, pod: PodToRun, folder: Path, sandbox: Sandbox) -> Mapping[str, str]:
        namespace = pod.metadata.namespace

        async def config_map(name: str) -> dict[str, Any] | None:
            return await self._read(CONFIGMAPS, name, namespace)

        async def secret(name: str) -> dict[str, Any] | None:
            return await self._read(SECRETS, name, namespace)

        async def token(wanted: TokenWanted) -> str:
            known = self._tokens.setdefault(pod.metadata.uid, {})
            now = self.clock.time()
            if wanted not in known or now >= known[wanted][1]:
                known[wanted] = await self._token(pod, wanted), now + min(_RENEWED * wanted.seconds, _LONGEST_TOKEN)
            return known[wanted][0]

        async def claim(name: str) -> str:
            found = await self._read(PERSISTENT_VOLUME_CLAIMS, name, namespace)
            if found is None:
                raise Unmakeable(f'persistentvolumeclaim "{name}" not found')
            path = self._claim(namespace, name, found["metadata"]["uid"])
            path.mkdir(parents=True, exist_ok=True)
            path.chmod(0o777)
            return str(path)

        async def memory(path: str, size: int, group: int) -> None:
            mounted = self._mounted.setdefault(pod.metadata.uid, [])
            if path not in mounted:
                await self.machine.mount(path, size=size, group=group, mode=0o2777 if group else 0o777)
                mounted.append(path)

        async def image(reference: str) -> str:
            try:
                root = (await self.image(reference)).root
            except NoImage as error:
                raise Unmakeable(str(error)) from error
            if root is None:
                raise Unmakeable(f'image "{reference}" is this machine itself, which is no volume')
            return root

        around = await self.around(pod, sandbox)
        sources = Sources(config_map, secret, token, claim, memory, image, self.machine.all_users)
        return await volumes.prepare(pod, folder, around, sources)

    def host_name(self, pod: PodToRun) -> str:
        spec = pod.spec
        if not (spec.set_hostname_as_fqdn and spec.subdomain):
            return pod.host_name
        found = f"{pod.host_name}.{spec.subdomain}.{pod.metadata.namespace}.svc.{self._domain}"
        if len(found) > _LONGEST_HOST_NAME:
            raise Unmakeable(f"FQDN {found} is longer than {_LONGEST_HOST_NAME} characters")
        return found

    def renewal(self, pod: PodToRun) -> float | None:
        return min((due for _, due in self._tokens.get(pod.metadata.uid, {}).values()), default=None)

    async def forget(self, pod: PodToRun) -> None:
        self._tokens.pop(pod.metadata.uid, None)
        for path in self._mounted.pop(pod.metadata.uid, ()):
            with suppress(OSError):  # the machine is gone, and the file system with it
                await self.machine.unmount(path)
        if self._groups is not None:
            self._groups.remove(pod.metadata.uid)

    def _claim(self, namespace: str, name: str, uid: str) -> Path:
        return self.folder / "claims" / namespace / f"{name}-{uid}"

    async def drop_claim(self, namespace: str, name: str, uid: str) -> None:
        """The claim is gone, and its directory with it."""
        await asyncio.to_thread(shutil.rmtree, self._claim(namespace, name, uid), ignore_errors=True)

    async def own_files(self, pod: PodToRun, folder: Path, sandbox: Sandbox) -> list[Volume]:
        if pod.spec.host_network:
            hosts = network_files.hosts_of_node(pod, _text_of("/etc/hosts"))
        else:
            hosts = network_files.hosts(pod, sandbox.pod_ips, domain=self._domain)
        texts = {
            "/etc/resolv.conf": self._resolver(pod).text(),
            "/etc/hostname": self.host_name(pod) + "\n",
            "/etc/hosts": hosts,
        }
        found = []
        for path, text in texts.items():
            file = folder / path.rpartition("/")[2]
            file.write_text(text)
            found.append(Volume(str(file), path))
        return found

    def _resolver(self, pod: PodToRun) -> network_files.Resolver:
        host = network_files.read_resolver(_text_of("/etc/resolv.conf"))
        # The machine's own name servers cannot be reached from the Pods' network, its search domains are of no use.
        return network_files.resolver(
            pod, cluster=self._dns, domain=self._domain, host=network_files.Resolver(host.nameservers)
        )

    def tell(
        self, pod: PodToRun, kind: Literal["Normal", "Warning"], reason: str, message: str, container: str = ""
    ) -> None:
        about = Reference.of(PODS, pod.metadata)
        if container:
            about = msgspec.structs.replace(about, field_path=_path_of(pod, container))
        self._events.record(about, kind, reason=reason, message=message)

    # --- reading -----------------------------------------------------------------------------------

    async def _read(self, resource: Resource, name: str, namespace: str) -> dict[str, Any] | None:
        try:
            return await self._cluster.get(resource, name, namespace=namespace)
        except errors.NotFound:
            return None

    async def _token(self, pod: PodToRun, wanted: TokenWanted) -> str:
        meta = pod.metadata
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {
                "audiences": [wanted.audience] if wanted.audience else [],
                "expirationSeconds": wanted.seconds,
                "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": meta.name, "uid": meta.uid},
            },
        }
        account = pod.spec.service_account_name or "default"
        try:
            answer = await self._cluster.create(
                SERVICE_ACCOUNTS, request, namespace=meta.namespace, name=account, subresource="token"
            )
        except errors.NotFound as error:
            raise Unmakeable(f"failed to fetch token: {error}") from error
        return str(answer["status"]["token"])


def _text_of(file: str) -> str:
    """What a file of this machine says; nothing if it cannot be read."""
    try:
        return Path(file).read_text(errors="replace")
    except OSError:
        return ""


def this_system() -> System:
    """The system of this machine, as a kubelet tells it."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:  # it has no file that says so
        release = {}
    machine = platform.machine()
    return System(platform.release(), release.get("PRETTY_NAME", "Linux"), _ARCHITECTURES.get(machine, machine))


def _everyone(pod: PodToRun) -> Sequence[Any]:
    return (*pod.spec.containers, *pod.spec.init_containers, *pod.spec.ephemeral_containers)


def _path_of(pod: PodToRun, container: str) -> str:
    fields = {"initContainers": pod.spec.init_containers, "ephemeralContainers": pod.spec.ephemeral_containers}
    found = next((field for field, those in fields.items() if any(each.name == container for each in those)), "")
    return f"spec.{found or 'containers'}{{{container}}}"
