"""Keys of the service: made, hashed, revoked; what is gone or altered lets nobody in."""

from __future__ import annotations

import hashlib
import json
import stat

import pytest

import metricdp as mdp
from metricdp.errors import InvalidInput
from metricdp.service import keys
from scripts import main


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(keys, "RECHECK", 0.0)
    return tmp_path / "service.keys"


def test_a_token_opens_what_it_was_made_for_and_is_kept_as_a_hash_only(path):
    token = keys.make_key(path, "my app", ["read", "release"])
    found = keys.Keyring(path).find(token)
    assert found is not None
    assert found.scopes == ("release", "read")
    text = path.read_text()
    assert token not in text
    assert token.split("_", 2)[2] not in text
    (entry,) = json.loads(text)["keys"]
    assert entry["digest"] == hashlib.sha256(token.encode()).hexdigest()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(token) == 4 + 12 + 1 + 43  # 43 letters of base64 are 256 bits
    assert token not in repr(found)
    assert entry["digest"] not in repr(found)


def test_other_tokens_open_nothing(path):
    token = keys.make_key(path, "one", ["release"])
    ring = keys.Keyring(path)
    for wrong in (
        "",
        "x",
        token[:-1],
        token + "x",
        token.upper(),
        token.replace("mdp_", "mdp_0", 1),
        "mdp_" + "0" * 12,
    ):
        assert ring.find(wrong) is None
    changed = token[:-1] + ("a" if token[-1] != "a" else "b")
    assert ring.find(changed) is None


def test_a_revoked_key_opens_nothing_while_the_service_runs(path):
    token, other = (keys.make_key(path, name, ["release"]) for name in ("one", "other"))
    ring = keys.Keyring(path)
    found = ring.find(token)
    assert found is not None
    keys.revoke_key(path, found.id)
    assert ring.find(token) is None
    assert ring.find(other) is not None


def test_a_key_ends_when_its_days_are_over(path, monkeypatch):
    token = keys.make_key(path, "short", ["read"], days=1e-9)
    assert keys.Keyring(path).find(token) is None


@pytest.mark.parametrize("damage", ["gone", "cut", "other", "writable"])
def test_a_file_that_cannot_be_trusted_lets_nobody_in_and_recovers(path, damage):
    token = keys.make_key(path, "one", ["release"])
    ring, good = keys.Keyring(path), path.read_bytes()
    assert ring.find(token) is not None
    if damage == "gone":
        path.unlink()
    elif damage == "writable":
        path.write_bytes(good + b" ")
        path.chmod(0o666)
    else:
        path.write_bytes(good[:-30] if damage == "cut" else b'{"format": "other"}')
    assert ring.find(token) is None
    path.write_bytes(good)
    path.chmod(0o600)
    assert ring.find(token) is not None


def test_bad_names_scopes_and_days_are_refused(path):
    for arguments in (("", ["read"]), ("x" * 101, ["read"]), ("a\nb", ["read"]), ("a", []), ("a", ["all"])):
        with pytest.raises(mdp.MetricdpError):
            keys.make_key(path, *arguments)
    with pytest.raises(mdp.MetricdpError):
        keys.make_key(path, "a", ["read"], days=-1)
    assert not path.exists()


def test_the_command_makes_lists_and_revokes(path, capsys):
    assert main(["serve", "keys", "make", "my app", "--scope", "release", "--scope", "read", "--keys", str(path)]) == 0
    token = capsys.readouterr().out.strip()
    assert keys.Keyring(path).find(token) is not None
    assert main(["serve", "keys", "list", "--keys", str(path)]) == 0
    shown = capsys.readouterr().out
    identity = token.split("_")[1]
    assert identity in shown
    assert "release,read" in shown
    assert token not in shown
    assert main(["serve", "keys", "revoke", identity, "--keys", str(path)]) == 0
    assert keys.Keyring(path).find(token) is None
    assert main(["serve", "keys", "revoke", "000000000000", "--keys", str(path)]) == 2
    assert "no key has the id" in capsys.readouterr().err


def test_a_key_that_replaces_another_is_the_same_client(tmp_path):
    path = tmp_path / "keys.json"
    old = keys.make_key(path, "app", ["release"])
    identity = old.split("_")[1]
    new = keys.make_key(path, "app", ["release"], replaces=identity)
    third = keys.make_key(path, "app", ["release"], replaces=new.split("_")[1])
    other = keys.make_key(path, "app", ["release"])
    ring = keys.Keyring(path)
    assert [ring.find(token).identity for token in (old, new, third)] == [identity] * 3
    assert ring.find(other).identity != identity
    with pytest.raises(InvalidInput, match="no key has the id"):
        keys.make_key(path, "app", ["release"], replaces="0" * 12)
    data = json.loads(path.read_text())
    for key in data["keys"]:
        del key["client"]  # a file of version 0.1.0
    path.write_text(json.dumps(data))
    assert keys.read_keys(path)[0].identity == identity
