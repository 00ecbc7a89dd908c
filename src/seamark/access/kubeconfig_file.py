"""The kubeconfig file format: its structs, and how files are read and merged."""

import base64
import binascii
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from seamark.kinds.values.plain_yaml import NotPlain, plain

T = TypeVar("T", bound=msgspec.Struct)


class KubeconfigError(Exception):
    """The kubeconfig cannot be used; the text says what is wrong, where, and what to do, in one line."""


class Extension(msgspec.Struct):
    name: str = ""
    extension: Any = None


class Cluster(msgspec.Struct, rename="kebab"):
    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""
    extensions: list[Extension] = []


class Variable(msgspec.Struct):
    name: str
    value: str = ""


class Exec(msgspec.Struct, rename="camel"):
    command: str = ""
    api_version: str = ""
    args: list[str] = []
    env: list[Variable] = []
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class AuthProvider(msgspec.Struct):
    name: str = ""


class User(msgspec.Struct, rename="kebab"):
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    username: str = ""
    password: str = ""
    exec: Exec | None = None
    auth_provider: AuthProvider | None = None
    impersonate: str = msgspec.field(default="", name="as")
    impersonate_uid: str = msgspec.field(default="", name="as-uid")
    impersonate_groups: list[str] = msgspec.field(default_factory=list, name="as-groups")
    impersonate_extra: dict[str, list[str]] = msgspec.field(default_factory=dict, name="as-user-extra")


class Context(msgspec.Struct):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: Cluster = msgspec.field(default_factory=Cluster)


class _NamedUser(msgspec.Struct):
    name: str
    user: User = msgspec.field(default_factory=User)


class _NamedContext(msgspec.Struct):
    name: str
    context: Context = msgspec.field(default_factory=Context)


class _File(msgspec.Struct, rename="kebab"):
    current_context: str = ""
    clusters: list[_NamedCluster] = []
    users: list[_NamedUser] = []
    contexts: list[_NamedContext] = []


class Config(msgspec.Struct):
    """The content of one file or of several merged ones, by entry name; all paths are absolute."""

    current_context: str = ""
    clusters: dict[str, Cluster] = {}
    users: dict[str, User] = {}
    contexts: dict[str, Context] = {}

    @property
    def empty(self) -> bool:
        return not (self.clusters or self.contexts or self.current_context)


def read(path: Path, *, required: bool = False) -> Config:
    """Read one file; a missing file counts as empty unless it is ``required``."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        if required:
            raise KubeconfigError(f"there is no kubeconfig at {path}") from error
        return Config()
    except OSError as error:
        raise KubeconfigError(f"cannot read the kubeconfig {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise KubeconfigError(f"cannot read the kubeconfig {path}: it is not text") from error
    return parse(text, path)


def parse(text: str, path: Path) -> Config:
    """Parse a file's text; ``path`` is used in messages and to resolve relative paths."""
    try:
        file = msgspec.convert(_without_nulls(_yaml(text)) or {}, _File)
    except msgspec.ValidationError as error:
        raise KubeconfigError(f"the kubeconfig {path} is not well-formed: {error}") from error
    except ValueError as error:
        raise KubeconfigError(f"the kubeconfig {path} is not YAML: {' '.join(str(error).split())}") from error
    config = Config(current_context=file.current_context)
    for cluster in file.clusters:
        config.clusters.setdefault(cluster.name, cluster.cluster)
    for user in file.users:
        config.users.setdefault(user.name, user.user)
    for context in file.contexts:
        config.contexts.setdefault(context.name, context.context)
    _anchor(config, path.absolute().parent)
    return config


def _yaml(text: str) -> Any:
    try:
        return plain(text)
    except NotPlain:
        return _any_yaml(text)


def _any_yaml(text: str) -> Any:
    import yaml

    class Loader(yaml.SafeLoader):
        """Reads numbers and dates as strings, because a password may consist of digits."""

    keep = {"tag:yaml.org,2002:bool", "tag:yaml.org,2002:null", "tag:yaml.org,2002:merge"}
    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag in keep]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    try:
        return yaml.load(text, Loader)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _without_nulls(value: Any) -> Any:
    """Remove null values: ``token:`` without a value counts as absent."""
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_without_nulls(each) for each in value]
    return value


def _anchor(config: Config, directory: Path) -> None:
    """Make relative paths absolute: they are relative to the kubeconfig's directory, not to the working directory."""

    def absolute(path: str) -> str:
        return str(directory / path) if path else ""

    for cluster in config.clusters.values():
        cluster.certificate_authority = absolute(cluster.certificate_authority)
    for user in config.users.values():
        user.client_certificate = absolute(user.client_certificate)
        user.client_key = absolute(user.client_key)
        user.token_file = absolute(user.token_file)
        # A command with a slash is a path; one without is looked up in PATH.
        if user.exec is not None and "/" in user.exec.command:
            user.exec.command = absolute(user.exec.command)


def merge(configs: Sequence[Config]) -> Config:
    """Merge by kubectl's rule: the first entry of a name wins as a whole, and so does the first current-context."""
    merged = Config()
    for config in configs:
        merged.current_context = merged.current_context or config.current_context
        _adopt(merged.clusters, config.clusters.items())
        _adopt(merged.users, config.users.items())
        _adopt(merged.contexts, config.contexts.items())
    return merged


def _adopt(known: dict[str, T], entries: Iterable[tuple[str, T]]) -> None:
    for name, entry in entries:
        known.setdefault(name, entry)


def bytes_of(data: str, path: str, what: str) -> bytes | None:
    """A certificate or key, given inline (which wins) or as a file; None if neither is given."""
    if data:
        try:
            return base64.b64decode("".join(data.split()), validate=True)
        except binascii.Error as error:
            raise KubeconfigError(f"{what}-data in the kubeconfig is not base64: {error}") from error
    if path:
        try:
            return Path(path).read_bytes()
        except OSError as error:
            raise KubeconfigError(f"cannot read the {what} {path} of the kubeconfig: {error.strerror}") from error
    return None
