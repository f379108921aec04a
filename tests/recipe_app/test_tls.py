"""Our own authority: what it vouches for, what it cannot, when it is made anew; judged by OpenSSL."""

from __future__ import annotations

import datetime
import json
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography import x509

from kitchensync.recipe_app.web.door import tls
from kitchensync.recipe_app.web.door.tls import LEAF_DAYS, credentials, own_names
from kitchensync.recipe_app.web.serve import addresses

NAMES = ["127.0.0.1", "::1", "kitchen-pc", "localhost", "192.168.7.20"]
NOW = datetime.datetime(2026, 11, 22, tzinfo=datetime.UTC)


def leaf(folder: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate((folder / "leaf.crt").read_bytes())


def openssl(folder: Path, *more: str) -> int:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl on this computer")
    command = [
        "openssl",
        "verify",
        "-x509_strict",
        "-CAfile",
        "ca.crt",
        "-attime",
        str(int(NOW.timestamp())),
        *more,
    ]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=30).returncode


def test_the_leaf_is_vouched_for_and_lives_as_long_as_browsers_accept(tmp_path: Path) -> None:
    credentials(tmp_path / "tls", NAMES, now=NOW)
    folder = tmp_path / "tls"
    assert openssl(folder, "-verify_hostname", "kitchen-pc", "leaf.crt") == 0
    assert openssl(folder, "-verify_ip", "192.168.7.20", "leaf.crt") == 0
    assert openssl(folder, "-verify_hostname", "other", "leaf.crt") != 0
    found = leaf(folder)
    assert found.not_valid_after_utc - found.not_valid_before_utc <= datetime.timedelta(days=LEAF_DAYS)
    assert stat.S_IMODE((folder / "ca.key").stat().st_mode) == 0o600
    assert stat.S_IMODE((folder / "leaf.key").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_the_authority_cannot_vouch_for_anybody_else(tmp_path: Path) -> None:
    credentials(tmp_path / "a", NAMES, now=NOW)
    credentials(tmp_path / "b", ["bank.example"], now=NOW)
    for name in ("ca.crt", "ca.key"):
        shutil.copy(tmp_path / "a" / name, tmp_path / name)
    authority, key = tls._authority(tmp_path, NAMES, (), NOW)
    forged_key = tls.ec.generate_private_key(tls.ec.SECP256R1())
    forged = tls._leaf(forged_key, authority, key, ["bank.example"], NOW)
    (tmp_path / "forged.crt").write_bytes(tls._pem(forged))
    assert openssl(tmp_path, "forged.crt") != 0
    assert openssl(tmp_path / "b", "leaf.crt") == 0


def test_it_is_kept_renewed_in_time_and_made_anew_for_other_names(tmp_path: Path) -> None:
    def made(names: list[str], days: int) -> tuple[int, bytes]:
        now = NOW + datetime.timedelta(days=days)
        files = credentials(tmp_path, names, now=now)
        return leaf(tmp_path).serial_number, files.authority.read_bytes()

    first, authority = made(NAMES, 0)
    assert made(NAMES, 200) == (first, authority)
    renewed, same = made(NAMES, 300)
    assert renewed != first
    assert same == authority
    moved, same = made([*NAMES[:-1], "192.168.7.99"], 301)
    assert moved != renewed
    assert same == authority  # another lease in the same network: tablets keep their trust
    _, other = made([*NAMES[:-1], "10.0.0.5"], 302)
    assert other != authority


def test_an_address_that_comes_costs_no_tablet_its_trust(tmp_path: Path) -> None:
    def made(addresses: list[str], *, spare: list[str]) -> tuple[set[str], bytes, tuple[str, ...]]:
        files = credentials(tmp_path, ["localhost", *addresses], now=NOW, spare=spare)
        names = leaf(tmp_path).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        found = {str(one) for one in names.get_values_for_type(x509.IPAddress)}
        return found, files.authority.read_bytes(), files.left_out

    both = ["192.168.7.20", "10.9.0.4"]
    served, authority, left_out = made(both, spare=both[1:])
    assert (served, left_out) == (set(both), ())  # two cards, and one authority for both
    assert openssl(tmp_path, "-verify_ip", "10.9.0.4", "leaf.crt") == 0
    moved = ["192.168.7.20", "10.9.0.77"]
    assert made(moved, spare=moved[1:]) == (set(moved), authority, ())  # another lease: the leaf is made anew
    more = [*moved, "172.17.0.1"]
    assert made(more, spare=more[1:]) == (set(moved), authority, ("172.17.0.1",))
    assert made(["172.17.0.1", "10.9.0.4"], spare=["172.17.0.1", "10.9.0.4"])[1] == authority
    served, other, left_out = made(["172.17.0.1"], spare=["172.17.0.1"])  # or nobody could reach it
    assert (served, other != authority, left_out) == ({"172.17.0.1"}, True, ())


IN_A_KITCHEN = """
ip link set lo up
for one in 10.9.0.4/24 192.168.7.20/24 172.17.0.1/16 169.254.3.3/16; do ip address add $one dev lo; done
exec "$@"
"""
ASKED = """
import json, sys
from kitchensync.recipe_app.web.door import tls
print(json.dumps({"own": tls.own_addresses(), "names": tls.own_names("0.0.0.0"), "routed": tls.routed_address()}))
"""


def test_without_a_default_route_every_address_of_this_computer_is_served() -> None:
    """In a network of its own, as a kitchen's is: nothing leads anywhere else."""
    alone = ["unshare", "--user", "--map-root-user", "--net"]
    if not (shutil.which("unshare") and shutil.which("ip")):
        pytest.skip("no unshare or no ip on this computer")
    if subprocess.run([*alone, "true"], capture_output=True, check=False, timeout=30).returncode:
        pytest.skip("this computer lets nobody make a network of its own")
    command = [*alone, "sh", "-c", IN_A_KITCHEN, "sh", sys.executable, "-c", ASKED]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    found = json.loads(done.stdout)
    assert found["routed"] == []
    assert found["own"] == ["10.9.0.4", "192.168.7.20", "172.17.0.1", "169.254.3.3"]
    assert set(found["own"]) <= set(found["names"])


def test_the_printed_address_is_one_that_the_certificate_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls, "_local_addresses", lambda: ["127.0.0.1", "10.9.0.4", "192.168.7.20", "8.8.4.4"])
    monkeypatch.setattr(tls, "routed_address", lambda: ["192.168.7.20"])
    every, one = Path("leaf.crt"), "https://192.168.7.20:9/"
    assert addresses("0.0.0.0", 9, tls.Credentials(every, every, every)) == [
        one, "https://10.9.0.4:9/", "https://8.8.4.4:9/"
    ]  # fmt: skip
    narrow = tls.Credentials(every, every, every, left_out=("10.9.0.4", "8.8.4.4"))
    assert addresses("0.0.0.0", 9, narrow) == [one]
    assert addresses("::1", 9, None) == ["http://[::1]:9/"]
    monkeypatch.setattr(tls, "routed_address", list)
    monkeypatch.setattr(tls, "_local_addresses", list)
    assert addresses("0.0.0.0", 9, narrow) == ["https://127.0.0.1:9/"]


def test_own_names_hold_what_tablets_type() -> None:
    assert {"localhost", "127.0.0.1", "::1"} <= set(own_names("0.0.0.0"))
    assert "192.168.7.20" in own_names("192.168.7.20")
