"""What a start requires: the store, files, keys and names; an error says in one line what is wrong and what to do."""

from __future__ import annotations

import errno
import ipaddress
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from seamark.api.audit import policy
from seamark.api.audit.log import AuditLog
from seamark.api.authentication import FixedTokens, read_token_file
from seamark.api.authorization import ADMIN, AUTHENTICATED, MASTERS, User
from seamark.api.bootstrap import advertised_address
from seamark.api.certificates import Authority
from seamark.api.identity.keys import KeyFileError, KeyRing
from seamark.api.settings import ApiSettings, TokenSettings
from seamark.clock import SYSTEM_CLOCK
from seamark.config import Config, ConfigError
from seamark.kinds.service.allocation import address_in
from seamark.metrics import Registry
from seamark.store.opening import open_store
from seamark.store.protocol import Store, StoreError

if TYPE_CHECKING:
    from seamark.nodes.running.machine.machine import Machine


class StartError(Exception):
    """Seamark cannot start; the message is one line with the reason and the remedy."""


async def opened_store(url: str) -> Store:
    try:
        store = open_store(url)
        await store.open()
    except StoreError as error:
        raise StartError(str(error)) from error
    return store


@contextmanager
def own_files(directory: Path) -> Iterator[None]:
    """Turn errors about files of the data directory into a :class:`StartError`."""
    try:
        yield
    except (ValueError, ssl.SSLError) as error:
        reason = " ".join(str(error).split())
        raise StartError(
            f"the certificates in {directory / 'pki'} cannot be used ({reason}); "
            "restore them, or remove them to have new ones made"
        ) from error
    except OSError as error:
        name = error.filename2 or error.filename or directory
        raise StartError(f"cannot use {name}: {error.strerror}; see --data-dir") from error


def flag_for(error: BaseException | None, part: str) -> str:
    """The flag that changes an address that cannot be used."""
    port = isinstance(error, OSError) and error.errno in (errno.EADDRINUSE, errno.EACCES)
    return f"--{part}-{'port' if port else 'host'}"


def serving_tls(authority: Authority, settings: ApiSettings) -> ssl.SSLContext:
    """The TLS settings of the server, with the certificate and the authorities of given files."""
    if not settings.tls_certificate and not settings.client_authority:
        return authority.tls()
    trying = f"{settings.tls_certificate} and {settings.tls_key}"
    try:
        context = authority.tls((settings.tls_certificate, settings.tls_key) if settings.tls_certificate else None)
        if settings.client_authority:
            trying = settings.client_authority
            context.load_verify_locations(settings.client_authority)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"cannot serve with {trying}: {error.strerror or error}") from error
    return context


def trusted(authority: Authority, settings: ApiSettings) -> bytes:
    """The certificates by which clients of this machine know the server, as PEM."""
    given = Path(settings.tls_certificate).read_bytes() if settings.tls_certificate else b""
    return given + authority.ca_pem


def audit_log(settings: ApiSettings, metrics: Registry) -> AuditLog | None:
    if not settings.audit_log:
        return None
    try:
        chosen = policy.read(Path(settings.audit_policy)) if settings.audit_policy else policy.DEFAULT
        return AuditLog(Path(settings.audit_log), policy=chosen, clock=SYSTEM_CLOCK, metrics=metrics)
    except policy.PolicyError as error:
        raise ConfigError(str(error)) from error
    except OSError as error:
        raise ConfigError(f"cannot write the audit log {settings.audit_log}: {error.strerror}") from error


def fixed_tokens(authority: Authority, file: str) -> FixedTokens:
    """The admin's token, and those of a token file."""
    admin = User(ADMIN, (MASTERS, AUTHENTICATED))
    files = [authority.admin_token_path, *([Path(file)] if file else [])]

    def read() -> dict[str, User]:
        return {authority.admin_token: admin} | (read_token_file(Path(file)) if file else {})

    try:
        return FixedTokens(read, files)
    except OSError as error:
        raise ConfigError(f"cannot read the token file {error.filename}: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"bad token file: {error}") from error


def token_keys(authority: Authority, settings: TokenSettings) -> KeyRing:
    """The keys of ServiceAccounts' tokens: those of the data directory, or those of given files."""
    if not settings.signing_key:
        return KeyRing([authority.signing_key_path, authority.verifying_keys_path])
    ring = KeyRing([Path(settings.signing_key), *map(Path, settings.keys)])
    try:
        ring.look()
    except OSError as error:
        raise ConfigError(f"cannot read the key file {error.filename}: {error.strerror}") from error
    except KeyFileError as error:
        raise ConfigError(f"bad key file {error}") from error
    return ring


def server_names(config: Config) -> list[str]:
    """Every name and address that clients may use for this server; the certificate carries them."""
    first = [address_in(cidr, 1) for cidr in config.network.ranges]
    names = ["localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
    names += [f"kubernetes.default.svc.{config.cluster_domain}", *first]
    told = (config.api.host, config.api.advertise, _address_of_all(config.api.host), *gateways(config), host_name())
    names += [name for name in told if _nameable(name)]
    return list(dict.fromkeys(names))


def _address_of_all(host: str) -> str:
    """The machine's own address if the server listens on all of them, so that other hosts can trust it there."""
    return advertised_address(host) if host in ("0.0.0.0", "::") else ""


def host_name() -> str:
    return socket.gethostname().lower()


def _nameable(name: str) -> bool:
    """Whether a certificate can contain this name."""
    if not name or name in ("0.0.0.0", "::"):
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name.isascii() and not name.startswith("-") and "_" not in name
    return True


def gateways(config: Config) -> tuple[str, ...]:
    """The addresses at which Pods that run reach this process; none if Pods are simulated."""
    if not config.pods.run:
        return ()
    return tuple(str(ipaddress.ip_network(each)[1]) for each in config.nodes.node_ranges)


async def machines_for(config: Config) -> list[Machine]:
    """The machine that Pods run on, if any should; fail at once, with one line, if this system does not allow it."""
    if config.nodes.run_on and not config.pods.run:
        raise StartError("--run-on names nodes whose Pods run, but all Pods are simulated: add --pods chosen")
    if not config.pods.run:
        return []
    from seamark.nodes.running.machine.machine import Machine, NoMachine

    try:
        return [await Machine.start()]
    except NoMachine as error:
        raise StartError(f"{error}; without --pods {config.pods.mode}, Pods are simulated") from error
