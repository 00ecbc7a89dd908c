"""The README's own commands, typed as they stand: only ports and paths are those of the test."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from seamark_process import Seamark

from free_ports import free_node_port, free_port

ROOT = Path(__file__).parents[3]


def tour() -> list[str]:
    """The lines after a dollar sign in the five minutes' tour."""
    text = (ROOT / "README.md").read_text()
    part = text[text.index("## Five minutes") : text.index("## For whom")]
    blocks = re.findall(r"```console\n(.*?)```", part, re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def test_the_tour(start: Callable[..., Seamark], tmp_path: Path) -> None:
    missing = [tool for tool in ("kubectl", "dig", "curl") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"there is no {' and no '.join(missing)} on this machine")
    server = start("--dns-port", "0", verb="up")
    port = next(line for line in server.lines if line.startswith("DNS")).split()[1].rsplit(":", 1)[1]
    node_port, backend = str(free_node_port()), str(free_port())
    commands = tour()
    assert len(commands) > 15
    script = ["set -e", f"cd {ROOT}"]
    for command in commands:
        typed = command.replace("~/.local/state/seamark", str(server.directory)).replace("-p 1053", f"-p {port}")
        typed = typed.replace(".venv/bin/seamark", f"{sys.executable} -m seamark")
        typed = typed.replace("python3 -m http", f"{sys.executable} -m http")
        typed = typed.replace("30080", node_port).replace("8000", backend)
        typed = typed.replace("s/ADDRESS/$HERE/", f"s/ADDRESS/$HERE/; s/30080/{node_port}/; s/8000/{backend}/")
        script += [f"echo '$ {typed}'", typed]
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        capture_output=True,
        text=True,
        env={**os.environ, "HOME": str(tmp_path), "SEAMARK_DATA_DIR": str(server.directory)},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr + server.log
    said = dict(re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", done.stdout, re.MULTILINE))
    by_command = {command: output for command, output in said.items() if output}
    lookup = next(
        output for command, output in by_command.items() if command.endswith(" web.default.svc.cluster.local")
    )
    assert re.fullmatch(r"10\.96\.\d+\.\d+\n", lookup)
    endpoints = next(output for command, output in by_command.items() if "svc,endpoints,endpointslices" in command)
    assert endpoints.count("10.24") >= 6  # three addresses in Endpoints, three in the slice
    pod = next(output for command, output in by_command.items() if "db-0.db" in command)
    assert re.fullmatch(r"10\.24\d\.\d+\.\d+\n", pod)
    cause = next(output for command, output in by_command.items() if "why svc/wob" in command)
    assert "selector" in cause
    stuck = next(output for command, output in by_command.items() if "get endpoints web -o yaml" in command)
    assert "notReadyAddresses" in stuck
    both = next(output for command, output in by_command.items() if "why svc/web ||" in command)
    assert "Pod stuck" in both, "it does not run on the node that is stopped"
    assert "node-2" in both
    fetched = next(output for command, output in by_command.items() if command.startswith("curl"))
    assert "backend.yaml" in fetched


def test_every_target_the_readme_names_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"make ([a-z]+)", (ROOT / "README.md").read_text()):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_every_link_leads_somewhere() -> None:
    for link in re.findall(r"\]\(((?!http)[^)#]+)\)", (ROOT / "README.md").read_text()):
        assert (ROOT / link).exists(), link
