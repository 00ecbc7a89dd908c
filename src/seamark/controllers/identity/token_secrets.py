"""Fills Secrets of the type ``kubernetes.io/service-account-token``, and deletes those whose ServiceAccount is gone.

The token in such a Secret never expires; TokenRequests replaced it, but clients outside of a cluster still use it.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable

import msgspec

from seamark import errors
from seamark.access.cluster import Cluster
from seamark.access.informer import split_key
from seamark.errors import Object
from seamark.kinds.resource import SECRETS, SERVICE_ACCOUNTS
from seamark.rules.objects.metadata import ObjectView
from seamark.runtime.controller import Controller
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key

NAME = "tokens-controller"
TYPE = "kubernetes.io/service-account-token"
ACCOUNT = "kubernetes.io/service-account.name"
ACCOUNT_UID = "kubernetes.io/service-account.uid"

# Signs the token to keep in a Secret: namespace, Secret, ServiceAccount, its uid.
Issue = Callable[[str, str, str, str], str]


class TokenSecret(ObjectView, frozen=True):
    """A Secret with a token, or one that is to get it."""

    data: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def account(self) -> str:
        return self.metadata.annotations.get(ACCOUNT, "")

    @property
    def account_uid(self) -> str:
        return self.metadata.annotations.get(ACCOUNT_UID, "")


class Account(ObjectView, frozen=True):
    """A ServiceAccount."""


def missing(secret: TokenSecret, authority: str) -> bool:
    """Whether something has to be filled in; ``authority`` is the CA certificate (PEM)."""
    data = secret.data
    wrong = bool(authority) and data.get("ca.crt") != encoded(authority)
    return wrong or not data.get("namespace") or not data.get("token") or not secret.account_uid


def encoded(text: str) -> str:
    return b64encode(text.encode()).decode()


class TokenSecrets(Controller):
    """Keeps the Secrets with tokens complete."""

    def __init__(self, manager: Manager, cluster: Cluster, *, issue: Issue, authority: str) -> None:
        super().__init__(NAME, manager)
        self._cluster = cluster
        self._issue = issue
        self._authority = authority
        self._by_account: dict[Key, set[Key]] = {}
        self._gone: dict[Key, str] = {}  # Secrets that were deleted, and their ServiceAccount
        informers = manager.informers
        # Of all Secrets only those of this type are followed.
        secrets = informers.of(SECRETS, as_=TokenSecret, fields=f"type={TYPE}")
        self._secrets = self.watch(secrets, self._secret_changed)
        self._accounts = self.watch(informers.of(SERVICE_ACCOUNTS, as_=Account), self._account_changed)

    def reset(self) -> None:
        self._by_account.clear()
        self._gone.clear()

    def _secret_changed(self, key: Key, old: TokenSecret | None, new: TokenSecret | None) -> None:
        for known, there in ((old, False), (new, True)):
            if known is not None and known.account:
                held = self._by_account.setdefault(f"{known.metadata.namespace}/{known.account}", set())
                (held.add if there else held.discard)(key)
        if new is None and old is not None and old.account:
            self._gone[key] = old.account
        self.queue.add(key)

    def _account_changed(self, key: Key, old: Account | None, new: Account | None) -> None:
        if old is None or new is None or old.metadata.uid != new.metadata.uid:
            for secret in self._by_account.get(key, ()):
                self.queue.add(secret)

    # --- one Secret ----------------------------------------------------------------------------------

    async def reconcile(self, key: Key) -> None:
        namespace, name = split_key(key)
        secret = self._secrets.by_key(key)
        try:
            if secret is None:
                if key in self._gone:
                    await self._forget(namespace, name, self._gone[key])
                    self._gone.pop(key, None)
            elif secret.account and secret.metadata.deletion_timestamp is None:
                await self._settle(secret)
        except (errors.Conflict, errors.NotFound):
            return  # another writer was first; that change queues the key again

    async def _settle(self, secret: TokenSecret) -> None:
        meta = secret.metadata
        uid = await self._uid_of(meta.namespace, secret)
        if uid is None:
            await self._cluster.delete(
                SECRETS, meta.name, namespace=meta.namespace, uid=meta.uid, version=meta.resource_version
            )
        elif missing(secret, self._authority):
            await self._fill(secret, uid)

    async def _uid_of(self, namespace: str, secret: TokenSecret) -> str | None:
        """The uid of the ServiceAccount that the Secret is for; None if there is none, also after asking the API."""
        known = self._accounts.get(secret.account, namespace)
        if known is None or secret.account_uid not in ("", known.metadata.uid):
            try:
                known = await self._cluster.get(SERVICE_ACCOUNTS, secret.account, namespace=namespace, as_=Account)
            except errors.NotFound:
                return None
        uid = known.metadata.uid
        return uid if secret.account_uid in ("", uid) else None

    async def _fill(self, secret: TokenSecret, uid: str) -> None:
        meta = secret.metadata
        found: Object = await self._cluster.get(SECRETS, meta.name, namespace=meta.namespace)
        data = dict(found.get("data") or {})
        if self._authority:
            data["ca.crt"] = encoded(self._authority)
        if not data.get("namespace"):
            data["namespace"] = encoded(meta.namespace)
        if not data.get("token"):
            data["token"] = encoded(self._issue(meta.namespace, meta.name, secret.account, uid))
        annotations = {**(found["metadata"].get("annotations") or {}), ACCOUNT: secret.account, ACCOUNT_UID: uid}
        filled = {**found, "metadata": {**found["metadata"], "annotations": annotations}, "data": data}
        await self._cluster.update(SECRETS, filled, namespace=meta.namespace)

    async def _forget(self, namespace: str, secret: str, account: str) -> None:
        """Take a deleted Secret off the list of its ServiceAccount."""
        found: Object = await self._cluster.get(SERVICE_ACCOUNTS, account, namespace=namespace)
        listed = found.get("secrets") or []
        left = [each for each in listed if each.get("name") != secret]
        if len(left) == len(listed):
            return
        try:
            await self._cluster.get(SECRETS, secret, namespace=namespace)
        except errors.NotFound:
            await self._cluster.update(SERVICE_ACCOUNTS, {**found, "secrets": left}, namespace=namespace)
