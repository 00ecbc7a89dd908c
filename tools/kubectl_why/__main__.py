"""The beginning of the program ``dist/kubectl-why``, a zip file that Python runs.

Extension modules cannot be loaded from a zip file, so the first start unpacks it into the user's cache.
"""

import os
import sys
from pathlib import Path


def unpacked(archive: Path) -> Path:
    """The directory with the contents of the archive; it appears whole, also if two first starts meet."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kubectl-why"
    state = archive.stat()
    target = cache / f"{state.st_mtime_ns:x}-{state.st_size:x}"
    if not target.exists():
        import shutil
        import tempfile
        import zipfile

        cache.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=cache))
        with zipfile.ZipFile(archive) as content:
            content.extractall(fresh)
        try:
            fresh.rename(target)
        except OSError:
            shutil.rmtree(fresh)
    return target


def main() -> int:
    sys.path.insert(0, str(unpacked(Path(sys.argv[0]).resolve())))
    from seamark.cli.asking.why import kubectl_plugin

    return kubectl_plugin()


if __name__ == "__main__":
    sys.exit(main())
