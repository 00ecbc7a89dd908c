"""Recorded scenarios of CoreDNS, with the objects that a control plane would add to them.

The tests of this directory run without an API server and controllers.  What those would add (addresses, EndpointSlices)
is made here, by the few rules that the recordings need.  ``replay_dns.py`` asks the same questions of a whole Seamark.
"""

from __future__ import annotations

import ipaddress
import json
from pathlib import Path
from typing import Any

import msgspec

from conformance_files import CONFORMANCE, tool
from seamark.dns.config import ZoneConfig
from seamark.dns.zone.state import ClusterZone
from seamark.rules.objects.endpointslice import EndpointSlice
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.service import Service
from virtual_time import VirtualClock

FILES = sorted((CONFORMANCE / "dns").glob("*.json"))


replay = tool("replay_dns")


def load(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())


class RecordedCluster:
    """A scenario's objects in order of creation, completed as a control plane would."""

    def __init__(self, doc: dict[str, Any]) -> None:
        self.objects: list[dict[str, Any]] = []
        self.services: list[dict[str, Any]] = []
        self._next = 10
        kubernetes = {"name": "https", "port": 443, "protocol": "TCP"}
        metadata = {"name": "kubernetes", "namespace": "default"}
        self._service({"kind": "Service", "metadata": metadata, "spec": {"ports": [kubernetes]}})
        self.objects.append({"kind": "Namespace", "metadata": {"name": "default"}})
        pods = [o for o in doc["objects"] if o["kind"] == "Pod"]
        terminating = {step["delete"][3] for step in doc.get("after") or () if "delete" in step}
        for obj in doc["objects"]:
            match obj["kind"]:
                case "Service":
                    self._service(obj)
                    self._select(obj, pods, terminating)
                case "Endpoints":
                    self._mirror(obj)
                case "Pod":
                    self.objects.append(obj)
                    if obj["metadata"]["name"] in terminating:
                        metadata = {**obj["metadata"], "deletionTimestamp": "2030-01-01T00:00:00Z"}
                        self.objects.append({**obj, "metadata": metadata})
                case "Namespace" | "EndpointSlice":
                    self.objects.append(obj)

    def zone(self) -> ClusterZone:
        """A zone filled with these objects; nothing updates it afterwards."""
        zone = ClusterZone(clock=VirtualClock(1_700_000_000.0))
        for obj in self.objects:
            match obj["kind"]:
                case "Namespace":
                    zone.put_namespace(obj["metadata"]["name"])
                case "Service":
                    zone.put_service(msgspec.convert(obj, Service))
                case "EndpointSlice":
                    zone.put_slice(msgspec.convert(obj, EndpointSlice))
                case "Pod":
                    zone.put_pod(msgspec.convert(obj, Pod))
        return zone

    def _service(self, obj: dict[str, Any]) -> None:
        spec = obj["spec"]
        if spec.get("type") != "ExternalName" and spec.get("clusterIP") != "None":
            self._next += 1
            four, six = f"10.96.0.{self._next}", f"fd00:96::{self._next:x}"
            dual = spec.get("ipFamilyPolicy") == "RequireDualStack"
            addresses = [four, six] if dual else [six] if spec.get("ipFamilies") == ["IPv6"] else [four]
            obj = {**obj, "spec": {**spec, "clusterIP": addresses[0], "clusterIPs": addresses}}
        self.services.append(obj)
        self.objects.append(obj)

    def _select(self, service: dict[str, Any], pods: list[dict[str, Any]], terminating: set[str]) -> None:
        name, namespace = service["metadata"]["name"], service["metadata"]["namespace"]
        selector = service["spec"].get("selector")
        if not selector:
            return
        publish = service["spec"].get("publishNotReadyAddresses", False)
        endpoints: dict[str, list[dict[str, Any]]] = {"IPv4": [], "IPv6": []}
        for pod in pods:
            labels = pod["metadata"].get("labels", {})
            if pod["metadata"]["namespace"] != namespace or not selector.items() <= labels.items():
                continue
            ready = any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"]["conditions"])
            ready = publish or (ready and pod["metadata"]["name"] not in terminating)
            for ip in pod["status"]["podIPs"]:
                endpoint = {
                    "addresses": [ip["ip"]],
                    "conditions": {"ready": ready},
                    "targetRef": {"kind": "Pod", "name": pod["metadata"]["name"]},
                }
                if pod["spec"].get("subdomain") == name:
                    endpoint["hostname"] = pod["spec"]["hostname"]
                endpoints["IPv6" if ":" in ip["ip"] else "IPv4"].append(endpoint)
        if service["spec"].get("ipFamilyPolicy") != "RequireDualStack":
            endpoints["IPv6"] = []
        for family, found in endpoints.items():
            self._slice(f"{name}-{family.lower()}", namespace, name, found, service["spec"].get("ports"))

    def _mirror(self, obj: dict[str, Any]) -> None:
        name, namespace = obj["metadata"]["name"], obj["metadata"]["namespace"]
        for number, subset in enumerate(obj["subsets"]):
            found = [
                {"addresses": [a["ip"]], "conditions": {"ready": ready}, "hostname": a.get("hostname")}
                for field, ready in (("addresses", True), ("notReadyAddresses", False))
                for a in subset.get(field) or ()
            ]
            self._slice(f"{name}-{number}", namespace, name, found, subset.get("ports"))

    def _slice(self, name: str, namespace: str, service: str, endpoints: list[Any], ports: list[Any] | None) -> None:
        metadata = {"name": name, "namespace": namespace, "labels": {"kubernetes.io/service-name": service}}
        ports = [{"name": "", **p} for p in ports or ()]
        self.objects.append({"kind": "EndpointSlice", "metadata": metadata, "endpoints": endpoints, "ports": ports})

    def places(self) -> Any:
        """The replay tool's table of allocated addresses."""
        places = replay.Places.__new__(replay.Places)
        places.known, places.back, places.back_name, places.back_label = {}, {}, {}, {}
        for service in self.services:
            for ip in service["spec"].get("clusterIPs") or []:
                address = ipaddress.ip_address(ip)
                version = "6" if address.version == 6 else ""
                at = f"({service['metadata']['name']}/{service['metadata']['namespace']})"
                dash = ip.replace(".", "-").replace(":", "-")
                reverse = address.reverse_pointer + "."
                places.known |= {f"$IP{version}{at}": ip, f"$REV{version}{at}": reverse, f"$DASH{version}{at}": dash}
                places.back[ip] = f"$IP{version}{at}"
                places.back_name[reverse] = f"$REV{version}{at}"
                places.back_label[dash] = f"$DASH{version}{at}"
        return places


def zone_config(doc: dict[str, Any]) -> ZoneConfig:
    config = doc["config"]
    return ZoneConfig(
        zones=(config["zone"], *config["reverse"]),
        pods=config["pods"],
        ttl=config["ttl"],
        fallthrough=tuple(config["fallthrough"]),
    )


def packet_of(question: dict[str, Any], places: Any) -> bytes:
    if "raw" in question:
        return bytes.fromhex(question["raw"].replace(" ", ""))
    return replay.pack_query(question, places.fill(question["name"]))
