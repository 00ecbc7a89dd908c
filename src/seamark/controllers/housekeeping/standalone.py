"""Creates the controllers that a cluster of our own needs, because no kube-controller-manager runs beside it.

Against a foreign cluster none of these runs; its own control plane does this work.
"""

from __future__ import annotations

from collections.abc import Callable

from seamark.access.cluster import Cluster
from seamark.controllers.autoscaling import autoscaler_controller
from seamark.controllers.autoscaling.autoscaler_controller import AutoscalerController
from seamark.controllers.devices import claims_controller
from seamark.controllers.devices.claims_controller import ClaimsController
from seamark.controllers.devices.release_controller import ReleaseController
from seamark.controllers.housekeeping import policy_types
from seamark.controllers.housekeeping.everything import Everything, Foreign
from seamark.controllers.housekeeping.garbage import GarbageCollector
from seamark.controllers.housekeeping.namespaces import GRACE_SECONDS, NamespaceController
from seamark.controllers.housekeeping.policy_types import PolicyTypesController
from seamark.controllers.housekeeping.surroundings import add_surroundings
from seamark.controllers.policy import budgets, quotas
from seamark.controllers.policy.budgets import DisruptionController
from seamark.controllers.policy.quotas import Quota, QuotaController
from seamark.controllers.policy.stale_targets import StaleTargets
from seamark.controllers.settings import SurroundingsSettings
from seamark.controllers.storage import (
    binding_controller,
    ephemeral_controller,
    expansion_controller,
    protection_controller,
)
from seamark.controllers.storage.binding_controller import BindingController
from seamark.controllers.storage.ephemeral_controller import EphemeralController
from seamark.controllers.storage.expansion_controller import ExpansionController
from seamark.controllers.storage.protection_controller import ProtectionController
from seamark.controllers.workloads.controllers import add_workloads
from seamark.kinds.resource import RESOURCE_QUOTAS
from seamark.kinds.table import Kinds
from seamark.runtime.manager import Manager


def add_housekeeping(
    manager: Manager, cluster_for: Callable[[str], Cluster], settings: SurroundingsSettings, *, authority: str
) -> None:
    """Add the controllers of workloads and the surroundings; ``authority`` is the API server's CA (PEM)."""
    add_workloads(manager, cluster_for)
    add_surroundings(manager, cluster_for, settings, authority=authority)
    manager.add(BindingController(manager, cluster_for(binding_controller.NAME)))
    manager.add(EphemeralController(manager, cluster_for(ephemeral_controller.NAME)))
    manager.add(ExpansionController(manager, cluster_for(expansion_controller.NAME)))
    manager.add(ProtectionController(manager, cluster_for(protection_controller.NAME)))
    claims = cluster_for(claims_controller.NAME)
    manager.add(ClaimsController(manager, claims), ReleaseController(manager, claims))


def add_cleaning(
    manager: Manager,
    cluster_for: Callable[[str], Cluster],
    kinds: Kinds,
    *,
    namespace_grace: float = GRACE_SECONDS,
    foreign: Foreign | None = None,
) -> None:
    """Add what deals with objects of all kinds, after all others: cleaning, quotas, scaling, policies, budgets.

    ``kinds`` are those of the server, which may change; ``foreign`` has those of aggregated servers.
    """
    disruption = cluster_for(budgets.NAME)
    manager.add(DisruptionController(manager, disruption, kinds), StaleTargets(manager, disruption))
    manager.add(AutoscalerController(manager, cluster_for(autoscaler_controller.NAME), kinds))
    manager.add(PolicyTypesController(manager, cluster_for(policy_types.NAME), kinds))
    manager.informers.of(RESOURCE_QUOTAS, as_=Quota)  # now, so that the next line takes this view of them
    everything = Everything(manager.informers, kinds)
    manager.add(
        everything,
        GarbageCollector(manager, cluster_for("generic-garbage-collector"), everything, foreign),
        NamespaceController(
            manager, cluster_for("namespace-controller"), everything, grace=namespace_grace, foreign=foreign
        ),
        QuotaController(manager, cluster_for(quotas.NAME), everything),
    )
