"""The plugin as other projects use it: pytest in a process of its own, in a project that is not ours."""

from __future__ import annotations

from pathlib import Path

from pytest_runs import run_pytest

CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
"""
TESTS = """\
import os
import pytest

@pytest.mark.parametrize("number", range(6))
@pytest.mark.seamark(nodes=3, manifests=[{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}])
def test_a_private_cluster(seamark, number):
    assert os.environ["KUBECONFIG"] == str(seamark.kubeconfig)
    assert seamark.get("customresourcedefinitions", "widgets.example.com")
    assert seamark.get("configmaps", "a")
    assert seamark.get("nodes", "node-3")

@pytest.mark.parametrize("number", range(2))
def test_a_namespace(seamark_session, seamark_namespace, number):
    assert seamark_session.get("namespaces", seamark_namespace)

class TestMany:
    pytestmark = pytest.mark.seamark(nodes=0)

    def test_a_marker_for_all_of_a_class(self, seamark):
        with pytest.raises(Exception, match="not found"):
            seamark.get("nodes", "node-1")

@pytest.mark.seamark(knots=3)
def test_a_slip(seamark):
    pass
"""
CONFTEST = """\
import pytest

@pytest.fixture(scope="session")
def seamark_options():
    return {"crds": ["deploy/crd.yaml"]}
"""
EARLY_CONFTEST = """\
from kubernetes import client, config
config.load_kube_config()  # an operator that connects when it is imported
client.CoreV1Api().create_namespaced_config_map("default", {"metadata": {"name": "early"}})
"""
EARLY_TESTS = """\
import os
from kubernetes import client, config

def test_the_session_is_the_cluster_that_was_there_from_the_beginning(seamark_session):
    assert seamark_session.get("configmaps", "early")

def test_a_private_cluster_is_found_by_the_same_name(seamark):
    config.load_kube_config()
    assert client.Configuration.get_default_copy().host == seamark.url
    names = [each.metadata.name for each in client.CoreV1Api().list_namespaced_config_map("default").items]
    assert "early" not in names

def test_and_afterwards_the_first_one_again(seamark_session):
    config.load_kube_config()
    assert client.Configuration.get_default_copy().host == seamark_session.url
"""


def test_markers_options_and_namespaces_on_several_workers(tmp_path: Path) -> None:
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy" / "crd.yaml").write_text(CRD)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_all.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    done = run_pytest(tmp_path, "-n", "2")
    assert "9 passed, 1 error" in done.stdout, done.stdout + done.stderr
    assert "unexpected keyword argument 'knots'" in done.stdout


def test_a_kubeconfig_for_clients_that_read_it_when_they_are_imported(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(EARLY_CONFTEST)
    (tmp_path / "test_early.py").write_text(EARLY_TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nseamark_kubeconfig = true\n")
    done = run_pytest(tmp_path)
    assert "3 passed" in done.stdout, done.stdout + done.stderr


def test_a_run_without_it_does_not_load_the_server(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text(
        "import os, sys\ndef test_other():\n"
        "    assert not [name for name in sys.modules if name.startswith('seamark.') and 'testing' not in name]\n"
        "    assert 'KUBECONFIG' not in os.environ\n"
    )
    done = run_pytest(tmp_path)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
