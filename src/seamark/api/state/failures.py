"""What callers are told when the store fails."""

from __future__ import annotations

from seamark import errors
from seamark.store.protocol import Compacted, StoreError, Uncertain

RETRY_SECONDS = 1


def unavailable(error: StoreError) -> errors.ApiError:
    """The error of a read that cannot be fresh, or of a write that was not done or may not have been done.

    Only a write that was not done is told to be tried again: clients do that by themselves, and a write that was done
    after all would then fail by its own first attempt.
    """
    if isinstance(error, Uncertain):
        return errors.Timeout(f"the write may have been done, or not: {error}", details={})
    return errors.ServiceUnavailable(str(error), details={}, retry_after=RETRY_SECONDS)


def unwatchable(error: StoreError) -> errors.ApiError:
    """What a watcher is told when its past cannot be read."""
    if isinstance(error, Compacted):
        return errors.Expired(f"too old resource version: {error.asked} ({error.oldest})")
    return unavailable(error)
