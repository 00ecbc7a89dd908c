"""Ansible's kubernetes.core modules.

``make test`` installs ansible-core and takes the collection out of Ansible's package, which is too large to be
installed whole.  Without these, an ``ansible-playbook`` of the machine is used if it has the collection.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commands import Program
from seamark_process import Start

OWN = Path(sys.prefix)
PLAYBOOK = str(Path(__file__).parent / "playbook.yaml")


def test_the_playbook_of_everyday_modules(start: Start, tmp_path: Path) -> None:
    ansible = shutil.which("ansible-playbook", path=f"{OWN / 'bin'}{os.pathsep}{os.environ['PATH']}")
    if ansible is None:
        pytest.skip("there is no ansible-playbook on this machine; `make test` installs it where PyPI can be reached")
    environment = {**os.environ, "ANSIBLE_HOME": str(tmp_path / "ansible"), "ANSIBLE_LOCALHOST_WARNING": "False"}
    if (OWN / "ansible" / "ansible_collections").is_dir():
        environment["ANSIBLE_COLLECTIONS_PATH"] = str(OWN / "ansible")
    about = [str(Path(ansible).with_name("ansible-doc")), "kubernetes.core.k8s"]
    if subprocess.run(about, env=environment, capture_output=True, check=False).returncode:
        pytest.skip("there is no collection kubernetes.core on this machine; `make test` gets it from PyPI")
    server = start("--dns-port", "0", "--nodes", "2", verb="up")
    environment["KUBECONFIG"] = str(server.kubeconfig)
    environment["TMPDIR"] = str(
        tmp_path
    )  # where its client keeps what it discovered, for the next server at the same port
    assert "failed=0" in Program([ansible], environment)(PLAYBOOK)
