"""Every byte that the app leaves behind, searched for what people typed and what lets them in."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import httpx
import pytest

from kitchensync.virtual_kitchen.tablet import Keys, Tablet

PROGRAM = [sys.executable, "-m", "kitchensync"]
APP = [*PROGRAM, "app"]
BACKUP = [*PROGRAM, "backup"]
PIN, WRONG_PIN, NEW_PIN, PASSWORD = "482916", "593027", "604138", "correct horse battery staple"
REAL_NAME, SURNAME = "Klara Grünwald-Yıldız", "Grünwald-Yıldız"


def used(url: str, invite: str) -> dict[str, str]:
    """Use everything that takes a secret, rightly and wrongly; return all secrets."""
    import random

    secrets = {"invite": invite, "PIN": PIN, "wrong PIN": WRONG_PIN, "new PIN": NEW_PIN, "password": PASSWORD}
    with httpx.Client(base_url=url, trust_env=False, timeout=30) as client:

        def ask(path: str, body: dict[str, Any], **headers: str) -> Any:
            answer = client.post(f"/api/v1/{path}", json=body, headers=headers)
            assert answer.status_code == 200, answer.text
            return answer.json()

        admin = ask("invite", {"code": invite, "password": PASSWORD})["pseudonym"]
        signed = {"pseudonym": admin, "password": PASSWORD, "program": True}
        secrets["desk token"] = ask("desk/sign-in", signed)["token"]
        desk = {"x-kitchensync-login": secrets["desk token"]}
        kitchen = ask("desk/kitchens", {"name": "Kitchen"}, **desk)["kitchen"]
        named = client.post("/api/v1/desk/people", json={"pseudonym": REAL_NAME, "pin": PIN}, headers=desk)
        assert (named.status_code, SURNAME in named.text) == (422, False)
        assert client.post("/api/v1/desk/sign-in", json={**signed, "pseudonym": REAL_NAME}).status_code == 403
        secrets["surname"] = SURNAME
        person = ask("desk/people", {"pseudonym": "Basil", "pin": PIN}, **desk)["person"]
        operator = ask("desk/people", {"pseudonym": "Sage", "roles": ["operator"]}, **desk)
        secrets["operator's invite"] = operator["invite"]
        secrets["card"] = ask(f"desk/people/{person}/card", {}, **desk)["card"]
        secrets["pairing code"] = ask("desk/pairing-codes", {"kitchen": kitchen}, **desk)["code"]
        pairing = {"code": secrets["pairing code"], "name": "Tablet", "program": True}
        secrets["device token"] = ask("pair", pairing)["token"]
        bearer = {"authorization": f"Bearer {secrets['device token']}"}
        by_card = {"card": secrets["card"], "program": True}
        secrets["card's token"] = ask("sign-in/card", by_card, **bearer)["token"]
        secrets["login"] = ask("sign-in", {"person": person, "pin": PIN, "program": True}, **bearer)["token"]
        for body in (
            {"person": person, "pin": WRONG_PIN},
            {"person": person, "pin": [WRONG_PIN]},
            {"pin": PIN},
        ):
            answer = client.post("/api/v1/sign-in", json=body, headers=bearer)
            assert answer.status_code in (403, 422)
            assert not [name for name, secret in secrets.items() if secret in answer.text]
        client.get(f"/q/{secrets['card']}")  # as an old card's address was
        secrets["CSRF token"] = client.get("/api/v1/me", headers=desk).json()["csrf"]
        ask(f"desk/people/{person}", {"pin": NEW_PIN}, **desk)
        secrets["second card"] = ask(f"desk/people/{person}/card", {}, **desk)["card"]
        again = {"person": person, "pin": NEW_PIN, "program": True}
        secrets["second login"] = ask("sign-in", again, **bearer)["token"]
        keys = Keys(secrets["device token"], secrets["second login"])
        tablet = Tablet(client, keys, random.Random(1))
        tablet.choose("tea_and_toast", None, 1)
        tablet.prepare()
    return secrets


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_no_secret_is_in_database_log_or_backup(tmp_path: Path) -> None:
    data, backup = tmp_path / "data", tmp_path / "kitchen.backup"
    with open(tmp_path / "stderr.log", "wb") as log:
        process = subprocess.Popen(
            [*APP, "--data", str(data), "--port", "0"], stdout=subprocess.PIPE, stderr=log, text=True
        )
        try:
            said: list[str] = []
            assert process.stdout is not None
            for line in process.stdout:
                said.append(line)
                if line.startswith("ready "):
                    break
            invite = next(line for line in said if line.startswith("invite=")).partition("#")[2].strip()
            secrets = used(said[-1].partition("app=")[2].strip(), invite)
            subprocess.run([*BACKUP, str(backup), "--data", str(data)], check=True, capture_output=True)
            while_it_ran = {f"running: {name}": content for name, content in files_in(tmp_path).items()}
        finally:
            process.terminate()
            rest = process.communicate()[0]
    with zipfile.ZipFile(backup) as archive:
        kept = {f"backup: {name}": archive.read(name) for name in archive.namelist()}
    kept |= files_in(tmp_path) | while_it_ran
    kept["standard output after the start"] = rest.encode()
    assert any(b"argon2id" in content for name, content in kept.items() if name.startswith("backup"))
    assert any(b"Basil" in content for content in kept.values())  # the search sees what is there
    assert any(name.endswith(".db-wal") for name in kept)
    assert len(secrets) == 16
    found = [
        (name, place)
        for name, secret in secrets.items()
        for place, content in kept.items()
        if holds(content, secret)
    ]
    assert found == []


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def holds(content: bytes, secret: str) -> bool:
    """Return whether bytes hold a secret; six digits in the middle of a hash or a time are no PIN."""
    plain = re.escape(secret.encode())
    pattern = rb"(?<![0-9a-f])" + plain + rb"(?![0-9a-f])" if secret.isdigit() else plain
    return re.search(pattern, content) is not None


def test_the_search_finds_what_is_there() -> None:
    assert holds(b'{"pin":"482916"}', PIN)
    assert holds(b"pin=482916\n", PIN)
    assert not holds(b"1790000482916000", PIN)
    assert holds(f'"{REAL_NAME}"'.encode(), SURNAME)
