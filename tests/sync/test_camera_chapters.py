"""The chapters of one take are aligned as one video: a tiny last one, a lost one, a broken one has its place."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from kitchensync.sensors.errors import CannotJoin
from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.storage.recording import open_recording
from kitchensync.storage.timeline.clock_map import ClockMap
from kitchensync.sync.synchronize import synchronize
from kitchensync.virtual_kitchen.world.clocks import media_map

pytestmark = pytest.mark.slow

SEED, SECONDS, CHAPTER_FRAMES, FRAMES = 12, 62.0, 840, 1708
PERIOD_S = 1001 / 30000
STARTS = (0, 840, 1680)


@pytest.fixture(scope="module")
def made(recordings, tmp_path_factory):
    """A take of 28.028 s, 28.028 s and 0.934 s."""
    folder = tmp_path_factory.mktemp("made") / "take1"
    seconds = SECONDS - 2 * recordings.START_WORLD_S
    kitchen = recordings.write_clip(
        folder, SEED, SECONDS, pv_bytes=20, chapter_frames=CHAPTER_FRAMES, camera_s=seconds
    )
    true = media_map(kitchen.headset_clock, kitchen.camera_clock, recordings.START_WORLD_S)
    return folder, lambda t: true.epoch_ticks + 1e7 * (t + true.tau0_s + true.drift_ppm * 1e-6 * t)


@pytest.fixture
def take(made, tmp_path) -> Path:
    """A copy of the recording that a test may spoil."""
    shutil.copytree(made[0], tmp_path / "take1")
    return tmp_path / "take1"


def worst_ms(pair, truth, first_frame: int) -> float:
    times = np.array([row[0] for row in pair["samples"]])
    ticks = np.array([row[1] for row in pair["samples"]])
    seconds = (FRAMES - first_frame if first_frame == STARTS[2] else CHAPTER_FRAMES) * PERIOD_S
    inside = times <= seconds
    return float(np.abs(ticks - truth(times + first_frame * PERIOD_S))[inside].max()) / 1e4


def test_every_chapter_has_the_map_of_the_clip(made, take):
    answer = synchronize(take)
    assert answer["status"] == "aligned"
    names = [f"GX0{k}0001.MP4".replace("GX", "GH") for k in (1, 2, 3)]
    assert [pair["source"] for pair in answer["pairs"]] == [f"gopro/{name}" for name in names]
    for pair, first_frame in zip(answer["pairs"], STARTS, strict=True):
        assert pair["reasons"] == []
        assert pair["take"] == {"start_s": pytest.approx(first_frame * PERIOD_S, abs=1e-5), "files": names}
        assert worst_ms(pair, made[1], first_frame) < 0.2
        assert max(pair["sigma"]["bound95_ms"]) < 0.3
        first, last = pair["map"]["valid_s"]
        assert (first, last) == pytest.approx((max(first, 0.0), min(last, 28.1)))
        assert len(pair["samples"]) == 31
        prior = pair["evidence"]["timestamps"]["prior_s"]
        assert prior == pytest.approx(ClockMap.from_object(pair).tau_s(0.0), abs=0.5)
        table = {row["path"] for row in pair["inputs"]}
        assert {f"gopro/{name}" for name in names} < table


def test_the_tiny_chapter_is_in_the_index(made, take):
    synchronize(take)
    table = pq.read_table(take / "sync" / "index.parquet").to_pydict()
    assert set(table["gopro_file"]) == {-1, 0, 1, 2}
    with open_recording(take) as recording:
        row = table["gopro_file"].index(2)
        here = recording.at(row)
        shown = here.file_rows["gopro"]
        assert here.files["gopro"] == "gopro/GH030001.MP4"
        assert abs(made[1]((STARTS[2] + shown) * PERIOD_S) - here.ticks) < 0.6 * PERIOD_S * 1e7


@pytest.mark.parametrize("master", [None, "gopro"])
def test_an_instant_names_the_picture_that_the_camera_s_stream_gives(made, take, master):
    synchronize(take, master=master)
    table = pq.read_table(take / "sync" / "index.parquet").to_pydict()
    numbers = table["gopro_file" if master is None else "master_file"]
    with open_recording(take) as recording:
        rows = recording.instants.rows_of("gopro")
        for chapter, path in enumerate(sorted((take / "gopro").glob("*.MP4"))):
            k = numbers.index(chapter) + 5
            here = recording.at(k)
            stream = recording.camera("gopro/video", here.clips["gopro"])
            with stream.pictures() as pictures, open_media(path).pictures() as alone:
                picture = pictures.number(here.rows["gopro"], 64)
                assert np.array_equal(picture.rgb, alone.number(here.file_rows["gopro"], 64).rgb)
            assert abs(made[1](picture.time_s) - here.ticks) < 0.6 * PERIOD_S * 1e7
            assert rows[k] == here.rows["gopro"]


def test_behind_a_damaged_chapter_no_picture_has_a_number_of_the_clip(made, take):
    synchronize(take)
    numbers = pq.read_table(take / "sync" / "index.parquet").to_pydict()["gopro_file"]
    (take / "gopro" / "GH010001.MP4").write_bytes(b"no film")
    with open_recording(take) as recording:
        here = recording.at(numbers.index(1) + 5)
        assert here.files["gopro"] == "gopro/GH020001.MP4"
        assert 0 <= here.file_rows["gopro"] < 10
        assert "gopro" not in here.rows
        assert (recording.instants.rows_of("gopro")[np.array(numbers) == 1] == -1).all()


def test_the_camera_as_master_counts_through_its_chapters(made, take):
    synchronize(take, master="gopro")
    table = pq.read_table(take / "sync" / "index.parquet").to_pydict()
    assert len(table["master_i"]) == FRAMES
    error = np.array(table["master_ticks"]) - made[1](np.arange(FRAMES) * PERIOD_S)
    assert np.abs(error).max() < 2000


def test_a_lost_chapter_leaves_a_hole_and_no_shift(made, take):
    (take / "gopro" / "GH020001.MP4").unlink()
    answer = synchronize(take)
    assert [pair["status"] for pair in answer["pairs"]] == ["aligned", "aligned"]
    for pair, first_frame in zip(answer["pairs"], (STARTS[0], STARTS[2]), strict=True):
        assert worst_ms(pair, made[1], first_frame) < 0.3
    assert answer["pairs"][1]["take"]["start_s"] == pytest.approx(STARTS[2] * PERIOD_S, abs=1e-5)


def test_behind_a_lost_chapter_no_picture_has_a_number_or_a_time_of_the_clip(take):
    (take / "gopro" / "GH020001.MP4").unlink()
    synchronize(take)
    numbers = pq.read_table(take / "sync" / "index.parquet").to_pydict()["gopro_file"]
    with open_recording(take) as recording:
        assert "gopro" in recording.at(numbers.index(0) + 5).rows
        behind = recording.at(numbers.index(1) + 5)
        assert behind.files["gopro"] == "gopro/GH030001.MP4"
        assert "gopro" not in behind.rows
        assert 0 <= behind.file_rows["gopro"] < 10
        with pytest.raises(CannotJoin, match="chapter 2 of recording 0001 is not here"):
            recording.camera("gopro/video")


def test_without_its_first_chapter_a_clip_is_placed_by_what_it_counted(made, take):
    (take / "gopro" / "GH010001.MP4").unlink()
    answer = synchronize(take)
    assert [pair["status"] for pair in answer["pairs"]] == ["aligned", "aligned"]
    said = answer["pairs"][0]["evidence"]["timestamps"]
    assert said["source"] == "shutter"
    true_s = (made[1](STARTS[1] * PERIOD_S) - answer["pairs"][0]["epoch_hl2_qpc"]) / 1e7
    assert said["prior_s"] == pytest.approx(true_s, abs=0.5)
    assert worst_ms(answer["pairs"][0], made[1], STARTS[1]) < 0.3


def test_a_broken_chapter_is_named_and_the_others_keep_their_places(made, take):
    broken = take / "gopro" / "GH020001.MP4"
    broken.write_bytes(broken.read_bytes()[:-5000])
    answer = synchronize(take)
    assert [pair["status"] for pair in answer["pairs"]] == ["aligned", "not_aligned", "aligned"]
    assert "GH020001.MP4" in answer["pairs"][1]["reasons"][0]
    assert worst_ms(answer["pairs"][2], made[1], STARTS[2]) < 0.3
    assert answer["status"] == "not_aligned"


def test_an_older_camera_without_stamps_gets_a_break_where_a_chapter_is_lost(recordings, tmp_path):
    """No STMP: nothing tells how long the lost chapter was but the motion itself."""
    take = tmp_path / "old"
    kitchen = recordings.write_clip(take, 31, 125.0, pv_bytes=20, chapter_frames=1200, camera_s=120.0)
    true = media_map(kitchen.headset_clock, kitchen.camera_clock, recordings.START_WORLD_S)
    (take / "gopro" / "GH020001.MP4").unlink()
    for path in (take / "gopro").glob("*.MP4"):
        path.write_bytes(path.read_bytes().replace(b"STMPJ\x08", b"OLDTJ\x08"))
    answer = synchronize(take)
    assert [pair["status"] for pair in answer["pairs"]] == ["check", "check"]
    assert answer["pairs"][0]["streams"]["gopro_gyro"]["stamp"] == "payload_times"
    for pair, first_frame in zip(answer["pairs"], (0, 2400), strict=True):
        times = np.array([row[0] for row in pair["samples"]])
        truth_s = times + first_frame * PERIOD_S
        truth = true.epoch_ticks + 1e7 * (truth_s + true.tau0_s + true.drift_ppm * 1e-6 * truth_s)
        error_ms = np.abs(np.array([row[1] for row in pair["samples"]]) - truth)[times < 40.0] / 1e4
        assert error_ms.max() < 10.0
        assert not pair["map"]["pieces"]
    [jump] = answer["pairs"][1]["evidence"]["gyro"]["jumps"]
    assert jump["t_s"] == pytest.approx(0.0, abs=1e-6)
    assert jump["size_ms"] == pytest.approx(40040, abs=20)


def test_what_the_headset_did_not_see_is_placed_by_the_drift(recordings, tmp_path):
    """The camera runs on after the headset: its last chapter lies outside of everything compared."""
    take = tmp_path / "long"
    kitchen = recordings.write_clip(take, 8, 40.0, pv_bytes=20, chapter_frames=600, camera_s=59.0)
    true = media_map(kitchen.headset_clock, kitchen.camera_clock, recordings.START_WORLD_S)
    answer = synchronize(take)
    assert [pair["status"] for pair in answer["pairs"]] == ["aligned"] * 3
    last = answer["pairs"][2]
    assert "placed by the drift" in last["warnings"][-1]
    times = np.array([row[0] for row in last["samples"]])
    t_s = times + 1200 * PERIOD_S
    error = np.array([row[1] for row in last["samples"]]) - (
        true.epoch_ticks + 1e7 * (t_s + true.tau0_s + true.drift_ppm * 1e-6 * t_s)
    )
    assert np.abs(error).max() / 1e4 < max(last["sigma"]["bound95_ms"])
    assert max(last["sigma"]["bound95_ms"]) > max(answer["pairs"][0]["sigma"]["bound95_ms"])


def test_a_chapter_with_a_damaged_header_does_not_take_the_others_along(take):
    film = take / "gopro" / "GH020001.MP4"
    content = bytearray(film.read_bytes())
    serial = content.rindex(b"CASN")
    content[serial + 6 : serial + 8] = b"\xff\xff"  # promises more letters than the header holds
    film.write_bytes(content)
    answer = synchronize(take)
    assert [pair["source"][-12:] for pair in answer["pairs"]] == [
        "GH010001.MP4",
        "GH020001.MP4",
        "GH030001.MP4",
    ]
    assert answer["pairs"][0]["status"] == "aligned"
