"""What a Pod becomes when it is created, and what keeps it from being created."""

from __future__ import annotations

from typing import Any

import pytest
from kind_rules import Recorded, check, create, recorded_creations, sentences

from seamark.errors import Forbidden, Invalid, Object
from seamark.kinds.pod.defaults import pull_policy
from seamark.kinds.pod.pod import POD


@pytest.mark.parametrize("recorded", recorded_creations("pods"), ids=str)
def test_recorded(recorded: Recorded) -> None:
    check(recorded)


def pod(container: Object | None = None, meta: Object | None = None, **spec: Any) -> Object:
    first = {"name": "c", "image": "example/app:1", **(container or {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", **(meta or {})},
        "spec": {"containers": [first], **spec},
    }


def refusals(body: Object) -> list[str]:
    with pytest.raises(Invalid) as refused:
        create(POD, body)
    return sentences(refused.value)


# --- defaults ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("app", "Always"),
        ("app:latest", "Always"),
        ("registry.example:5000/a/b", "Always"),
        ("registry.example:5000/a/b:latest", "Always"),
        ("app:1", "IfNotPresent"),
        ("registry.example:5000/a/b:1", "IfNotPresent"),
        ("app@sha256:" + "0" * 64, "IfNotPresent"),
        ("app:latest@sha256:" + "0" * 64, "Always"),
        ("Not An Image", "IfNotPresent"),
        ("0" * 64, "IfNotPresent"),
        ("", "IfNotPresent"),
    ],
)
def test_pull_policy_follows_the_tag(image: str, policy: str) -> None:
    assert pull_policy(image) == policy


