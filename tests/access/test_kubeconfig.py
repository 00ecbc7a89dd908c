"""Kubeconfig files as kubectl reads them, and one helpful line where they cannot be used."""

import base64
import re
from pathlib import Path

import pytest
import yaml

from seamark.access import kubeconfig
from seamark.access.credentials import Certificate, Exec, Identity
from seamark.access.kubeconfig import KubeconfigError
from seamark.access.kubeconfig_file import bytes_of


def write(path, *, clusters=None, users=None, contexts=None, current="", **more):
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": entry} for name, entry in (clusters or {}).items()],
        "users": [{"name": name, "user": entry} for name, entry in (users or {}).items()],
        "contexts": [{"name": name, "context": entry} for name, entry in (contexts or {}).items()],
        "current-context": current,
        **more,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(config))
    return path


def simple(path, *, cluster=None, user=None, context=None):
    return write(
        path,
        clusters={"c": {"server": "https://api.example.com:6443/", **(cluster or {})}},
        users={"u": user or {}},
        contexts={"x": {"cluster": "c", "user": "u", **(context or {})}},
        current="x",
    )


def load(path=None, *, environ=None, **more):
    return kubeconfig.load(path, environ=environ or {}, **more)


async def identity(connection):
    return await connection.credentials.current()


def b64(data):
    return base64.b64encode(data).decode()


# --- which files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cluster", "user", "scheme"),
    [
        ({}, {"token": "t"}, "http"),
        ({"insecure-skip-tls-verify": True}, {}, "https"),
        ({"certificate-authority-data": b64(b"ca")}, {}, "https"),
        ({}, {"client-certificate-data": b64(b"cert"), "client-key-data": b64(b"key")}, "https"),
    ],
)
@pytest.mark.parametrize("server", ["api.example.com", "10.0.0.1:6443", "10.0.0.1:443", "[fd00::1]:6443"])
def test_a_server_without_a_scheme_has_the_one_that_its_other_settings_need(tmp_path, server, cluster, user, scheme):
    path = simple(tmp_path / "config", cluster={"server": server, **cluster}, user=user)
    assert load(path).server == f"{scheme}://{server}"


async def test_an_explicit_file(tmp_path):
    path = simple(
        tmp_path / "config",
        user={"token": "t"},
        context={"namespace": "web"},
        cluster={"tls-server-name": "kubernetes", "insecure-skip-tls-verify": True},
    )
    connection = load(path, environ={"KUBECONFIG": "/nowhere"})
    assert connection.server == "https://api.example.com:6443"
    assert connection.namespace == "web"
    assert connection.server_name == "kubernetes"
    assert connection.insecure
    assert connection.authority is None
    assert await identity(connection) == Identity("Bearer t")


async def test_several_files_merge_by_kubectls_rules(tmp_path):
    first = write(
        tmp_path / "one" / "config",
        clusters={"c": {"server": "https://first"}},
        users={"u": {"token": "first"}},
        contexts={"x": {"cluster": "c", "user": "u"}},
    )
    second = write(
        tmp_path / "two" / "config",
        clusters={"c": {"server": "https://second", "tls-server-name": "ignored"}, "d": {"server": "https://d"}},
        users={"v": {"tokenFile": "token"}},
        contexts={"x": {"cluster": "d"}, "y": {"cluster": "d", "user": "v", "namespace": "n"}},
        current="y",
    )
    third = write(tmp_path / "three", current="x")
    (tmp_path / "two" / "token").write_text("from a file\n")
    environ = {"KUBECONFIG": f"{first}::{tmp_path / 'missing'}:{second}:{third}"}

    chosen = load(environ=environ)
    assert (chosen.server, chosen.namespace) == ("https://d", "n")
    assert await identity(chosen) == Identity("Bearer from a file")

    # The first file's entry counts, whole: nothing of the second's c or x is mixed in.
    other = load(environ=environ, context="x")
    assert (other.server, other.server_name, other.namespace) == ("https://first", "", "default")
    assert await identity(other) == Identity("Bearer first")
    assert kubeconfig.contexts(environ=environ) == ["x", "y"]


def test_the_home_directory_is_the_default(tmp_path):
    simple(tmp_path / ".kube" / "config")
    assert load(home=tmp_path).server == "https://api.example.com:6443"


@pytest.fixture
def service_account(tmp_path):
    directory = tmp_path / "serviceaccount"
    directory.mkdir()
    (directory / "token").write_text("pod-token\n")
    (directory / "ca.crt").write_bytes(b"PEM")
    (directory / "namespace").write_text("web")
    return directory


POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


async def test_in_a_pod(tmp_path, service_account):
    connection = load(environ=POD, home=tmp_path, service_account=service_account)
    assert connection.server == "https://10.96.0.1:443"
    assert connection.namespace == "web"
    assert connection.authority == b"PEM"
    assert await identity(connection) == Identity("Bearer pod-token")
    six = load(environ={**POD, "KUBERNETES_SERVICE_HOST": "fd00::1"}, home=tmp_path, service_account=service_account)
    assert six.server == "https://[fd00::1]:443"


