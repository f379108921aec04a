"""A withdrawal in the app: no byte is left in database, backups and tablets, and the log's chain still holds."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sqlalchemy import select, update

from kitchensync.cli import main
from recipe_app.store import destruction, oplog, projections, tables
from recipe_app.store.database import open_database
from storage.manifest import edit_manifest, read_manifest

SAID, VOICE = "Wilhelmina’s canary sentence", b"canary tone " * 40


def run(*words: object) -> tuple[int, Any]:
    done = CliRunner().invoke(main, [*(str(word) for word in words), "--json"])
    assert not done.exception or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, json.loads(done.stdout) if done.stdout else done.output


def cook(kitchen: Any, client: Any, said: str, **more: Any) -> str:
    """A recording with a note and a voice note."""
    recording = kitchen.choose(**more)["recording"]
    sha256 = hashlib.sha256(VOICE + said.encode()).hexdigest()
    answer = client.put(
        f"/api/v1/voice/{recording}/{sha256}",
        content=VOICE + said.encode(),
        headers={"content-type": "audio/webm"},
    )
    assert answer.status_code == 200, answer.text
    kitchen.post(kitchen.operation(recording, "note", {"text": said}))
    return str(recording)


@pytest.fixture
def withdrawn(kitchen: Any) -> Any:
    """Basil cooked into `soup_1`; Clove is planned and stays."""
    kitchen.recording = cook(kitchen, kitchen.tablet, SAID, folder="soup_1")
    clove = kitchen.tools.accounts.add_person("Clove", ["participant"], actor="")
    kitchen.tools.records.note("person_facts", clove, {"age": "25-34"}, actor="")
    entry = {"recipe": "soup", "strategy": "normal", "display": "steps", "kitchen": "k", "minutes": 30}
    entries = [
        {**entry, "person": person, "start": f"2026-12-0{day}T10:00:00+00:00"}
        for day, person in ((1, "Basil"), (2, "Clove"))
    ]
    kitchen.tools.records.note("study_plan", "plan", {"sessions": entries, "goals": []}, actor="")
    with edit_manifest(kitchen.data / "soup_1") as manifest:
        manifest["state"] = "complete"
    return kitchen


def files_with(root: Path, *wanted: bytes) -> list[str]:
    files = [path for path in sorted(root.rglob("*")) if path.is_file()]
    return [
        path.relative_to(root).as_posix() for path in files if any(one in path.read_bytes() for one in wanted)
    ]


CANARIES = (SAID.encode(), json.dumps(SAID)[1:-1].encode(), b"canary tone", b'"Basil"', b"Basil")


def others(kitchen: Any) -> list[Any]:
    """Every row of the log that is not of Basil, of a plan, or of the destruction itself."""
    mine = (kitchen.recording, kitchen.basil, "plan", "study_plan", "study")
    with kitchen.database.reading() as connection:
        return [row for row in connection.execute(select(tables.op)) if row.subject not in mine]


def test_nothing_of_a_person_is_left_while_the_app_runs(withdrawn: Any, tmp_path: Path) -> None:
    kitchen, backup = withdrawn, tmp_path / "elsewhere" / "kitchen.backup"
    backup.parent.mkdir()
    assert run("backup", backup, "--data", kitchen.data)[0] == 0
    old = shutil.copy(backup, tmp_path / "old.backup")
    assert files_with(kitchen.data, *CANARIES) != []
    before = others(kitchen)
    code, said = run("withdraw", "--person", "Basil", "--data", kitchen.data)
    assert (code, said["status"]) == (0, "open"), said
    done = {Path(one["place"]).name: (one["done"], one["open"]) for one in said["places"]}
    assert done["app.db"] == ("destroyed", "")
    assert done["soup_1"] == ("destroyed", "")
    assert done["kitchen.backup"] == ("made anew", "")
    assert [place for place, (_, left) in done.items() if left] == ["tablet Tablet"]
    assert files_with(kitchen.data, *CANARIES) == []
    assert run("restore", backup, "--data", tmp_path / "other")[0] == 1, "it wants the key"
    (tmp_path / "other" / "_app" / "app.key").write_bytes((kitchen.data / "_app" / "app.key").read_bytes())
    assert run("restore", backup, "--data", tmp_path / "other")[0] == 0
    assert files_with(tmp_path / "other", *CANARIES) == []
    assert others(kitchen)[: len(before)] == before
    with kitchen.database.reading() as connection:
        assert oplog.first_fault(connection) is None
        derived = projections.dump(connection)
    assert [one["pseudonym"] for one in derived["person"] if one["id"] == kitchen.basil] == []
    assert [one["person"] for one in _plan(kitchen)] == ["Clove"]
    with kitchen.database.writing() as connection:
        projections.rebuild(connection)
        assert projections.dump(connection) == derived
    kitchen.place_again = old


def _plan(kitchen: Any) -> list[dict[str, Any]]:
    with kitchen.database.reading() as connection:
        plans = [op for op in oplog.everything(connection) if op["kind"] == "study_plan"]
    assert len(plans) == 1
    return list(plans[0]["body"]["sessions"])


def test_an_old_backup_is_restored_without_what_was_withdrawn_since(withdrawn: Any, tmp_path: Path) -> None:
    kitchen, backup = withdrawn, tmp_path / "kitchen.backup"
    assert run("backup", backup, "--data", kitchen.data)[0] == 0
    old = shutil.copy(backup, tmp_path / "old.backup")
    assert run("withdraw", kitchen.data / "soup_1")[0] == 0
    kitchen.database.close()
    for path in (kitchen.data / "_app").glob("app.db*"):
        path.unlink()
    code, said = run("restore", old, "--data", kitchen.data)
    assert code == 0, said
    assert files_with(kitchen.data, SAID.encode(), b"canary tone") == []
    database = open_database(kitchen.data / "_app" / "app.db")
    with database.reading() as connection:
        assert oplog.first_fault(connection) is None
        assert connection.execute(select(tables.recording.c.id)).all() == []
    database.close()


def test_a_tablet_forgets_it_and_then_nothing_is_open(withdrawn: Any) -> None:
    kitchen = withdrawn
    assert kitchen.tablet.get("/api/v1/me").json()["device"]["destroyed"] == []
    assert run("withdraw", kitchen.data / "soup_1")[1]["status"] == "open"
    late = kitchen.operation(kitchen.recording, "note", {"text": SAID})
    (receipt,) = kitchen.tablet.post("/api/v1/ops", json={"operations": [late]}).json()["receipts"]
    assert "no recording" in receipt["error"]
    assert files_with(kitchen.data, SAID.encode()) == []
    assert kitchen.tablet.get(f"/api/v1/bundle/{kitchen.recording}").status_code == 404
    me = kitchen.tablet.get("/api/v1/me").json()
    assert me["device"]["destroyed"] == [kitchen.recording]
    headers = {"x-kitchensync-csrf": me["csrf"]}
    kitchen.tablet.post("/api/v1/forgotten", json={"recordings": me["device"]["destroyed"]}, headers=headers)
    assert kitchen.tablet.get("/api/v1/me").json()["device"]["destroyed"] == []
    assert run("withdraw", kitchen.data / "soup_1")[1]["status"] == "done"


def test_what_is_blanked_by_a_stranger_is_found(withdrawn: Any) -> None:
    with withdrawn.database.writing() as connection:
        ops = oplog.ops_of(connection, withdrawn.recording)
        connection.execute(
            update(tables.op).where(tables.op.c.n == ops[1]["n"]).values(body="", clock="", salt="")
        )
        assert oplog.first_fault(connection) == ops[1]["n"]
        connection.rollback()


def test_whoever_is_more_than_a_participant_keeps_the_account(withdrawn: Any) -> None:
    accounts, records = withdrawn.tools.accounts, withdrawn.tools.records
    person = accounts.add_person("Dill", ["participant", "operator"], actor="")
    what = destruction.found_of(records, [], "Dill")
    assert what.people == (person,)
    assert destruction.destroy(records, what) == 0
    assert records.row(tables.person, person)["pseudonym"] == "Dill"


@pytest.mark.parametrize("stops_after", range(6))
def test_a_killed_withdrawal_is_finished_by_whoever_opens_the_app(
    withdrawn: Any, monkeypatch: pytest.MonkeyPatch, stops_after: int
) -> None:
    """Dies at the n-th write of the app's part; after that `take-dump` only opens the memory."""
    left = stops_after

    def dying(act: Any) -> Any:
        def step(*args: Any, **more: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
            return act(*args, **more)

        return step

    with monkeypatch.context() as patched:
        for name in ("_empty", "_drop", "scrub"):
            patched.setattr(destruction, name, dying(getattr(destruction, name)))
        patched.setattr("recipe_app.exchange.app_withdrawals.scrub", dying(destruction.scrub))
        run("withdraw", "--person", "Basil", "--data", withdrawn.data)
    assert read_manifest(withdrawn.data / "soup_1").get("withdrawn")
    run("annotations", "import", "none", "--data", withdrawn.data)
    run("withdraw", "--person", "Basil", "--data", withdrawn.data)
    assert files_with(withdrawn.data, *CANARIES) == []
    with withdrawn.database.reading() as connection:
        assert oplog.first_fault(connection) is None
