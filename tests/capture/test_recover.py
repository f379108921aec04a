"""Recovery of killed recordings, also at a new path and with missing files."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from drained import stored
from killed import QUEUED, leave_an_orphan, put

from kitchensync.capture.plan import load_plan
from kitchensync.capture.session.recover import orphan_in, recover, recover_all, work_folders
from kitchensync.storage.manifest import edit_manifest, read_manifest
from kitchensync.storage.names import MANIFEST, WORK

pytestmark = pytest.mark.slow

STREAM = "hololens/gyroscope"


@pytest.fixture
def data(tmp_path, short_folder, monkeypatch) -> Path:
    """Make a data folder with one recording whose recorder and queue server were killed; its packets are queued."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short_folder))
    leave_an_orphan(tmp_path / "data", short_folder, with_socket=True)
    return tmp_path / "data"


def recovered(data: Path) -> list[str]:
    """Recover everything; return the names of the recovered recordings."""
    done = recover_all(data)
    assert done.failures == []
    return [path.name for path in done.paths]


def test_a_recording_on_a_remounted_disk_is_recovered_at_its_new_path(data):
    elsewhere = data.with_name("elsewhere")
    data.rename(elsewhere)
    assert recovered(elsewhere) == ["take"]
    assert stored(elsewhere / "take", STREAM) == list(range(QUEUED))
    assert not (elsewhere / WORK).exists()
    assert not data.exists()


def test_a_recording_whose_queue_files_are_gone_is_closed_with_its_sealed_chunks(data):
    """On a full disk the queue's files are deleted; a recorder killed then must not block the next one."""
    shutil.rmtree(data / WORK / "take" / "appendonlydir")
    assert recovered(data) == ["take"]
    assert read_manifest(data / "take")["state"] == "complete"
    assert recovered(data) == []


def test_a_queue_is_kept_while_the_manifest_cannot_be_read(data):
    kept = (data / "take" / MANIFEST).read_bytes()
    (data / "take" / MANIFEST).write_bytes(kept[:-5])
    (line,) = recover_all(data).failures
    assert "recording.json cannot be read" in line
    assert (data / WORK / "take" / "appendonlydir").is_dir()
    (data / "take" / MANIFEST).write_bytes(kept)
    assert recovered(data) == ["take"]
    assert stored(data / "take", STREAM) == list(range(QUEUED))


def test_a_second_recovery_finds_nothing_to_do(data):
    (work,) = work_folders(data)
    plan = orphan_in(work)
    recover(work, plan)
    recover(work, plan)
    assert stored(data / "take", STREAM) == list(range(QUEUED))


def test_leftovers_of_a_closed_recording_are_removed_from_an_external_server(data, server, client):
    plan_file = data / WORK / "take" / "plan.json"
    plan = replace(load_plan(plan_file), queue_url=server.url)
    plan.save(plan_file)
    put(server, plan, STREAM)
    with edit_manifest(data / "take") as manifest:
        manifest["state"] = "complete"
    assert client.dbsize() == 1
    assert recovered(data) == ["take"]
    assert client.dbsize() == 0


def test_an_unreachable_external_server_is_named_without_its_password(data, monkeypatch):
    monkeypatch.setattr("kitchensync.capture.session.recover.RUNNING_READY_S", 0.1)
    plan_file = data / WORK / "take" / "plan.json"
    replace(load_plan(plan_file), queue_url="redis://cook:secret@127.0.0.1:1/0").save(plan_file)
    (line,) = recover_all(data).failures
    assert "redis://127.0.0.1:1/0" in line
    assert "secret" not in line
    assert plan_file.exists()


def test_an_orphan_of_another_user_is_not_recovered(data):
    """The file of a queue holds commands, which can load a program into the server."""
    work = data / WORK / "take"
    (work / "queue.log").unlink()
    plan = work / "plan.json"
    written = plan.read_text()
    plan.write_text(json.dumps({**json.loads(written), "queue_url": "redis://127.0.0.1:1/0"}))
    for text in (plan.read_text(), json.dumps({**json.loads(written), "signed": None}), "{}"):
        plan.write_text(text)
        recovered = recover_all(data)
        assert (recovered.paths, len(recovered.failures)) == ([], 1), text
    plan.write_text(
        json.dumps({name: value for name, value in json.loads(written).items() if name != "signed"})
    )
    (line,) = recover_all(data).failures
    assert "recover --mine" in line
    assert not (work / "queue.log").exists()
    (path,) = recover_all(data, accept_foreign=True).paths
    assert stored(path, STREAM) == list(range(QUEUED))