def test_a_kubeconfig_goes_before_the_pod(tmp_path, service_account):
    simple(tmp_path / ".kube" / "config")
    connection = load(environ=POD, home=tmp_path, service_account=service_account)
    assert connection.server == "https://api.example.com:6443"


def test_a_pod_without_a_service_account(tmp_path):
    with pytest.raises(KubeconfigError, match=r"in a Pod, but without a usable service account.*ca\.crt"):
        load(environ=POD, home=tmp_path, service_account=tmp_path)


# --- who we are ------------------------------------------------------------------------------------------


async def test_certificates_inline_and_in_files(tmp_path):
    inline = {"client-certificate-data": b64(b"CERT"), "client-key-data": b64(b"KEY")}
    path = simple(tmp_path / "a", user=inline, cluster={"certificate-authority-data": b64(b"CA")})
    connection = load(path)
    assert connection.authority == b"CA"
    assert await identity(connection) == Identity(certificate=Certificate(b"CERT", b"KEY"))

    for name in ("ca", "cert", "key"):
        (tmp_path / name).write_bytes(name.encode())
    files = {"client-certificate": "cert", "client-key": str(tmp_path / "key")}
    path = simple(tmp_path / "b", user=files, cluster={"certificate-authority": "./ca"})
    connection = load(path)
    assert connection.authority == b"ca"
    assert await identity(connection) == Identity(certificate=Certificate(b"cert", b"key"))


async def test_passwords_of_digits_are_still_passwords(tmp_path):
    path = tmp_path / "config"
    path.write_text(
        """
        clusters: [{name: c, cluster: {server: "http://127.0.0.1:8080", certificate-authority: null}}]
        users:
        - name: u
          user:
            username: admin
            password: 12345
            token:
        contexts:
        - {name: x, context: {cluster: c, user: u}}
        current-context: x
        preferences: {}
        """
    )
    assert await identity(load(path)) == Identity("Basic " + b64(b"admin:12345"))


async def test_nobody_in_particular(tmp_path):
    path = write(
        tmp_path / "config",
        clusters={"c": {"server": "127.0.0.1:8080"}},
        contexts={"x": {"cluster": "c"}},
        current="x",
    )
    connection = load(path)
    assert connection.server == "http://127.0.0.1:8080"
    assert await identity(connection) == Identity()


def test_impersonation(tmp_path):
    user = {
        "token": "t",
        "as": "jane",
        "as-uid": "7",
        "as-groups": ["a", "b"],
        "as-user-extra": {"example.com/Scope": ["x", "y"]},
    }
    assert load(simple(tmp_path / "config", user=user)).headers == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-example.com%2FScope", "x"),
        ("Impersonate-Extra-example.com%2FScope", "y"),
    )


def exec_user(**more):
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "login", **more}}


def test_exec_plugins(tmp_path):
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}
    path = simple(
        tmp_path / "config",
        cluster={"certificate-authority-data": b64(b"CA"), "extensions": [extension], "tls-server-name": "k"},
        user=exec_user(
            command="./bin/login",
            args=["--now", "1"],
            env=[{"name": "A", "value": "b"}],
            provideClusterInfo=True,
            installHint="get it",
        ),
    )
    credentials = load(path).credentials
    assert isinstance(credentials, Exec)
    plugin = credentials._plugin
    assert plugin.command == str(tmp_path / "bin" / "login")
    assert plugin.args == ("--now", "1")
    assert plugin.env == {"A": "b"}
    assert plugin.interactive_mode == "IfAvailable"
    assert plugin.cluster == {
        "server": "https://api.example.com:6443/",
        "tls-server-name": "k",
        "certificate-authority-data": b"CA",
        "config": {"audience": "x"},
    }
    assert load(simple(tmp_path / "bare", user=exec_user())).credentials._plugin.command == "login"


# --- proxies ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("server", "environ", "proxy"),
    [
        ("https://api.example.com:6443", {}, ""),
        ("https://api.example.com:6443", {"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        ("https://api.example.com:6443", {"https_proxy": "p:1"}, "http://p:1"),
        ("https://api.example.com:6443", {"HTTP_PROXY": "http://p:1"}, ""),
        ("http://api.example.com:6443", {"HTTP_PROXY": "http://p:1"}, "http://p:1"),
        ("https://api.example.com:6443", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "other,.example.com"}, ""),
        ("https://api.example.com:6443", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "example.com"}, ""),
        ("https://api.example.com:6443", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}, ""),
        ("https://api.example.com:6443", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "ample.com"}, "http://p:1"),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": "http://p:1"}, ""),
        ("https://[::1]:6443", {"HTTPS_PROXY": "http://p:1"}, ""),
    ],
)
def test_proxies_of_the_environment(tmp_path, server, environ, proxy):
    assert load(simple(tmp_path / "config", cluster={"server": server}), environ=environ).proxy == proxy


def test_a_clusters_own_proxy_goes_first(tmp_path):
    path = simple(tmp_path / "config", cluster={"proxy-url": "http://own:3128"})
    assert load(path, environ={"HTTPS_PROXY": "http://p:1"}).proxy == "http://own:3128"


