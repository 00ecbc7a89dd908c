"""Replay every recording against Seamark and write the results into docs/compatibility.md.

    python tools/compatibility.py

Starts two `seamark up` (one of each profile) and three `seamark dns` of its own on free ports and, for root, an API
server and `seamark proxy` in network namespaces; takes about nine minutes.  Without root, the rows of the proxy stay.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
CONFORMANCE = ROOT / "tests" / "conformance"
PAGE = ROOT / "docs" / "compatibility.md"
UPSTREAM = "127.0.0.1:10153"

DNS_PROFILES = {
    "verified": ["--pods", "verified", "--ttl", "30", "--forward", "none"],
    "disabled": ["--forward", "none"],
    "kubeadm": ["--pods", "insecure", "--ttl", "30", "--fallthrough", "in-addr.arpa,ip6.arpa", "--forward", UPSTREAM],
}


@contextmanager
def running(*arguments: str) -> Iterator[list[str]]:
    """The lines a command prints until it is ready; it is ended afterwards."""
    process = subprocess.Popen([sys.executable, "-m", "seamark", *arguments], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines: list[str] = []
    try:
        for line in process.stdout:
            lines.append(line.strip())
            if lines[-1] == "ready":
                break
        yield lines
    finally:
        process.terminate()
        process.wait()


Cases = dict[str, bool]  # by name, whether it passed


def replay(tool: str, *arguments: str) -> Cases:
    command = [sys.executable, str(CONFORMANCE / tool), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [re.match(r"(ok|FAIL|ERROR)\s+(\S+)", line) for line in done.stdout.splitlines()]
    found = {case[2].rstrip(":"): case[1] == "ok" for case in lines if case}
    if not found:
        raise SystemExit(f"{tool} said nothing:\n{done.stdout}\n{done.stderr}")
    if not all(found.values()):
        print(*(line for line in done.stdout.splitlines() if not line.startswith("ok ")), sep="\n", file=sys.stderr)
    return found


def table(title: str, cases: Cases) -> list[str]:
    """How many cases passed, in all and of each topic, with which their names begin."""
    found = Counter((re.split("[/:]", name)[0], passed) for name, passed in cases.items())
    topics = sorted({topic for topic, _ in found})
    return [
        f"| **{title}** | **{sum(cases.values())}** | **{len(cases)}** |",
        *(f"| {topic} | {found[topic, True]} | {found[topic, True] + found[topic, False]} |" for topic in topics),
    ]


def proxied() -> Cases:
    """What becomes of packets with ``seamark proxy`` by nftables."""
    ranges = ("--service-range", "10.96.0.0/16,fd00:96::/112")
    with (
        tempfile.TemporaryDirectory() as folder,
        running("apiserver", "--ephemeral", "--profile", "plain", "--data-dir", folder, "--api-port", "0", *ranges),
    ):
        seamark = f"{sys.executable} -m seamark proxy --kubeconfig {{kubeconfig}} --hostname-override {{node}}"
        commands = ["--proxy-command", f"{seamark} --cluster-cidr {{cluster_cidr}}"]
        commands += ["--cleanup-command", f"{seamark} --cleanup"]
        recordings = map(str, sorted((CONFORMANCE / "proxy").glob("*.json")))
        return replay("replay_proxy.py", "--kubeconfig", f"{folder}/kubeconfig", *commands, *recordings)


def api_cases(profile: str, server: list[str]) -> Cases:
    recordings = map(str, sorted((CONFORMANCE / "api").glob("*.json")))
    return replay("replay_api.py", *server, "--jobs", "16", "--profile", profile, *recordings)


@contextmanager
def serving(folder: str, profile: str) -> Iterator[tuple[str, list[str]]]:
    """The URL of a new cluster, and the options by which the tools reach it."""
    options = ("--api-port", "0", "--dns-port", "0", "--nodes", "0", "--profile", profile)
    with running("up", "--ephemeral", "--data-dir", folder, *options) as lines:
        url = next(word for line in lines for word in line.split() if word.startswith("https://"))
        token = (Path(folder) / "pki" / "admin.token").read_text().strip()
        yield url, ["--server", url, "--token", token, "--ca", f"{folder}/pki/ca.crt"]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, serving(folder, "full") as (_, server):
        api = api_cases("full", server)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        url, server = stack.enter_context(serving(folder, "plain"))
        for case, passed in api_cases("plain", server).items():
            api[case] = passed and api.get(case, True)  # those that hold in both have to pass in both
        metrics = ["--metrics", f"{url}/metrics"]
        scenarios = map(str, sorted((CONFORMANCE / "controllers").glob("*.json")))
        controllers = replay("replay.py", *server, *metrics, "--jobs", "16", *scenarios)
        asked = []
        for profile, options in DNS_PROFILES.items():
            started = stack.enter_context(
                running("dns", "--kubeconfig", f"{folder}/kubeconfig", "--listen", "127.0.0.1:0", *options)
            )
            asked += ["--dns", f"{profile}={next(line for line in started if line.startswith('DNS')).split()[1]}"]
        recordings = map(str, sorted((CONFORMANCE / "dns").glob("*.json")))
        dns = replay("replay_dns.py", *server, *metrics, *asked, "--upstream", UPSTREAM, *recordings)
    proxy = proxied() if os.geteuid() == 0 else {}
    lines = ["| recorded cases | passed | of |", "|---|---|---|"]
    lines += table("API server", api) + table("controllers", controllers) + table("DNS", dns)
    text = PAGE.read_text()
    lines += table("proxy", proxy) if proxy else re.findall(r"\| \*\*proxy\*\*.*?(?=\n\n)", text, re.DOTALL)
    start, end = text.index("-->", text.index("<!-- results")) + 3, text.index("<!-- /results -->")
    PAGE.write_text(text[:start] + "\n\n" + "\n".join(lines) + "\n\n" + text[end:])
    failed = sum(not passed for cases in (api, controllers, dns, proxy) for passed in cases.values())
    print(f"{PAGE.relative_to(ROOT)} written; {failed} failed")
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
