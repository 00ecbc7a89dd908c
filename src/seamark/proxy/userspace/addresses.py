"""The addresses of this machine, and how it takes those of Services as its own where the user has the right to.

On Linux a route of the type ``local`` makes the kernel deliver what is sent to an address to the sockets of this
machine, as if an interface had it.  That takes CAP_NET_ADMIN.
"""

from __future__ import annotations

import asyncio
import logging
import re
import shutil
from collections.abc import Collection, Iterable
from pathlib import Path

from seamark.kinds.values.addresses import canonical

log = logging.getLogger(__name__)

_OURS = "83"  # marks our routes, so that only these are removed (the routing protocol number is free to choose)
_NET_ADMIN = 12  # the bit of CAP_NET_ADMIN
_STATUS = Path("/proc/self/status")
_FIB = Path("/proc/net/fib_trie")
_IPV6 = Path("/proc/net/if_inet6")
_FAMILIES = ("-4", "-6")  # ip's options
_LOCAL = re.compile(r"\|-- ([\d.]+)\n\s+/32 host LOCAL")


def own_addresses() -> tuple[str, ...]:
    """All addresses of this machine's interfaces; none where the system does not tell (it is not Linux)."""
    found = [*_LOCAL.findall(_FIB.read_text())] if _FIB.exists() else []
    if _IPV6.exists():
        for line in _IPV6.read_text().splitlines():
            digits = line.split()[0]
            found.append(":".join(digits[at : at + 4] for at in range(0, 32, 4)))
    return tuple(dict.fromkeys(canonical(each) for each in found))


def may_take_addresses() -> bool:
    """Whether this process may change routes."""
    if shutil.which("ip") is None or not _STATUS.exists():
        return False
    effective = re.search(r"^CapEff:\s*([0-9a-f]+)", _STATUS.read_text(), re.MULTILINE)
    return effective is not None and bool(int(effective[1], 16) >> _NET_ADMIN & 1)


class TakenAddresses:
    """The addresses of Services that this machine answers for."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    async def start(self) -> None:
        """Remove what an earlier process left behind."""
        for family in _FAMILIES:
            await _ip(family, [f"route flush table local proto {_OURS}"])

    async def change(self, wanted: Collection[str]) -> None:
        """Take these addresses and no others."""
        here = set(own_addresses()) - self._taken
        wanted = {each for each in wanted if each not in here}
        for family in _FAMILIES:
            new, gone = _of(family, wanted - self._taken), _of(family, self._taken - wanted)
            lines = [f"route replace local {each} dev lo proto {_OURS}" for each in new]
            lines += [f"route del local {each} dev lo proto {_OURS}" for each in gone]
            if lines:
                await _ip(family, lines)
        self._taken = wanted

    async def close(self) -> None:
        await self.change(())


def _of(family: str, addresses: Iterable[str]) -> list[str]:
    return sorted(each for each in addresses if (":" in each) == (family == "-6"))


async def _ip(family: str, lines: Iterable[str]) -> None:
    """Have ``ip`` carry out these commands; one that fails does not keep it from the others."""
    pipe = asyncio.subprocess.PIPE
    command = ("ip", family, "-force", "-batch", "-")
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)
    _, said = await process.communicate("".join(f"{line}\n" for line in lines).encode())
    if process.returncode:
        log.warning("ip could not change all routes: %s", " ".join(said.decode(errors="replace").split()))
