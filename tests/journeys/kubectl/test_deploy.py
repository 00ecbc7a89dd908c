"""The manifests in ``deploy``, given to a real API by kubectl.  RBAC is not served here and left out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from seamark_process import Seamark

DEPLOY = Path(__file__).parents[3] / "deploy"


@pytest.mark.parametrize("directory", ["controllers", "dns-new-cluster"])
def test_the_api_accepts_every_manifest_it_serves(
    directory: str, start: Callable[..., Seamark], make_kubectl: Callable[[Seamark], Callable[..., str]]
) -> None:
    kubectl = make_kubectl(start())
    documents = list(yaml.safe_load_all(kubectl("kustomize", str(DEPLOY / directory))))
    served = [d for d in documents if not d["apiVersion"].startswith("rbac.authorization.k8s.io/")]
    for namespace in (d for d in served if d["kind"] == "Namespace"):
        kubectl("create", "namespace", namespace["metadata"]["name"])
    said = kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=yaml.safe_dump_all(served))
    accepted = [line for line in said.splitlines() if line.endswith("(server dry run)")]
    assert len(accepted) == len(served)
    assert any("deployment.apps/" in line for line in accepted)
