"""Finds the server and the credentials: from kubeconfig files, or from the service account of a Pod.

The order is kubectl's: a path given explicitly; else the files in ``KUBECONFIG``, merged (of two entries with one name
the first wins as a whole); else ``~/.kube/config``; and if these are empty, the Pod in which this process runs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import msgspec

from seamark.access import credentials as auth
from seamark.access.kubeconfig_file import Cluster, Config, Exec, KubeconfigError, User, bytes_of, merge, read
from seamark.kinds.values.hosts import bracketed

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_EXEC_EXTENSION = "client.authentication.k8s.io/exec"


class Connection(msgspec.Struct, frozen=True):
    """How to connect to a server.  ``authority`` is the PEM of the CA to trust, None for the system's CAs.

    ``context`` is the kubeconfig's context that says so; empty in a Pod.
    """

    server: str
    credentials: auth.Credentials
    namespace: str = "default"
    authority: bytes | None = None
    insecure: bool = False
    server_name: str = ""
    proxy: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    context: str = ""


def load(
    path: str | Path | None = None,
    *,
    context: str = "",
    environ: Mapping[str, str] | None = None,
    home: Path | None = None,
    service_account: Path = SERVICE_ACCOUNT,
) -> Connection:
    """The connection that kubectl would use; raises ``KubeconfigError`` if there is none."""
    environ = os.environ if environ is None else environ
    if path is not None:
        source = str(path)
        config = read(Path(path), required=True)
    else:
        paths, source = _default_paths(environ, home)
        config = merge([read(each) for each in paths])
        if config.empty:
            if environ.get("KUBERNETES_SERVICE_HOST"):
                return in_cluster(environ=environ, service_account=service_account)
            raise KubeconfigError(
                f"no cluster to talk to: {source} names none, and this is not a Pod; "
                "say which with --kubeconfig or KUBECONFIG"
            )
    return connect(config, source=source, context=context, environ=environ)


def contexts(path: str | Path | None = None, *, environ: Mapping[str, str] | None = None) -> list[str]:
    """The names of all contexts, for completion and error messages."""
    environ = os.environ if environ is None else environ
    if path is not None:
        return list(read(Path(path), required=True).contexts)
    return list(merge([read(each) for each in _default_paths(environ, None)[0]]).contexts)


def _default_paths(environ: Mapping[str, str], home: Path | None) -> tuple[list[Path], str]:
    if listed := environ.get("KUBECONFIG"):
        return [Path(each) for each in listed.split(os.pathsep) if each], f"KUBECONFIG ({listed})"
    default = (home or Path.home()) / ".kube" / "config"
    return [default], str(default)


def in_cluster(*, environ: Mapping[str, str], service_account: Path) -> Connection:
    """The connection of a Pod to its cluster, by its service account."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise KubeconfigError(
            "not in a Pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; name a kubeconfig instead"
        )
    try:
        authority = (service_account / "ca.crt").read_bytes()
        if not (service_account / "token").exists():
            raise FileNotFoundError(f"{service_account / 'token'} is missing")
    except OSError as error:
        raise KubeconfigError(
            f"in a Pod, but without a usable service account: {error}; is automountServiceAccountToken off?"
        ) from error
    namespace = service_account / "namespace"
    return Connection(
        server=f"https://{bracketed(host)}:{port}",
        credentials=auth.Files(token=service_account / "token"),
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
        authority=authority,
    )


def connect(config: Config, *, source: str, context: str = "", environ: Mapping[str, str] | None = None) -> Connection:
    """The connection that a context describes."""
    environ = os.environ if environ is None else environ
    chosen = context or config.current_context
    if not chosen:
        raise KubeconfigError(f"{source} has no current-context; choose one with --context{_one_of(config.contexts)}")
    if chosen not in config.contexts:
        raise KubeconfigError(f'{source} has no context "{chosen}"{_one_of(config.contexts)}')
    where = config.contexts[chosen]
    if where.cluster not in config.clusters:
        raise KubeconfigError(f'context "{chosen}" in {source} names cluster "{where.cluster}", which is not there')
    if where.user and where.user not in config.users:
        raise KubeconfigError(f'context "{chosen}" in {source} names user "{where.user}", which is not there')
    cluster = config.clusters[where.cluster]
    user = config.users.get(where.user, User())
    authority = bytes_of(cluster.certificate_authority_data, cluster.certificate_authority, "certificate-authority")
    if authority is not None and cluster.insecure_skip_tls_verify:
        raise KubeconfigError(
            f'cluster "{where.cluster}" in {source} has a certificate-authority and insecure-skip-tls-verify: keep one'
        )
    certified = bool(user.client_certificate or user.client_certificate_data)
    tls = authority is not None or cluster.insecure_skip_tls_verify or certified
    server = _server(cluster, f'cluster "{where.cluster}" in {source}', tls=tls)
    return Connection(
        server=server,
        credentials=_credentials(user, cluster, authority, f'user "{where.user}" in {source}'),
        namespace=where.namespace or "default",
        authority=authority,
        insecure=cluster.insecure_skip_tls_verify,
        server_name=cluster.tls_server_name,
        proxy=_proxy(cluster, server, environ, f'cluster "{where.cluster}" in {source}'),
        headers=_impersonation(user),
        context=chosen,
    )


def _one_of(names: Mapping[str, object]) -> str:
    return f" (there are: {', '.join(names)})" if names else ""


def _server(cluster: Cluster, what: str, *, tls: bool) -> str:
    """The URL of the server.  As in client-go, ``tls`` settings decide the scheme of one that is only a host."""
    server = cluster.server.rstrip("/")
    if not server:
        raise KubeconfigError(f"{what} has no server")
    if "://" not in server:
        server = f"https://{server}" if tls else f"http://{server}"
    if not server.startswith(("https://", "http://")):
        raise KubeconfigError(f"{what} has the server {cluster.server}, which is neither http:// nor https://")
    return server


