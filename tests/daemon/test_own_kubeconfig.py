"""The kubeconfig that a start writes, as YAML reads it."""

import yaml

from seamark.daemon.kubeconfig import kubeconfig


def test_a_kubeconfig_has_everything_inside():
    found = yaml.safe_load(kubeconfig(server="https://x:1", ca=b"pem", token="t"))
    assert found["clusters"][0]["cluster"] == {"server": "https://x:1", "certificate-authority-data": "cGVt"}
    assert found["users"][0]["user"] == {"token": "t"}
    assert found["current-context"] == found["contexts"][0]["name"]
    assert "certificate-authority-data" not in kubeconfig(server="http://x", ca=None, token="t")
    found = yaml.safe_load(kubeconfig(server="https://x:1", ca=b"pem", token="t", certificate=(b"crt", b"key")))
    assert found["users"][0]["user"] == {
        "client-certificate-data": "Y3J0",
        "client-key-data": "a2V5",
        "token": "t",
    }
