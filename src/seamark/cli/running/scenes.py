"""The scenes of the demo: what Services, Pods, Endpoints and names do.

Each scene is a function that says a sentence, runs commands as a person would type them, and states what their output
must contain before the scene goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from seamark.kinds.wellknown import MIRROR_CONTROLLER, SERVICE_NAME_LABEL, SLICE_MANAGED_BY_LABEL


class Stage(Protocol):
    """Where scenes are played."""

    @property
    def namespace(self) -> str: ...

    @property
    def resolver(self) -> str:
        """The options that make ``seamark resolve`` ask the cluster's own DNS; empty if its address is not known."""
        ...

    @property
    def nodes(self) -> bool:
        """Whether there are simulated nodes that run Pods."""
        ...

    def say(self, text: str) -> None: ...

    def run(self, command: str, *, given: str = "", until: str = "") -> str:
        """Run a command and show its output once that matches ``until``; ``given`` is what it reads from stdin."""
        ...


APPLY = "seamark apply -f -"
MIRRORED = f"{SLICE_MANAGED_BY_LABEL}={MIRROR_CONTROLLER}"

SERVICE = """\
apiVersion: v1
kind: Service
metadata: {{name: {name}}}
spec:
{spec}
"""

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: app, image: example/web:1, ports: [{containerPort: 8080}]}
"""
# There is no kubelet to report that they have ended, so they get no time for it.
ON_NODE = "      nodeName: {node}\n      terminationGracePeriodSeconds: 0\n"

NODE = """\
apiVersion: v1
kind: Node
metadata: {{name: {name}}}
"""

ENDPOINTS = """\
apiVersion: v1
kind: Endpoints
metadata: {name: database}
subsets:
- addresses: [{ip: 192.0.2.10}]
  ports: [{port: 5432}]
"""

NEVER_READY = """\
apiVersion: v1
kind: Pod
metadata:
  name: {pod}
  annotations: {{seamark.dev/ready: never}}
"""

STATUS = """\
apiVersion: v1
kind: Pod
metadata: {{name: {pod}}}
status:
  phase: Running
  podIP: {ip}
  podIPs: [{{ip: {ip}}}]
  conditions: [{{type: Ready, status: "{ready}"}}]
  containerStatuses:
  - {{name: app, image: example/web:1, imageID: "", restartCount: 0, ready: {up}, state: {{running: {{}}}}}}
