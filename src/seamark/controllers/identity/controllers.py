"""Creates the controllers of identities, with what they need of the API server they run beside."""

from __future__ import annotations

from collections.abc import Callable

from seamark.access.cluster import Cluster
from seamark.controllers.identity import signing_requests, token_secrets
from seamark.controllers.identity.signing_requests import Approver, Cleaner, Sign, Signer
from seamark.controllers.identity.token_secrets import Issue, TokenSecrets
from seamark.runtime.manager import Manager


def add_identity(
    manager: Manager, cluster_for: Callable[[str], Cluster], *, issue: Issue, sign: Sign, authority: str
) -> None:
    """Add these controllers to the manager.

    ``issue`` signs tokens, ``sign`` certificates; ``authority`` is the CA certificate (PEM).
    """
    manager.add(
        TokenSecrets(manager, cluster_for(token_secrets.NAME), issue=issue, authority=authority),
        Approver(signing_requests.APPROVER, manager, cluster_for(signing_requests.APPROVER)),
        Signer(manager, cluster_for(signing_requests.SIGNER), sign),
        Cleaner(signing_requests.CLEANER, manager, cluster_for(signing_requests.CLEANER)),
    )
