"""From the flags of kube-apiserver to a configuration; those that have no meaning here are passed over, and named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from seamark.daemon import Component

CONTROLLERS, NODES = "SEAMARK_ENVTEST_CONTROLLERS", "SEAMARK_NODES"
WITH_CONTROLLERS: tuple[Component, ...] = ("controllers", "surroundings", "discovery", "nodes")

# Flags that mean a setting of ours: its section and name.
_SETTINGS = {
    "advertise-address": ("api", "advertise"),
    "api-audiences": ("tokens", "audiences"),
    "audit-log-path": ("api", "audit_log"),
    "audit-policy-file": ("api", "audit_policy"),
    "bind-address": ("api", "host"),
    "client-ca-file": ("api", "client_authority"),
    "disable-admission-plugins": ("api", "disabled_plugins"),
    "secure-port": ("api", "port"),
    "service-account-issuer": ("tokens", "issuers"),
    "service-account-jwks-uri": ("tokens", "keys_address"),
    "service-account-key-file": ("tokens", "keys"),
    "service-account-signing-key-file": ("tokens", "signing_key"),
    "service-cluster-ip-range": ("network", "ranges"),
    "service-node-port-range": ("network", "node_ports"),
    "tls-cert-file": ("api", "tls_certificate"),
    "tls-private-key-file": ("api", "tls_key"),
    "token-auth-file": ("api", "token_file"),
}
_SEVERAL = {"audiences", "disabled_plugins", "issuers", "keys", "ranges"}
# Those that are as we do it anyway, or decided by the shape of the whole; ``cert-dir`` is read here.
_SILENT = ("allow-privileged", "authorization-mode", "cert-dir", "etcd-servers", "insecure-port", "v")
KNOWN = tuple(sorted({*_SETTINGS, *_SILENT} - {"insecure-port", "v"}))  # as --help names them


class Asked(NamedTuple):
    """What the flags ask for: nested settings, which parts to run, and the flags without a meaning here."""

    settings: dict[str, Any]
    components: Sequence[Component]
    passed_over: Sequence[str]


def asked(words: Sequence[str], environ: Mapping[str, str], folder: Path) -> Asked:
    """``folder`` is for our own files, unless there is a directory for certificates, which envtest removes at the end.

    As with envtest, the API is alone unless the environment asks for controllers.
    """
    flags = _flags(words)
    settings: dict[str, Any] = {"ephemeral": True, "profile": "full", "log": {"level": "info"}}
    certificates = Path(flags["cert-dir"][-1]) if "cert-dir" in flags else None
    settings["data_dir"] = str((certificates or folder) / "seamark")
    if certificates is not None and "tls-cert-file" not in flags and (certificates / "apiserver.crt").exists():
        flags["tls-cert-file"] = [str(certificates / "apiserver.crt")]
        flags["tls-private-key-file"] = [str(certificates / "apiserver.key")]
    for flag, values in flags.items():
        if flag in _SETTINGS:
            section, name = _SETTINGS[flag]
            settings.setdefault(section, {})[name] = _value(name, values)
    if environ.get(CONTROLLERS, "").lower() in ("1", "true", "yes", "on"):
        settings["nodes"] = {"count": int(environ.get(NODES, "1"))}
        components = WITH_CONTROLLERS
    else:
        settings["nodes"] = {"count": 0}
        components = ()
    passed_over = [flag for flag in flags if flag not in _SETTINGS and flag not in _SILENT]
    return Asked(settings, components, passed_over)


def _flags(words: Sequence[str]) -> dict[str, list[str]]:
    """``--name=value``, ``--name value`` and ``--name``, each with all its values."""
    found: dict[str, list[str]] = {}
    name = ""
    for word in words:
        if word.startswith("-"):
            name, given, value = word.lstrip("-").partition("=")
            found.setdefault(name, []).extend([value] if given else [])
            name = "" if given else name
        elif name:
            found[name].append(word)
            name = ""
    return found


def _value(name: str, values: Sequence[str]) -> Any:
    if name in _SEVERAL:
        return [part for value in values for part in value.split(",") if part]
    last = values[-1] if values else ""
    return [int(part) for part in last.split("-")] if name == "node_ports" else last