"""


def selector_without_pods(stage: Stage) -> None:
    stage.say(
        "A Service says which Pods it is for by a selector.  As long as there are none, it has an address and a name, "
        "but its Endpoints are empty."
    )
    spec = "  selector: {app: web}\n  ports: [{port: 80, targetPort: 8080}]"
    stage.run(_in(stage, APPLY), given=SERVICE.format(name="web", spec=spec), until="service/web created")
    stage.run(_in(stage, "seamark get svc web"), until=r"web +ClusterIP +[0-9a-f.:]+ +<none> +80/TCP")
    stage.run(_in(stage, "seamark get endpoints web"), until=r"web +<none>")
    stage.run(
        _in(stage, "seamark get endpointslices -l kubernetes.io/service-name=web"), until=r"web-\S+ +IPv. +<unset>"
    )


def no_selector(stage: Stage) -> None:
    stage.say("A Service without a selector gets no Endpoints at all: it is left to you to write them.")
    spec = "  ports: [{port: 5432}]"
    stage.run(_in(stage, APPLY), given=SERVICE.format(name="database", spec=spec), until="service/database created")
    stage.run(_in(stage, "seamark get endpoints database"), until='endpoints "database" not found')


def three_replicas(stage: Stage) -> None:
    stage.say("Three Pods that match the selector: as soon as they are ready, they are the Service's endpoints.")
    if stage.nodes:
        stage.run(_in(stage, APPLY), given=DEPLOYMENT, until="deployment.apps/web created")
    else:
        _play_node(stage)
    stage.run(_in(stage, "seamark get pods -o wide"), until=r"(?s)(1/1 +Running.*){3}")
    stage.run(_in(stage, "seamark get endpoints web"), until=r"web +(\S+:8080,){2}\S+:8080")
    stage.run(
        _in(stage, "seamark get endpointslices -l kubernetes.io/service-name=web"),
        until=r"web-\S+ +IPv. +8080 +\S+,\S+,\S+",
    )


def not_ready(stage: Stage) -> None:
    stage.say("A Pod that turns not ready stays in the Endpoints, but among those that get no traffic.")
    pod = pod_names(stage)[0]
    if stage.nodes:
        stage.say("(On simulated nodes an annotation is enough to rehearse it.)")
        stage.run(_in(stage, APPLY), given=NEVER_READY.format(pod=pod), until=f"pod/{pod} configured")
    else:
        given = STATUS.format(pod=pod, ip=_address(0), ready="False", up="false")
        stage.run(_in(stage, f"{APPLY} --subresource status"), given=given, until=f"pod/{pod} configured")
    stage.run(_in(stage, f"seamark get pod {pod}"), until="0/1")
    stage.run(_in(stage, "seamark get endpoints web"), until=r"(?m)web +\S+:8080,\S+:8080 ")
    stage.run(_in(stage, "seamark get endpoints web -o yaml"), until=rf"(?s)notReadyAddresses:\n.*name: {pod}\n")
    stage.say("Instead of reading YAML, ask why a Service has too few endpoints.")
    stage.run(_in(stage, "seamark why svc/web"), until=rf"(?s){pod}\s.*not ready")


def manual_endpoints(stage: Stage) -> None:
    stage.say(
        "An address outside the cluster behind a Service's name: Endpoints written by hand for the Service without a "
        "selector.  They are mirrored into an EndpointSlice, for clients that read only these."
    )
    stage.run(_in(stage, APPLY), given=ENDPOINTS, until="endpoints/database created")
    stage.run(_in(stage, "seamark get endpoints database"), until=r"database +192\.0\.2\.10:5432")
    stage.run(
        _in(stage, f"seamark get endpointslices -l {SERVICE_NAME_LABEL}=database,{MIRRORED}"),
        until=r"database-\S+ +IPv4 +5432 +192\.0\.2\.10 ",
    )


def headless(stage: Stage) -> None:
    stage.say("A headless Service has no address of its own: its name is the addresses of its ready Pods.")
    spec = "  clusterIP: None\n  selector: {app: web}\n  ports: [{name: http, port: 8080}]"
    stage.run(_in(stage, APPLY), given=SERVICE.format(name="peers", spec=spec), until="service/peers created")
    stage.run(_in(stage, "seamark get svc peers"), until=r"peers +ClusterIP +None")
    found = r"peers\.\S+ +\d+ +IN +A +\S+"
    stage.run(_resolve(stage, "peers -t A"), until=rf"(?s){found}.*{found}")
    stage.run(_resolve(stage, "_http._tcp.peers -t SRV"), until=r"IN +SRV +\d+ +\d+ +8080 +\S+\.peers\.")


def external_name(stage: Stage) -> None:
    stage.say("An ExternalName Service is an alias: no address, no Endpoints, a CNAME.")
    spec = "  type: ExternalName\n  externalName: docs.example.org"
    stage.run(_in(stage, APPLY), given=SERVICE.format(name="docs", spec=spec), until="service/docs created")
    stage.run(_in(stage, "seamark get svc docs"), until=r"docs +ExternalName +<none> +docs\.example\.org")
    stage.run(_resolve(stage, "docs -t CNAME"), until=r"IN +CNAME +docs\.example\.org\.")


SCENES: tuple[tuple[str, Callable[[Stage], None]], ...] = (
    ("A Service with a selector and no Pods", selector_without_pods),
    ("A Service without a selector", no_selector),
    ("Three replicas", three_replicas),
    ("A Pod turns not ready", not_ready),
    ("Endpoints by hand", manual_endpoints),
    ("A headless Service and its names", headless),
    ("ExternalName", external_name),
)


def _in(stage: Stage, command: str) -> str:
    return f"{command} -n {stage.namespace}"


def _resolve(stage: Stage, what: str) -> str:
    """Look a name up as a Pod of the namespace would."""
    return f"seamark resolve {what} --from {stage.namespace} {stage.resolver}".rstrip()


def pod_names(stage: Stage) -> list[str]:
    said = stage.run(_in(stage, "seamark get pods -l app=web -o name"), until=r"(?s)(pod/web-.*){3}")
    return [line.removeprefix("pod/") for line in said.split()]


def _address(number: int) -> str:
    return f"10.244.0.{11 + number}"


def _play_node(stage: Stage) -> None:
    """Without simulated nodes, the demo writes what a scheduler and a kubelet would have written."""
    stage.say("(There are no simulated nodes here: the demo makes a Node up, and reports for it that the Pods run.)")
    node = node_name(stage)
    stage.run(APPLY, given=NODE.format(name=node), until=f"node/{node} created")
    bound = DEPLOYMENT + ON_NODE.format(node=node)
    stage.run(_in(stage, APPLY), given=bound, until="deployment.apps/web created")
    statuses = [
        STATUS.format(pod=pod, ip=_address(number), ready="True", up="true")
        for number, pod in enumerate(pod_names(stage))
    ]
    stage.run(_in(stage, f"{APPLY} --subresource status"), given="---\n".join(statuses), until=r"(?s)(configured.*){3}")


def node_name(stage: Stage) -> str:
    return f"{stage.namespace}-node"
