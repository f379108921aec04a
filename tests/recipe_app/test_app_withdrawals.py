"""A withdrawal in the app: no byte is left in database, backups and tablets, and the log's chain still holds."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from browser import on_screen
from derived_tables import dump
from dying_commands import dying_after
from folder_contents import holding
from histories import recording_body
from sqlalchemy import insert, select, update
from typed_commands import code_and_answer as run

from kitchensync.recipe_app.cooking.checklist import CONSENT_VERSION
from kitchensync.recipe_app.cooking.withdrawals import carry_out, finish_open
from kitchensync.recipe_app.people.accounts import Accounts
from kitchensync.recipe_app.store import destruction, oplog, projections, tables
from kitchensync.recipe_app.store.app_records import AppRecords
from kitchensync.recipe_app.store.database import open_database
from kitchensync.storage.copies.derived import asked, noting, will_write
from kitchensync.storage.disk.self_check import read_sound_lines
from kitchensync.storage.installation.key import kept_key
from kitchensync.storage.manifest import edit_manifest, read_manifest, write_json

pytestmark = pytest.mark.slow

AGREED = {"version": CONSENT_VERSION, "accepted": True}
SAID, VOICE = "Wilhelmina’s canary sentence", b"canary tone " * 40


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
    study = """[people.Basil]\nhours = ["mon 09:00-12:00"]\n[people.Clove]\nhours = ["tue 09:00-12:00"]\n"""
    notes = ["Basil has no account here"]
    plan = {"sessions": entries, "goals": [], "study": study, "notes": notes, "unmet": []}
    kitchen.tools.records.note("study_plan", "plan", plan, actor="")
    with edit_manifest(kitchen.data / "soup_1") as manifest:
        manifest["state"] = "complete"
    return kitchen


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
    assert holding(kitchen.data, *CANARIES) != []
    before = others(kitchen)
    code, said = run("withdraw", "--person", "Basil", "--data", kitchen.data)
    assert (code, said["status"]) == (0, "open"), said
    done = {Path(one["place"]).name: (one["done"], one["open"]) for one in said["places"]}
    assert done["app.db"] == ("destroyed", "")
    assert done["soup_1"] == ("destroyed", "")
    assert done["kitchen.backup"] == ("made anew", "")
    assert [place for place, (_, left) in done.items() if left] == ["tablet Tablet"]
    again = run("withdraw", "--person", "Basil", "--data", kitchen.data)[1]
    assert [one["place"] for one in again["places"] if one["open"]] == ["tablet Tablet"], "until it connects"
    assert holding(kitchen.data, *CANARIES) == []
    assert run("restore", backup, "--data", tmp_path / "other")[0] == 1, "it wants the key"
    (tmp_path / "other" / "_app" / "app.key").write_bytes((kitchen.data / "_app" / "app.key").read_bytes())
    assert run("restore", backup, "--data", tmp_path / "other")[0] == 0
    assert holding(tmp_path / "other", *CANARIES) == []
    assert others(kitchen)[: len(before)] == before
    with kitchen.database.reading() as connection:
        assert oplog.first_fault(connection) is None
        derived = dump(connection)
    assert [one["pseudonym"] for one in derived["person"] if one["id"] == kitchen.basil] == []
    assert [one["person"] for one in _plan(kitchen)] == ["Clove"]
    with kitchen.database.writing() as connection:
        projections.rebuild(connection)
        assert dump(connection) == derived
    kitchen.place_again = old


def _plan(kitchen: Any) -> list[dict[str, Any]]:
    with kitchen.database.reading() as connection:
        plans = [op for op in oplog.everything(connection) if op["kind"] == "study_plan"]
    assert len(plans) == 1
    assert plans[0]["body"]["study"] == """[people.Clove]\nhours = ["tue 09:00-12:00"]\n"""
    assert plans[0]["body"]["notes"] == []
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
    assert holding(kitchen.data, SAID.encode(), b"canary tone") == []
    database = open_database(kitchen.data / "_app" / "app.db")
    with database.reading() as connection:
        assert oplog.first_fault(connection) is None
        assert connection.execute(select(tables.recording.c.id)).all() == []
    database.close()


def test_nobody_who_withdrew_comes_back_on_another_computer(withdrawn: Any, tmp_path: Path) -> None:
    kitchen, own = withdrawn, withdrawn.data / "_app"
    assert run("backup", tmp_path / "before.backup", "--data", kitchen.data)[0] == 0
    (tmp_path / "before.backup").rename(tmp_path / "on a stick")  # where no withdrawal finds it
    assert run("withdraw", kitchen.data / "soup_1")[0] == 0
    assert run("backup", tmp_path / "after.backup", "--data", kitchen.data)[0] == 0

    def restored(name: str, backup: str, *files: str) -> tuple[Path, Any]:
        (tmp_path / name / "_app").mkdir(parents=True, exist_ok=True)
        for file in files:
            shutil.copy(own / file, tmp_path / name / "_app")
        code, said = run("restore", tmp_path / backup, "--data", tmp_path / name)
        assert code == 0, said
        return tmp_path / name, said

    as_documented, said = restored("new", "on a stick", "app.key", "withdrawals.jsonl")
    assert holding(as_documented, SAID.encode(), b"canary tone") == []
    assert said["warnings"] == []
    unknowing, said = restored("other", "on a stick", "app.key")
    assert holding(unknowing, SAID.encode()) != []
    assert len(said["warnings"]) == 1, "it cannot know, and says so"
    listed, _ = restored("third", "after.backup", "app.key")
    (listed / "_app" / "app.db").unlink()
    _, said = restored("third", "on a stick")
    assert holding(listed, SAID.encode(), b"canary tone") == [], "the newer backup had the list"
    assert said["warnings"] == []


def test_a_tablet_forgets_it_and_then_nothing_is_open(withdrawn: Any) -> None:
    kitchen = withdrawn
    assert kitchen.tablet.get("/api/v1/me").json()["device"]["destroyed"] == []
    for _ in range(3):
        said = run("withdraw", kitchen.data / "soup_1")[1]
        assert [one["place"] for one in said["places"] if one["open"]] == ["tablet Tablet"], (
            "until it connects"
        )
    late = kitchen.operation(kitchen.recording, "note", {"text": SAID})
    (receipt,) = kitchen.tablet.post("/api/v1/ops", json={"operations": [late]}).json()["receipts"]
    assert "no recording" in receipt["error"]
    assert holding(kitchen.data, SAID.encode()) == []
    assert kitchen.tablet.get(f"/api/v1/bundle/{kitchen.recording}").status_code == 404
    me = kitchen.tablet.get("/api/v1/me").json()
    assert me["device"]["destroyed"] == [kitchen.recording]
    headers = {"x-kitchensync-csrf": me["csrf"]}
    kitchen.tablet.post("/api/v1/forgotten", json={"recordings": me["device"]["destroyed"]}, headers=headers)
    assert kitchen.tablet.get("/api/v1/me").json()["device"]["destroyed"] == []
    assert run("withdraw", kitchen.data / "soup_1")[1]["status"] == "done"


def test_what_is_withdrawn_on_the_tablet_is_destroyed_after_its_hours(withdrawn: Any) -> None:
    kitchen, key = withdrawn, kept_key(withdrawn.data / "_app")
    own, place = kitchen.data / "_app", kitchen.data / "_app" / "app.db"

    def after(hours: float) -> list[Any]:
        kitchen.utc_ns += int(hours * 3600e9)
        return carry_out(kitchen.tools, own, place, key)

    kitchen.post(kitchen.operation(kitchen.recording, "withdraw", {}))
    manifest = read_manifest(kitchen.data / "soup_1")
    assert (manifest["consent"], "host_ns" in manifest["withdrawn"]) == ("none", True)
    assert after(0.5) == []
    kitchen.post(kitchen.operation(kitchen.recording, "keep", {}))
    assert "withdrawn" not in read_manifest(kitchen.data / "soup_1")
    assert after(100) == []  # taken back is taken back
    kitchen.post(kitchen.operation(kitchen.recording, "withdraw", {}))
    (kitchen.data / "lab.toml").write_text("grace_hours = 2")
    assert after(1.9) == []
    assert holding(kitchen.data, SAID.encode()) != []
    done = {Path(one.place).name: one.done for one in after(0.2)}
    assert (done["soup_1"], done["app.db"]) == ("destroyed", "destroyed")
    assert holding(kitchen.data, SAID.encode(), b"canary tone") == []
    assert read_manifest(kitchen.data / "soup_1")["withdrawn"]["files"]
    assert after(1) == []
    (proof,) = [one for one in read_sound_lines(own / "withdrawals.jsonl") if one["schema"] == "withdraw/1"]
    assert {Path(one["place"]).name for one in proof["places"]} >= {"soup_1", "app.db"}
    with kitchen.database.reading() as connection:
        assert oplog.first_fault(connection) is None


@pytest.mark.parametrize("trouble", ["not closed", "unreadable"])
def test_one_that_cannot_be_destroyed_now_holds_up_no_other(withdrawn: Any, trouble: str) -> None:
    kitchen, key = withdrawn, kept_key(withdrawn.data / "_app")
    own, place = kitchen.data / "_app", kitchen.data / "_app" / "app.db"
    kitchen.record("soup_0")
    stuck = cook(kitchen, kitchen.tablet, "it was cut off", folder="soup_0")
    kitchen.post(*(kitchen.operation(recording, "withdraw", {}) for recording in (stuck, kitchen.recording)))
    manifest = kitchen.data / "soup_0" / "recording.json"
    whole = manifest.read_bytes()
    if trouble == "unreadable":
        manifest.write_bytes(whole[:40])
    kitchen.utc_ns += 100 * 3600 * 10**9
    for _ in range(3):
        carry_out(kitchen.tools, own, place, key)
    assert holding(kitchen.data, SAID.encode()) == []
    assert holding(kitchen.data, b"it was cut off") != []
    proofs = [one for one in read_sound_lines(own / "withdrawals.jsonl") if one["schema"] == "withdraw/1"]
    assert [Path(one["place"]).name for proof in proofs for one in proof["places"] if one["found"]] == [
        *("soup_1", "app.db")
    ]
    tried = [op["body"] for op in kitchen.tools.records.ops(stuck) if op["kind"] == "capture"]
    assert [(one["action"], one["folder"], len(one["reasons"])) for one in tried] == [
        ("withdraw", "soup_0", 1)
    ]
    manifest.write_bytes(whole)
    with edit_manifest(kitchen.data / "soup_0") as closed:
        closed["state"] = "complete"
    carry_out(kitchen.tools, own, place, key)
    assert holding(kitchen.data, b"it was cut off", b"canary tone") == []


def test_a_place_that_was_away_is_asked_again_and_the_desk_shows_the_proof(
    withdrawn: Any, tmp_path: Path
) -> None:
    kitchen, own, disk = withdrawn, withdrawn.data / "_app", tmp_path / "disk" / "made"
    disk.mkdir(parents=True)
    with noting("kitchensync export seconds", pytest.fail):
        asked(kitchen.data / "soup_1")
        will_write(disk / "seconds.csv")
        (disk / "seconds.csv").write_text(SAID)
    disk.parent.rename(tmp_path / "away")
    code, said = run("withdraw", kitchen.data / "soup_1")
    assert (code, said["status"]) == (0, "open")
    assert finish_open(kitchen.tools, own) == []
    (tmp_path / "away").rename(disk.parent)
    (again,) = finish_open(kitchen.tools, own)
    assert (Path(again.place), again.count, again.done, again.open) == (
        disk / "seconds.csv",
        1,
        "destroyed",
        "",
    )
    assert list(disk.iterdir()) == []
    assert finish_open(kitchen.tools, own) == []
    shown = kitchen.desk("admin").get("/desk/audit").text
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", shown)]
    proof = [row[2:] for row in rows if len(row) == 5 and "seconds.csv" in row[1]]
    assert proof == [["1", "destroyed", "–"], ["0", "nothing", "it is away"]]


def test_withdrawals_that_came_with_recordings_from_elsewhere_stop_nothing_and_delete_nothing(
    withdrawn: Any, tmp_path: Path
) -> None:
    kitchen, disk, home = withdrawn, tmp_path / "disk", tmp_path / "home"
    disk.mkdir()
    for place in (home / "a-first", home / "z-last"):
        place.mkdir(parents=True)
        (place / "thesis.tex").write_text("mine")
    with noting("kitchensync export seconds", pytest.fail):
        asked(kitchen.data / "soup_1")
        will_write(disk / "seconds.csv")
        (disk / "seconds.csv").write_text(SAID)
    disk.rename(tmp_path / "away")
    assert run("withdraw", kitchen.data / "soup_1")[1]["status"] == "open"
    for name, policy in (("a-first", "none"), ("z-last", "destroy")):
        about = {"utc_ns": 1, "policy": policy, "files": [], "open": [{"where": str(home), "target": None}]}
        (kitchen.data / name).mkdir()
        gift = {"schema": "recording/1", "recording": name, "uuid": f"uuid of {name}", "withdrawn": about}
        write_json(kitchen.data / name / "recording.json", gift)
    (tmp_path / "away").rename(disk)
    (done,) = finish_open(kitchen.tools, kitchen.data / "_app")
    assert (Path(done.place).name, done.done) == ("seconds.csv", "destroyed")
    assert run("withdraw", "--person", "P99", "--data", kitchen.data)[0] == 0
    assert sorted(path.parent.name for path in home.rglob("*.tex")) == ["a-first", "z-last"]


def test_what_was_agreed_to_holds_again_when_a_withdrawal_is_taken_back(kitchen: Any) -> None:
    recording = kitchen.choose(folder="soup_1")["recording"]
    kitchen.post(kitchen.operation(recording, "consent", {**AGREED, "scopes": ["annotate"]}))
    before = read_manifest(kitchen.data / "soup_1")
    for kind in ("withdraw", "keep"):
        kitchen.post(kitchen.operation(recording, kind, {}))
    after = read_manifest(kitchen.data / "soup_1")
    keys = ("consent", "consent_scopes", "withdrawn")
    assert (
        [after.get(key) for key in keys]
        == [before.get(key) for key in keys]
        == [before["consent"], ["annotate"], None]
    )


HELD = """async () => {
    const database = await new Promise((resolve) => {
        const request = indexedDB.open("kitchensync");
        request.onsuccess = () => resolve(request.result);
    });
    const held = {};
    for (const name of database.objectStoreNames) {
        const request = database.transaction([name]).objectStore(name).getAll();
        held[name] = await new Promise((resolve) => { request.onsuccess = () => resolve(request.result); });
    }
    return JSON.stringify([held, { ...localStorage }]);
}"""


def test_a_browser_forgets_it_at_its_next_connection(kitchen: Any, browser: Any) -> None:
    with on_screen(kitchen, browser) as tablet:
        recording = tablet.begin("Tea and toast")
        tablet.checklist()
        tablet.end_early()
        tablet.screen("review")
        tablet.page.locator("#note").fill(SAID)
        tablet.page.locator("#note + button").click()
        tablet.saved()
        held = tablet.page.evaluate(HELD)
        assert SAID in held
        assert recording in held
        tablet.page.context.set_offline(True)
        tablet.page.locator("#note").fill(SAID)
        tablet.page.locator("#note + button").click()
        tablet.tap("Finish")
        tablet.screen("done")
        with tablet.page.expect_download():
            tablet.tap("Save what waits to a file")
        tablet.page.context.set_offline(False)
        tablet.saved()
        code, said = run("withdraw", "--person", "Basil", "--data", kitchen.data)
        assert (code, "being recorded" in said["reason"]) == (1, True)
        noted = kitchen.data / "_app" / "withdrawals.jsonl"
        assert not noted.exists() or noted.read_text() == "", "refused is not begun"
        with edit_manifest(kitchen.data / "soup_1") as manifest:
            manifest["state"] = "complete"
        assert run("withdraw", "--person", "Basil", "--data", kitchen.data)[1]["status"] == "open"
        kitchen.tools.records.heed_destroyed()  # as the app does every few seconds
        tablet.page.reload()
        tablet.page.get_by_text("Who is cooking?").wait_for()
        while SAID in (held := tablet.page.evaluate(HELD)):
            tablet.page.wait_for_timeout(50)
        assert "Basil" not in held
        assert f'"recording":"{recording}"' not in held
    said = run("withdraw", "--person", "Basil", "--data", kitchen.data)[1]
    (left,) = (one for one in said["places"] if one["open"])
    assert left["place"] == "dumps saved on tablet Tablet by the stove", (
        "a file that a browser kept is not reached"
    )


def test_a_withdrawal_is_taken_back_on_the_tablet(kitchen: Any, browser: Any) -> None:
    with on_screen(kitchen, browser) as tablet:
        recording = tablet.begin("Tea and toast")
        tablet.checklist()
        tablet.end_early()
        tablet.screen("review")
        tablet.tap("My data")
        tablet.tap("Withdraw this recording")
        tablet.rest()
        tablet.tap("Yes, withdraw it")
        tablet.screen("done")
        tablet.page.get_by_text("It is destroyed 72 hours after that").wait_for()
        assert kitchen.tools.records.state(recording)["phase"] == "withdrawn"
        tablet.rest()
        tablet.tap("Keep it after all")
        tablet.screen("review")
        tablet.saved()
        assert kitchen.tools.records.state(recording)["phase"] == "review"
    assert "withdrawn" not in read_manifest(kitchen.data / "soup_1")


def test_nothing_is_left_in_either_database(database: Any) -> None:
    records = AppRecords(database, now_ns=lambda: 7, utc_ns=lambda: 8)
    accounts = Accounts(records)
    basil, clove = (accounts.add_person(name, ["participant"], actor="") for name in ("Basil", "Clove"))
    for person, recording in ((basil, "r-1"), (clove, "r-2")):
        accounts.set_pin(person, "482916", actor="")
        records.note("recording", recording, recording_body(folder=f"of {recording}"), actor=person)
        records.note("note", recording, {"text": f"{SAID} in {recording}"}, actor=person)
    with records.changing() as connection:
        for recording in ("r-1", "r-2"):
            sound = {"recording": recording, "media_type": "audio/webm", "content": VOICE}
            connection.execute(insert(tables.voice).values(sha256=recording, **sound))
    before = everything_of(database)
    destruction.destroy(records, destruction.to_destroy(records, [], "Basil"))
    place = database.engine.url
    assert (
        destruction.scrub(database, Path(place.database) if place.drivername == "sqlite" else str(place))
        == ""
    )
    after = everything_of(database)
    assert [line for line in after if f"{SAID} in r-1" in line or "Basil" in line] == []
    gone = [line for line in before if line not in after]
    assert all("Clove" not in line and "r-2" not in line and clove not in line for line in gone)
    assert [line for line in after if VOICE.decode() in line] == [
        line for line in after if "r-2', 'r-2'" in line
    ]
    with database.reading() as connection:
        assert oplog.first_fault(connection) is None


def everything_of(database: Any) -> list[str]:
    with database.reading() as connection:
        return [
            repr(tuple(row))
            for table in tables.metadata.sorted_tables
            for row in connection.execute(select(table))
        ]


def test_who_took_the_log_away_with_a_browser_is_named(withdrawn: Any) -> None:
    withdrawn.agree(withdrawn.recording, "release_raw")
    with edit_manifest(withdrawn.data / "soup_1") as manifest:
        manifest |= {"consent": "form-1", "consent_scopes": ["release_raw"]}
    desk = withdrawn.desk("researcher")
    assert desk.get(f"/desk/recordings/{withdrawn.recording}/export.json").status_code == 200
    said = run("withdraw", withdrawn.data / "soup_1")[1]
    (place,) = [one for one in said["places"] if "download" in one["place"]]
    assert ("researcher" in place["place"], place["open"]) == (True, "ask for its deletion")


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
    what = destruction.to_destroy(records, [], "Dill")
    assert what.people == (person,)
    assert destruction.destroy(records, what) == 0
    assert records.row(tables.person, person)["pseudonym"] == "Dill"


@pytest.mark.parametrize("stops_after", range(6))
def test_a_killed_withdrawal_is_finished_by_whoever_opens_the_app(
    withdrawn: Any, monkeypatch: pytest.MonkeyPatch, stops_after: int
) -> None:
    """Dies at the n-th write of the app's part; after that `take-dump` only opens the memory."""
    dying = dying_after(stops_after)
    with monkeypatch.context() as patched:
        for name in ("_empty", "_drop", "scrub"):
            patched.setattr(destruction, name, dying(getattr(destruction, name)))
        patched.setattr("kitchensync.recipe_app.exchange.app_withdrawals.scrub", dying(destruction.scrub))
        run("withdraw", "--person", "Basil", "--data", withdrawn.data)
    assert read_manifest(withdrawn.data / "soup_1").get("withdrawn")
    run("annotations", "import", "none", "--data", withdrawn.data)
    run("withdraw", "--person", "Basil", "--data", withdrawn.data)
    assert holding(withdrawn.data, *CANARIES) == []
    with withdrawn.database.reading() as connection:
        assert oplog.first_fault(connection) is None
