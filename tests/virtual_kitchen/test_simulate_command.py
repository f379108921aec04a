"""The command line: what it refuses, and how."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from kitchensync.capture.commands.record import record
from kitchensync.virtual_kitchen.cli import simulate
from kitchensync.virtual_kitchen.errors import KitchenError
from kitchensync.virtual_kitchen.simulation import Options, record_line
from kitchensync.virtual_kitchen.world.clocks import headset_clock
from kitchensync.virtual_kitchen.world.replay import read_replay


def test_the_line_that_records_it_is_a_command_that_there_is(tmp_path: Path) -> None:
    for ports, cameras in (([8080], 1), ([8081, 8082], 2)):
        words = record_line(Options(1, tmp_path, gopro_host="127.9.9.9"), ports).split()
        assert words[:2] == ["kitchensync", "record"]
        given = record.make_context("record", words[2:]).params
        assert (given["recording"], given["hololens"]) == ("take-1", ("127.0.0.1",))
        assert [url.rpartition("127.9.9.9:")[2] for url in given["gopro"]] == [str(port) for port in ports]
        assert len({name.partition("=")[0] for name in given["gopro"]}) == cameras


@pytest.mark.slow
def test_a_busy_port_is_one_line_and_nothing_listens(tmp_path: Path, loopback_host: str) -> None:
    with socket.create_server((loopback_host, 3811)):
        command = [sys.executable, "-P", "-m", "kitchensync", "simulate"]
        command += [
            "--seed",
            "1",
            "--hololens-host",
            loopback_host,
            "--gopro-port",
            "0",
            "--out",
            str(tmp_path / "sim"),
        ]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert len(ended.stderr.splitlines()) == 1
    assert f"{loopback_host}:3811 (microphone)" in ended.stderr


def test_faults_are_listed() -> None:
    result = CliRunner().invoke(simulate, ["--faults"])
    assert result.exit_code == 0
    assert "drop_connection" in result.output


@pytest.mark.parametrize(
    "more", [["--fault", "fire"], ["--speed", "-1"], ["--start-utc", "noon"], ["--seed", "-1"]]
)
def test_wrong_usage_exits_two(tmp_path: Path, more: list[str]) -> None:
    result = CliRunner().invoke(simulate, ["--seed", "1", "--out", str(tmp_path), *more])
    assert result.exit_code == 2


def test_help_has_an_example() -> None:
    assert "Example:" in CliRunner().invoke(simulate, ["--help"]).output


def test_replays_that_cannot_be_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "motion.npz", walk_t=np.arange(30.0), walk_w=np.zeros((30, 3)), odd_t=np.zeros(30))
    (tmp_path / "broken.npz").write_bytes(b"no zip")
    bad = [
        "nothing.npz:x",
        f"{tmp_path}/motion.npz:run",
        f"{tmp_path}/motion.npz",
        f"{tmp_path}/broken.npz:x",
        "x.MP4",
    ]
    for text in bad:
        with pytest.raises(KitchenError):
            read_replay(text, 1)
    assert read_replay(f"{tmp_path}/motion.npz:walk", 1).camera_file is None


@pytest.mark.slow
def test_speed_and_start_utc(start_kitchen: Callable[..., Any]) -> None:
    begin_s = time.monotonic()
    options = ("--seed", "4", "--seconds", "3", "--speed", "4", "--start-utc", "2031-02-03T04:05:06Z")
    kitchen = start_kitchen(*options, alone_s=120.0)
    received = kitchen.record_all(("accelerometer", "spatial_input"))
    with kitchen.remote() as remote:
        remote.send(b"\x18\x01\x00\x00\x00")
        filetime = int.from_bytes(remote.read(8), "little")
    took_s = time.monotonic() - begin_s
    assert kitchen.wait() == 0
    ticks = [packet.ticks for packet in received["spatial_input"]]
    assert headset_clock(4).world_s_at(ticks[-1]) == pytest.approx(3.0, abs=0.05)
    unix_s = (filetime - 116_444_736_000_000_000) / 1e7
    assert 0 <= unix_s - 1_927_857_906 < took_s
    assert json.loads((kitchen.out / "truth.json").read_text())["gopro"] == []
