"""A whole Seamark in a thread of the current process: it starts in milliseconds and leaves no files behind."""

from __future__ import annotations

import asyncio
import inspect
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

from seamark import errors
from seamark.api.authorization import component
from seamark.api.local import LocalCluster
from seamark.config import Profile, settled
from seamark.daemon import EVERYTHING, Component, Daemon
from seamark.errors import Object
from seamark.kinds.kind import Kind
from seamark.kinds.resource import NAMESPACES, Resource
from seamark.nodes.simulated import control
from seamark.temporary import TemporaryFolder
from seamark.testing import logins
from seamark.testing.logins import Login, Rules
from seamark.testing.telling import tell
from seamark.testing.thread import run, submit

T = TypeVar("T")
Manifest = str | Path | Mapping[str, Any]

PATIENCE_SECONDS = 30.0
LOOK_SECONDS = 0.5  # how often a condition is asked although nothing in the cluster changed
NAME = "seamark-testing"
TOKEN = "admin.token"

# The keys and certificates that the first cluster of this process made, by file name: they take longer to make than all
# the rest of a start.  Each cluster still has a token of its own.
_keys: dict[str, bytes] = {}


class NotYet(AssertionError):
    """What a test waited for did not happen; the message has what is wrong in the cluster."""


class Cluster:
    """A private cluster: ``with Cluster() as cluster: …``, or ``async with``.

    Clients reach it by ``url``, ``token``, ``ca`` and ``kubeconfig``; ``dns`` is the address of its DNS server.
    Its state is in memory and its files are in a temporary directory, which ``stop`` removes.  With the profile
    ``plain`` there is only what a test makes; ``full`` is a cluster as it usually is, with RBAC and ServiceAccounts.
    ``crds`` and ``manifests`` are files, directories or objects that are there from the start.

    All methods may be called from any thread.
    """

    __test__ = False  # tells pytest not to collect this class under its former name, TestCluster

    def __init__(
        self,
        *,
        nodes: int = 1,
        profile: Profile = "plain",
        crds: Iterable[Manifest] = (),
        manifests: Iterable[Manifest] = (),
        parts: Sequence[Component] = EVERYTHING,
    ) -> None:
        self._temporary = TemporaryFolder()
        self._folder = self._temporary.path
        self._users = self._folder / "users.csv"
        self._users.touch()
        self._config = settled(
            {
                "data_dir": str(self._folder),
                "ephemeral": True,
                "profile": profile,
                "dns_port": 0,
                "api": {"port": 0, "token_file": str(self._users)},
                "nodes": {"count": nodes},
            }
        )
        self._parts = parts
        self._first = [*crds, *manifests]
        self._daemon: Daemon
        self._stop: asyncio.Event
        self._life: asyncio.Task[None]

    # --- life --------------------------------------------------------------------------------------

    def start(self) -> Cluster:
        run(self._start())
        return self

    def stop(self) -> None:
        run(self._end())

    async def _start(self) -> None:
        pki = self._folder / "pki"
        if _keys:
            pki.mkdir(mode=0o700)
            for name, content in {**_keys, TOKEN: secrets.token_hex(32).encode()}.items():
                (pki / name).touch(mode=0o600)
                (pki / name).write_bytes(content)
        self._daemon = Daemon(self._config, self._parts)
        self._stop = asyncio.Event()
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._life = asyncio.create_task(self._live(ready), name="test cluster")
        await ready
        _keys.update({path.name: path.read_bytes() for path in pki.iterdir() if path.name != TOKEN})
        try:
            await self._apply(self._first, "default")
        except BaseException:
            await self._end()
            raise

    async def _live(self, ready: asyncio.Future[None]) -> None:
        # The same task must enter and leave `running`, because it contains a task group.
        try:
            async with self._daemon.running():
                ready.set_result(None)
                await self._stop.wait()
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(error)

    async def _end(self) -> None:
        self._stop.set()
        await self._life
        self._temporary.remove()

    def __enter__(self) -> Cluster:
        return self.start()

    def __exit__(self, *_error: object) -> None:
        self.stop()

    async def __aenter__(self) -> Cluster:
        await asyncio.wrap_future(submit(self._start()))
        return self

    async def __aexit__(self, *_error: object) -> None:
        await asyncio.wrap_future(submit(self._end()))

    # --- where it is -------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        return self._daemon.url

    @property
    def kubeconfig(self) -> Path:
        return self._daemon.kubeconfig_path

    @property
    def ca(self) -> Path:
        return self._folder / "pki" / "ca.crt"

    @property
    def certificate(self) -> tuple[Path, Path]:
        """A certificate of ``ca`` for localhost and 127.0.0.1, and its key: for webhooks that a test serves."""
        return self._folder / "pki" / "server.crt", self._folder / "pki" / "server.key"

    @property
    def token(self) -> str:
        return (self._folder / "pki" / TOKEN).read_text().strip()

    @property
    def dns(self) -> tuple[str, int]:
        """Host and port of the DNS server, for UDP and TCP."""
        assert self._daemon.dns_addresses, "this cluster was started without DNS"
        return self._daemon.dns_addresses[0]

    # --- objects -----------------------------------------------------------------------------------

    @property
    def _cluster(self) -> LocalCluster:
        return self._daemon.api.cluster(NAME, user=component(NAME))

    def apply(self, *manifests: Manifest, namespace: str = "default") -> None:
        """Make objects as files, directories or dicts say; custom resources can be used once this returns."""
        run(self._apply(manifests, namespace))

    def get(self, kind: str, name: str, *, namespace: str = "default") -> Object:
        """One object: ``cluster.get("deployments", "web")``, ``cluster.get("widgets.example.com", "one")``.

        Raises ``seamark.errors.NotFound`` if there is none.
        """
        plural, _, group = kind.partition(".")
        found = [each.resource for each in self._daemon.api.kinds if each.resource.plural == plural]
        found = [each for each in found if not group or each.group == group]
        if not found:
            raise LookupError(f"there is no resource {kind}: give its plural, as in the URL, or PLURAL.GROUP")
        return run(self._cluster.get(found[0], name, namespace=namespace if found[0].namespaced else ""))

    async def _apply(self, manifests: Iterable[Manifest], namespace: str) -> None:
        for obj in _objects(manifests):
            resource = (await self._kind(obj)).resource
            meta = obj["metadata"]
            where = meta.get("namespace") or namespace if resource.namespaced else ""
            if not meta.get("name"):
                await self._cluster.create(resource, obj, namespace=where)
                continue
            await self._cluster.patch(
                resource, meta["name"], obj, namespace=where, type="apply", field_manager=NAME, force=True
            )
            if obj["kind"] == "CustomResourceDefinition":
                await self._served(resource, meta["name"])

    async def _kind(self, obj: Object) -> Kind:
        found = self._daemon.api.kinds.by_kind(obj.get("apiVersion", ""), obj["kind"])
        if found is None:
            raise LookupError(
                f"there is no kind {obj['kind']} in {obj.get('apiVersion')}: is its definition among crds?"
            )
        return found

    async def _served(self, resource: Resource, name: str) -> None:
        """Wait until the server serves what a definition defines; ``ValueError`` if it refuses to."""
        while True:
            seen = self._daemon.api.cache.revision
            status = (await self._cluster.get(resource, name)).get("status") or {}
            conditions = {each["type"]: each for each in status.get("conditions") or ()}
            if conditions.get("Established", {}).get("status") == "True":
                return
            if (names := conditions.get("NamesAccepted", {})).get("status") == "False":
                raise ValueError(f"the definition {name} is not served: {names.get('message')}")
            await self._daemon.api.cache.reach(seen + 1)

    # --- waiting -----------------------------------------------------------------------------------

    def until(self, condition: Callable[[], T], *, timeout: float = PATIENCE_SECONDS) -> T:
        """The first true answer of ``condition``, which is asked again whenever something in the cluster changes.

        An exception counts as not yet.  After ``timeout`` seconds it fails with what is wrong in the cluster.
        """
        if asyncio._get_running_loop() is not None:
            raise TypeError("this would block the event loop: write `await cluster.until_async(condition)`")
        wait = _Wait(condition, timeout)
        while wait.goes_on:
            seen = self._daemon.api.cache.revision
            with wait:
                if answer := condition():
                    return answer
            run(self._change(seen, wait.pause))
        raise wait.failure(run(tell(self._daemon.api)))

    async def until_async(self, condition: Callable[[], T | Awaitable[T]], *, timeout: float = PATIENCE_SECONDS) -> T:
        """The same in async code; the condition may be async, too."""
        wait = _Wait(condition, timeout)
        while wait.goes_on:
            seen = self._daemon.api.cache.revision
            with wait:
                answer = condition()
                if inspect.isawaitable(answer):
                    answer = await answer
                if answer:
                    return cast(T, answer)
            await asyncio.wrap_future(submit(self._change(seen, wait.pause)))
        raise wait.failure(await asyncio.wrap_future(submit(tell(self._daemon.api))))

    async def _change(self, seen: int, seconds: float) -> None:
        """Wait for something to change after a revision, for so long at most."""
        with suppress(TimeoutError, errors.ApiError):
            await asyncio.wait_for(self._daemon.api.cache.reach(seen + 1), seconds)

    def why(self) -> str:
        """What is wrong in the cluster, as a test that waits in vain prints it."""
        return run(tell(self._daemon.api))

    # --- nodes -------------------------------------------------------------------------------------

    def stop_node(self, name: str) -> None:
        """Switch a node off as if it lost its power, and wait until the cluster knows."""
        run(self._switch(control.stop, name))

    def start_node(self, name: str) -> None:
        run(self._switch(control.start, name))

    async def _switch(self, action: Callable[[LocalCluster, str], Awaitable[None]], name: str) -> None:
        await action(self._cluster, name)
        await control.settled(self._cluster, name)

    # --- who else may use it -----------------------------------------------------------------------

    def user(
        self, name: str, *, groups: Iterable[str] = (), rules: Rules = (), role: str = "", only_in: str = ""
    ) -> Login:
        """A user who may do what ``rules`` or the ClusterRole ``role`` say, everywhere or in one namespace."""
        self._needs_roles()
        login = self._login(name, secrets.token_hex(16), only_in)
        with self._users.open("a") as lines:
            lines.write(f'{login.token},{name},{name},"{",".join(groups)}"\n')
        run(logins.allow(self._cluster, {"kind": "User", "name": name}, rules, role, only_in))
        return login

    def service_account(
        self, name: str, *, namespace: str = "default", rules: Rules = (), role: str = "", only_in: str = ""
    ) -> Login:
        """A ServiceAccount, made if it does not exist, with a token; its rights as those of :meth:`user`."""
        self._needs_roles()
        token = run(logins.account_token(self._cluster, name, namespace))
        subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
        run(logins.allow(self._cluster, subject, rules, role, only_in))
        return self._login(f"{namespace}-{name}", token, namespace)

    def _needs_roles(self) -> None:
        if self._config.profile != "full":
            raise ValueError(
                'without roles every user may do everything: use Cluster(profile="full") '
                'or @pytest.mark.seamark(profile="full")'
            )

    def _login(self, name: str, token: str, namespace: str) -> Login:
        return logins.written(self._folder, name, server=self.url, ca=self.ca, token=token, namespace=namespace)

    # --- namespaces --------------------------------------------------------------------------------

    def make_namespace(self, prefix: str = "test") -> str:
        """A new namespace with a name of its own."""
        made = run(self._cluster.create(NAMESPACES, {"metadata": {"generateName": f"{prefix}-"}}))
        return str(made["metadata"]["name"])

    def delete_namespace(self, name: str) -> None:
        """Begin to delete a namespace with all that is in it."""
        run(self._cluster.delete(NAMESPACES, name))


