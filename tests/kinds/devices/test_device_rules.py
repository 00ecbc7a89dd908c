"""What Kubernetes says of claims, classes and slices of devices that are wrong."""

from __future__ import annotations

from typing import Any

import pytest
from refusing import change_refusals, made, patched, refusals

from seamark.errors import Object
from seamark.kinds.devices.devices import (
    DEVICE_CLASS,
    DEVICE_TAINT_RULE,
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
    RESOURCE_SLICE,
)

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
IDENTIFIER = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters "
    "or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')"
)
REFERENCE = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
OPAQUE = {"opaque": {"driver": "d", "parameters": {"a": 1}}}
POOL = {"name": "p", "generation": 1, "resourceSliceCount": 1}


def _claim(**devices: Any) -> Object:
    return {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}], **devices}}


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"name": "", "exactly": {"deviceClassName": "c"}}, [f'.name: Invalid value: "": {LABEL}']),
        (
            {"name": "r", "exactly": {"deviceClassName": "c"}, "firstAvailable": [{"name": "f"}]},
            [
                ": Invalid value: null: exactly one of `exactly` or `firstAvailable` is required, but multiple fields "
                "are set"
            ],
        ),
        (
            {"name": "r", "exactly": {"deviceClassName": "c", "allocationMode": "Some"}},
            ['.exactly.allocationMode: Unsupported value: "Some": supported values: "All", "ExactCount"'],
        ),
        (
            {"name": "r", "exactly": {"deviceClassName": "c", "allocationMode": "All", "count": 2}},
            [".exactly.count: Invalid value: 2: must not be specified when allocationMode is 'All'"],
        ),
        (
            {"name": "r", "exactly": {"deviceClassName": "c", "count": -1}},
            [".exactly.count: Invalid value: -1: must be greater than zero"],
        ),
        (
            {"name": "r", "exactly": {"deviceClassName": "c", "selectors": [{}]}},
            [".exactly.selectors[0].cel: Required value"],
        ),
        (
            {"name": "r", "firstAvailable": [{"name": "f", "deviceClassName": "c"}, {"name": "f"}]},
            [
                ".firstAvailable[1].deviceClassName: Required value",
                '.firstAvailable[1]: Duplicate value: "f"',
            ],
        ),
        (
            {"name": "r", "exactly": {"deviceClassName": "c", "tolerations": [{"operator": "Exists", "value": "v"}]}},
            ['.exactly.tolerations[0].value: Invalid value: "v": must be empty for operator `Exists`'],
        ),
        (
            {"name": "r", "exactly": {"deviceClassName": "c", "tolerations": [{"operator": "In", "effect": "All"}]}},
            [
                '.exactly.tolerations[0].operator: Unsupported value: "In": supported values: "Equal", "Exists"',
                '.exactly.tolerations[0].effect: Unsupported value: "All": supported values: "NoExecute", '
                '"NoSchedule", "None"',
            ],
        ),
    ],
)
def test_requests(request_: Object, said: list[str]) -> None:
    spec = {"devices": {"requests": [request_]}}
    assert refusals(RESOURCE_CLAIM, spec=spec) == [f"spec.devices.requests[0]{sentence}" for sentence in said]
    wrong = refusals(RESOURCE_CLAIM_TEMPLATE, spec={"spec": spec})
    assert wrong == [f"spec.spec.devices.requests[0]{sentence}" for sentence in said]


@pytest.mark.parametrize(
    ("devices", "said"),
    [
        (
            {"constraints": [{"requests": ["r", "x"], "matchAttribute": "d/a"}]},
            [f'requests[1]: Invalid value: "x": {REFERENCE}'],
        ),
        (
            {"constraints": [{"requests": ["r/x"], "matchAttribute": "d/a"}]},
            [f'requests[0]: Invalid value: "r/x": {REFERENCE}'],
        ),
        (
            {"constraints": [{"requests": ["a/b/c"], "matchAttribute": "d/a"}]},
            [f'requests[0]: Invalid value: "a/b/c": {REFERENCE}'],
        ),
        (
            {"constraints": [{"requests": ["r", "r"], "distinctAttribute": "d/a"}]},
            ['requests[1]: Duplicate value: "r"'],
        ),
        (
            {"constraints": [{"matchAttribute": "no-domain"}]},
            [
                f'matchAttribute: Invalid value: "no-domain": {IDENTIFIER}',
                'matchAttribute: Invalid value: "no-domain": a fully qualified name must be a domain and a name '
                "separated by a slash",
            ],
        ),
        ({"config": [{}]}, ["opaque: Required value"]),
        (
            {"config": [{"opaque": {"driver": "", "parameters": [1]}}]},
            [
                "opaque.driver: Required value",
                'opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON object',
            ],
        ),
        (
            {"config": [{"opaque": {"driver": "d", "parameters": {"a": "x" * 10240}}}]},
            ["opaque.parameters: Too long: may not be more than 10240 bytes"],
        ),
        ({"config": [{"opaque": {"driver": "d"}}]}, ["opaque.parameters: Required value"]),
    ],
)
def test_what_is_said_about_requests(devices: Object, said: list[str]) -> None:
    (field,) = devices
    expected = [f"spec.devices.{field}[0].{sentence}" for sentence in said]
    assert refusals(RESOURCE_CLAIM, spec=_claim(**devices)) == expected


