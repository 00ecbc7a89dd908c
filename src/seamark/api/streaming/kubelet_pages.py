"""The pages of a kubelet, which the proxy of its node leads to: its Pods, what they use, and that it is well (pure).

They are served for nodes of this process only, and only those that what is known here can answer: others are not found.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from seamark.api.http.wire.messages import Response
from seamark.errors import Object
from seamark.kinds.autoscaling.usage import Measurement, Used
from seamark.kinds.values import times
from seamark.kinds.wellknown import KUBELET_PORT

PORT = str(KUBELET_PORT)
_TEXT = "text/plain; charset=utf-8"
_NUMBERS = "text/plain; version=0.0.4; charset=utf-8"


def page(path: str, node: Object, pods: Sequence[Object], measured: Measurement) -> Response:
    """``pods`` are those of the node."""
    match path.rstrip("/"):
        case "/healthz" | "/healthz/ping" | "/healthz/syncloop" | "/healthz/log":
            return Response(200, b"ok", _TEXT)
        case "/pods":
            return _json({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": list(pods)})
        case "/runningpods":
            shown = [_running(pod) for pod in pods if _containers(pod)]
            return _json({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": shown})
        case "/stats/summary":
            return _json(_summary(node, pods, measured))
        case "/configz":
            most = int(node["status"]["capacity"]["pods"])
            about = {"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1"}
            return _json({"kubeletconfig": {**about, "port": KUBELET_PORT, "maxPods": most}})
        case "/metrics":
            return Response(200, _metrics(node, pods).encode(), _NUMBERS)
        case "/metrics/resource":
            return Response(200, _resources(pods, measured).encode(), _NUMBERS)
    return Response(404, b"404 page not found\n", _TEXT)


def _json(content: Object) -> Response:
    return Response(200, msgspec.json.encode(content))


def _containers(pod: Object) -> list[str]:
    """The names of the containers that run."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return [each["name"] for each in statuses if "running" in (each.get("state") or {})]


def _running(pod: Object) -> Object:
    meta, names = pod["metadata"], _containers(pod)
    containers = [{"name": each["name"], "image": each["image"]} for each in pod["spec"]["containers"]]
    return {
        "metadata": {field: meta[field] for field in ("name", "namespace", "uid")},
        "spec": {"containers": [each for each in containers if each["name"] in names]},
    }


def _used(used: Used, at: str) -> Object:
    memory = {"time": at, "workingSetBytes": used.memory, "usageBytes": used.memory}
    return {"cpu": {"time": at, "usageNanoCores": round(used.cpu * 1e9)}, "memory": memory}


def _sum(parts: Sequence[Used]) -> Used:
    return Used(sum(each.cpu for each in parts), sum(each.memory for each in parts))


def _summary(node: Object, pods: Sequence[Object], measured: Measurement) -> Object:
    at = times.text(measured.at)
    every: list[Used] = []
    shown = []
    for pod in pods:
        meta, found = pod["metadata"], measured.pods.get(pod["metadata"]["uid"])
        if found is not None:
            every += found.values()
            shown.append(
                {
                    "podRef": {field: meta[field] for field in ("name", "namespace", "uid")},
                    "startTime": pod["status"].get("startTime"),
                    "containers": [{"name": name, **_used(used, at)} for name, used in sorted(found.items())],
                    **_used(_sum([*found.values()]), at),
                }
            )
    return {"node": {"nodeName": node["metadata"]["name"], **_used(_sum(every), at)}, "pods": shown}


def _metrics(node: Object, pods: Sequence[Object]) -> str:
    running = [names for pod in pods if (names := _containers(pod))]
    containers = {'container_state="running"': sum(map(len, running))}
    return (
        _lines("kubelet_node_name", "The node's name. The count is always 1.", {f'node="{_name(node)}"': 1})
        + _lines("kubelet_running_pods", "Number of pods that have a running pod sandbox", {"": len(running)})
        + _lines("kubelet_running_containers", "Number of containers currently running", containers)
    )


def _resources(pods: Sequence[Object], measured: Measurement) -> str:
    """Of the resources only memory: the seconds of CPU since the start of a container are not kept."""
    containers: dict[str, int] = {}
    whole: dict[str, int] = {}
    for pod in pods:
        found = measured.pods.get(pod["metadata"]["uid"])
        if found is not None:
            about = f'namespace="{pod["metadata"]["namespace"]}",pod="{_name(pod)}"'
            whole[about] = _sum([*found.values()]).memory
            containers |= {f'container="{name}",{about}': used.memory for name, used in sorted(found.items())}
    return (
        _lines("container_memory_working_set_bytes", "Current working set of the container in bytes", containers)
        + _lines("node_memory_working_set_bytes", "Current working set of the node in bytes", {"": sum(whole.values())})
        + _lines("pod_memory_working_set_bytes", "Current working set of the pod in bytes", whole)
    )


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def _lines(name: str, about: str, values: dict[str, int]) -> str:
    head = f"# HELP {name} {about}\n# TYPE {name} gauge\n"
    return head + "".join(f"{name}{labels and f'{{{labels}}}'} {value}\n" for labels, value in values.items())
