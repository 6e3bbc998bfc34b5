"""How the service is begun: what is wrong is said in a sentence before anything is served."""

from __future__ import annotations

import socket

import pytest

import metricdp as mdp
from metricdp.errors import InvalidInput, OutputProblem
from metricdp.service import ListenOptions, MechanismSpec, ServiceLimits, make_key
from scripts import main


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.5", "example.org", "localhost.example.org"])
def test_other_machines_reach_it_only_over_tls_or_a_proxy(host, tmp_path):
    with pytest.raises(InvalidInput, match="without TLS everybody on the way could read"):
        ListenOptions(host)
    assert ListenOptions(host, behind_proxy=True)
    for name in ("chain.pem", "key.pem"):
        (tmp_path / name).write_text("x")
    assert ListenOptions(host, certificate=str(tmp_path / "chain.pem"), private_key=str(tmp_path / "key.pem"))
    with pytest.raises(InvalidInput, match="belong together"):
        ListenOptions(certificate=str(tmp_path / "chain.pem"))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.8.8.8"])
def test_this_machine_reaches_it_without(host):
    assert ListenOptions(host).host == host


def test_a_port_in_use_is_said():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(OutputProblem, match="cannot listen"):
            ListenOptions(port=taken.getsockname()[1]).bound_socket()


def test_what_is_written_is_sent_at_once():
    with ListenOptions(port=0).bound_socket() as bound:
        assert bound.proto == socket.IPPROTO_TCP  # asyncio looks at it before it turns waiting off


def test_a_mechanism_file_is_served_under_its_name_with_its_slack(tmp_path):
    space = mdp.FiniteSpace([[0.0], [1.0]], mdp.Lp(1), columns=["x"])
    mdp.save(mdp.exponential(space, 1.0), tmp_path / "line.mdp")
    served = MechanismSpec("line", str(tmp_path / "line.mdp"), snap=0.25).load()
    assert served.guarantee.slack == 0.5
    assert len(served.sha256) == 64
    assert MechanismSpec("line", str(tmp_path / "line.mdp"), snap="0.25").load().guarantee == served.guarantee
    feet = mdp.FiniteSpace([[0.0], [1.0]], mdp.Lp(1, unit="ft"), columns=["x"])
    mdp.save(mdp.exponential(feet, 1.0), tmp_path / "feet.mdp")
    assert MechanismSpec("feet", str(tmp_path / "feet.mdp"), snap="0.25ft").load().guarantee.slack == 0.5
    with pytest.raises(InvalidInput, match=r"--snap 0\.25 has no unit, and distances here are in ft"):
        MechanismSpec("feet", str(tmp_path / "feet.mdp"), snap="0.25").load()
    other = MechanismSpec("line", str(tmp_path / "line.mdp")).load()
    assert served.tag != other.tag  # a stored report is explained by the promise it was drawn under


def test_limits_are_shared_by_processes_and_checked():
    shared = ServiceLimits(rate=100, waiting=10).per_process(4)
    assert (shared.rate, shared.waiting) == (25, 2)
    for wrong in ({"waiting": 0}, {"rate": -1}, {"seconds": 0}, {"body": float("nan")}):
        with pytest.raises(InvalidInput):
            ServiceLimits(**wrong)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "name what to serve"),
        (["--epsilon", "10"], "has no unit"),
        (["--epsilon", "10/km", "--snap", "200m"], "Laplace noise takes every value as it is"),
        (["--epsilon", "10/km", "--key", "me.pub"], "mechanism files that were signed"),
        (["--epsilon", "10/km", "--processes", "4"], "one writer at a time"),
        (["--epsilon", "10/km", "--host", "0.0.0.0"], "without TLS"),
        (["--epsilon", "10/km", "--waiting", "0"], "`waiting`"),
        (["--mechanism", "nothing.mdp"], "does not exist"),
        (["--epsilon", "10/km", "--mechanism", "laplace=nothing.mdp"], "does not exist"),
        (["--epsilon", "10/km", "--keys", "other.keys"], "no file of API keys"),
        (["--epsilon", "10/km"], "no ledger"),
    ],
)
def test_what_cannot_be_served_is_said_and_nothing_is_left_behind(tmp_path, monkeypatch, capsys, options, sentence):
    monkeypatch.chdir(tmp_path)
    make_key("budget.db.keys", "app", ["release"])
    assert main(["serve", "--ledger", "budget.db", "--port", "0", *options]) == 2
    assert sentence in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["budget.db.keys"]