def _proxy(cluster: Cluster, server: str, environ: Mapping[str, str], what: str) -> str:
    """The proxy to use: the cluster's ``proxy-url``, else that of the environment, else none."""
    proxy = cluster.proxy_url
    if not proxy:
        proxy = _proxy_of_environment(server, environ)
        what = "the environment"
    if proxy and not proxy.startswith(("http://", "https://")):
        raise KubeconfigError(f"{what} has the proxy {proxy}; only http:// and https:// proxies can be used")
    return proxy


def _proxy_of_environment(server: str, environ: Mapping[str, str]) -> str:
    scheme, _, rest = server.partition("://")
    name = f"{scheme}_proxy"
    proxy = environ.get(name) or environ.get(name.upper()) or ""
    if not proxy:
        return ""
    host, _, _ = rest.partition("/")
    bare = host.rpartition("]")[0].lstrip("[") if host.startswith("[") else host.partition(":")[0]
    if bare in ("localhost", "::1") or bare.startswith("127."):
        return ""
    exceptions = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    for exception in (each.strip() for each in exceptions.split(",")):
        domain = exception.removeprefix("*").lstrip(".")
        if exception == "*" or (domain and (host == domain or bare == domain or bare.endswith(f".{domain}"))):
            return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _impersonation(user: User) -> tuple[tuple[str, str], ...]:
    """The headers that ask the server to impersonate another user."""
    headers = []
    if user.impersonate:
        headers.append(("Impersonate-User", user.impersonate))
    if user.impersonate_uid:
        headers.append(("Impersonate-Uid", user.impersonate_uid))
    headers += [("Impersonate-Group", group) for group in user.impersonate_groups]
    for key, values in user.impersonate_extra.items():
        headers += [(f"Impersonate-Extra-{quote(key, safe='')}", value) for value in values]
    return tuple(headers)


def _credentials(user: User, cluster: Cluster, authority: bytes | None, what: str) -> auth.Credentials:
    if user.auth_provider is not None:
        raise KubeconfigError(
            f'{what} uses the auth-provider "{user.auth_provider.name}", which is not supported; use an exec plugin'
        )
    if (user.token or user.token_file) and (user.username or user.password):
        raise KubeconfigError(f"{what} has both a token and a password: keep one")
    certificate = _certificate(user, what)
    if user.exec is not None and not (user.token or user.token_file or user.username):
        return auth.Exec(_plugin(user.exec, cluster, authority, what), certificate=certificate)
    authorization = ""
    if user.token:
        authorization = auth.bearer(user.token)
    elif user.username or user.password:
        authorization = auth.basic(user.username, user.password)
    fixed = auth.Identity(authorization, certificate)
    token = Path(user.token_file) if user.token_file else None
    files = None
    if user.client_certificate and user.client_key and not (user.client_certificate_data or user.client_key_data):
        files = (Path(user.client_certificate), Path(user.client_key))
    return auth.Files(token=token, certificate=files, fixed=fixed) if token or files else auth.Fixed(fixed)


def _certificate(user: User, what: str) -> auth.Certificate | None:
    certificate = bytes_of(user.client_certificate_data, user.client_certificate, "client-certificate")
    key = bytes_of(user.client_key_data, user.client_key, "client-key")
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        missing = "client-certificate" if certificate is None else "client-key"
        raise KubeconfigError(f"{what} has no {missing}, which its other half is no use without")
    return auth.Certificate(certificate, key)


def _plugin(plugin: Exec, cluster: Cluster, authority: bytes | None, what: str) -> auth.Plugin:
    if not plugin.command:
        raise KubeconfigError(f"{what} has an exec plugin without a command")
    if plugin.api_version not in _EXEC_VERSIONS:
        raise KubeconfigError(
            f"{what} has an exec plugin of apiVersion {plugin.api_version or '(none)'}; "
            f"supported are {' and '.join(_EXEC_VERSIONS)}"
        )
    mode = plugin.interactive_mode
    if not mode:
        if plugin.api_version == _EXEC_VERSIONS[0]:
            raise KubeconfigError(f"{what} has an exec plugin without interactiveMode (Never, IfAvailable or Always)")
        mode = "IfAvailable"
    if mode not in ("Never", "IfAvailable", "Always"):
        raise KubeconfigError(f"{what} has the interactiveMode {mode}; it can be Never, IfAvailable or Always")
    return auth.Plugin(
        command=plugin.command,
        api_version=plugin.api_version,
        args=tuple(plugin.args),
        env={variable.name: variable.value for variable in plugin.env},
        interactive_mode=mode,
        install_hint=plugin.install_hint,
        cluster=_cluster_info(cluster, authority) if plugin.provide_cluster_info else None,
    )


def _cluster_info(cluster: Cluster, authority: bytes | None) -> dict[str, object]:
    """The description of the cluster for a plugin with ``provideClusterInfo``."""
    told: dict[str, object] = {"server": cluster.server}
    if cluster.tls_server_name:
        told["tls-server-name"] = cluster.tls_server_name
    if cluster.insecure_skip_tls_verify:
        told["insecure-skip-tls-verify"] = True
    if authority is not None:
        told["certificate-authority-data"] = authority  # bytes become base64 in JSON
    if cluster.proxy_url:
        told["proxy-url"] = cluster.proxy_url
    for extension in cluster.extensions:
        if extension.name == _EXEC_EXTENSION:
            told["config"] = extension.extension
    return told
