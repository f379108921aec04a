"""Whatever is missing or wrong is said in words: in the result, its file and the report; nothing is raised."""

from __future__ import annotations

import json
import shutil
from html import escape

import numpy as np
import pytest
from camera_films import FilmPlan, synthesize
from click.testing import CliRunner
from small_recordings import (
    HOST0_NS,
    START_WORLD_S,
    probe_packets,
    seal_stream,
    truth_ticks,
    write_film,
    write_shutter,
)

from kitchensync.cli import main
from kitchensync.shell import host_clock
from kitchensync.storage.chunks.chunk_writer import Packet, seal
from kitchensync.storage.manifest import edit_manifest
from kitchensync.storage.recording import open_recording
from kitchensync.sync.report.page import write_report
from kitchensync.virtual_kitchen.gopro.files.chapters import ChapterRule
from kitchensync.virtual_kitchen.world.motion import simulated_motion

pytestmark = pytest.mark.slow

GYRO, POSE = "hololens/gyroscope", "hololens/spatial_input"


def sync(take):
    """Run the command as a person would: one JSON object, nothing on stderr that is a traceback."""
    result = CliRunner().invoke(main, ["sync", str(take), "--json"])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    answer = json.loads(result.stdout)
    [entry] = answer["recordings"]
    assert result.exit_code == (1 if entry["status"] == "not_aligned" else 0)
    for pair in entry["pairs"]:
        name = pair["source"].replace("/", "-") if len(entry["pairs"]) > 1 else pair["source"].split("/")[-1]
        files = [take / "sync" / "alignment" / f"{n}.json" for n in (name, pair["source"].split("/")[-1])]
        assert any(file.exists() and json.loads(file.read_text()) == pair for file in files)
        assert pair["status"] == "aligned" or pair["reasons"]
        assert all("\n" not in text and "Error" not in text for text in [*pair["reasons"], *pair["warnings"]])
    return entry


def page(take) -> str:
    return " ".join(write_report(take).read_text(encoding="utf-8").split())


def empty(take, *names):
    for name in names:
        shutil.rmtree(take / name)


def error_ms(made, pair) -> float:
    times = np.array([row[0] for row in pair["samples"]])
    return (
        float(np.abs(np.array([row[1] for row in pair["samples"]]) - truth_ticks(made[1], times)).max()) / 1e4
    )


def test_no_gyroscope_on_the_headset(made, take):
    """The head pose serves, and the report says so."""
    empty(take, GYRO)
    entry = sync(take)
    assert entry["status"] == "check"
    [pair] = entry["pairs"]
    assert "aligned by the head pose, since the gyroscope is missing" in pair["reasons"][0]
    assert error_ms(made, pair) < max(pair["sigma"]["bound95_ms"])
    assert "aligned by the head pose" in page(take)


def test_no_motion_at_all_on_the_headset(take):
    empty(take, GYRO, POSE, "clock")
    entry = sync(take)
    assert entry["status"] == "not_aligned"
    assert "the headset's gyroscope was not recorded, nor its head pose" in entry["pairs"][0]["reasons"][0]
    assert entry["reasons"] == ["nothing is aligned, so there is no index"]
    assert "was not recorded, nor its head pose" in page(take)


def test_no_gyroscope_in_the_camera_file(take):
    """As of a camera whose telemetry was stripped: the payloads have no GYRO."""
    path = take / "gopro" / "GX010001.MP4"
    path.write_bytes(path.read_bytes().replace(b"GYRO", b"JUNK"))
    entry = sync(take)
    [pair] = entry["pairs"]
    assert "GYRO" in pair["reasons"][0]
    assert entry["status"] == "check"
    assert "clocks alone" in pair["reasons"][1]
    assert "clocks alone" in page(take)


