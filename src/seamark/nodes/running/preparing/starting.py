"""Puts together what the machine is asked to start: a container's command, variables, file system and rights."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from seamark.nodes.running.machine.messages import MACHINE, Start
from seamark.nodes.running.preparing import file_systems, resources, security, volumes
from seamark.nodes.running.preparing.environment import Around, Unmakeable, command_line, environment, filled
from seamark.nodes.running.preparing.file_systems import Volume
from seamark.nodes.running.preparing.images import Image
from seamark.nodes.running.preparing.security import Identity
from seamark.nodes.running.spec import Container, PodToRun

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_AS_MANY = 4  # times the processes of one container is what all Pods have together, if one user runs them
MESSAGE = "termination-log"  # the file, in a container's folder, of what it leaves as its message


class Home(msgspec.Struct, frozen=True):
    """What all containers of a Pod share on this machine."""

    folder: Path
    namespace: str  # of its network, host name and shared memory
    host_name: str
    own_files: Sequence[Volume]  # those that every container has: ``/etc/hosts`` and its like
    volumes: Mapping[str, str]  # the path of each, by name
    all_users: bool  # whether processes may run as any user of the machine, or as one only
    processes: int = 0  # how many a container may have, if not 0
    nice: int = 0  # by how much the daemon and other programs of the machine come first

    def of(self, container: Container) -> Path:
        return self.folder / "containers" / container.name


async def start_of(pod: PodToRun, container: Container, image: Image, around: Around, home: Home) -> Start:
    """Raises ``Unmakeable``, and ``OSError`` if the machine's disk does not take what is needed."""
    who = await asyncio.to_thread(_identity, pod, container, image, ordinary=not home.all_users)
    given = environment(pod, container, around)
    variables = _variables(given, image, home, who)
    words = command_line(container, variables)
    if not container.command:
        words = (*(image.config.entrypoint or ()), *(words or image.config.cmd or ()))
    if not words:
        raise Unmakeable("no command specified")
    folder = home.of(container)
    await asyncio.to_thread(_make_folders, folder)
    message = Volume(str(folder / MESSAGE), container.termination_message_path)
    mounts = [*home.own_files, message, *_mounts(pod, container, given, home)]
    if image.program:
        mounts.insert(0, Volume(image.program, image.entry, read_only=True))
    if image.root is None:
        shared = any(word.startswith("/tmp/") for word in (*words, container.working_dir))
        root = file_systems.of_host("/tmp" if shared else str(folder / "tmp"), mounts)
    else:
        root = file_systems.of_directory(image.root, str(folder / "upper"), str(folder / "work"), mounts)
    own = container.security_context
    if own.read_only_root_filesystem:
        root = file_systems.read_only(root, mounts)
    return Start(
        f"{pod.metadata.uid}/{container.name}",
        words,
        variables,
        folder=container.working_dir or image.config.working_dir or "/",
        namespace=home.namespace,
        root=root,
        scratch=str(folder / "root"),
        user=who.user if home.all_users else 0,
        group=who.group if home.all_users else 0,
        groups=who.groups if home.all_users else (),
        terminal=container.tty,
        gains_privileges=own.allow_privilege_escalation is not False,
        capabilities=security.capabilities(own),
        processes=resources.bound(home.processes),
        user_processes=0 if home.all_users else resources.bound(home.processes) * _AS_MANY,
        beside=_beside(pod, container),
        nice=home.nice,
    )


def holder(pod: PodToRun) -> str:
    """The name of the process that holds the PID namespace of a Pod whose containers share one; "" for other Pods."""
    shares = pod.spec.share_process_namespace and not pod.spec.host_pid
    return f"{pod.metadata.uid}/.pause" if shares else ""


def _beside(pod: PodToRun, container: Container) -> str:
    if pod.spec.host_pid:
        return MACHINE
    if container.target_container_name:
        return f"{pod.metadata.uid}/{container.target_container_name}"
    return holder(pod)


def _variables(given: Mapping[str, str], image: Image, home: Home, who: Identity) -> dict[str, str]:
    ours = {"PATH": PATH, "HOSTNAME": home.host_name, "HOME": who.home}
    if not home.all_users:
        ours["TAR_OPTIONS"] = "--no-same-owner"  # there is one user only: `kubectl cp` could not set another owner
    return {**ours, **dict(each.partition("=")[::2] for each in image.config.env or ()), **given}


def _mounts(pod: PodToRun, container: Container, variables: Mapping[str, str], home: Home) -> list[Volume]:
    found, fixed = [], volumes.read_only(pod)
    for mount in container.volume_mounts:
        below = mount.sub_path or filled(mount.sub_path_expr, variables)
        if below.startswith("/"):
            raise Unmakeable(f"error SubPath `{below}` must not be an absolute path")
        if ".." in below.split("/"):
            raise Unmakeable(f"unable to provision SubPath `{below}`: must not contain '..'")
        read_only = mount.read_only or mount.name in fixed
        found.append(Volume(home.volumes[mount.name], mount.mount_path, read_only, below))
    return found


def _make_folders(folder: Path) -> None:
    for name in ("root", "upper", "work", "tmp"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "tmp").chmod(0o1777)
    message = folder / MESSAGE
    message.write_bytes(b"")
    message.chmod(0o666)


def _identity(pod: PodToRun, container: Container, image: Image, *, ordinary: bool) -> Identity:
    files = {}
    for name in ("passwd", "group"):
        try:
            files[name] = Path(image.root or "/", "etc", name).read_text(errors="replace")
        except OSError:
            files[name] = ""
    harmless = ordinary and image.root is None
    return security.identity(pod, container, image_user=image.config.user, harmless=harmless, **files)
