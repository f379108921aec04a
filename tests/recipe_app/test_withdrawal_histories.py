"""Seeded histories of pauses, redactions, copies, backups, restores, withdrawals and kill -9 over two people's data.

`make redactions` plays more.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from dying_commands import Dying, dying_commands
from folder_contents import contents
from histories import recording_body
from paused_recording import Truth, host_ns, write_paused
from sqlalchemy import insert, select
from typed_commands import answer as run

from kitchensync.recipe_app.people.accounts import Accounts
from kitchensync.recipe_app.store import oplog, tables
from kitchensync.recipe_app.store.app_records import AppRecords
from kitchensync.recipe_app.store.database import open_database
from kitchensync.storage.events import EventLog
from kitchensync.storage.manifest import edit_manifest
from kitchensync.storage.move.archive import archive
from kitchensync.storage.move.mover import run_mover

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
HISTORIES = int(os.environ.get("KITCHENSYNC_HISTORIES") or 3)
CANARY, VOICE = "a canary sentence of P07", b"canary tone " * 50


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Truth]:
    """A data folder with a recording of each of two people, and the app's memory of both."""
    data = tmp_path_factory.mktemp("made") / "data"
    truth = write_paused(data / "take", [], seed=3)
    write_paused(data / "other", [], seed=4)
    for name, person in (("take", "P07"), ("other", "P08")):
        with edit_manifest(data / name) as manifest:
            manifest["pseudonym"] = person
    database = open_database(data / "_app" / "app.db")
    records = AppRecords(database, now_ns=lambda: 7, utc_ns=lambda: 8)
    accounts = Accounts(records)
    for name, pseudonym in (("take", "P07"), ("other", "P08")):
        person = accounts.add_person(pseudonym, ["participant"], actor="")
        records.note("recording", f"r-{name}", recording_body(folder=name), actor=person)
        records.note("note", f"r-{name}", {"text": CANARY if name == "take" else "of P08"}, actor=person)
    with records.changing() as connection:
        sound = {"recording": "r-take", "media_type": "audio/webm", "content": VOICE}
        connection.execute(insert(tables.voice).values(sha256="0" * 64, **sound))
        connection.execute(tables.unfiled.delete())
    database.close()
    return data, truth


@pytest.fixture(scope="module")
def dying() -> Iterator[Dying]:
    with dying_commands(may_refuse=True) as killed:
        yield killed


def residue(place: Path, truth: Truth) -> list[str]:
    """Files that still hold a word, a sound, a packet or a picture of P07."""
    payloads = [payload for told in truth.packets.values() for _, payload in told]
    parts = [one[len(one) // 4 :][:48] for one in random.Random(1).sample(payloads, 60)]
    parts += [one[len(one) // 2 :][:48] for _, one in truth.pictures[5::20]]
    wanted = (CANARY.encode(), VOICE[:40], b'"P07"', *parts)
    return [name for name, content in contents(place).items() if any(one in content for one in wanted)]


@pytest.mark.parametrize("group", range(3))
def test_every_history_ends_without_a_residue(
    made: tuple[Path, Truth], dying: Dying, tmp_path: Path, group: int
) -> None:
    for seed in range(group, HISTORIES, 3):
        one_history(seed, made, dying, tmp_path / str(seed))
        shutil.rmtree(tmp_path / str(seed))


def one_history(seed: int, made: tuple[Path, Truth], dying: Dying, place: Path) -> None:
    rng, truth = random.Random(seed), made[1]
    data, store = Path(shutil.copytree(made[0], place / "data")), place / "store"
    take, other = data / "take", contents(data / "other")
    store.mkdir()
    run("backup", place / "old.backup", "--data", data)
    withdraw = rng.choice((["withdraw", str(take)], ["withdraw", "--person", "P07", "--data", str(data)]))
    before = rng.sample(["archive", "copy", "pause", "redact", "backup"], rng.randint(0, 4))
    after = rng.choices(["withdraw", "restore", "open", "backup"], k=rng.randint(1, 5))
    for step in before:
        if step == "archive":
            archive(take)
        elif step == "copy":
            run_mover([take, data / "other"], [store], rule=None)
        elif step == "pause":
            log = EventLog(take, "tablet")
            for kind, at_s in (("pause", 4.0), ("resume", 6.0)):
                log.append(kind, host_ns=host_ns(at_s), uncertainty_ns=0, body={}, op_id=f"{kind} {seed}")
        elif step == "redact":
            dying(data, ["redact", str(take), "--reason", "history"], rng.randrange(1, 30))
        else:
            run("backup", place / "new.backup", "--data", data, "--force")
    for step in ["withdraw", *after]:
        if step == "withdraw":
            dying(data, withdraw, rng.randrange(0, 70))
        elif step == "restore":
            for path in (data / "_app").glob("app.db*"):
                path.unlink()
            run("restore", place / "old.backup", "--data", data)
        elif step == "backup":
            run("backup", place / "new.backup", "--data", data, "--force")
        else:  # whoever opens the app's memory finishes what was begun in it
            dying(data, ["annotations", "export", "--data", str(data), "--out", str(place / "x")], 10**6)
    (place / "old.backup").unlink()
    last = run(*(["withdraw", "--person", "P07", "--data", data] if rng.random() < 0.5 else withdraw))
    assert last["status"] == "done", (seed, last)
    run(*["withdraw", "--person", "P07", "--data", data])
    assert residue(place, truth) == [], (seed, before, after)
    assert (
        contents(data / "other").items() >= {n: c for n, c in other.items() if n != "copies.jsonl"}.items()
    ), seed
    database = open_database(data / "_app" / "app.db")
    with database.reading() as connection:
        assert oplog.first_fault(connection) is None, seed
        assert [row.folder for row in connection.execute(select(tables.recording))] == ["other"], seed
    database.close()
