"""Objects that a webhook has to convert before a kind can show them.

Reads, watches and writes call :func:`converted` with the entries they are about to show.  Those of other kinds, and
those that were converted before, need nothing.  While a webhook is asked about an entry, all who need it wait for the
same answer; whether the one who asked first still waits does not matter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from seamark.api.state.entries import Entry
from seamark.errors import ApiError
from seamark.kinds.conversion import Conversion
from seamark.kinds.kind import Kind

AT_ONCE = 500  # objects in one question
# What is kept of one object in another version.  Of what is stored, none is half as long.
LONGEST = 4 * 1024 * 1024


async def converted(kind: Kind, entries: Iterable[Entry]) -> None:
    """Return once the kind can show each of the entries; raises if the webhook does not convert them."""
    if kind.conversion is None:
        return
    missing = [entry for entry in entries if entry.form(kind) is None]
    fresh = [entry for entry in missing if not entry.forms or kind not in entry.forms]
    for start in range(0, len(fresh), AT_ONCE):
        _ask(kind, kind.conversion, fresh[start : start + AT_ONCE])
    under_way = {entry.forms[kind].conversion: None for entry in missing if entry.forms}
    for conversion in under_way:
        if conversion is not None:
            await asyncio.shield(conversion)


def _ask(kind: Kind, conversion: Conversion, entries: Sequence[Entry]) -> None:
    task = asyncio.create_task(_convert(kind, conversion, entries))
    task.add_done_callback(_noticed)
    for entry in entries:
        entry.keep_asking(kind, task)


async def _convert(kind: Kind, conversion: Conversion, entries: Sequence[Entry]) -> None:
    try:
        objects = await conversion.shown([entry.decode() for entry in entries])
        for entry, obj in zip(entries, objects, strict=True):
            if len(entry.keep(kind, obj).tail) > LONGEST:
                raise ApiError(
                    f"conversion webhook for {kind.resource.kind} returned {entry.path} with more than {LONGEST} bytes"
                )
    except BaseException:
        for entry in entries:  # The next one who needs them asks again.
            if entry.forms is not None:
                entry.forms.pop(kind, None)
        raise


def _noticed(task: asyncio.Task[None]) -> None:
    """Take note of its error: all who waited may have gone."""
    if not task.cancelled():
        task.exception()
