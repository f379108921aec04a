"""A lost manifest with an existing work folder: streams are read from the plan, and the queue is recovered."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from killed import QUEUED, leave_an_orphan

from kitchensync.capture.commands.record import recover as recover_command
from kitchensync.capture.errors import AlreadyRunning
from kitchensync.capture.lock import hold_lock
from kitchensync.capture.plan import RUNNING, runtime_folder
from kitchensync.capture.session.rebuild import rebuild
from kitchensync.storage.manifest import read_manifest
from kitchensync.storage.names import MANIFEST, WORK
from kitchensync.storage.verify import verify


@pytest.fixture
def orphan(tmp_path, short_folder, monkeypatch) -> Path:
    """Make a killed recording without manifest, with all packets in the queue; return its folder."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short_folder))
    leave_an_orphan(tmp_path / "data", short_folder)
    recording = tmp_path / "data" / "take"
    (recording / MANIFEST).unlink()
    return recording


def run(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(recover_command, [str(argument) for argument in arguments])
    return done.exit_code, done.output


@pytest.mark.slow
def test_streams_come_from_the_plan_and_queued_packets_are_recovered(orphan):
    code, output = run("--rebuild", orphan)
    assert code == 0, output
    assert f"packets may wait in its queue: run `kitchensync recover --data {orphan.parent}`" in output
    manifest = read_manifest(orphan)
    assert (manifest["state"], manifest["uuid"]) == ("recording", "u-take")
    assert manifest["devices"]["hololens"]["address"] == "127.0.0.1"
    assert manifest["streams"]["hololens/gyroscope"]["port"] == 3807
    assert run("--data", orphan.parent)[0] == 0
    answer = verify(orphan)
    assert answer["streams"]["hololens/gyroscope"]["stored"] == QUEUED
    assert any("is rebuilt" in reason for reason in answer["reasons"])
    assert not (orphan.parent / WORK).exists()


def test_recover_keeps_the_queue_of_a_lost_manifest_and_gives_advice(orphan):
    code, output = run("--data", orphan.parent)
    assert code == 1
    assert f"`kitchensync recover --rebuild {orphan}`" in output
    assert (orphan.parent / WORK / "take" / "plan.json").exists()


def test_a_running_recording_is_not_rebuilt(orphan):
    runtime = runtime_folder(orphan)
    runtime.mkdir(parents=True)
    with hold_lock(runtime / RUNNING), pytest.raises(AlreadyRunning):
        rebuild(orphan)
    assert not (orphan / MANIFEST).exists()
    (runtime / RUNNING).unlink()
    runtime.rmdir()


def test_either_a_folder_or_a_recording_is_given_else_the_default_data_folder(orphan, monkeypatch):
    code, output = run("--data", orphan.parent, "--rebuild", orphan)
    assert code == 2
    assert "give either --data or --rebuild" in output
    monkeypatch.setenv("KITCHENSYNC_DATA", str(orphan.parent))
    assert run() == run("--data", orphan.parent)