class _Wait:
    """One wait: how long it goes on, and the last exception of its condition."""

    def __init__(self, condition: Callable[[], object], timeout: float) -> None:
        self._condition = condition
        self._timeout = timeout
        self._end = time.monotonic() + timeout
        self._error: BaseException | None = None
        self._asked = False

    @property
    def goes_on(self) -> bool:
        """True the first time, however little time there is."""
        asked, self._asked = self._asked, True
        return not asked or time.monotonic() < self._end

    @property
    def pause(self) -> float:
        return max(0.0, min(LOOK_SECONDS, self._end - time.monotonic()))

    def __enter__(self) -> None:
        self._error = None

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> bool:
        """Take an exception as not yet, unless the condition itself is wrong."""
        if not isinstance(error, Exception) or isinstance(error, NameError):
            return False
        self._error = error
        return True

    def failure(self, told: str) -> NotYet:
        name = getattr(self._condition, "__name__", "the condition")
        last = f": {type(self._error).__name__}: {self._error}" if self._error is not None else ""
        failure = NotYet(f"{name} is still not true after {self._timeout:g} s{last}\n\n{told}")
        failure.__cause__ = self._error
        return failure


def _objects(manifests: Iterable[Manifest]) -> list[Object]:
    """The objects of files, directories and dicts; definitions come first, because others may need them."""
    from seamark.why.offline import documents

    found: list[Object] = []
    for each in manifests:
        found += [dict(each)] if isinstance(each, Mapping) else [obj for _, obj in documents([str(each)])]
    return sorted(found, key=lambda obj: (obj["kind"] != "CustomResourceDefinition", obj["kind"] != "Namespace"))
