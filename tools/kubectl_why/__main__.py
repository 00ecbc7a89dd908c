"""The beginning of the program ``dist/kubectl-why``, a zip file that Python runs.

Extension modules cannot be loaded from a zip file, so the first start unpacks what is in it into the user's cache.  It
is a zip file of its own in there, because Python reads the whole table of contents of the file that it runs.
"""

import os
import sys

CONTENT = "content.zip"


def unpacked(archive: str) -> str:
    """The directory with what is in the archive; it appears whole, also if two first starts meet."""
    cache = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "kubectl-why")
    state = os.stat(archive)
    target = os.path.join(cache, f"{state.st_mtime_ns:x}-{state.st_size:x}")
    if not os.path.exists(target):
        import shutil
        import tempfile
        import zipfile

        os.makedirs(cache, exist_ok=True)
        fresh = tempfile.mkdtemp(dir=cache)
        with zipfile.ZipFile(archive) as outer, outer.open(CONTENT) as stored, zipfile.ZipFile(stored) as content:
            content.extractall(fresh)
        try:
            os.rename(fresh, target)
        except OSError:
            shutil.rmtree(fresh)
    return target


def main() -> None:
    sys.path.insert(0, unpacked(os.path.realpath(sys.argv[0])))
    from seamark.cli import kubectl_why

    kubectl_why()


if __name__ == "__main__":
    main()
