"""What controller-runtime's envtest does to start, use and stop a control plane, step by step, as its source tells."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import msgspec

from free_ports import free_port
from seamark.api.certificates import Authority


class ControlPlane:
    """An etcd and a kube-apiserver of a directory of assets."""

    def __init__(self, assets: Path, **configured: str) -> None:
        self.assets = assets
        self.configured = configured  # flags that a suite adds
        self.etcd_dir = Path(tempfile.mkdtemp(prefix="k8s_test_framework_"))
        self.cert_dir = Path(tempfile.mkdtemp(prefix="k8s_test_framework_"))
        self.address = f"127.0.0.1:{free_port()}"
        self.processes: list[subprocess.Popen[str]] = []

    def start(self) -> ControlPlane:
        url = f"http://127.0.0.1:{free_port()}"
        peers = f"http://127.0.0.1:{free_port()}"
        flags = {"advertise-client-urls": url, "data-dir": str(self.etcd_dir), "listen-client-urls": url}
        flags |= {"listen-peer-urls": peers}
        if self.has_flag("etcd", "unsafe-no-fsync"):
            flags["unsafe-no-fsync"] = "true"
        self.run("etcd", flags, f"{url}/health")
        self.make_certificates()
        assert not self.has_flag("kube-apiserver", "insecure-port")
        directory = self.cert_dir
        flags = {
            "allow-privileged": "true",
            "authorization-mode": "RBAC",
            "bind-address": "127.0.0.1",
            "cert-dir": str(directory),
            "client-ca-file": str(directory / "client-cert-auth-ca.crt"),
            "disable-admission-plugins": "ServiceAccount",
            "etcd-servers": url,
            "secure-port": self.address.rpartition(":")[2],
            "service-account-issuer": f"https://{self.address}/",
            "service-account-key-file": str(directory / "sa-signer.crt"),
            "service-account-signing-key-file": str(directory / "sa-signer.key"),
            "service-cluster-ip-range": "10.0.0.0/24",
        }
        self.run("kube-apiserver", flags | self.configured, f"https://{self.address}/healthz")
        return self

    def has_flag(self, program: str, flag: str) -> bool:
        help_ = subprocess.run([self.assets / program, "--help"], capture_output=True, text=True, check=True)
        return any(line.strip().split()[:1] == [f"--{flag}"] for line in help_.stdout.splitlines())

    def run(self, program: str, flags: dict[str, str], health: str) -> None:
        arguments = [f"--{name}={value}" for name, value in sorted(flags.items())]
        command = [str(self.assets / program), *arguments]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.processes.append(process)
        anything = ssl._create_unverified_context()
        while process.poll() is None:
            try:
                with urllib.request.urlopen(health, context=anything if health.startswith("https") else None) as answer:
                    assert answer.status == 200
                    return
            except urllib.error.URLError:
                time.sleep(0.1)
        raise AssertionError(f"{program} ended: {process.communicate()[1]}")

    def make_certificates(self) -> None:
        """One authority for the serving certificate, one for clients, one whose certificate is the accounts' key."""
        serving, clients, accounts = (Authority(self.cert_dir / f"made-{name}") for name in ("a", "b", "c"))
        for authority in (serving, clients, accounts):
            authority.prepare(["127.0.0.1", "localhost"])
        self.ca, self.clients = serving.ca_path, clients
        for source, name in (
            (serving.server_path, "apiserver.crt"),
            (serving.server_key_path, "apiserver.key"),
            (clients.ca_path, "client-cert-auth-ca.crt"),
            (accounts.server_path, "sa-signer.crt"),
            (accounts.server_key_path, "sa-signer.key"),
        ):
            shutil.copy(source, self.cert_dir / name)

    def user(self, name: str, *groups: str) -> Client:
        certificate, key = self.clients.client(name, groups)
        both = self.cert_dir / f"{name}.pem"
        both.write_bytes(certificate + key)
        trust = ssl.create_default_context(cafile=str(self.ca))
        trust.load_cert_chain(both)
        return Client(f"https://{self.address}", trust)

    def stop(self) -> list[int]:
        """The exit codes of the API server and of etcd."""
        codes = []
        for process in reversed(self.processes):
            process.terminate()
            self.said = process.communicate()[1]
            codes.append(process.returncode)
            if len(codes) == 1:
                self.log = self.said
        shutil.rmtree(self.cert_dir)
        shutil.rmtree(self.etcd_dir)
        return codes


class Client:
    """What a rest.Config is good for."""

    def __init__(self, url: str, trust: ssl.SSLContext) -> None:
        self.url = url
        self.trust = trust

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        data = None if body is None else msgspec.json.encode(body)
        headers = {"Content-Type": "application/json", **headers}
        asked = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(asked, context=self.trust) as answer:
                return answer.status, msgspec.json.decode(answer.read())
        except urllib.error.HTTPError as error:
            with error:  # a path of no group is refused in plain text
                said = error.read()
                return error.code, msgspec.json.decode(said) if said.startswith(b"{") else {"message": said.decode()}