def test_a_constraint_is_about_an_attribute() -> None:
    assert refusals(RESOURCE_CLAIM, spec=_claim(constraints=[{}])) == [
        'spec.devices.constraints[0]: Required value: exactly one of "matchAttribute" or "distinctAttribute" is '
        "required, but multiple fields are set"
    ]


def test_what_is_right_is_taken() -> None:
    first = {"name": "q", "firstAvailable": [{"name": "f", "deviceClassName": "c", "tolerations": [{"key": "k"}]}]}
    exactly = {"name": "r", "exactly": {"deviceClassName": "c", "allocationMode": "All"}}
    constraint = {"requests": ["r", "q", "q/f"], "matchAttribute": "d.example/a_b"}
    spec = {"devices": {"requests": [exactly, first], "constraints": [constraint], "config": [OPAQUE]}}
    claim = made(RESOURCE_CLAIM, spec=spec)
    assert claim["spec"]["devices"]["requests"][1]["firstAvailable"][0]["tolerations"][0]["operator"] == "Equal"


def test_what_a_claim_was_given() -> None:
    claim = made(RESOURCE_CLAIM, spec=_claim())
    result = {"request": "r", "driver": "d", "pool": "p/q", "device": "x"}
    given = {"allocation": {"devices": {"results": [result]}}}
    user = {"resource": "pods", "name": "a", "uid": "1"}
    assert change_refusals(RESOURCE_CLAIM, claim, {"status": {"reservedFor": [user]}}, "status") == [
        "status.reservedFor: Forbidden: may not be specified when `allocated` is not set"
    ]
    wrong = {"request": "x", "driver": "", "pool": "", "device": "", "shareID": "1"}
    at = "status.allocation.devices.results[0]"
    said = change_refusals(
        RESOURCE_CLAIM, claim, {"status": {"allocation": {"devices": {"results": [wrong]}}}}, "status"
    )
    assert said == [
        f'{at}.request: Invalid value: "x": {REFERENCE}',
        f"{at}.driver: Required value",
        f"{at}.pool: Required value",
        f'{at}.device: Invalid value: "": {LABEL}',
        f'{at}.shareID: Invalid value: "1": error validating uid: invalid UUID length: 1',
    ]
    network = {"ips": ["10.9.8.7", "10.9.8.7/24", "fd00:0::1/64"]}
    own = {"driver": "d", "pool": "p/q", "device": "x"}
    status = {**given, "devices": [{**own, "networkData": network}, {**own, "device": "y", "data": 1}]}
    assert change_refusals(RESOURCE_CLAIM, claim, {"status": status}, "status") == [
        'status.devices[0].networkData.ips[0]: Invalid value: "10.9.8.7": must be a valid address in CIDR form, '
        "(e.g. 10.9.8.7/24 or 2001:db8::1/64)",
        'status.devices[0].networkData.ips[2]: Invalid value: "fd00:0::1/64": must be in canonical form ("fd00::1/64")',
        "status.devices[1]: Invalid value: d/p/q/y: must be an allocated device in the claim",
        'status.devices[1].data: Invalid value: "<value omitted>": must be a valid JSON object',
    ]
    held = patched(RESOURCE_CLAIM, claim, {"status": {**given, "reservedFor": [user], "devices": [own]}}, "status")
    assert change_refusals(RESOURCE_CLAIM, held, {"status": {"reservedFor": [user, user]}}, "status") == [
        'status.reservedFor[1]: Duplicate value: "1"'
    ]
    other = {"devices": {"results": [{**result, "device": "y"}]}}
    assert (
        "status.allocation: Invalid value"
        in change_refusals(RESOURCE_CLAIM, held, {"status": {"allocation": other}}, "status")[0]
    )
    freed = patched(RESOURCE_CLAIM, held, {"status": {"allocation": None, "reservedFor": None}}, "status")
    assert "devices" not in freed["status"], "what was said of devices goes with them"
    held["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    more = {"status": {"reservedFor": [user, {**user, "uid": "2"}]}}
    assert change_refusals(RESOURCE_CLAIM, held, more, "status") == [
        "status.reservedFor: Forbidden: new entries may not be added while `deallocationRequested` or "
        "`deletionTimestamp` are set"
    ]


def test_what_may_not_change_is_shown_as_go_shows_it() -> None:
    found = made(RESOURCE_CLAIM, spec=_claim())
    more = {"spec": _claim(constraints=[{"requests": ["r"], "matchAttribute": "d/a"}], config=[OPAQUE])}
    exactly = (
        '{"DeviceClassName":"c","Selectors":null,"AllocationMode":"ExactCount","Count":1,"AdminAccess":null,'
        '"Tolerations":null,"Capacity":null,"DerivedAttributes":null}'
    )
    asked = f'"Requests":[{{"Name":"r","Exactly":{exactly},"FirstAvailable":null}}]'
    constraints = '"Constraints":[{"Requests":["r"],"MatchAttribute":"d/a","DistinctAttribute":null}]'
    config = '"Config":[{"Requests":null,"Opaque":{"Driver":"d","Parameters":{"a":1}}}]'
    spec = f'{{"Devices":{{{asked},{constraints},{config}}}}}'
    assert change_refusals(RESOURCE_CLAIM, found, more) == [f"spec: Invalid value: {spec}: field is immutable"]
    template = made(RESOURCE_CLAIM_TEMPLATE, spec={"spec": _claim()})
    again = {"spec": {"metadata": {"labels": {"a": "b"}}, **more}}
    assert change_refusals(RESOURCE_CLAIM_TEMPLATE, template, again) == [
        f'spec: Invalid value: {{"labels":{{"a":"b"}},"Spec":{spec}}}: field is immutable'
    ]


def test_classes() -> None:
    made(DEVICE_CLASS, spec={"config": [OPAQUE], "extendedResourceName": "example.com/gpu"})
    assert refusals(DEVICE_CLASS, spec={"selectors": [{}], "config": [{}], "extendedResourceName": "cpu"}) == [
        "spec.selectors[0].cel: Required value",
        "spec.config[0].opaque: Required value",
        'spec.extendedResourceName: Invalid value: "cpu": must be a valid extended resource name',
    ]


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ('device.driver == "d" && device.attributes["d"].model.matches("a.*")', ""),
        ('device.attributes["d"].on', ""),
        ('device.capacity["d"].memory.compareTo(quantity("1Gi")) >= 0 && device.allowMultipleAllocations', ""),
        ('device.attributes["d"].version.isGreaterThan(semver("1.0.0"))', ""),
        ('cel.bind(d, device.attributes["d"], d.a && d.b)', ""),
        ("1 + 1", 'Invalid value: "1 + 1": must evaluate to bool or the unknown type, not int'),
        ("device.nope", 'Invalid value: "device.nope": compilation failed: ERROR: <input>:1:7: undefined field'),
        ("", "Invalid value: \"\": compilation failed: ERROR: <input>:1:1: Syntax error: mismatched input '<EOF>'"),
        ("x" * 10241, "Too long: may not be more than 10240 bytes"),
        (
            "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, device.attributes.all(d, "
            'd.matches("(a+)+")))))',
            "Forbidden: too complex, exceeds cost limit",
        ),
    ],
)
def test_expressions(expression: str, said: str) -> None:
    spec = {"selectors": [{"cel": {"expression": expression}}]}
    if not said:
        made(DEVICE_CLASS, spec=spec)
        return
    (sentence,) = refusals(DEVICE_CLASS, spec=spec)
    assert sentence.startswith(f"spec.selectors[0].cel.expression: {said}")