def test_the_camera_filmed_before_the_headset_recorded(take):
    """No overlap: the same kitchen eighty minutes later, and nothing tells when the shutter fell."""
    (take / "gopro" / "media.json").unlink()
    film = FilmPlan(400, 320, 180, seed=5, local_s=1_750_004_800.0, zone_minutes=0, start_world_s=4800.0)
    (take / "later").mkdir()
    synthesize(take / "later", film, simulated_motion(5))
    shutil.move(take / "later" / "GX010001.MP4", take / "gopro" / "GX010001.MP4")
    shutil.rmtree(take / "later")
    entry = sync(take)
    assert entry["status"] == "not_aligned"
    [pair] = entry["pairs"]
    assert any("match" in reason or "same motion" in reason for reason in pair["reasons"])
    assert "not during the recording" in pair["warnings"][0]
    assert "Do not match its frames" in page(take)


@pytest.mark.parametrize("lost", [1, 2])
def test_a_chapter_is_missing(made, take, lost):
    """Of a take of three chapters one is not there: the others stay right, the numbers say which."""
    film = FilmPlan(
        660, 320, 180, seed=5, start_world_s=START_WORLD_S, rule=ChapterRule(frames=240), zone_minutes=0
    )
    (take / "gopro" / "GX010001.MP4").unlink()
    synthesize(take / "gopro", film, made[1].motion)
    (take / "gopro" / f"GX0{lost}0001.MP4").unlink()
    entry = sync(take)
    kept = [k for k in (1, 2, 3) if k != lost]
    assert [pair["source"] for pair in entry["pairs"]] == [f"gopro/GX0{k}0001.MP4" for k in kept]
    assert {pair["status"] for pair in entry["pairs"]} == {"aligned"}
    for pair, chapter in zip(entry["pairs"], kept, strict=True):
        start_s = (chapter - 1) * 240 * 1001 / 30000
        times = np.array([row[0] for row in pair["samples"]])
        error = np.array([row[1] for row in pair["samples"]]) - truth_ticks(made[1], times + start_s)
        assert np.abs(error).max() < 10_000
        assert any(f"chapter {lost} " in text for text in pair["warnings"])
    assert f"chapter {lost} " in page(take)


def test_the_cameras_clock_was_reset(made, take):
    """The motion decides; the wrong clock is said."""
    film = FilmPlan(
        660, 320, 180, seed=5, start_world_s=START_WORLD_S, local_s=1_451_606_460.0, zone_minutes=0
    )
    synthesize(take / "gopro", film, made[1].motion)
    (take / "gopro" / "media.json").unlink()
    entry = sync(take)
    [pair] = entry["pairs"]
    assert entry["status"] == "aligned"
    assert "2016-01-01" in pair["warnings"][0]
    assert "it was probably reset" in pair["warnings"][0]
    assert error_ms(made, pair) < 0.5
    assert "it was probably reset" in page(take)


def test_the_cameras_clock_is_an_hour_off(made, take):
    film = FilmPlan(
        660, 320, 180, seed=5, start_world_s=START_WORLD_S, local_s=1_750_003_602.5, zone_minutes=0
    )
    synthesize(take / "gopro", film, made[1].motion)
    entry = sync(take)
    assert entry["status"] == "aligned"
    assert "1 h fast: another time zone, or summer time not set" in entry["pairs"][0]["warnings"][0]


def test_the_headsets_clock_was_reset(made, take):
    """Its ticks begin anew in the middle of the clock exchanges: two stretches, and it is said what that means."""
    clock = take / "clock" / "hololens"
    shutil.rmtree(clock)
    rows = list(probe_packets(made[1]))
    seal_stream(take, "clock/hololens", [rows[0], *rows])
    entry = sync(take)
    assert entry["status"] == "aligned"
    assert entry["pairs"][0]["evidence"]["timestamps"]["host_clock"]["stretches"] >= 1
    moved = []
    for k, (ticks, _) in enumerate(rows):
        host = HOST0_NS + k * 10**9
        shown = ticks if k < len(rows) // 2 else ticks - 10**14
        moved.append((shown, host_clock.encode(host - 900_000, host + 1_100_000, shown)))
    shutil.rmtree(clock)
    seal_stream(take, "clock/hololens", moved)
    entry = sync(take)
    (pair,) = entry["pairs"]
    assert pair["evidence"]["timestamps"]["host_clock"]["stretches"] == 2
    assert entry["status"] == "check"
    assert "was started anew during the recording" in pair["reasons"][-1]
    assert page(take)


