"""What ``kube-apiserver`` of the directory for envtest runs: the API server, with certificates that envtest made."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from seamark.cli import guarded
from seamark.cli.envtest.flags import asked
from seamark.cli.failure import Failure
from seamark.cli.running.serving import serve
from seamark.temporary import TemporaryFolder

if TYPE_CHECKING:
    from seamark.daemon import Daemon


def main(arguments: list[str]) -> int:
    from seamark.config import ConfigError, settled

    folder = TemporaryFolder()
    try:
        found = asked(arguments, os.environ, folder.path)
        if found.passed_over:
            names = ", ".join(f"--{name}" for name in found.passed_over)
            print(f"seamark: these flags of kube-apiserver have no meaning here: {names}", file=sys.stderr)

        async def ready(running: Daemon) -> None:
            print(f"API server   {running.url}", flush=True)

        serve(settled(found.settings), found.components, ready)
    except ConfigError as error:
        raise Failure(str(error), 2) from error
    finally:
        folder.remove()
    return 0


if __name__ == "__main__":
    sys.exit(guarded(main, sys.argv[1:]))
