"""The programs for envtest: their flags, what they say of themselves, and an etcd that is only healthy."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from seamark.cli import main as seamark
from seamark.cli.envtest import apiserver, assets, etcd
from seamark.cli.envtest.flags import WITH_CONTROLLERS, asked
from seamark.cli.failure import Failure
from seamark.config import settled


def test_flags_of_kube_apiserver_become_settings(tmp_path: Path) -> None:
    words = ["--secure-port=6444", "--bind-address", "127.0.0.1", "--service-cluster-ip-range=10.0.0.0/24,fd00::/112"]
    words += ["--service-account-issuer=https://a/", "--service-account-issuer=https://b/", "--cert-dir", str(tmp_path)]
    words += ["--disable-admission-plugins=ServiceAccount,Priority", "--service-node-port-range=30000-30100"]
    words += ["--feature-gates=A=true", "--enable-something", "--v=2", "--etcd-servers=http://127.0.0.1:1", "stray"]
    found = asked(words, {}, tmp_path / "other")
    config = settled(found.settings)
    assert (config.api.host, config.api.port) == ("127.0.0.1", 6444)
    assert config.network.ranges == ("10.0.0.0/24", "fd00::/112")
    assert config.network.node_ports == (30000, 30100)
    assert config.tokens.issuers == ("https://a/", "https://b/")
    assert config.api.disabled_plugins == ("ServiceAccount", "Priority")
    assert config.data_dir == str(tmp_path / "seamark")
    assert (config.ephemeral, config.profile, config.nodes.count) == (True, "full", 0)
    assert list(found.components) == []
    assert found.passed_over == ["feature-gates", "enable-something"]


def test_the_certificate_of_the_directory_is_served_unless_another_is_named(tmp_path: Path) -> None:
    def served(*words: str) -> str:
        settings = asked([f"--cert-dir={tmp_path}", *words], {}, tmp_path).settings
        return settled(settings).api.tls_certificate

    assert served() == ""  # none there yet: Seamark makes one
    (tmp_path / "apiserver.crt").touch()
    assert served() == str(tmp_path / "apiserver.crt")
    assert served("--tls-cert-file=a.crt", "--tls-private-key-file=a.key") == "a.crt"


def test_controllers_and_nodes_by_the_environment(tmp_path: Path) -> None:
    found = asked([], {"SEAMARK_ENVTEST_CONTROLLERS": "true", "SEAMARK_NODES": "3"}, tmp_path)
    assert (found.components, settled(found.settings).nodes.count) == (WITH_CONTROLLERS, 3)
    assert settled(found.settings).data_dir == str(tmp_path / "seamark")


def test_the_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = tmp_path / "a b"
    for _ in range(2):  # again over what is there
        assert seamark(["envtest-assets", str(directory)]) == 0
        assert capsys.readouterr().out == f"export KUBEBUILDER_ASSETS='{directory}'\n"
    for program, flag in (("kube-apiserver", "--cert-dir"), ("etcd", "--unsafe-no-fsync")):
        run = [directory / program]
        said = subprocess.run([*run, "--help"], capture_output=True, text=True, check=True).stdout
        assert flag in said.split()
        assert "--insecure-port" not in said
        version = subprocess.run([*run, "--version"], capture_output=True, text=True, check=True).stdout
        assert version.strip() == assets.VERSIONS[program]
    (tmp_path / "file").touch()
    with pytest.raises(Failure, match="cannot write"):
        assets.main([str(tmp_path / "file" / "below")])


def test_a_wrong_flag_is_told_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Failure, match="a port is between 0 and 65535"):
        apiserver.main(["--secure-port=99999", "--bogus=1"])
    assert "no meaning here: --bogus" in capsys.readouterr().err


def test_etcd_is_healthy_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert etcd.place(["--data-dir=/x", "--listen-client-urls=http://[::1]:4001,http://a:1"]) == ("::1", 4001)
    assert etcd.place([]) == ("127.0.0.1", 2379)
    for request, status in ((b"GET /health HTTP/1.1\r\n\r\n", b"200 OK"), (b"GET /other HTTP/1.1\r\n\r\n", b"404")):
        here, there = socket.socketpair()
        answering = threading.Thread(target=etcd.serve, args=[there])
        answering.start()
        here.sendall(request)
        answer = b"".join(iter(lambda here=here: here.recv(1000), b""))
        answering.join()
        here.close()
        assert status in answer
    gone, there = socket.socketpair()
    gone.close()
    etcd.serve(there)  # a client that is gone is nothing to tell


def test_an_etcd_whose_port_is_taken(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(etcd.signal, "signal", lambda *_: None)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert etcd.main([f"--listen-client-urls=http://127.0.0.1:{port}"]) == 1
    assert os.strerror(98) in capsys.readouterr().err
