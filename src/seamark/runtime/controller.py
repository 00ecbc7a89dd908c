"""The base class of all controllers: the informers it watches, and what it does about a key.

A controller handles *keys*, not events: after several changes to ``default/web``, it looks at the current state once.
To write one, name the informers it watches, have their handlers add keys, and implement ``reconcile``:

    class Greeter(Controller):
        def __init__(self, manager):
            super().__init__("greeter", manager)
            self._pods = self.watch(manager.informers.of(PODS, as_=Pod), self._pod_changed)

        def _pod_changed(self, key, old, new):
            self.queue.add(key)

        async def reconcile(self, key): ...

If ``reconcile`` raises, the key is retried after a delay that grows with each failure; other keys do not wait for it.
Raise :class:`Again` to have the key handled again at a certain time without counting as a failure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seamark.runtime.following import Derived
from seamark.runtime.queue import Key, Queue, Retry
from seamark.runtime.workers import Again, Expected, Workers

if TYPE_CHECKING:
    from seamark.runtime.manager import Manager

__all__ = ["Again", "Controller", "Expected"]


class Controller(Derived):
    """State derived from informers, a queue of keys, and ``workers`` that handle them."""

    def __init__(
        self,
        name: str,
        manager: Manager,
        *,
        workers: int = 5,
        retry: Retry | None = None,
        batch: float = 0.0,
    ) -> None:
        super().__init__(name)
        self.queue = Queue(name, retry=retry, batch=batch, clock=manager.clock, metrics=manager.metrics)
        self.workers = Workers(name, self.queue, self.reconcile, limit=workers)

    async def reconcile(self, key: Key) -> None:
        """Bring the cluster to what it should be for this key.  Must be safe to repeat and to interrupt."""
        raise NotImplementedError