def test_expressions_that_are_stored_are_not_judged_again() -> None:
    found = made(DEVICE_CLASS, spec={"selectors": [{"cel": {"expression": "true"}}]})
    found["spec"]["selectors"][0]["cel"]["expression"] = "device.once"
    patched(DEVICE_CLASS, found, {"spec": {"extendedResourceName": "example.com/gpu"}})
    more = {"spec": {"selectors": [*found["spec"]["selectors"], {"cel": {"expression": "true"}}]}}
    assert change_refusals(DEVICE_CLASS, found, more)[0].startswith("spec.selectors[0].cel.expression: Invalid value")


def test_taints() -> None:
    rule = made(DEVICE_TAINT_RULE, spec={"taint": {"key": "k", "effect": "None"}})
    assert rule["spec"]["taint"]["timeAdded"]
    wrong = refusals(
        DEVICE_TAINT_RULE,
        spec={"deviceSelector": {"driver": "", "pool": "", "device": "D"}, "taint": {"key": "k", "effect": "Some"}},
    )
    assert wrong == [
        "spec.deviceSelector.driver: Required value",
        "spec.deviceSelector.pool: Required value",
        f'spec.deviceSelector.device: Invalid value: "D": {LABEL}',
        'spec.taint.effect: Unsupported value: "Some": supported values: "NoExecute", "NoSchedule", "None"',
    ]