def test_no_camera_at_all(take):
    shutil.rmtree(take / "gopro")
    with edit_manifest(take) as manifest:
        del manifest["devices"]["gopro"]
    entry = sync(take)
    assert (entry["status"], entry["pairs"], entry["master"]) == ("nothing_to_align", [], "pv")
    with open_recording(take) as recording:
        assert len(recording.instants) > 100
    assert "there is nothing to align" in page(take)


def test_a_camera_that_was_armed_and_left_no_file(take):
    (take / "gopro" / "GX010001.MP4").unlink()
    entry = sync(take)
    assert entry["pairs"][0]["reasons"] == ["gopro was recording, but none of its files is here"]
    assert "none of its files is here" in page(take)


def test_two_cameras_one_of_them_elsewhere(made, take):
    """The one on this head is aligned and indexed; the other is refused by name."""
    write_film(take / "gopro-right", 6, 660)
    write_shutter(take / "gopro-right")
    with edit_manifest(take) as manifest:
        manifest["devices"]["gopro-right"] = {"kind": "gopro"}
    entry = sync(take)
    assert {pair["source"]: pair["status"] for pair in entry["pairs"]} == {
        "gopro/GX010001.MP4": "aligned",
        "gopro-right/GX010001.MP4": "not_aligned",
    }
    assert entry["status"] == "not_aligned"
    with open_recording(take) as recording:
        assert "gopro" in recording.instants.names
        assert "gopro-right" not in recording.instants.names
    refused = next(pair for pair in entry["pairs"] if pair["status"] == "not_aligned")
    assert f"gopro-right/GX010001.MP4: {escape(refused['reasons'][0])}" in page(take)


def test_every_stream_is_empty(take):
    empty(take, "hololens", "clock")
    entry = sync(take)
    assert entry["status"] == "not_aligned"
    assert entry["pairs"][0]["reasons"] == ["the headset sent nothing to align with"]
    assert "the headset sent nothing" in page(take)


@pytest.mark.parametrize("name", [GYRO, "hololens/pv", "hololens/depth_ahat", POSE, "clock/hololens"])
def test_one_stream_is_empty(take, name):
    """Armed, opened, and not one packet: a chunk without rows and an empty folder are the same."""
    empty(take, name)
    (take / name).mkdir()
    entry = sync(take)
    assert entry["status"] in ("aligned", "check")
    assert entry["master"] == ("gopro" if name == "hololens/pv" else "pv")


def test_a_gyroscope_of_garbage(take):
    empty(take, GYRO, POSE)
    rows = [Packet(k, 1, k, HOST0_NS, 1, b"garbage", b"") for k in range(20)]
    (take / GYRO).mkdir()
    seal(take / GYRO, 1, rows, {})
    entry = sync(take)
    assert entry["status"] == "check"  # the clocks alone
    assert "the headset's gyroscope was not recorded" in entry["pairs"][0]["reasons"][0]


def test_a_camera_file_of_nothing(take):
    (take / "gopro" / "GX010001.MP4").write_bytes(b"")
    entry = sync(take)
    assert entry["status"] == "not_aligned"
    assert "GX010001.MP4" in entry["pairs"][0]["reasons"][0]
    assert "GX010001.MP4" in page(take)


def test_a_manifest_without_devices(take):
    with edit_manifest(take) as manifest:
        manifest["devices"] = {}
    entry = sync(take)
    assert entry["status"] == "nothing_to_align"
    assert entry["reasons"] == [f"{take.name}: cannot use anything as master: there are no frames to index"]


def test_a_recording_of_two_seconds(made, tmp_path):
    """Too short to compare: refused, or by clocks, and said."""
    take = tmp_path / "short"
    shutil.copytree(made[0] / "take1", take)
    synthesize(
        take / "gopro",
        FilmPlan(50, 320, 180, seed=5, start_world_s=START_WORLD_S, zone_minutes=0),
        made[1].motion,
    )
    entry = sync(take)
    assert entry["status"] in ("not_aligned", "check")
    assert entry["pairs"][0]["reasons"]
    assert page(take)
