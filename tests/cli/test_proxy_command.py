"""``seamark proxy``: kube-proxy's names for its options, and one line where it cannot work."""

import pytest

from seamark.cli.failure import Failure
from seamark.cli.running import proxy
from seamark.cli.settings import config_of
from seamark.proxy.engine import Unsupported
from seamark.proxy.nftables import engine


def settings(*arguments):
    return config_of(proxy.parser().parse_args(arguments), "proxy").proxy


def test_kube_proxys_names_mean_the_same():
    assert settings("--hostname-override", "a", "--proxy-mode", "userspace") == settings(
        "--node-name", "a", "--mode", "userspace"
    )


def test_options_as_the_recordings_pass_them():
    found = settings("--nodeport-addresses=0.0.0.0/0,::/0", "--masquerade-all=true", "--cluster-cidr", "10.0.0.0/8")
    assert found.node_port_addresses == ("0.0.0.0/0", "::/0")
    assert found.masquerade_all
    assert found.cluster_cidrs == ("10.0.0.0/8",)


@pytest.mark.parametrize(("there", "words"), [(True, "are removed"), (False, "no rules")])
def test_cleaning_up(there, words, monkeypatch, capsys):
    monkeypatch.setattr(engine, "remove_tables", lambda: there)
    assert proxy.main(["--cleanup"]) == 0
    assert words in capsys.readouterr().out


def test_cleaning_up_without_rights_is_one_line(monkeypatch):
    def refused():
        raise Unsupported("nftables needs the capability CAP_NET_ADMIN")

    monkeypatch.setattr(engine, "remove_tables", refused)
    with pytest.raises(Failure, match="CAP_NET_ADMIN"):
        proxy.main(["--cleanup"])


def test_what_an_engine_lacks_is_one_line_whatever_it_is_wrapped_in():
    error = ExceptionGroup("tasks", [Unsupported("this kernel has no nftables")])
    assert str(proxy._explained(error)) == "this kernel has no nftables"


def test_options_of_kube_proxy_without_meaning_are_told(monkeypatch, capsys):
    monkeypatch.setattr(engine, "remove_tables", lambda: True)
    assert proxy.main(["--cleanup", "--conntrack-min=0", "--iptables-sync-period", "30s"]) == 0
    said = capsys.readouterr().err
    assert "--conntrack-min does nothing here" in said
    assert "--iptables-sync-period does nothing here" in said
