"""Creates the controllers of identities, with what they need of the API server they run beside."""

from __future__ import annotations

from collections.abc import Callable

from seamark.access.cluster import Cluster
from seamark.controllers.identity import token_secrets
from seamark.controllers.identity.token_secrets import Issue, TokenSecrets
from seamark.runtime.manager import Manager


def add_identity(manager: Manager, cluster_for: Callable[[str], Cluster], *, issue: Issue, authority: str) -> None:
    """Add these controllers to the manager; ``issue`` signs tokens, ``authority`` is the CA certificate (PEM)."""
    manager.add(TokenSecrets(manager, cluster_for(token_secrets.NAME), issue=issue, authority=authority))
