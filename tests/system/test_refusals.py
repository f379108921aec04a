"""Bad input to every command: one line that names the thing and what to do, and nothing half-made left behind."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from processes import COMMAND, in_small_disk, kitchensync, one_line

from kitchensync.cli import main

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]


def nothing_left(data: Path) -> bool:
    """Return whether the data folder holds no recording and no work files."""
    return not data.exists() or list(data.iterdir()) == []


def test_an_unreachable_headset(runtime, tmp_path, loopback_host):
    done = kitchensync("record", "take", "--data", tmp_path / "data", "--hololens", loopback_host)
    line = one_line(done)
    assert loopback_host in line
    assert "start the hl2ss app" in line
    assert nothing_left(tmp_path / "data")


def test_an_unreachable_camera(kitchen, runtime, tmp_path):
    place = kitchen(seconds=2)
    gone = f"http://{place.host}:9"
    take = ("record", "take", "--data", tmp_path / "data", "--hololens", place.host, "--gopro", gone)
    assert gone in one_line(kitchensync(*take))
    assert nothing_left(tmp_path / "data")


def test_an_old_server_is_refused_and_the_flag_is_named(kitchen, runtime, tmp_path):
    place = kitchen("--fault", "wrong_version:1.0.15", seconds=4)
    take = ("record", "take", "--data", tmp_path / "data", "--hololens", place.host)
    line = one_line(kitchensync(*take))
    assert "1.0.15" in line
    assert "--accept-version" in line
    assert nothing_left(tmp_path / "data")
    accepted = kitchensync(*take, "--accept-version", "1.0.15", "--seconds", "1", "--json")
    assert json.loads(accepted.stdout)["recording"] == "take", accepted.stderr


def test_a_newer_server_is_recorded_with_a_warning(kitchen, runtime, tmp_path):
    place = kitchen("--fault", "wrong_version:1.0.99", seconds=10)
    take = ("record", "take", "--data", tmp_path / "data", "--hololens", place.host, "--seconds", "1")
    done = kitchensync(*take, "--streams", "gyroscope", "--json")
    assert done.returncode == 0
    assert "1.0.99" in done.stderr


def test_a_port_that_accepts_and_stays_silent_is_named(kitchen, runtime, tmp_path):
    place = kitchen("--fault", "never_answer:gyroscope", seconds=30)
    take = ("record", "take", "--data", tmp_path / "data", "--hololens", place.host, "--start-timeout", "8")
    line = one_line(kitchensync(*take, "--streams", "accelerometer,gyroscope"))
    assert "hololens/gyroscope" in line
    assert "hololens/accelerometer" not in line
    assert "--streams" in line
    assert nothing_left(tmp_path / "data")


def test_a_host_that_is_no_headset_but_swallows_everything(runtime, tmp_path, loopback_host):
    with socket.create_server((loopback_host, 3809)):
        done = kitchensync("record", "take", "--data", tmp_path / "data", "--hololens", loopback_host)
    assert f"{loopback_host}:3809" in one_line(done)


def test_an_existing_recording_is_never_written_over(kitchen, runtime, tmp_path):
    kept = tmp_path / "data" / "take"
    kept.mkdir(parents=True)
    (kept / "mine.txt").write_text("precious")
    line = one_line(kitchensync("record", "take", "--data", tmp_path / "data", "--hololens", "127.0.0.1"))
    assert str(kept) in line
    assert "choose another id" in line
    assert [path.name for path in kept.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["../evil", "--hololens", "127.0.0.1"], "'../evil'"),
        (["take"], "nothing to record"),
        (["take", "--hololens", "127.0.0.1", "--streams", "smell"], "smell"),
        (["take", "--hololens", "127.0.0.1", "--hololens", "127.0.0.2"], "two devices"),
        (["take", "--gopro", "ftp:711"], "ftp:711"),
        (["take", "--hololens", "127.0.0.1", "--redis", "unix:///nowhere/queue"], "unix:///nowhere/queue"),
    ],
)
def test_options_that_cannot_be(kitchen, runtime, tmp_path, arguments, said, request):
    if "--redis" in arguments:
        arguments[2] = kitchen(seconds=2).host
    line = one_line(kitchensync("record", *arguments, "--data", tmp_path / "data"))
    assert said in line
    assert nothing_left(tmp_path / "data")


@pytest.mark.promise("Commands and documents say the same, and a mistake is one line")
def test_a_rig_file_with_a_typing_error(runtime, tmp_path):
    rig = tmp_path / "rig.toml"
    rig.write_text('link = "wifi"\nholelens = {}\n')
    line = one_line(kitchensync("record", "take", "--data", tmp_path / "data", "--rig", rig))
    assert "holelens" in line
    rig.write_text("link = \n")
    assert "rig.toml" in one_line(kitchensync("record", "take", "--data", tmp_path / "data", "--rig", rig))


def test_a_data_folder_that_cannot_be_made(runtime, tmp_path):
    (tmp_path / "file").write_text("")
    line = one_line(kitchensync("record", "take", "--data", tmp_path / "file", "--hololens", "127.0.0.1"))
    assert str(tmp_path / "file") in line


def test_a_disk_without_room_to_begin(kitchen, runtime, tmp_path):
    place = kitchen(seconds=4)
    done = in_small_disk(tmp_path, f"{COMMAND} record take --data DISK/data --hololens {place.host}")
    line = one_line(done)
    assert "MB free" in line
    assert "give another --data" in line


def test_a_film_that_cannot_be_read_is_named(tmp_path):
    broken = tmp_path / "GX010001.MP4"
    broken.write_bytes(b"\0" * 1000)
    assert "GX010001.MP4" in one_line(kitchensync("gopro", "inspect", broken))


def test_a_busy_headset_port_is_named_by_the_simulator(kitchen, tmp_path):
    place = kitchen(seconds=4)
    again = ("simulate", "--hololens-host", place.host, "--gopro-host", place.host, "--gopro-port", "0")
    assert place.host in one_line(kitchensync(*again, "--seed", "1", "--out", tmp_path / "again"))


def test_ctrl_c_in_the_making_of_a_class_is_no_mistake_of_ours(monkeypatch):
    def stop():
        raise RuntimeError("Error calling __set_name__ on 'auto' instance") from KeyboardInterrupt()

    monkeypatch.setattr(main, "get_command", lambda *_: click.Command("list", callback=stop))
    done = CliRunner().invoke(main, ["list"])
    assert (done.exit_code, "stopped by Ctrl-C" in done.stderr) == (1, True)


def test_ctrl_c_while_a_command_is_imported_is_one_line(monkeypatch):
    """Some libraries cannot be imported again once Ctrl-C stopped their first import."""

    def get_command(*_):
        if not asked:
            asked.append("once")
            raise KeyboardInterrupt
        raise ImportError("cannot load module more than once per process")

    asked: list[str] = []
    monkeypatch.setattr(main, "get_command", get_command)
    done = CliRunner().invoke(main, ["graph", "orders", "x.json", "--json"])
    assert (done.exit_code, "stopped by Ctrl-C" in done.stderr) == (1, True)
    assert json.loads(done.stdout)["status"] == "refused"
