"""What the labels of a Namespace mean."""

from __future__ import annotations

import pytest

from seamark.kinds.podsecurity.policy import PREFIX, Policy, Standard, policy_of

ANY = Standard()
LEVEL = "must be one of privileged, baseline, restricted"
VERSION = 'must be "latest" or "v1.x"'


def read(**labels: str) -> Policy:
    return policy_of({PREFIX + name.replace("_", "-"): value for name, value in labels.items()})


RESTRICTED = Standard("restricted")
MEANINGS = [
    ({}, ANY, ANY, ANY),
    ({"enforce": "privileged"}, ANY, ANY, ANY),
    ({"audit": "baseline"}, ANY, Standard("baseline"), ANY),
    ({"warn": "restricted", "warn_version": "v1.20"}, ANY, ANY, Standard("restricted", "v1.20")),
    # Without a label of its own, warn follows enforce, its version too.
    ({"enforce": "restricted"}, RESTRICTED, ANY, RESTRICTED),
    (
        {"enforce": "baseline", "enforce_version": "v1.30"},
        Standard("baseline", "v1.30"),
        ANY,
        Standard("baseline", "v1.30"),
    ),
    ({"enforce": "restricted", "warn_version": "v1.0"}, RESTRICTED, ANY, Standard("restricted", "v1.0")),
    ({"enforce": "restricted", "warn": "privileged"}, RESTRICTED, ANY, ANY),
    ({"enforce": "privileged", "warn": "baseline"}, ANY, ANY, Standard("baseline")),
    ({"enforce_version": "v1.7"}, Standard("privileged", "v1.7"), ANY, ANY),
]


@pytest.mark.parametrize(("labels", "enforce", "audit", "warn"), MEANINGS)
def test_what_labels_mean(labels, enforce, audit, warn):
    assert read(**labels) == Policy(enforce, audit, warn)


MISTAKES = [
    ({"enforce": "Restricted"}, "enforce", "Restricted", LEVEL, (RESTRICTED, ANY, ANY)),
    ({"audit": ""}, "audit", "", LEVEL, (ANY, ANY, ANY)),
    ({"warn": "strict"}, "warn", "strict", LEVEL, (ANY, ANY, ANY)),
    ({"enforce_version": "1.25"}, "enforce-version", "1.25", VERSION, (ANY, ANY, ANY)),
    ({"warn_version": "v1.05"}, "warn-version", "v1.05", VERSION, (ANY, ANY, ANY)),
    ({"audit_version": "v2.0"}, "audit-version", "v2.0", VERSION, (ANY, ANY, ANY)),
    ({"audit_version": "v1." + "9" * 20}, "audit-version", "v1." + "9" * 20, VERSION, (ANY, ANY, ANY)),
]


@pytest.mark.parametrize(("labels", "label", "value", "expected", "meant"), MISTAKES)
def test_labels_that_mean_nothing(labels, label, value, expected, meant):
    policy = read(**labels)
    (mistake,) = policy.mistakes
    assert mistake.field == f"metadata.labels[{PREFIX}{label}]"
    assert mistake.message == f'Invalid value: "{value}": {expected}'
    assert policy[:3] == meant
    assert not policy.lenient
    assert not policy.silent


def test_mistakes_are_told_in_one_order():
    policy = read(warn_version="x", audit="y", enforce_version="z", enforce="q")
    assert [each.field.rpartition("/")[2] for each in policy.mistakes] == [
        "enforce]",
        "enforce-version]",
        "audit]",
        "warn-version]",
    ]


def test_other_labels_mean_nothing_here():
    assert policy_of({"team": "a", f"{PREFIX}enforced": "restricted"}).lenient
    assert read(enforce="baseline", warn="privileged").silent
    assert not read(enforce="baseline", warn="privileged").lenient
