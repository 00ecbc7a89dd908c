"""The kubeconfig of a cluster that runs here."""

from __future__ import annotations

from base64 import b64encode

import msgspec


def kubeconfig(
    *,
    server: str,
    ca: bytes | None,
    token: str,
    certificate: tuple[bytes, bytes] | None = None,
    namespace: str = "default",
) -> str:
    """A kubeconfig with everything inline, for one cluster and one user, who may have a certificate and its key."""
    # By hand, because every start writes one, and importing yaml would take a tenth of the start.
    authority = "" if ca is None else f"\n    certificate-authority-data: {_in_base64(ca)}"
    shown = ""
    if certificate is not None:
        shown = "client-certificate-data: {}\n    client-key-data: {}\n    ".format(*map(_in_base64, certificate))
    return f"""\
apiVersion: v1
kind: Config
clusters:
- name: seamark
  cluster:
    server: {server}{authority}
users:
- name: seamark-admin
  user:
    {shown}token: {msgspec.json.encode(token).decode()}
contexts:
- name: seamark
  context:
    cluster: seamark
    user: seamark-admin
    namespace: {namespace}
current-context: seamark
"""


def _in_base64(data: bytes) -> str:
    return b64encode(data).decode()