# --- what can be wrong -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cluster", "user", "context", "complaint"),
    [
        ({"server": ""}, {}, {}, 'cluster "c" in FILE has no server'),
        (
            {"server": "ftp://x"},
            {},
            {},
            'cluster "c" in FILE has the server ftp://x, which is neither http:// nor https://',
        ),
        ({}, {}, {"cluster": "z"}, 'context "x" in FILE names cluster "z", which is not there'),
        ({}, {}, {"user": "z"}, 'context "x" in FILE names user "z", which is not there'),
        (
            {"certificate-authority-data": b64(b"CA"), "insecure-skip-tls-verify": True},
            {},
            {},
            'cluster "c" in FILE has a certificate-authority and insecure-skip-tls-verify: keep one',
        ),
        (
            {"certificate-authority-data": "!"},
            {},
            {},
            "certificate-authority-data in the kubeconfig is not base64: Only base64 data is allowed",
        ),
        (
            {"certificate-authority": "/nowhere/ca.crt"},
            {},
            {},
            "cannot read the certificate-authority /nowhere/ca.crt of the kubeconfig: No such file or directory",
        ),
        (
            {"proxy-url": "socks5://p"},
            {},
            {},
            'cluster "c" in FILE has the proxy socks5://p; only http:// and https:// proxies can be used',
        ),
        ({}, {"token": "t", "username": "u"}, {}, 'user "u" in FILE has both a token and a password: keep one'),
        (
            {},
            {"client-certificate-data": b64(b"CERT")},
            {},
            'user "u" in FILE has no client-key, which its other half is no use without',
        ),
        (
            {},
            {"auth-provider": {"name": "gcp"}},
            {},
            'user "u" in FILE uses the auth-provider "gcp", which is not supported; use an exec plugin',
        ),
        ({}, exec_user(command=""), {}, 'user "u" in FILE has an exec plugin without a command'),
        (
            {},
            exec_user(apiVersion="client.authentication.k8s.io/v1alpha1"),
            {},
            'user "u" in FILE has an exec plugin of apiVersion client.authentication.k8s.io/v1alpha1; supported are '
            "client.authentication.k8s.io/v1 and client.authentication.k8s.io/v1beta1",
        ),
        (
            {},
            exec_user(apiVersion="client.authentication.k8s.io/v1"),
            {},
            'user "u" in FILE has an exec plugin without interactiveMode (Never, IfAvailable or Always)',
        ),
        (
            {},
            exec_user(interactiveMode="Often"),
            {},
            'user "u" in FILE has the interactiveMode Often; it can be Never, IfAvailable or Always',
        ),
    ],
)
def test_one_helpful_line(tmp_path, cluster, user, context, complaint):
    path = simple(tmp_path / "config", cluster=cluster, user=user, context=context)
    with pytest.raises(KubeconfigError) as caught:
        load(path)
    assert str(caught.value) == complaint.replace("FILE", str(path))


def test_files_that_cannot_be_read(tmp_path):
    missing = tmp_path / "missing"
    with pytest.raises(KubeconfigError, match=f"^there is no kubeconfig at {missing}$"):
        load(missing)
    with pytest.raises(KubeconfigError, match=f"^cannot read the kubeconfig {tmp_path}: Is a directory$"):
        load(tmp_path)
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(KubeconfigError, match=f"^cannot read the kubeconfig {binary}: it is not text$"):
        load(binary)
    with pytest.raises(KubeconfigError, match=f"^cannot read the client-key {missing} of the kubeconfig: No such file"):
        bytes_of("", str(missing), "client-key")
    broken = tmp_path / "broken"
    broken.write_text("clusters: [")
    with pytest.raises(KubeconfigError, match=f"^the kubeconfig {broken} is not YAML: while parsing") as caught:
        load(broken)
    assert "\n" not in str(caught.value)
    broken.write_text("clusters: {a: b}")
    expected = f"the kubeconfig {broken} is not well-formed: Expected `array`, got `object` - at `$.clusters`"
    with pytest.raises(KubeconfigError, match="^" + re.escape(expected)):
        load(broken)


def test_contexts_that_are_not_there(tmp_path):
    path = simple(tmp_path / "config")
    with pytest.raises(KubeconfigError, match=re.escape('has no context "z" (there are: x)')):
        load(path, context="z")
    path = write(tmp_path / "none", clusters={"c": {"server": "x"}}, contexts={"x": {"cluster": "c"}})
    with pytest.raises(KubeconfigError, match=re.escape("has no current-context; choose one with --context")):
        load(path)


def test_nothing_at_all(tmp_path):
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text("")
    expected = (
        f"no cluster to talk to: {tmp_path / '.kube' / 'config'} names none, and this is not a Pod; "
        "say which with --kubeconfig or KUBECONFIG"
    )
    with pytest.raises(KubeconfigError, match="^" + re.escape(expected) + "$"):
        load(home=tmp_path)


def test_outside_a_pod():
    with pytest.raises(KubeconfigError, match=r"^not in a Pod"):
        kubeconfig.in_cluster(environ={}, service_account=Path("/nowhere"))
