"""A recording whose files were freed is read in its copies, and keeps its last answer while none can be reached."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from folder_contents import hashes
from processes import kitchensync

from kitchensync.cli import main
from kitchensync.storage.commands.storage import upload as upload_command
from kitchensync.storage.commands.storage import verify as verify_command
from kitchensync.storage.copies.target import MARKER
from kitchensync.storage.errors import FilesFreed, FilesMissing
from kitchensync.storage.manifest import edit_manifest, write_json
from kitchensync.storage.move.archive import archive
from kitchensync.storage.move.freeing import FreeRule
from kitchensync.storage.move.mover import run_mover
from kitchensync.storage.move.upload import upload
from kitchensync.storage.names import MANIFEST
from kitchensync.storage.recording import open_recording
from kitchensync.storage.verify import verify

pytestmark = pytest.mark.slow

NOW = FreeRule(copies_before_free=2, keep_days=0.0)
PAYLOADS = [b"packet %d" % n * 50 for n in range(60)]
FACTS = ("received", "stored", "missing", "gaps", "bytes", "sha256")


@pytest.fixture
def stores(tmp_path) -> list[Path]:
    stores = [tmp_path / "nas-a", tmp_path / "nas-b"]
    for store in stores:
        store.mkdir()
    return stores


@pytest.fixture
def freed(finished, stores) -> Path:
    """A recording of which only the small files are still here."""
    states = run_mover([finished], stores, rule=NOW)
    assert [state.freed for state in states] == [5, 5]
    assert not list(finished.rglob("*.MP4"))
    return finished


def unmount(*stores: Path) -> None:
    for store in stores:
        store.rename(store.with_name(store.name + "-away"))
        store.mkdir()  # the empty mount point


def checked(path: Path) -> tuple[int, dict]:
    done = CliRunner().invoke(verify_command, [str(path), "--json"])
    return done.exit_code, json.loads(done.stdout)


def test_verify_reads_the_copy(freed, stores):
    code, answer = checked(freed)
    assert (code, answer["status"], answer["reasons"], answer["life"]) == (0, "PASS", [], "elsewhere")
    assert answer["read_from"] in [str(store / "take") for store in stores]
    assert answer["streams"]["hololens/pv"]["sha256"] == hashlib.sha256(b"".join(PAYLOADS)).hexdigest()
    assert answer["streams"]["gopro/GX010001.MP4"]["stored"] == 9 << 20


def test_info_reads_the_copy_and_without_one_tells_the_last_answer(freed, stores):
    def told() -> dict:
        done = CliRunner().invoke(main, ["info", str(freed), "--json"])
        assert done.exit_code == 0
        return json.loads(done.stdout)

    here = told()
    assert here["streams"]["hololens/pv"]["packets"] == 60
    assert here["cameras"]["gopro"]["bytes"] == 9 << 20
    assert "problem" not in here
    unmount(*stores)
    away = told()
    assert (away["life"], away["streams"]["hololens/pv"]["packets"]) == ("elsewhere", 60)
    assert "no copy can be read now" in away["problem"]


def test_verify_names_damage_of_the_copy_it_reads(freed, stores):
    unmount(stores[1])
    (stores[0] / "take" / "hololens" / "pv" / "000002.h5").write_bytes(b"\0" * 5000)
    code, answer = checked(freed)
    assert (code, answer["status"]) == (1, "FAIL")
    assert [entry["file"] for entry in answer["corrupt"]] == ["hololens/pv/000002.h5"]


def test_one_store_away_is_enough_to_read(freed, stores):
    unmount(stores[1])
    assert checked(freed)[1]["read_from"] == str(stores[0] / "take")
    with open_recording(freed) as recording:
        assert [payload for _, payload in recording["hololens/pv"].packets()] == PAYLOADS
        assert [path.name for path in recording.gopro_files["gopro"]] == ["GX010001.MP4"]


@pytest.mark.parametrize("problem", ["a worry", ""])
def test_the_last_verdict_stands_while_no_copy_can_be_reached(finished, stores, problem):
    with edit_manifest(finished) as manifest:
        manifest["problems"] = [problem] if problem else []
    before = verify(finished)
    run_mover([finished], stores, rule=NOW)
    unmount(*stores)
    code, answer = checked(finished)
    assert code == 0
    assert (answer["status"], answer["life"], answer["checked"]) == (before["status"], "elsewhere", False)
    assert answer["reasons"][:-1] == before["reasons"]
    assert "not checked" in answer["reasons"][-1]
    assert "is gone (is the store mounted?)" in answer["reasons"][-1]
    for name, facts in before["streams"].items():
        assert {key: answer["streams"][name][key] for key in FACTS} == {key: facts[key] for key in FACTS}
    strict = CliRunner().invoke(verify_command, [str(finished), "--strict"])
    assert strict.exit_code == (1 if problem else 0)


def test_a_failed_recording_stays_failed_elsewhere(finished, stores):
    with edit_manifest(finished) as manifest:
        manifest["streams"]["hololens/gyroscope"] = {}
    assert verify(finished)["status"] == "FAIL"
    run_mover([finished], stores, rule=NOW)
    unmount(*stores)
    assert checked(finished)[0] == 1


def test_damage_of_what_is_still_here_counts_though_the_rest_is_away(freed, stores):
    unmount(*stores)
    (freed / "events" / "tablet.jsonl").write_bytes(b'{"op_id": 1}\n')
    code, answer = checked(freed)
    assert (code, answer["status"], answer["checked"]) == (1, "FAIL", False)


def test_without_the_kept_answer_nobody_says_that_it_is_good(freed, stores):
    unmount(*stores)
    shutil.rmtree(freed / "sync")
    assert checked(freed)[1]["status"] == "WARN"


def test_another_store_or_another_recording_does_not_count_as_copy(freed, stores, tmp_path):
    unmount(stores[1])
    marker = (stores[0] / MARKER).read_text()
    (stores[0] / MARKER).write_text('{"schema": "target/1", "target": "another"}')
    with open_recording(freed) as recording, pytest.raises(FilesFreed, match="another store is mounted"):
        recording["hololens/pv"]
    (stores[0] / MARKER).write_text(marker)
    with edit_manifest(stores[0] / "take") as manifest:
        manifest["uuid"] = "of a later take"
    with open_recording(freed) as recording, pytest.raises(FilesFreed, match="is another recording"):
        recording["hololens/pv"]
    with edit_manifest(stores[0] / "take") as manifest:
        del manifest["uuid"]
    (stores[0] / "take" / "gopro" / "GX010001.MP4").unlink()
    with open_recording(freed) as recording, pytest.raises(FilesFreed, match=r"lacks 1 files.*GX010001"):
        recording["ledger/hololens"]


def test_a_copy_that_was_packed_in_its_store_is_read(freed, stores):
    unmount(stores[1])
    archive(stores[0] / "take")
    code, answer = checked(freed)
    assert (code, answer["status"], answer["reasons"]) == (0, "PASS", [])
    with open_recording(freed) as recording:
        assert [payload for _, payload in recording["hololens/pv"].packets()] == PAYLOADS


def test_a_move_to_a_third_store_takes_the_files_of_a_copy(freed, stores, tmp_path):
    third = tmp_path / "nas-c"
    third.mkdir()
    moved = kitchensync("move", freed, "--to", third)
    assert moved.returncode == 0, moved.stderr
    own = {MARKER, "copies.jsonl", "sync/verify.json"}
    there, first = hashes(third / "take"), hashes(stores[0] / "take")
    assert {path: there.get(path) for path in first} == first
    assert set(there) - set(first) <= own
    assert verify(third / "take")["status"] == "PASS"


def test_a_move_again_to_the_same_stores_is_finished_and_copies_nothing(freed, stores):
    states = run_mover([freed], stores, rule=NOW)
    assert all(state.finished and state.freed == 0 for state in states)
    assert sum(state.bytes_done for state in states) < 50_000, "the kept answer of verify, nothing else"


def test_a_move_without_a_copy_to_read_copies_nothing_and_says_why(freed, stores, tmp_path):
    unmount(*stores)
    third = tmp_path / "nas-c"
    third.mkdir()
    moved = kitchensync("move", freed, "--to", third)
    assert moved.returncode == 1
    assert "no copy can be read now" in moved.stderr
    assert not (third / "take").exists()


def test_an_upload_sends_the_files_of_a_copy(freed, stores, tmp_path):
    cloud = tmp_path / "cloud"
    sent = CliRunner().invoke(upload_command, [str(freed), f"file://{cloud}"])
    assert sent.exit_code == 0, sent.output
    assert verify(cloud / "take")["status"] == "PASS"
    assert upload(freed, f"file://{cloud}").sent == 0


def test_an_upload_without_sensor_data_sends_nothing(freed, stores, tmp_path):
    unmount(*stores)
    cloud = tmp_path / "cloud"
    with pytest.raises(FilesFreed, match="no copy can be read now"):
        upload(freed, f"file://{cloud}")
    assert not cloud.exists()


def test_an_upload_of_what_lost_its_files_otherwise_sends_nothing(finished, tmp_path):
    shutil.rmtree(finished / "hololens" / "pv")
    cloud = tmp_path / "cloud"
    with pytest.raises(
        FilesMissing, match=r"pv/000001.h5 and 2 more of its files are missing, nothing is sent"
    ):
        upload(finished, f"file://{cloud}")
    assert not cloud.exists()


def test_a_freed_recording_whose_manifest_is_lost_is_named_and_uploads_nothing(freed, tmp_path):
    (freed / MANIFEST).unlink()
    code, answer = checked(freed.parent)
    assert (code, answer["status"]) == (1, "FAIL")
    (only,) = answer["recordings"]
    assert only["life"] == "manifest_lost"


def test_a_copy_whose_manifest_lists_no_files_is_not_read(freed, stores):
    for store in stores:
        kept = json.loads((store / "take" / MANIFEST).read_bytes())
        about = {key: one for key, one in kept.items() if key in ("schema", "recording", "uuid")}
        write_json(store / "take" / MANIFEST, about)
    with pytest.raises(FilesFreed, match="is another recording"), open_recording(freed) as recording:
        _ = recording.readable
