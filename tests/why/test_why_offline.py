"""Manifests: what they would make of a cluster, and what is wrong before they are applied."""

import io

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from seamark.why.explain import explain
from seamark.why.explain_pod import explain_pod
from seamark.why.offline import ManifestError, documents, world_of

SERVICE = """\
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: http}]}
"""

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, creationTimestamp: null}
    spec:
      containers: [{name: app, image: x, ports: [{name: http, containerPort: 8080}]}]
"""


def world(*texts, **more):
    return world_of(documents(["-"], stdin=io.StringIO("\n---\n".join(texts))), **more)


def code(world, name="web", namespace="default"):
    cause = explain(world, (namespace, name)).cause
    return cause.code.value if cause is not None else "healthy"


def test_a_selector_with_a_typo():
    assert code(world(SERVICE.replace("app: web", "app: wbe"), DEPLOYMENT)) == "SelectorValueTypo"


def test_a_deployment_serves_its_service():
    made = world(SERVICE, DEPLOYMENT)
    report = explain(made, ("default", "web"))
    assert report.healthy
    assert report.state == "will be served by web (Deployment)"
    assert report.ready == ()  # there are no addresses yet, and none are made up


@pytest.mark.parametrize(
    ("change", "to", "expected"),
    [
        ("labels: {app: web}", "labels: {app: wbe}", "ManifestRefused"),
        ("name: http, containerPort", "name: web, containerPort", "TargetPortNameNotFound"),
        ("replicas: 3", "replicas: 0", "WorkloadScaledToZero"),
        ("metadata: {name: web}", "metadata: {name: web, namespace: prod}", "PodsInOtherNamespace"),
        ("ports: [{name: http, containerPort: 8080}]", "ports: [{name: http, containerPort: 8080, protocol: UDP}]",
         "TargetPortProtocolMismatch"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_found(change, to, expected):
    assert change in DEPLOYMENT
    assert code(world(SERVICE, DEPLOYMENT.replace(change, to))) == expected


def test_a_service_without_anything_behind_it():
    assert code(world(SERVICE)) == "SelectorMatchesNothing"


def test_nothing_is_said_about_controllers_that_have_not_seen_it_yet():
    made = world(SERVICE, DEPLOYMENT)
    assert not made.bookkept
    assert made.planned


def test_objects_read_off_a_cluster_are_taken_as_they_are():
    pod = """\
apiVersion: v1
kind: Pod
metadata: {name: web-1, labels: {app: web}}
spec: {nodeName: n1, containers: [{name: app, ports: [{name: http, containerPort: 8080}]}]}
status:
  phase: Running
  podIP: 10.1.0.1
  conditions: [{type: Ready, status: "False", reason: ContainersNotReady, lastTransitionTime: 2026-01-02T00:00:00Z}]
"""
    assert code(world(SERVICE, pod)) == "PodNotReady"


def test_lists_comments_and_other_kinds_of_workload():
    listed = """\
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Service
  metadata: {name: web}
  spec: {clusterIP: None, selector: {app: web}}
"""
    rollout = DEPLOYMENT.replace("apps/v1", "argoproj.io/v1alpha1").replace("Deployment", "Rollout")
    assert code(world(listed, "# nothing here", rollout)) == "healthy"
    cron_job = """\
apiVersion: batch/v1
kind: CronJob
metadata: {name: web}
spec:
  schedule: "* * * * *"
  jobTemplate:
    spec:
      template:
        metadata: {labels: {app: web}}
        spec: {restartPolicy: Never, containers: [{name: app, image: x}]}
"""
    assert code(world(listed, cron_job)) == "healthy"


def test_hand_made_endpoints_will_be_mirrored():
    service = SERVICE.replace("selector: {app: web}, ", "")
    endpoints = """\
apiVersion: v1
kind: Endpoints
metadata: {name: web}
subsets: [{addresses: [{ip: 192.168.0.1}], ports: [{port: 8080}]}]
"""
    assert code(world(service, endpoints)) == "healthy"
    assert code(world(service)) == "SelectorlessWithoutEndpoints"


def test_a_pod_of_the_manifests():
    made = world(SERVICE, DEPLOYMENT)
    report = explain_pod(made, ("default", "web (Deployment)"))
    assert report.healthy
    assert report.tables[0].rows[0][:2] == ("web", "ready")


def test_namespaces():
    made = world(SERVICE, DEPLOYMENT, namespace="shop")
    assert code(made, namespace="shop") == "healthy"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [", "standard input, line"),
        ("just text", "no kind"),
        ("kind: Service\nmetadata: {name: web}\nspec: {selector: {app: 1}}", "Service web"),
        ("kind: Service\nmetadata: [1]", "Service"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(text, says):
    with pytest.raises(ManifestError) as problem:
        world(text)
    assert says in str(problem.value)
    assert "\n" not in str(problem.value)


def test_files_and_directories(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "service.yaml").write_text(SERVICE)
    (tmp_path / "deployment.yml").write_text(DEPLOYMENT)
    (tmp_path / "notes.txt").write_text("not a manifest")
    assert code(world_of(documents([str(tmp_path)]))) == "healthy"
    for missing, says in ((tmp_path / "none", "there is no"), (tmp_path / "empty", "no manifests")):
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(ManifestError, match=says):
            documents([str(missing)])


FIELDS = ["metadata", "spec", "status", "ports", "selector", "template", "containers", "name", "labels", "namespace"]
FIELDS += ["replicas", "items", "endpoints", "subsets", "phase", "port", "targetPort"]

values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 70000) | st.text("ab-/.1", max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(FIELDS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)
kinds = st.sampled_from(["Service", "Pod", "Deployment", "StatefulSet", "Endpoints", "EndpointSlice", "Node", "List"])


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(kinds, st.dictionaries(st.sampled_from(["metadata", "spec", "status", "items"]), values))))
def test_whatever_is_in_the_manifests_it_is_explained_or_refused(found):
    text = yaml.safe_dump_all([{"kind": kind, **rest} for kind, rest in found])
    try:
        made = world(text)
    except ManifestError:
        return
    for namespace, name in made.services:
        report = explain(made, (namespace, name))
        assert (report.namespace, report.subject) == (namespace, f"service/{name}")
        assert report.healthy or report.cause is not None
