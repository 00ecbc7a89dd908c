"""Take one collection out of the wheel of Ansible's package ``ansible``, which holds a hundred of them.

    python tools/collection.py FOLDER kubernetes.core

The wheel is in the folder; the collection is put beside it, where ``ANSIBLE_COLLECTIONS_PATH`` may point.
"""

from __future__ import annotations

import sys
from pathlib import Path
from zipfile import ZipFile


def main(folder: str, name: str) -> None:
    (wheel,) = Path(folder).glob("ansible-*.whl")
    wanted = f"ansible_collections/{name.replace('.', '/')}/"
    with ZipFile(wheel) as packed:
        packed.extractall(folder, [each for each in packed.namelist() if each.startswith(wanted)])


if __name__ == "__main__":
    main(*sys.argv[1:])
