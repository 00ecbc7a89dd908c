"""PodDisruptionBudget."""

import msgspec

from seamark.errors import Object
from seamark.kinds.values.label_selector import readable
from seamark.kinds.values.selectors import LabelSelector
from seamark.rules.objects.metadata import ObjectView, View


class BudgetSpec(View, frozen=True):
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: Object | None = None


class Budget(ObjectView, frozen=True):
    """``status`` is kept as it is, because it is written back."""

    spec: BudgetSpec = BudgetSpec()
    status: Object = msgspec.field(default_factory=dict)

    @property
    def selector(self) -> LabelSelector | None:
        return readable(self.spec.selector)

    @property
    def needs_scale(self) -> bool:
        """Whether the Pods that there should be matter, not only those that are there."""
        return self.spec.max_unavailable is not None or isinstance(self.spec.min_available, str)
