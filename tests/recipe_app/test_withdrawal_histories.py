"""Seeded histories of pauses, redactions, copies, backups, restores, withdrawals and kill -9 over two people's data.

`make redactions` plays more.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from histories import recording_body
from paused_recording import Truth, contents, host_ns, write_paused
from sqlalchemy import insert, select

from kitchensync.cli import main
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
DIES = """
import json, os, signal, sys
from kitchensync.cli import main
import kitchensync.recipe_app.commands.at_rest, scipy.optimize
import kitchensync.storage.redact.redaction, kitchensync.storage.withdraw.withdrawal

def changes(event, arguments, root):
    if event in ("os.rename", "os.remove", "os.rmdir", "shutil.rmtree", "sqlite3.connect"):
        return root in str(arguments[0])
    if event != "open" or root not in str(arguments[0]):
        return False
    return bool(isinstance(arguments[1], str) and set(arguments[1]) & set("wax+") or (arguments[2] or 0) & 3)

for line in sys.stdin:
    root, words, left = json.loads(line)
    if child := os.fork():
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    count = [left]
    def hook(event, arguments):
        if changes(event, arguments, root):
            count[0] -= 1
            if count[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(hook)
    try:
        main(words)
    except SystemExit as error:
        os._exit(error.code or 0)
"""


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
def dying() -> Iterator[subprocess.Popen[str]]:
    """A process that runs commands in children of its own, each killed before its n-th change of a file."""
    with subprocess.Popen(
        [sys.executable, "-c", DIES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def killed(dying: subprocess.Popen[str], data: Path, words: list[str], operation: int) -> bool:
    assert dying.stdin is not None
    assert dying.stdout is not None
    dying.stdin.write(json.dumps([str(data), words, operation]) + "\n")
    dying.stdin.flush()
    code = int(dying.stdout.readline())
    assert code in (0, 1, -9), code
    return code == -9


def run(*words: object) -> Any:
    done = CliRunner().invoke(main, [*map(str, words), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def residue(place: Path, truth: Truth) -> list[str]:
    """Files that still hold a word, a sound, a packet or a picture of P07."""
    payloads = [payload for told in truth.packets.values() for _, payload in told]
    parts = [one[len(one) // 4 :][:48] for one in random.Random(1).sample(payloads, 60)]
    parts += [one[len(one) // 2 :][:48] for _, one in truth.pictures[5::20]]
    wanted = (CANARY.encode(), VOICE[:40], b'"P07"', *parts)
    return [name for name, content in contents(place).items() if any(one in content for one in wanted)]


@pytest.mark.parametrize("group", range(3))
def test_every_history_ends_without_a_residue(
    made: tuple[Path, Truth], dying: subprocess.Popen[str], tmp_path: Path, group: int
) -> None:
    for seed in range(group, HISTORIES, 3):
        one_history(seed, made, dying, tmp_path / str(seed))
        shutil.rmtree(tmp_path / str(seed))


def one_history(seed: int, made: tuple[Path, Truth], dying: subprocess.Popen[str], place: Path) -> None:
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
            killed(dying, data, ["redact", str(take), "--reason", "history"], rng.randrange(1, 30))
        else:
            run("backup", place / "new.backup", "--data", data, "--force")
    for step in ["withdraw", *after]:
        if step == "withdraw":
            killed(dying, data, withdraw, rng.randrange(0, 70))
        elif step == "restore":
            for path in (data / "_app").glob("app.db*"):
                path.unlink()
            run("restore", place / "old.backup", "--data", data)
        elif step == "backup":
            run("backup", place / "new.backup", "--data", data, "--force")
        else:  # whoever opens the app's memory finishes what was begun in it
            killed(
                dying, data, ["annotations", "export", "--data", str(data), "--out", str(place / "x")], 10**6
            )
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
