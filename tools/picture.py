"""Draw docs/picture.svg from real output: the README's picture is what these commands printed.

    python tools/picture.py

Starts an ephemeral `seamark up`, runs the scene below with real kubectl and dig, and writes the terminal as SVG.
"""

from __future__ import annotations

import html
import os
import pty
import re
import subprocess
import sys
import tempfile
import termios
import time
import unicodedata
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "picture.svg"
SETTLE_SECONDS = 2.0

SCENE = [
    "kubectl create deployment web --image=example/web:1 --replicas=3",
    "kubectl expose deployment web --port=80 --target-port=8080",
    "kubectl get svc,endpoints web",
    "dig @127.0.0.1 -p 1053 +short web.default.svc.cluster.local",
    "kubectl expose deployment web --name=wob --port=80 --selector=app=wob",
    "seamark why svc/wob",
]

COLUMNS, CHARACTER, LINE, MARGIN = 96, 8.43, 18, 20
COLOURS = {
    "": "#d6deeb",
    "1": "#ffffff",
    "31": "#ff6b6b",
    "32": "#7fdb7f",
    "33": "#f2c55c",
    "36": "#6cc7e8",
    "2": "#8a94a8",
}


def play(folder: str) -> list[str]:
    """The lines of the terminal, with their colours."""
    command = ["up", "--ephemeral", "--data-dir", folder, "--api-port", "0", "--dns-port", "0"]
    process = subprocess.Popen([sys.executable, "-m", "seamark", *command], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines: list[str] = []
    try:
        port = ""
        for line in process.stdout:
            port = line.split()[1].rsplit(":", 1)[1] if line.startswith("DNS") else port
            if line.strip() == "ready":
                break
        environment = {**os.environ, "KUBECONFIG": f"{folder}/kubeconfig", "TERM": "xterm-256color"}
        environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
        for typed in SCENE:
            lines.append(f"\x1b[36m$\x1b[0m \x1b[1m{typed}\x1b[0m")
            real = typed.replace("-p 1053", f"-p {port}")
            lines += on_a_terminal(real, environment).rstrip("\n").splitlines()
            time.sleep(SETTLE_SECONDS)
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()
    return lines


def on_a_terminal(command: str, environment: dict[str, str]) -> str:
    """What a command prints where colours are welcome."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (50, COLUMNS))
    process = subprocess.Popen(["bash", "-c", command], stdout=theirs, stdin=theirs, env=environment)
    os.close(theirs)
    printed = b""
    try:
        while piece := os.read(ours, 65536):
            printed += piece
    except OSError:
        pass  # how a terminal says that its other end is closed
    finally:
        os.close(ours)
        process.wait()
    return printed.decode().replace("\r\n", "\n")


def width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def drawn(lines: list[str]) -> str:
    """The terminal as SVG: one text element per run of one colour."""
    parts = []
    for number, line in enumerate(lines):
        at, y, colour = 0, MARGIN + 30 + number * LINE, ""
        for piece in re.split(r"(\x1b\[[0-9;]*m)", line):
            code = re.fullmatch(r"\x1b\[([0-9;]*)m", piece)
            if code:
                known = [word for word in code[1].split(";") if word in COLOURS]
                colour = known[-1] if known else ""
            elif piece:
                x = MARGIN + at * CHARACTER
                weight = ' font-weight="bold"' if colour == "1" else ""
                parts.append(
                    f'<text x="{x:.1f}" y="{y}" fill="{COLOURS[colour]}"{weight} xml:space="preserve">'
                    f"{html.escape(piece)}</text>"
                )
                at += width(piece)
    wide = max(COLUMNS, *(width(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in lines))
    size = f'width="{wide * CHARACTER + 2 * MARGIN:.0f}" height="{len(lines) * LINE + 2 * MARGIN + 30}"'
    buttons = "".join(
        f'<circle cx="{MARGIN + 18 * n}" cy="18" r="6" fill="{colour}"/>'
        for n, colour in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, '
        f'DejaVu Sans Mono, monospace" font-size="14">\n<rect width="100%" height="100%" rx="10" fill="#101624"/>\n'
        f"{buttons}\n" + "\n".join(parts) + "\n</svg>\n"
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        lines = play(folder)
    PICTURE.write_text(drawn(lines))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
