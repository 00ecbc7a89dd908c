"""Ansible's kubernetes.core modules.

Ansible is too large to be installed for every developer: the test runs where ``ansible-playbook`` and the collection
are (``pip install ansible``, or Debian's package ``ansible`` with ``python3-kubernetes``).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from commands import Program
from seamark_process import Start

PLAYBOOK = str(Path(__file__).parent / "playbook.yaml")


def test_the_playbook_of_everyday_modules(start: Start, tmp_path: Path) -> None:
    ansible = shutil.which("ansible-playbook")
    if ansible is None:
        pytest.skip("there is no ansible-playbook on this machine")
    about = [str(Path(ansible).with_name("ansible-doc")), "kubernetes.core.k8s"]
    if subprocess.run(about, capture_output=True, check=False).returncode:
        pytest.skip("there is no collection kubernetes.core on this machine")
    server = start("--dns-port", "0", "--nodes", "2", verb="up")
    environment = {
        **os.environ,
        "KUBECONFIG": str(server.kubeconfig),
        "ANSIBLE_HOME": str(tmp_path / "ansible"),
        "ANSIBLE_LOCALHOST_WARNING": "False",
    }
    assert "failed=0" in Program([ansible], environment)(PLAYBOOK)
