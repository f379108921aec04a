"""What recordings will want: against the figures of the guide for labs, and against a day played through."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kitchensync.cli import main
from kitchensync.sensors.stream import SensorStream

FULL_RIG = """\
link = "{link}"
pv_width = 1920
pv_height = 1080
streams = ["pv", "vlc_leftfront", "vlc_leftleft", "vlc_rightfront", "vlc_rightright", "depth_ahat", "gyroscope",
  "accelerometer", "magnetometer", "spatial_input", "eye_tracking", "microphone"]
[hololens]
hololens = "127.0.0.1"
[gopro]
gopro = "http://127.0.0.1:1"
"""


def plan(*words: object) -> dict[str, Any]:
    done = CliRunner().invoke(main, ["plan-media", *map(str, words), "--json"])
    answer: dict[str, Any] = json.loads(done.stdout)
    assert (answer["schema"], done.exit_code) == ("plan-media/1", 0 if answer.get("fits", True) else 1)
    return answer


@pytest.mark.parametrize(("link", "gb_an_hour"), [("wifi", 12), ("wired", 185)])
def test_an_hour_is_as_large_as_the_guide_says(link: str, gb_an_hour: float, tmp_path: Path) -> None:
    rig = tmp_path / "rig.toml"
    rig.write_text(FULL_RIG.format(link=link))
    devices = plan("--minutes", 60, "--recordings", 1, "--rig", rig)["devices"]
    assert devices["hololens"]["bytes"] == pytest.approx(gb_an_hour * 1e9, rel=0.1)
    assert devices["gopro"]["bytes"] == pytest.approx(27e9, rel=0.01)


class ScaleSensor:
    """A plug-in that announces one stream."""

    def streams(self) -> list[SensorStream]:
        return [SensorStream("weight", nominal_hz=5.0)]


def used_up(each: float, recordings: int, room: float) -> tuple[int, int]:
    """Play it through: how many were put in, and how often that was in the middle of a recording."""
    put_in, inside, left = 0, 0, 0.0
    for _ in range(recordings):
        if left < each:  # nobody begins with what will not last, unless nothing lasts
            put_in, left = put_in + 1, room
        wanted = each
        while wanted > left:
            wanted, left = wanted - left, room
            put_in, inside = put_in + 1, inside + 1
        left -= wanted
    return put_in, inside


@pytest.mark.parametrize("minutes", [7, 20, 35, 70, 71, 141])
@pytest.mark.parametrize("recordings", [1, 2, 5, 12])
def test_batteries_and_cards_are_those_of_a_day_played_through(minutes: int, recordings: int) -> None:
    camera = plan("--minutes", minutes, "--recordings", recordings, "--card-gb", 32)["devices"]["gopro"]
    batteries, inside = used_up(minutes, recordings, 70)
    assert (camera["batteries"], camera["swaps_inside"] * recordings) == (batteries, inside)
    assert camera["battery_swaps"] == batteries - 1
    cards, _ = used_up(minutes * 60 * 7.5e6, recordings, 32e9)
    assert (camera["cards"], camera["card_swaps"]) == (cards, cards - 1)


def test_the_sum_of_the_devices_is_what_the_disk_must_hold(tmp_path: Path) -> None:
    small = plan("--minutes", 0.01, "--recordings", 1, "--data", tmp_path)
    assert small["fits"]
    assert small["bytes"] == sum(row["bytes"] for row in small["devices"].values())
    minutes = shutil.disk_usage(tmp_path).free / 60e6  # its film alone is larger than what is free
    large = plan("--minutes", minutes, "--recordings", 10, "--data", tmp_path)
    assert not large["fits"]


def test_people_get_a_table_and_the_time_to_fetch(tmp_path: Path) -> None:
    words = ["plan-media", "--minutes", "20", "--recordings", "12", "--fetch-mb-per-s", "10"]
    lines = CliRunner().invoke(main, words).stdout.splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["hololens", "gopro"]
    assert "3.0 hours to fetch" in lines[3]  # 12 x 1200 s x 7.5 MB/s at 10 MB/s


def test_a_plug_in_whose_size_nobody_knows_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kitchensync.capture.rig.rig_file.load_sensor", lambda *_: ScaleSensor())
    rig = tmp_path / "rig.toml"
    rig.write_text('[sensor.scale]\nkind = "scale"\n')
    answer = plan("--minutes", 1, "--recordings", 1, "--rig", rig)
    assert (answer["not_counted"], answer["bytes"]) == (["scale"], 0)


@pytest.mark.parametrize("minutes", ["nan", "inf", "0", "-1", "1e-300"])
def test_no_amount_is_refused(minutes: str) -> None:
    done = CliRunner().invoke(main, ["plan-media", "--minutes", minutes, "--recordings", "2"])
    assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1)
