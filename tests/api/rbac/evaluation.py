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


# --- requests ---------------------------------------------------------------------------------------------------


def question_of(method: str, path: str, query: dict[str, str]) -> Question:
    """What a request asks for, told from its address alone."""
    words = path.split("/")[1:]
    if words[0] not in ("api", "apis") or len(words) < (3 if words[0] == "api" else 4):
        return {"verb": method.lower(), "path": path}
    group = "" if words[0] == "api" else words[1]
    rest = words[2:] if words[0] == "api" else words[3:]
    verb = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[method]
    if rest[0] == "watch":
        verb, rest = "watch", rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) >= 2:
        namespace = rest[1]
        if len(rest) >= 3 and rest[2] not in ("finalize", "status"):
            rest = rest[2:]
    name = rest[1] if len(rest) >= 2 else ""
    if name == "":
        selected = query.get("fieldSelector", "")
        if selected.startswith("metadata.name="):
            name = selected[len("metadata.name=") :]
        if verb == "get":
            verb = "watch" if query.get("watch") == "true" else "list"
        if verb == "delete":
            verb = "deletecollection"
    part = rest[2] if len(rest) >= 3 else ""
    return {
        "verb": verb,
        "group": group,
        "resource": rest[0],
        "subresource": part,
        "namespace": namespace,
        "name": name,
    }


def acting(
    objects: dict[str, list[Object]], user: str, groups: list[str], wanted: Object, asked: Question
) -> list[str] | None:
    """The groups of a sender who acts as the ``wanted`` user (user, groups, uid, extra); None if that is refused."""
    account = wanted["user"].split(":")[2:] if wanted["user"].startswith("system:serviceaccount:") else None
    bare = not (wanted["groups"] or wanted["uid"] or wanted["extra"])
    kinds = ["legacy"]
    if account is None:
        kinds.append("user-info")
    elif bare:
        kinds.append("serviceaccount")
    for kind in kinds:
        verb, group = ("impersonate", "") if kind == "legacy" else ("impersonate:" + kind, "authentication.k8s.io")
        needed: list[Question] = []
        if account is None:
            needed.append({"verb": verb, "group": group, "resource": "users", "name": wanted["user"]})
        else:
            place, name = account
            sa = {"verb": verb, "group": group, "resource": "serviceaccounts", "namespace": place, "name": name}
            needed.append(sa)
        needed += [{"verb": verb, "group": group, "resource": "groups", "name": each} for each in wanted["groups"]]
        if wanted["uid"]:
            uid = {"verb": verb, "group": "authentication.k8s.io", "resource": "uids", "name": wanted["uid"]}
            needed.append(uid)
        for key, value in wanted["extra"].items():
            extra = {"verb": verb, "group": "authentication.k8s.io", "resource": "userextras", "subresource": key}
            needed.append({**extra, "name": value})
        if kind != "legacy":
            needed.append({**asked, "verb": "impersonate-on:" + kind + ":" + asked["verb"]})
            if "system:masters" in wanted["groups"] or any("/" not in key for key in wanted["extra"]):
                continue
        if all(allowed(objects, user, groups, each) for each in needed):
            given = list(wanted["groups"])
            if account is not None and not given:
                given = ["system:serviceaccounts", "system:serviceaccounts:" + account[0]]
            return [*given, "system:authenticated"]
    return None


# --- giving rights away -----------------------------------------------------------------------------------------


def may_write(objects: dict[str, list[Object]], user: str, groups: list[str], kind: str, obj: Object) -> bool:
    """Whether a user who may create such objects may create this one: a role or binding gives only what he has."""
    if "system:masters" in groups:
        return True
    place = obj["metadata"].get("namespace", "")
    if kind in ("Role", "ClusterRole"):
        word = {"Role": "roles", "ClusterRole": "clusterroles"}[kind]
        escalates = {"verb": "escalate", "group": RBAC, "resource": word, "namespace": place, "name": ""}
        return allowed(objects, user, groups, escalates) or all(
            _held(objects, user, groups, place, rule) for rule in obj["rules"]
        )
    ref = obj["roleRef"]
    word = {"Role": "roles", "ClusterRole": "clusterroles"}[ref["kind"]]
    binds = {"verb": "bind", "group": RBAC, "resource": word, "namespace": place, "name": ref["name"]}
    if allowed(objects, user, groups, binds):
        return True
    for role in objects[ref["kind"]]:
        if role["metadata"]["name"] == ref["name"] and (
            ref["kind"] == "ClusterRole" or role["metadata"]["namespace"] == place
        ):
            return all(_held(objects, user, groups, place, rule) for rule in role.get("rules") or [])
    return False  # there is no such role


RBAC = "rbac.authorization.k8s.io"


def _held(objects: dict[str, list[Object]], user: str, groups: list[str], place: str, rule: Object) -> bool:
    """Whether each single thing that a rule allows is allowed by one of the user's own rules."""
    own = []
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        for binding in objects[kind]:
            home = binding["metadata"].get("namespace", "")
            if home not in ("", place) or not _concerns(binding, user, groups, home):
                continue
            ref = binding["roleRef"]
            for role in objects[ref["kind"]]:
                same_place = ref["kind"] == "ClusterRole" or role["metadata"]["namespace"] == home
                if same_place and role["metadata"]["name"] == ref["name"]:
                    own += role.get("rules") or []
    for verb in rule["verbs"]:
        for url in rule.get("nonResourceURLs") or []:
            if not any(_rule_allows(mine, {"verb": verb, "path": url}) for mine in own):
                return False
        for group in rule.get("apiGroups") or []:
            for word in rule.get("resources") or []:
                resource, _, part = word.partition("/")
                for name in rule.get("resourceNames") or [""]:
                    single = {"verb": verb, "group": group, "resource": resource, "subresource": part, "name": name}
                    if not any(_rule_allows(mine, single) for mine in own):
                        return False
    return True


def gathered(roles: list[Object]) -> None:
    """Give aggregated ClusterRoles the rules of those that they select by a label."""
    for _ in roles:  # one aggregated role may select another
        for role in roles:
            for selector in (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or []:
                role["rules"] = [
                    rule
                    for other in roles
                    if other is not role
                    for key, value in selector["matchLabels"].items()
                    if (other["metadata"].get("labels") or {}).get(key) == value
                    for rule in other.get("rules") or []
                ]
