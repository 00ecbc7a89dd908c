"""Several API servers over one etcd: one cluster."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

from api_calls import call, watched
from seamark_process import Seamark, Start
from waiting import until

import etcd_server
from seamark.api.identity.keys import new_key, public_pem


def test_what_one_server_writes_the_other_reads_at_once(start: Start, etcd: etcd_server.EtcdCluster) -> None:
    store = f"etcd://{','.join(etcd.addresses)}/{uuid.uuid4().hex}"
    one, other = start("--store", store, name="one"), start("--store", store, name="other")
    for number in range(30):
        writer, reader = (one, other) if number % 2 else (other, one)
        status, made = call(
            writer,
            "POST",
            "/api/v1/namespaces/default/services",
            {"metadata": {"name": f"s{number}"}, "spec": {"ports": [{"port": 80}]}},
        )
        assert status == 201, made
        # No waiting in between: a read may never show less than what was acknowledged anywhere.
        status, read = call(reader, "GET", f"/api/v1/namespaces/default/services/s{number}")
        assert status == 200, read
        assert read["metadata"]["uid"] == made["metadata"]["uid"]
        names = [i["metadata"]["name"] for i in call(reader, "GET", "/api/v1/namespaces/default/services")[1]["items"]]
        assert f"s{number}" in names
    found = call(one, "GET", "/api/v1/namespaces/default/services")[1]["items"]
    addresses = [item["spec"]["clusterIP"] for item in found]
    assert len(set(addresses)) == len(addresses)
    expected = {"kubernetes", *(f"s{n}" for n in range(30))}
    events = watched(other, "/api/v1/services?resourceVersion=0", until=lambda events: len(events) == len(expected))
    assert {e["object"]["metadata"]["name"] for e in events} == expected


def test_updates_through_both_lose_nothing(start: Start, etcd: etcd_server.EtcdCluster) -> None:
    store = f"etcd://{','.join(etcd.addresses)}/{uuid.uuid4().hex}"
    servers = [start("--store", store, name="one"), start("--store", store, name="other")]
    call(servers[0], "POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "cm"}})
    for number in range(40):
        status, answer = call(
            servers[number % 2],
            "PATCH",
            "/api/v1/namespaces/default/configmaps/cm",
            {"data": {f"k{number}": "x"}},
            media="application/merge-patch+json",
        )
        assert status == 200, json.dumps(answer)
    data = call(servers[0], "GET", "/api/v1/namespaces/default/configmaps/cm")[1]["data"]
    assert data == {f"k{number}": "x" for number in range(40)}


def test_garbage_is_collected_by_the_one_that_leads(start: Start, etcd: etcd_server.EtcdCluster) -> None:
    store = f"etcd://{','.join(etcd.addresses)}/{uuid.uuid4().hex}"
    one = start("--store", store, name="one")
    other = start("--store", store, name="other")
    call(one, "POST", "/api/v1/namespaces", {"metadata": {"name": "gone"}})
    call(one, "POST", "/api/v1/namespaces/gone/configmaps", {"metadata": {"name": "cm"}})
    assert call(other, "DELETE", "/api/v1/namespaces/gone")[0] == 200
    until(lambda: call(one, "GET", "/api/v1/namespaces/gone")[0] == 404)
    lease = call(one, "GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/seamark-controllers")[1]
    assert lease["spec"]["holderIdentity"]


def test_a_token_of_one_server_is_good_at_the_other(
    start: Start, etcd: etcd_server.EtcdCluster, tmp_path: Path
) -> None:
    """Each has a data directory of its own, and both have the same keys for tokens."""
    key, more = tmp_path / "key.pem", tmp_path / "more.pem"
    key.write_bytes(new_key())
    more.write_bytes(public_pem(new_key()))
    store = f"etcd://{','.join(etcd.addresses)}/{uuid.uuid4().hex}"
    keys = ["--service-account-signing-key-file", str(key), "--service-account-key-file", str(more)]
    one, other = (start("--store", store, *keys, name=name) for name in ("one", "other"))
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    assert call(one, "POST", accounts, {"metadata": {"name": "robot"}})[0] == 201
    status, made = call(one, "POST", f"{accounts}/robot/token", {"spec": {}})
    assert status == 201, made
    reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    for server in (one, other):
        # The other server sees a new ServiceAccount a moment after the one that made it.
        until(lambda server=server: call(server, "POST", reviews, {}, token=made["status"]["token"])[0] == 201)
    assert call(other, "DELETE", f"{accounts}/robot")[0] == 200
    for server in (one, other):
        until(lambda server=server: call(server, "POST", reviews, {}, token=made["status"]["token"])[0] == 401)


def test_what_extends_the_api_on_one_server_takes_effect_on_the_other(
    start: Start, etcd: etcd_server.EtcdCluster
) -> None:
    """A definition, a policy and a webhook configuration, each written on one and noticed on both."""
    store = f"etcd://{','.join(etcd.addresses)}/{uuid.uuid4().hex}"
    one, other = start("--store", store, name="one"), start("--store", store, name="other")
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    made = {"metadata": {"name": "widgets.example.com"}, "spec": spec}
    assert call(one, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", made)[0] == 201
    widgets = "/apis/example.com/v1/namespaces/default/widgets"
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}
    until(lambda: call(other, "POST", widgets, widget)[0] == 201)
    assert call(one, "GET", f"{widgets}/a")[0] == 200

    def tried(server: Seamark, name: str) -> int:
        body = {"metadata": {"name": name}}
        return call(server, "POST", "/api/v1/namespaces/default/configmaps?dryRun=All", body)[0]

    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    group = "/apis/admissionregistration.k8s.io/v1"
    validations = [{"expression": "object.metadata.name != 'bad'"}]
    policy = {"metadata": {"name": "p"}, "spec": {"matchConstraints": {"resourceRules": [rule]}}}
    policy["spec"]["validations"] = validations
    assert call(other, "POST", f"{group}/validatingadmissionpolicies", policy)[0] == 201
    binding = {"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}}
    assert call(other, "POST", f"{group}/validatingadmissionpolicybindings", binding)[0] == 201
    for server in (one, other):
        until(lambda server=server: tried(server, "bad") == 422)
        assert tried(server, "good") == 201

    hook = {
        "name": "gone.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    configuration = {"metadata": {"name": "h"}, "webhooks": [hook]}
    assert call(one, "POST", f"{group}/validatingwebhookconfigurations", configuration)[0] == 201
    for server in (other, one):
        until(lambda server=server: tried(server, "good") == 500)
    assert call(other, "DELETE", f"{group}/validatingwebhookconfigurations/h")[0] == 200
    for server in (one, other):
        until(lambda server=server: tried(server, "good") == 201)
