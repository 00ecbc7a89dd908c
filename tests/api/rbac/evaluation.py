"""What roles allow, decided in the plainest way: every binding and every rule is looked at, for every question.

Shares nothing with the policy it is compared with, not even how a rule is read.
"""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]
Question = dict[str, str]  # verb, group, resource, subresource, namespace, name, or verb and path


def allowed(objects: dict[str, list[Object]], user: str, groups: list[str], asked: Question) -> bool:
    """``objects`` are lists by kind, as the API has them."""
    if "system:masters" in groups:
        return True
    for binding in objects["ClusterRoleBinding"]:
        if _concerns(binding, user, groups, ""):
            for role in objects["ClusterRole"]:
                if role["metadata"]["name"] == binding["roleRef"]["name"] and _role_allows(role, asked):
                    return True
    if asked.get("path"):
        return False
    for binding in objects["RoleBinding"]:
        home = binding["metadata"]["namespace"]
        if home != asked.get("namespace") or not _concerns(binding, user, groups, home):
            continue
        ref = binding["roleRef"]
        for role in objects[ref["kind"]]:
            same_place = ref["kind"] == "ClusterRole" or role["metadata"]["namespace"] == home
            if same_place and role["metadata"]["name"] == ref["name"] and _role_allows(role, asked):
                return True
    return False


def _concerns(binding: Object, user: str, groups: list[str], home: str) -> bool:
    for subject in binding.get("subjects") or []:
        if subject["kind"] == "User" and subject["name"] == user:
            return True
        if subject["kind"] == "Group" and subject["name"] in groups:
            return True
        if subject["kind"] == "ServiceAccount":
            place = subject.get("namespace") or home
            if place and user == "system:serviceaccount:" + place + ":" + subject["name"]:
                return True
    return False


def _role_allows(role: Object, asked: Question) -> bool:
    return any(_rule_allows(rule, asked) for rule in role.get("rules") or [])


def _rule_allows(rule: Object, asked: Question) -> bool:
    if "*" not in rule["verbs"] and asked["verb"] not in rule["verbs"]:
        return False
    if asked.get("path"):
        for pattern in rule.get("nonResourceURLs") or []:
            if pattern == asked["path"] or pattern == "*":
                return True
            if pattern[-1:] == "*" and asked["path"][: len(pattern) - 1] == pattern[:-1]:
                return True
        return False
    if "*" not in (rule.get("apiGroups") or []) and asked.get("group", "") not in (rule.get("apiGroups") or []):
        return False
    names = rule.get("resourceNames") or []
    if names and asked.get("name", "") not in names:
        return False
    sub = asked.get("subresource", "")
    for word in rule.get("resources") or []:
        if word == "*":
            return True
        if not sub and word == asked["resource"]:
            return True
        if sub and word in (asked["resource"] + "/" + sub, "*/" + sub):
            return True
    return False
