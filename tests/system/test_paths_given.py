"""Paths are taken as they are typed: relative to where the command is run, through links, with odd characters."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import click
import pytest
from command_tree import COMMANDS
from killed import QUEUED, leave_an_orphan
from processes import COMMAND, in_small_disk

from kitchensync.storage.names import WORK
from kitchensync.storage.verify import verify

STREAM = "hololens/gyroscope"


def test_every_path_that_a_command_takes_is_resolved_at_once():
    paths = [
        (f"{name} {parameter.opts[0]}", parameter.type)
        for name, command in COMMANDS.items()
        for parameter in command.params
        if isinstance(parameter.type, click.Path | click.File)
    ]
    assert len(paths) > 60, "the walk did not reach the commands"
    assert [name for name, kind in paths if not getattr(kind, "resolve_path", False)] == []


def recover(data: str, cwd: Path, umask: int = -1) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, "recover", "--data", data],
        cwd=cwd,
        umask=umask,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("folder", ["mine/Küche 台所", "../beside/data"])
def test_a_killed_recording_is_recovered_by_a_relative_path(folder, runtime, tmp_path):
    here = tmp_path / "here"
    here.mkdir()
    leave_an_orphan((here / folder).resolve(), runtime)
    done = recover(folder, here)
    assert done.returncode == 0, done.stderr
    assert "take is recovered" in done.stdout
    assert verify(here / folder / "take")["streams"][STREAM]["stored"] == QUEUED
    assert not (here / folder / WORK).exists()


def test_a_killed_recording_is_recovered_through_a_link_by_a_private_user(runtime, tmp_path):
    leave_an_orphan(tmp_path / "disk", runtime)
    (tmp_path / "data").symlink_to("disk", target_is_directory=True)
    done = recover("data", tmp_path, umask=0o077)
    assert done.returncode == 0, done.stderr
    assert verify(tmp_path / "data" / "take")["streams"][STREAM]["stored"] == QUEUED
    assert (tmp_path / "data").is_symlink()


def test_a_killed_recording_is_recovered_on_another_mount(runtime, tmp_path):
    leave_an_orphan(tmp_path / "data", runtime)
    recover_there = f"{COMMAND} recover --data data; {COMMAND} verify data/take --json"
    commands = f"cp -a {tmp_path / 'data'} DISK/data; cd DISK; {recover_there}"
    done = in_small_disk(tmp_path, commands, megabytes=64)
    said, checked = done.stdout.splitlines()
    assert "take is recovered" in said, done.stderr
    assert json.loads(checked)["streams"][STREAM]["stored"] == QUEUED


def test_a_recording_that_cannot_be_recovered_does_not_stop_the_next(kitchen, runtime, tmp_path):
    place, data = kitchen(seconds=30), tmp_path / "data"
    leave_an_orphan(data, runtime, "broken")
    leave_an_orphan(data, runtime, "fine")
    (data / WORK / "broken" / "plan.json").write_text("{")
    take = ["record", "next", "--data", "data", "--hololens", place.host, "--streams", "gyroscope"]
    done = subprocess.run(
        [COMMAND, *take, "--seconds", "1"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"warning: broken is not recovered yet: {data / WORK / 'broken' / 'plan.json'}" in done.stderr
    assert "fine was left open by a killed recorder and is recovered" in done.stderr
    assert (data / WORK / "broken" / "appendonlydir").is_dir()
    assert [path.name for path in (data / WORK).iterdir()] == ["broken"]
