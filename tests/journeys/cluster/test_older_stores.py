"""A store that an earlier release wrote is opened by this one: nothing is lost, and the cluster goes on.

``stores/VERSION.db.gz`` are store files of released versions, each with the same small cluster: a Service with a node
port, a Deployment of two, a ConfigMap and a Secret, and one ConfigMap that was deleted.  They are never made anew.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from commands import Command

STORES = sorted((Path(__file__).parent / "stores").glob("*.db.gz"))


@pytest.mark.parametrize("file", STORES, ids=lambda file: file.name.removesuffix(".db.gz"))
def test_a_cluster_of_an_earlier_release_goes_on(file: Path, tmp_path: Path) -> None:
    seamark = Command(tmp_path)
    seamark.data.mkdir(mode=0o700)
    (seamark.data / "store.db").write_bytes(gzip.decompress(file.read_bytes()))
    assert "sound" in seamark("fsck")
    with seamark.up("--nodes", "1"):

        def get(*words: str) -> dict:
            return json.loads(seamark("get", *words, "-n", "shop", "-o", "json"))

        service = get("svc", "web")
        assert service["spec"]["ports"][0]["nodePort"] == 30080
        assert service["metadata"]["labels"] == {"tier": "front"}
        assert get("cm", "settings")["data"] == {"a": "b"}
        assert get("secret", "word")["data"] == {"word": "bm90IGEgc2VjcmV0"}
        assert [each["metadata"]["name"] for each in get("cm")["items"]] == ["kube-root-ca.crt", "settings"]
        pods = {each["metadata"]["name"] for each in get("pods")["items"]}
        assert len(pods) == 2
        [piece] = get("endpointslices")["items"]
        assert {each["targetRef"]["name"] for each in piece["endpoints"]} == pods
        # What was allocated then is still taken, and new writes work.
        other = {**service, "metadata": {"name": "other", "namespace": "shop"}}
        other["spec"] = {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]}
        refused = seamark.run("apply", "-f", "-", stdin=json.dumps(other))
        assert "provided port is already allocated" in refused.stderr
        seamark("delete", "pod", sorted(pods)[0], "-n", "shop")
    assert "sound" in seamark("fsck")


def test_there_is_a_store_of_every_release() -> None:
    assert "0.1.0.db.gz" in {file.name for file in STORES}
