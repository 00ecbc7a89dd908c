"""Which requests a policy logs, and how much of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from seamark.api.audit.policy import DEFAULT, NOTHING, Level, PolicyError, read
from seamark.api.authorization import Attributes, User

ANN = User("ann", ("admins", "system:authenticated"))
POD = Attributes("get", "", "v1", "pods", "", "shop", "web-1")

# The example of Kubernetes' documentation, in essence.
POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, users: [robot], verbs: [watch], resources: [{group: "", resources: [endpoints, services]}]}
- {level: Metadata, resources: [{group: "", resources: [pods/log, "*/status"]}]}
- {level: RequestResponse, resources: [{group: "", resources: [pods]}], omitManagedFields: true}
- {level: None, resources: [{group: "", resources: [configmaps], resourceNames: [controller-leader]}]}
- {level: None, userGroups: ["system:authenticated"], nonResourceURLs: ["/api*", /version]}
- {level: Request, resources: [{group: "", resources: [configmaps]}], namespaces: [kube-system]}
- {level: Metadata, resources: [{group: ""}], omitStages: [ResponseStarted]}
- {level: Request, resources: [{group: extensions}, {group: apps, resources: ["deployments/*"]}]}
- {level: Metadata, userGroups: [auditors]}
"""


def asked(verb="get", group="", resource="", sub="", namespace="shop", name="", path=""):
    return Attributes(verb, group, "v1", resource, sub, namespace, name, path)


@pytest.fixture
def policy(tmp_path: Path):
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY)
    return read(file)


@pytest.mark.parametrize(
    ("user", "request_", "level"),
    [
        (User("robot"), asked("watch", resource="services"), Level.NONE),
        (User("robot"), asked("get", resource="services"), Level.METADATA),
        (ANN, asked("watch", resource="services"), Level.METADATA),
        (ANN, POD, Level.REQUEST_RESPONSE),
        (ANN, asked(resource="pods", sub="log"), Level.METADATA),
        (ANN, asked("patch", resource="nodes", sub="status"), Level.METADATA),
        (ANN, asked(resource="pods", sub="exec"), Level.METADATA),  # not `pods`, but of the core group
        (ANN, asked(resource="configmaps", name="controller-leader"), Level.NONE),
        (ANN, asked(resource="configmaps", name="other", namespace="kube-system"), Level.REQUEST),
        (ANN, asked(resource="configmaps", name="other"), Level.METADATA),
        (ANN, asked(path="/apis/apps"), Level.NONE),
        (ANN, asked(path="/version"), Level.NONE),
        (User("stranger"), asked(path="/version"), Level.NONE),  # no rule at all
        (ANN, asked(path="/versions"), Level.NONE),
        (ANN, asked(group="extensions", resource="ingresses"), Level.REQUEST),
        (ANN, asked(group="apps", resource="deployments", sub="scale"), Level.REQUEST),
        (ANN, asked(group="apps", resource="deployments"), Level.REQUEST),  # it is of `deployments/*`, too
        (ANN, asked(group="apps", resource="replicasets"), Level.NONE),
        (User("eve", ("auditors",)), asked(group="apps", resource="replicasets"), Level.METADATA),
        (User("eve", ("auditors",)), asked(path="/metrics"), Level.METADATA),
    ],
)
def test_the_first_rule_that_matches_decides(policy, user, request_, level):
    assert policy.judge(user, request_).level is level


def test_stages_and_managed_fields_are_of_the_policy_and_of_the_rule(policy):
    assert policy.judge(ANN, POD).omit_managed_fields
    assert policy.judge(ANN, POD).omit_stages == {"RequestReceived"}
    both = policy.judge(ANN, asked(resource="services"))
    assert both.omit_stages == {"RequestReceived", "ResponseStarted"}
    assert not both.omit_managed_fields
    assert policy.judge(User("x"), asked(path="/x")) == NOTHING


def test_without_a_file_everything_is_logged_without_contents():
    extent = DEFAULT.judge(ANN, POD)
    assert (extent.level, extent.omit_stages) == (Level.METADATA, {"RequestReceived"})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "No such file"),
        ("rules: [", "not an audit policy"),
        ("[]", "not an audit policy"),
        ("apiVersion: audit.k8s.io/v1\nkind: Policy", "rules"),
        ("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: []", "no rules"),
        ("apiVersion: v1\nkind: Policy\nrules: [{level: None}]", "it is v1 Policy"),
        ("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Loud}]", "Loud"),
        ("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, verb: [get]}]", "verb"),
        (
            "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, namespaces: [a], nonResourceURLs: [/a]}]",
            "nonResourceURLs",
        ),
        (
            "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, resources: [{resourceNames: [a]}]}]",
            "resourceNames need resources",
        ),
        ("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, nonResourceURLs: [/*/a]}]", "last"),
        (
            "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, nonResourceURLs: [metrics]}]",
            "begin with /",
        ),
        ("rules: !!timestamp 2001-99-99", "month must be in 1..12"),
        ("rules: " + "[" * 5000, "recursion"),
    ],
)
def test_a_file_that_is_no_policy_is_refused_in_one_line(tmp_path: Path, text, told):
    file = tmp_path / "policy.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(PolicyError, match=r"policy\.yaml") as refused:
        read(file)
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)
