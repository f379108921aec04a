"""Our own authority: what it vouches for, what it cannot, when it is made anew; judged by OpenSSL."""

from __future__ import annotations

import datetime
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from cryptography import x509

from recipe_app.tls import LEAF_DAYS, credentials, own_names

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
    from recipe_app import tls

    authority, key = tls._authority(tmp_path, NAMES, NOW)
    forged_key = tls.ec.generate_private_key(tls.ec.SECP256R1())
    forged = tls._leaf(forged_key, authority, key, ["bank.example"], NOW)
    (tmp_path / "forged.crt").write_bytes(tls._pem(forged))
    assert openssl(tmp_path, "forged.crt") != 0
    assert openssl(tmp_path / "b", "leaf.crt") == 0


def test_it_is_kept_renewed_in_time_and_made_anew_for_other_names(tmp_path: Path) -> None:
    def made(names: list[str], days: int) -> tuple[int, bytes]:
        now = NOW + datetime.timedelta(days=days)
        files = credentials(tmp_path, names, now=now)
        return leaf(tmp_path).serial_number, files.authority_bytes()

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


def test_own_names_hold_what_tablets_type() -> None:
    assert {"localhost", "127.0.0.1", "::1"} <= set(own_names("0.0.0.0"))
    assert "192.168.7.20" in own_names("192.168.7.20")