def _slice(**more: Any) -> Object:
    return {"driver": "d", "pool": POOL, "allNodes": True, **more}


@pytest.mark.parametrize(
    ("device", "said"),
    [
        ({"attributes": {"a": {}}}, ['.attributes[a]: Invalid value: "": exactly one value must be specified']),
        (
            {"attributes": {"a": {"int": 1, "bool": True}}},
            [
                '.attributes[a]: Invalid value: {"IntValue":1,"BoolValue":true,"StringValue":null,"VersionValue":null,'
                '"IntValues":null,"BoolValues":null,"StringValues":null,"VersionValues":null}: exactly one value must '
                "be specified"
            ],
        ),
        (
            {"attributes": {"a": {"version": "1"}}},
            ['.attributes[a].version: Invalid value: "1": must be a string compatible with semver.org spec 2.0.0'],
        ),
        (
            {"attributes": {"a": {"string": "x" * 65}}},
            [".attributes[a].string: Too long: may not be more than 64 bytes"],
        ),
        ({"attributes": {"a-b": {"int": 1}}}, [f'.attributes: Invalid value: "a-b": {IDENTIFIER}']),
        (
            {"attributes": {"/": {"int": 1}}},
            [
                '.attributes: Invalid value: "": the domain must not be empty',
                '.attributes: Invalid value: "": the name must not be empty',
            ],
        ),
        (
            {"attributes": {"a/b/c": {"int": 1}}},
            ['.attributes: Invalid value: "a/b/c": must not contain more than one slash'],
        ),
        (
            {"capacity": {f"c{i}": {"value": "1"} for i in range(33)}},
            [": Invalid value: 33: the total number of attributes and capacities must not exceed 32"],
        ),
        (
            {"capacity": {"c": {"value": "1", "requestPolicy": {}}}},
            [".capacity[c].requestPolicy: Forbidden: allowMultipleAllocations must be true"],
        ),
        ({"taints": [{"key": "k"}]}, [".taints[0].effect: Required value"]),
        (
            {"consumesCounters": [{}]},
            [".consumesCounters[0].counterSet: Required value", ".consumesCounters[0].counters: Required value"],
        ),
        (
            {"nodeName": "n"},
            [
                ": Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can only be set if "
                "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
            ],
        ),
        (
            {"bindingConditions": ["a", "a"]},
            [
                '.bindingConditions[1]: Duplicate value: "a"',
                ".bindingFailureConditions: Invalid value: null: bindingFailureConditions are required to use "
                "bindingConditions",
            ],
        ),
        (
            {"bindingConditions": ["a"], "bindingFailureConditions": ["a"]},
            [
                '.bindingFailureConditions[0]: Invalid value: "a": bindingFailureConditions must not overlap with '
                "bindingConditions"
            ],
        ),
    ],
)
def test_devices(device: Object, said: list[str]) -> None:
    wrong = refusals(RESOURCE_SLICE, spec=_slice(devices=[{"name": "a", **device}]))
    assert wrong == [f"spec.devices[0]{sentence}" for sentence in said]


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ({"validValues": ["1"]}, [".default: Required value: required when validValues is defined"]),
        ({"validRange": {"min": "1"}}, [".default: Required value: required when validRange is defined"]),
        (
            {"default": "3", "validValues": ["2", "1", "20"]},
            [
                '.validValues[1]: Invalid value: "1": values must be sorted in ascending order',
                '.validValues[2]: Invalid value: "20": option is larger than capacity value: 10',
                '.validValues: Invalid value: "3": default value is not valid according to the requestPolicy',
            ],
        ),
        (
            {"default": "1", "validRange": {"min": "2", "max": "11", "step": "2"}},
            [
                '.validRange.default: Invalid value: "1": default is less than min: 2',
                '.validRange.max: Invalid value: "11": max is larger than capacity value: 10',
                '.validRange.step: Invalid value: "1": value is not a multiple of a given step (2) from (2)',
                '.validRange.step: Invalid value: "11": value is not a multiple of a given step (2) from (2)',
            ],
        ),
        (
            {"default": "2", "validRange": {"min": "2", "step": "0"}},
            ['.validRange.step: Invalid value: "0": must be greater than zero'],
        ),
        (
            {"default": "2", "validRange": {"min": "2", "step": "9"}},
            ['.validRange.step: Invalid value: "9": one step 11 is larger than capacity value: 10'],
        ),
        ({"default": "2", "validRange": {}}, [".validRange.min: Required value: required when validRange is defined"]),
    ],
)
def test_shared_capacity(policy: Object, said: list[str]) -> None:
    device = {
        "name": "a",
        "allowMultipleAllocations": True,
        "capacity": {"c": {"value": "10", "requestPolicy": policy}},
    }
    wrong = refusals(RESOURCE_SLICE, spec=_slice(devices=[device]))
    assert wrong == [f"spec.devices[0].capacity[c].requestPolicy{sentence}" for sentence in said]


