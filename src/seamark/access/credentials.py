"""Credentials for a server: tokens, token files, certificates, passwords, and exec plugins.

Before every request the transport asks :class:`Credentials` for the current :class:`Identity`.  If the server answers
401, the transport reports that, and tries once more if the credentials could be renewed.
"""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from seamark.clock import SYSTEM_CLOCK, Clock, in_event_loop
from seamark.errors import Unauthorized

if TYPE_CHECKING:
    import asyncio


class Certificate(msgspec.Struct, frozen=True):
    """A client certificate and its key, in PEM."""

    certificate: bytes
    key: bytes


class Identity(msgspec.Struct, frozen=True):
    """The Authorization header of a request, and the client certificate of its connection."""

    authorization: str = ""
    certificate: Certificate | None = None


ANONYMOUS = Identity()
PERIOD = 60.0  # seconds


class Credentials(Protocol):
    async def current(self) -> Identity:
        """The identity to use now; raises ``Unauthorized`` if it cannot be read or made."""
        ...

    def refused(self, identity: Identity) -> bool:
        """The server answered 401 to this identity; returns whether :meth:`current` may give another one."""
        ...


class Fixed:
    """An identity that does not change."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity

    async def current(self) -> Identity:
        return self._identity

    def refused(self, identity: Identity) -> bool:
        return False


def bearer(token: str) -> str:
    return f"Bearer {token}"


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


class Files:
    """An identity in files that another process renews, as the kubelet renews the tokens of Pods.

    The files are read again every ``PERIOD`` seconds.  If that fails, the previous identity stays in use: the files may
    be half written, and the server answers 401 when it no longer accepts the old identity.
    """

    def __init__(
        self,
        *,
        token: Path | None = None,
        certificate: tuple[Path, Path] | None = None,
        fixed: Identity = ANONYMOUS,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._token = token
        self._certificate = certificate
        self._fixed = fixed
        self._clock = clock
        self._read_at = 0.0
        self._identity: Identity | None = None

    async def current(self) -> Identity:
        if self._identity is None or self._clock.monotonic() - self._read_at >= PERIOD:
            self._read_at = self._clock.monotonic()
            try:
                self._identity = self._read()
            except Unauthorized as error:
                if self._identity is None:
                    raise
                import logging  # here, because most commands end before they need it

                logging.getLogger(__name__).warning("%s; using what it said before", error)
        return self._identity

    def refused(self, identity: Identity) -> bool:
        if self._identity == identity:
            self._read_at = -PERIOD
        return True

    def _read(self) -> Identity:
        authorization, certificate = self._fixed.authorization, self._fixed.certificate
        try:
            if self._token is not None:
                authorization = bearer(self._token.read_text().strip())
            if self._certificate is not None:
                certificate = Certificate(*(path.read_bytes() for path in self._certificate))
        except (OSError, UnicodeDecodeError) as error:
            raise Unauthorized(f"cannot read who we are: {error}") from error
        if self._token is not None and authorization == bearer(""):
            raise Unauthorized(f"the token file {self._token} is empty")
        return Identity(authorization, certificate)


class Plugin(msgspec.Struct, frozen=True):
    """An exec plugin of a kubeconfig; ``cluster`` is what it is told about the cluster, None for nothing."""

    command: str
    api_version: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    interactive_mode: str = "IfAvailable"
    install_hint: str = ""
    cluster: Mapping[str, Any] | None = None


class _Status(msgspec.Struct, rename="camel"):
    expiration_timestamp: datetime | None = None
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    status: _Status | None = None


class Exec:
    """An identity from an exec plugin (client.authentication.k8s.io), kept until it expires or the server refuses it.

    ``certificate`` comes from the kubeconfig and is used if the plugin provides none.
    """

    def __init__(
        self,
        plugin: Plugin,
        *,
        certificate: Certificate | None = None,
        clock: Clock = SYSTEM_CLOCK,
        terminal: Callable[[], bool] = lambda: sys.stdin is not None and sys.stdin.isatty(),
    ) -> None:
        self._plugin = plugin
        self._certificate = certificate
        self._clock = clock
        self._terminal = terminal
        self._lock: asyncio.Lock | None = None
        self._identity: Identity | None = None
        self._expires: float | None = None

    async def current(self) -> Identity:
        if not in_event_loop():
            return await self._valid()
        # Concurrent requests that find the identity expired share one run of the plugin.
        if self._lock is None:
            import asyncio

            self._lock = asyncio.Lock()
        async with self._lock:
            return await self._valid()

    async def _valid(self) -> Identity:
        if self._identity is None or (self._expires is not None and self._clock.time() >= self._expires):
            self._identity, self._expires = await self._run()
        return self._identity

    def refused(self, identity: Identity) -> bool:
        if self._identity == identity:
            self._identity = None
        return True

    async def _run(self) -> tuple[Identity, float | None]:
        plugin = self._plugin
        interactive = plugin.interactive_mode != "Never" and self._terminal()
        if plugin.interactive_mode == "Always" and not interactive:
            raise Unauthorized(
                f"the credential plugin {plugin.command} has interactiveMode Always and there is no terminal to ask on"
            )
        env = {**os.environ, **plugin.env, "KUBERNETES_EXEC_INFO": self._question(interactive)}
        output_of = _output_in_loop if in_event_loop() else _output_of
        try:
            code, output, complaint = await output_of([plugin.command, *plugin.args], env, interactive)
        except OSError as error:
            hint = f"; {plugin.install_hint.strip()}" if plugin.install_hint else ""
            raise Unauthorized(f"cannot run the credential plugin {plugin.command}: {error.strerror}{hint}") from error
        if code:
            said = (complaint or b"").decode(errors="replace").strip()
            raise Unauthorized(
                f"the credential plugin {plugin.command} failed with exit status {code}" + (f": {said}" if said else "")
            )
        return self._understood(output)

    def _question(self, interactive: bool) -> str:
        spec: dict[str, Any] = {"interactive": interactive}
        if self._plugin.cluster is not None:
            spec["cluster"] = self._plugin.cluster
        question = {"kind": "ExecCredential", "apiVersion": self._plugin.api_version, "spec": spec}
        return msgspec.json.encode(question).decode()

    def _understood(self, output: bytes) -> tuple[Identity, float | None]:
        plugin = self._plugin
        try:
            answer = msgspec.json.decode(output, type=_ExecCredential)
        except msgspec.DecodeError as error:
            raise Unauthorized(f"the credential plugin {plugin.command} printed no ExecCredential: {error}") from error
        if (answer.kind, answer.api_version) != ("ExecCredential", plugin.api_version):
            raise Unauthorized(
                f"the credential plugin {plugin.command} printed {answer.kind} of {answer.api_version}, "
                f"but the kubeconfig asks for ExecCredential of {plugin.api_version}"
            )
        status = answer.status or _Status()
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise Unauthorized(f"the credential plugin {plugin.command} gave only one of certificate and key")
        if not (status.token or status.client_certificate_data):
            raise Unauthorized(f"the credential plugin {plugin.command} gave neither a token nor a certificate")
        certificate = self._certificate
        if status.client_certificate_data:
            certificate = Certificate(status.client_certificate_data.encode(), status.client_key_data.encode())
        expires = status.expiration_timestamp
        if expires is not None and expires.tzinfo is None:
            expires = expires.replace(tzinfo=UTC)
        identity = Identity(bearer(status.token) if status.token else "", certificate)
        return identity, expires.timestamp() if expires is not None else None


async def _output_of(
    command: Sequence[str], env: Mapping[str, str], interactive: bool
) -> tuple[int | None, bytes, bytes | None]:
    """The exit status of a program, and what it wrote to stdout and stderr."""
    import subprocess

    done = subprocess.run(  # noqa: ASYNC221  # there is no event loop that it could stop
        command,
        env=env,
        stdin=None if interactive else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=None if interactive else subprocess.PIPE,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


async def _output_in_loop(
    command: Sequence[str], env: Mapping[str, str], interactive: bool
) -> tuple[int | None, bytes, bytes | None]:
    """The same, while the event loop goes on."""
    import asyncio
    from subprocess import DEVNULL, PIPE

    process = await asyncio.create_subprocess_exec(
        *command,
        env=env,
        stdin=None if interactive else DEVNULL,
        stdout=PIPE,
        stderr=None if interactive else PIPE,
    )
    try:
        output, complaint = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    return process.returncode, output, complaint