def test_volumes_are_filled_in() -> None:
    made = create(
        POD,
        pod(
            volumes=[
                {"name": "none"},
                {"name": "host", "hostPath": {"path": "/x"}},
                {
                    "name": "down",
                    "downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]},
                },
                {
                    "name": "all",
                    "projected": {
                        "sources": [
                            {"downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}},
                            {"serviceAccountToken": {"path": "token"}},
                        ]
                    },
                },
                {
                    "name": "own",
                    "ephemeral": {
                        "volumeClaimTemplate": {
                            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
                        }
                    },
                },
                {"name": "img", "image": {"reference": "data:1"}},
            ],
            serviceAccountName="me",
        ),
    )
    none, host, down, everything, own, image = made["spec"]["volumes"]
    assert none["emptyDir"] == {}
    assert host["hostPath"] == {"path": "/x", "type": ""}
    assert down["downwardAPI"]["defaultMode"] == 0o644
    assert down["downwardAPI"]["items"][0]["fieldRef"]["apiVersion"] == "v1"
    assert everything["projected"]["sources"][0]["downwardAPI"]["items"][0]["fieldRef"]["apiVersion"] == "v1"
    assert everything["projected"]["sources"][1]["serviceAccountToken"]["expirationSeconds"] == 3600
    assert own["ephemeral"]["volumeClaimTemplate"]["spec"]["volumeMode"] == "Filesystem"
    assert image["image"]["pullPolicy"] == "IfNotPresent"
    assert made["spec"]["serviceAccount"] == "me"


def test_hooks_probes_and_variables_are_filled_in() -> None:
    made = create(
        POD,
        pod(
            {
                "lifecycle": {"preStop": {"httpGet": {"port": 80}}},
                "startupProbe": {"grpc": {"port": 5}, "failureThreshold": 30},
                "env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
            }
        ),
    )["spec"]["containers"][0]
    assert made["lifecycle"]["preStop"]["httpGet"] == {"path": "/", "port": 80, "scheme": "HTTP"}
    assert made["startupProbe"] == {
        "grpc": {"port": 5, "service": ""},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 30,
    }
    assert made["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"


def test_a_toleration_for_everything_is_not_added_to() -> None:
    assert create(POD, pod(tolerations=[{"operator": "Exists"}]))["spec"]["tolerations"] == [{"operator": "Exists"}]
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    keys = [t["key"] for t in create(POD, pod(tolerations=[own]))["spec"]["tolerations"]]
    assert keys == ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]


def test_requests_follow_limits_one_by_one() -> None:
    made = create(POD, pod({"resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}}))
    assert made["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}
    assert made["status"]["qosClass"] == "Burstable"


def test_amounts_below_a_thousandth_are_rounded_up() -> None:
    made = create(POD, pod({"resources": {"requests": {"cpu": "1500u"}}}))
    assert made["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "2m"}


def test_resources_of_the_whole_pod_follow_from_its_containers() -> None:
    body = pod({"resources": {"requests": {"cpu": "1", "memory": "512Mi"}}}, resources={"limits": {"cpu": "2"}})
    body["spec"]["containers"].append(
        {"name": "d", "image": "x", "resources": {"requests": {"cpu": "500m", "memory": "512Mi"}}}
    )
    made = create(POD, body)
    assert made["spec"]["resources"] == {"limits": {"cpu": "2"}, "requests": {"cpu": "1500m", "memory": "1Gi"}}
    assert made["status"]["qosClass"] == "Burstable"


def test_gates_are_told_in_the_status() -> None:
    made = create(POD, pod(schedulingGates=[{"name": "example.com/wait"}]))
    (condition,) = made["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "PodScheduled",
        "False",
        "SchedulingGated",
    )
    assert condition["lastTransitionTime"] == made["metadata"]["creationTimestamp"]


def test_label_keys_become_selectors() -> None:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}, "matchLabelKeys": ["rev", "absent"]}
    body = pod(
        meta={"labels": {"rev": "7"}},
        affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
    )
    made = create(POD, body)["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert made[0]["labelSelector"]["matchExpressions"] == [{"key": "rev", "operator": "In", "values": ["7"]}]


# --- priority ----------------------------------------------------------------------------------------------


def test_priority_comes_from_the_class() -> None:
    made = create(POD, pod(priorityClassName="system-node-critical"))
    assert (made["spec"]["priority"], made["spec"]["preemptionPolicy"]) == (2000001000, "PreemptLowerPriority")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"priorityClassName": "none"}, 'pods "p" is forbidden: no PriorityClass with name none was found'),
        (
            {"priority": 5},
            'pods "p" is forbidden: the integer value of priority (5) must not be provided in pod spec; priority '
            "admission controller computed 0 from the given PriorityClass name",
        ),
    ],
)
def test_what_admission_refuses(spec: Object, message: str) -> None:
    with pytest.raises(Forbidden) as refused:
        create(POD, pod(**spec))
    assert refused.value.message == message
    assert refused.value.details == {"name": "p", "kind": "pods"}


# --- refusals ----------------------------------------------------------------------------------------------

HANDLERS = {"exec": {"command": ["a"]}, "httpGet": {"port": 1}}
TWICE = [{"containerPort": 80, "hostPort": 80}, {"containerPort": 81, "hostPort": 80}]
FROM_NOWHERE = {"fieldRef": {"fieldPath": "spec.nope"}}
PORT = "must be between 1 and 65535, inclusive"
RESTARTING = {"resourceName": "cpu", "restartPolicy": "RestartContainer"}


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        (
            {"imagePullPolicy": "Often"},
            'imagePullPolicy: Unsupported value: "Often": supported values: "Always", "IfNotPresent", "Never"',
        ),
        (
            {"terminationMessagePolicy": "X"},
            'terminationMessagePolicy: Unsupported value: "X": supported values: "File", "FallbackToLogsOnError"',
        ),
        ({"image": " app"}, 'image: Invalid value: " app": must not have leading or trailing whitespace'),
        ({"ports": [{"containerPort": 70000}]}, f"ports[0].containerPort: Invalid value: 70000: {PORT}"),
        (
            {"ports": [{"containerPort": 80, "protocol": "X"}]},
            'ports[0].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"',
        ),
        (
            {"ports": [{"containerPort": 80, "name": "80"}]},
            'ports[0].name: Invalid value: "80": must contain at least one letter (a-z)',
        ),
        ({"ports": TWICE}, 'ports[1].hostPort: Duplicate value: "TCP//80"'),
        (
            {"env": [{"name": "a=b"}]},
            'env[0].name: Invalid value: "a=b": a valid environment variable name must consist only of printable '
            "ASCII characters other than '='",
        ),
        (
            {"env": [{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
            'env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty',
        ),
        (
            {"env": [{"name": "A", "valueFrom": FROM_NOWHERE}]},
            'env[0].valueFrom.fieldRef.fieldPath: Invalid value: "spec.nope": error converting fieldPath: field label '
            "not supported: spec.nope",
        ),
        (
            {"env": [{"name": "A", "valueFrom": {}}]},
            'env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, '
            "`configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "/x", "key": "A"}}}]},
            'env[0].valueFrom.fileKeyRef.volumeName: Not found: "v"',
        ),
        ({"envFrom": [{}]}, 'envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`'),
        ({"volumeMounts": [{"name": "v", "mountPath": "/x"}]}, 'volumeMounts[0].name: Not found: "v"'),
        ({"livenessProbe": {}}, "livenessProbe: Required value: must specify a handler type"),
        (
            {"livenessProbe": {"tcpSocket": {"port": 1}, "successThreshold": 2}},
            "livenessProbe.successThreshold: Invalid value: 2: must be 1",
        ),
        (
            {"readinessProbe": HANDLERS},
            "readinessProbe.httpGet: Forbidden: may not specify more than 1 handler type",
        ),
        (
            {"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}},
            'resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
        ),
        (
            {"resources": {"requests": {"memory": "-1"}}},
            'resources.requests[memory]: Invalid value: "-1": must be greater than or equal to 0',
        ),
        (
            {"securityContext": {"runAsUser": -1}},
            "securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
        ),
        (
            {"lifecycle": {"preStop": {"sleep": {"seconds": 31}}}},
            "lifecycle.preStop.sleep: Invalid value: 31: must be non-negative and less than "
            "terminationGracePeriodSeconds (30)",
        ),
        (
            {"restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}]},
            "restartPolicy: Required value: must specify restartPolicy when restart rules are used",
        ),
        (
            {"restartPolicy": "Never", "restartPolicyRules": [{"action": "Restart"}]},
            "restartPolicyRules[0].exitCodes: Required value: must be specified",
        ),
    ],
)
def test_containers_refused(container: Object, expected: str) -> None:
    assert refusals(pod(container)) == [f"spec.containers[0].{expected}"]


def test_resources_nobody_knows() -> None:
    field = "spec.containers[0].resources"
    assert refusals(pod({"resources": {"limits": {"gpu": "1"}}})) == [
        f'{field}.{part}[gpu]: Invalid value: "gpu": {sentence}'
        for part in ("limits", "requests")
        for sentence in (
            "must be a standard resource type or fully qualified",
            "must be a standard resource for containers",
        )
    ]
    assert refusals(pod({"resources": {"limits": {"example.com/gpu": "1500m"}}})) == [
        f'{field}.{part}[example.com/gpu]: Invalid value: "1500m": must be an integer'
        for part in ("limits", "requests")
    ]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"nodeName": "Bad_Node"}, ["spec.nodeName"]),
        ({"hostname": "a.b"}, ["spec.hostname"]),
        ({"subdomain": "A"}, ["spec.subdomain"]),
        ({"activeDeadlineSeconds": 0}, ["spec.activeDeadlineSeconds"]),
        ({"volumes": [{"name": "a", "emptyDir": {}, "hostPath": {"path": "/"}}]}, ["spec.volumes[0].hostPath"]),
        ({"volumes": [{"name": "a"}, {"name": "a"}]}, ["spec.volumes[1].name"]),
        ({"volumes": [{"name": "a", "configMap": {}}]}, ["spec.volumes[0].configMap.name"]),
        ({"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}, ["spec.tolerations[0].operator"]),
        ({"tolerations": [{"operator": "Equal"}]}, ["spec.tolerations[0].operator"]),
        ({"dnsPolicy": "None"}, ["spec.dnsConfig"]),
        ({"dnsConfig": {"nameservers": ["x"]}}, ["spec.dnsConfig.nameservers[0]"]),
        ({"hostAliases": [{"ip": "1.2.3.04", "hostnames": ["a"]}]}, ["spec.hostAliases[0].ip"]),
        ({"ephemeralContainers": [{"name": "e", "image": "x"}]}, ["spec.ephemeralContainers"]),
        ({"nodeName": "n", "schedulingGates": [{"name": "example.com/x"}]}, ["spec.nodeName"]),
        ({"initContainers": [{"name": "c", "image": "x"}]}, ["spec.initContainers[0].name"]),
        (
            {"initContainers": [{"name": "i", "image": "x", "livenessProbe": {"tcpSocket": {"port": 1}}}]},
            ["spec.initContainers[0].livenessProbe"],
        ),
        ({"os": {"name": "plan9"}}, ["spec.os"]),
        ({"topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]},
         ["spec.topologySpreadConstraints[0].maxSkew"]),
        ({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}},
         ["spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"]),
        ({"securityContext": {"sysctls": [{"name": "net.x", "value": "1"}]}, "hostNetwork": True},
         ["spec.securityContext.sysctls[0].name"]),
        ({"readinessGates": [{"conditionType": ""}]}, ["spec.readinessGates[0].conditionType"] * 2),
        ({"hostPID": True, "shareProcessNamespace": True}, ["spec.securityContext.shareProcessNamespace"]),
        ({"os": {"name": "windows"}, "resources": {"limits": {"x": "1"}}}, ["spec.resources"]),
        ({"initContainers": [{"name": "i", "image": "x", "resizePolicy": [RESTARTING]}]},
         ["spec.initContainers[0].resizePolicy[0].restartPolicy"]),
    ],
)  # fmt: skip
def test_specs_refused(spec: Object, expected: list[str]) -> None:
    with pytest.raises(Invalid) as refused:
        create(POD, pod(**spec))
    assert [cause.field for cause in refused.value.causes] == expected


def test_the_name_of_the_host_stands_alone() -> None:
    override = pod(hostnameOverride="a." * 32 + "A", setHostnameAsFQDN=True, hostNetwork=True)
    assert [sentence.partition(": ")[2][:60] for sentence in refusals(override)] == [
        "Forbidden: may not be specified when setHostnameAsFQDN is tr",
        "Forbidden: may not be specified when hostNetwork is true",
        "Too long: may not be more than 64 bytes",
        f'Invalid value: "{"a." * 22}',
    ]


def test_a_pod_with_its_own_users_shares_nothing_else() -> None:
    claim = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    device = {"volumeDevices": [{"name": "v", "devicePath": "/dev/x"}]}
    assert refusals(pod(device, hostUsers=False, hostPID=True, hostNetwork=True, volumes=claim)) == [
        f"spec.{field}: Forbidden: when `hostUsers` is false"
        for field in ("hostNetwork", "HostPID", "containers[0].volumeDevices")
    ]


def test_variables_come_from_files_of_the_pod_only() -> None:
    file = {"volumeName": "v", "path": "../x", "key": "A"}
    volumes = [{"name": "v", "hostPath": {"path": "/"}}]
    field = "spec.containers[0].env[0].valueFrom.fileKeyRef"
    assert refusals(pod({"env": [{"name": "A", "valueFrom": {"fileKeyRef": file}}]}, volumes=volumes)) == [
        f"{field}.path: Invalid value: \"../x\": must not contain '..'",
        f'{field}.volumeName: Invalid value: "v": referenced volume must be of type emptyDir',
    ]


def test_operators_that_compare_are_told_to_those_who_use_them() -> None:
    both = [{"key": "a", "operator": "Gt", "value": "1"}, {"key": "a", "operator": "Foo"}]
    assert refusals(pod(tolerations=both)) == [
        'spec.tolerations[0].operator: Unsupported value: "Gt": supported values: "Equal", "Exists", "Lt", "Gt"',
        'spec.tolerations[1].operator: Unsupported value: "Foo": supported values: "Equal", "Exists"',
    ]


def test_a_sidecar_may_have_probes() -> None:
    sidecar = {"name": "s", "image": "x", "restartPolicy": "Always", "startupProbe": {"tcpSocket": {"port": 1}}}
    assert create(POD, pod(initContainers=[sidecar]))["spec"]["initContainers"][0]["restartPolicy"] == "Always"


def test_a_token_needs_an_account() -> None:
    volume = {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    assert refusals(pod(volumes=[volume])) == [
        "spec.volumes[0].projected.sources[0].serviceAccountToken: Forbidden: must not be specified when "
        "serviceAccountName is not set"
    ]


def test_a_trust_bundle_that_is_chosen_twice_is_shown_as_go_prints_it() -> None:
    bundle = {"name": "n", "signerName": "a.b/c", "path": "ca"}
    (said,) = refusals(pod(volumes=[{"name": "t", "projected": {"sources": [{"clusterTrustBundle": bundle}]}}]))
    shown = '{"Name":"n","SignerName":"a.b/c","LabelSelector":null,"Optional":null,"Path":"ca"}'
    assert said.endswith(f": Invalid value: {shown}: only one of name and signerName may be used")


def test_a_volume_that_is_wrong_is_not_there_to_mount() -> None:
    body = pod({"volumeMounts": [{"name": "v", "mountPath": "/x"}]}, volumes=[{"name": "v", "secret": {}}])
    assert refusals(body) == [
        "spec.volumes[0].secret.secretName: Required value",
        'spec.containers[0].volumeMounts[0].name: Not found: "v"',
    ]


# --- warnings ----------------------------------------------------------------------------------------------

CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1500m"}}}


def files(*paths: str) -> list[Object]:
    return [{"key": "k", "path": path} for path in paths]


@pytest.mark.parametrize(
    ("body", "warnings"),
    [
        (pod(), []),
        (
            pod(meta={"name": "a.b"}),
            [
                "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS "
                "label is recommended: [must not contain dots]"
            ],
        ),
        (
            pod({"ports": [{"containerPort": 80}, {"containerPort": 80}]}),
            ["spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]"],
        ),
        (
            pod({"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}),
            ['spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply'],
        ),
        (pod({"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}]}), []),
        (
            pod(terminationGracePeriodSeconds=-1),
            ["spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"],
        ),
        (
            pod({"resources": {"requests": {"memory": "1500m"}}}),
            [
                'spec.containers[0].resources.requests[memory]: fractional byte value "1500m" is invalid, must be an '
                "integer"
            ],
        ),
        (
            pod(nodeSelector={"beta.kubernetes.io/os": "linux"}),
            ['spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead'],
        ),
        (
            pod(volumes=[{"name": "v", "configMap": {"name": "c", "items": files("a", "b", "a/x", "b")}}]),
            [
                'volume "v" (ConfigMap "c"): overlapping paths: "a/x" with "a"',
                'volume "v" (ConfigMap "c"): overlapping paths: "b" with "b"',
            ],
        ),
        (
            pod(
                volumes=[
                    {
                        "name": "v",
                        "projected": {
                            "sources": [
                                {"configMap": {"name": "c", "items": files("a")}},
                                {"secret": {"name": "s", "items": files("a/x", "z")}},
                            ]
                        },
                    }
                ]
            ),
            ['volume "v" (Projected Secret "s"): overlapping paths: "a/x" with "a"'],
        ),
        (
            pod(volumes=[{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}}]),
            [
                "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests[storage]: fractional byte value "
                '"1500m" is invalid, must be an integer'
            ],
        ),
    ],
)
def test_warnings(body: Object, warnings: list[str]) -> None:
    made = create(POD, body)
    assert POD.warnings(made, None) == warnings
    assert POD.warnings(made, made) == [], "updates are not warned about"