def test_very_large_quantities_are_compared_all_the_same() -> None:
    policy = {"default": "2", "validRange": {"min": "1E500", "max": "1E600", "step": "1n"}}
    device = {
        "name": "a",
        "allowMultipleAllocations": True,
        "capacity": {"c": {"value": "10", "requestPolicy": policy}},
    }
    assert refusals(RESOURCE_SLICE, spec=_slice(devices=[device]))


def test_where_devices_are() -> None:
    places = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
    assert refusals(RESOURCE_SLICE, spec=_slice(nodeName="n", devices=[])) == [
        f'spec: Invalid value: "{{`nodeName`, `allNodes`}}": {places}, but multiple fields are set'
    ]
    wrong = refusals(RESOURCE_SLICE, spec=_slice(nodeName="", allNodes=False, nodeSelector={"nodeSelectorTerms": []}))
    assert wrong == [
        'spec.nodeName: Invalid value: "": must be either unset or set to a non-empty string',
        "spec.nodeSelector.nodeSelectorTerms: Required value: must have at least one node selector term",
        "spec.nodeSelector.nodeSelectorTerms: Invalid value: null: must have exactly one node selector term",
        "spec.allNodes: Invalid value: false: must be either unset or set to true",
    ]
    single = {"driver": "d", "pool": POOL, "perDeviceNodeSelection": True}
    said = "is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
    devices = [{"name": "a"}, {"name": "b", "nodeName": "n", "allNodes": True}, {"name": "c", "allNodes": True}]
    assert refusals(RESOURCE_SLICE, spec={**single, "devices": devices}) == [
        f"spec.devices[0]: Required value: exactly one of `nodeName`, `nodeSelector`, or `allNodes` {said}",
        'spec.devices[1]: Invalid value: "{`nodeName`, `allNodes`}": exactly one of `nodeName`, `nodeSelector`, or '
        f"`allNodes` {said}",
    ]


def test_slices_keep_their_pool() -> None:
    found = made(RESOURCE_SLICE, spec=_slice(devices=[{"name": "a"}]))
    wrong = change_refusals(RESOURCE_SLICE, found, {"spec": {"driver": "e", "pool": {"name": "q"}}})
    assert wrong == [
        'spec.pool.name: Invalid value: "q": field is immutable',
        'spec.driver: Invalid value: "e": field is immutable',
    ]
    many = [{"name": f"d{i}", "taints": [{"key": "k", "effect": "None"}]} for i in range(65)]
    assert refusals(RESOURCE_SLICE, spec=_slice(devices=many)) == [
        "spec.devices: Too many: 65: must have at most 64 items"
    ]
    both = _slice(devices=[{"name": "a"}], sharedCounters=[{"name": "s", "counters": {"c": {"value": "1"}}}])
    assert refusals(RESOURCE_SLICE, spec=both) == [
        'spec: Invalid value: "": only one of `sharedCounters` or `devices` is allowed'
    ]


def test_drivers_are_called_in_lower_case() -> None:
    found = made(RESOURCE_SLICE, spec={**_slice(), "driver": "D"})
    assert RESOURCE_SLICE.warnings(found, None) == [
        'spec.driver: driver names should be lowercase; "D" contains uppercase characters'
    ]
