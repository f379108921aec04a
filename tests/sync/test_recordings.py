"""`kitchensync sync` on recordings as on disk: a headset written here, a camera file of the virtual kitchen."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from small_recordings import FRAMES, GYRO_HZ, SECONDS, START_WORLD_S, truth_ticks

from kitchensync.cli import main
from kitchensync.storage.chunks.chunk_writer import Packet, seal
from kitchensync.storage.manifest import edit_manifest
from kitchensync.storage.timeline.clock_map import ClockMap
from kitchensync.sync.synchronize import synchronize

pytestmark = pytest.mark.slow


def run(*arguments):
    result = CliRunner().invoke(main, ["sync", *map(str, arguments)])
    return result, json.loads(result.stdout) if "--json" in arguments else None


@pytest.mark.promise("Everything is on one clock, with a bound that holds")
def test_a_recording_is_aligned_to_its_truth(made, take):
    result, answer = run(take, "--json")
    assert result.exit_code == 0, result.output
    assert answer["schema"] == "sync/1"
    entry = answer["recordings"][0]
    assert (entry["recording"], entry["status"], entry["master"]) == ("take1", "aligned", "pv")
    pair = entry["pairs"][0]
    assert pair["source"] == "gopro/GX010001.MP4"
    times = np.array([row[0] for row in pair["samples"]])
    assert times[-1] == 23.0
    error = np.array([row[1] for row in pair["samples"]]) - truth_ticks(made[1], times)
    assert np.abs(error).max() < 5000
    assert pair["streams"]["hl2_gyro"]["unit"]["name"] == "deg_per_s"
    assert pair["evidence"]["timestamps"]["source"] == "shutter"
    assert {said["source"] for said in pair["evidence"]["timestamps"]["statements"]} == {
        "shutter",
        "creation_time",
    }
    written = json.loads((take / "sync" / "alignment" / "GX010001.MP4.json").read_text())
    assert written == pair
    assert ClockMap.from_object(written).to_ticks(times).tolist() == [row[1] for row in pair["samples"]]


def test_plots_have_their_numbers(take):
    synchronize(take)
    with np.load(take / "sync" / "alignment" / "GX010001.MP4.plot.npz", allow_pickle=False) as plot:
        assert plot["coarse_lag_s"].shape == plot["coarse_score"].shape
        assert plot["window_t_s"].shape == plot["window_kept"].shape
        assert plot["overlay_headset_rad_per_s"].shape == plot["overlay_camera_rad_per_s"].shape
        seen = plot["overlay_headset_rad_per_s"] - plot["overlay_camera_rad_per_s"]
        assert np.abs(seen - seen.mean(axis=0)).max() < 0.1


def test_the_index_agrees_with_brute_force_on_the_true_clocks(made, take):
    synchronize(take)
    table = pq.read_table(take / "sync" / "index.parquet").to_pydict()
    kitchen = made[1]
    pv_s = np.delete(np.arange(0.01, SECONDS, 1 / 29.97), [100, 101, 300])
    frames_s = np.array(
        [kitchen.camera_clock.world_s_at(k * 1001 / 30000, START_WORLD_S) for k in range(FRAMES)]
    )
    assert table["master_i"] == list(range(len(pv_s)))
    for row in range(0, len(pv_s), 7):
        away = np.abs(frames_s - pv_s[row])
        expected = int(np.argmin(away)) if away.min() < 0.6 * 1001 / 30000 - 0.001 else -1
        if abs(away.min() - 0.6 * 1001 / 30000) > 0.001 and np.sort(away)[1] - away.min() > 0.001:
            assert table["gopro_i"][row] == expected
        if table["gopro_i"][row] >= 0:
            true_us = (frames_s[table["gopro_i"][row]] - pv_s[row]) * 1e6
            assert table["gopro_dt_us"][row] == pytest.approx(true_us, abs=500)
            assert table["gopro_file"][row] == 0
        inside = np.arange(table["gyroscope_i0"][row], table["gyroscope_i1"][row])
        following = pv_s[row + 1] if row + 1 < len(pv_s) else np.inf
        assert (inside[:3] / GYRO_HZ >= pv_s[row] - 1e-3).all()
        assert (inside[-3:] / GYRO_HZ <= following + 1e-3).all()
        depth = table["depth_ahat_i"][row]
        assert depth == int(np.argmin(np.abs(0.002 + np.arange(130) / 5 - pv_s[row])))
    assert min(table["gopro_i"]) == -1  # the camera began later
    assert "magnetometer_i0" not in table  # armed, but it sent nothing


def test_poses_are_those_of_the_world(made, take):
    synchronize(take)
    table = pq.read_table(take / "sync" / "poses.parquet")
    rows = table.to_pydict()
    valid = np.array(rows["head_valid"])
    assert valid.mean() > 0.99
    pv_s = np.delete(np.arange(0.01, SECONDS, 1 / 29.97), [100, 101, 300])[valid]
    position = np.stack([np.array(rows[f"head_{axis}_m"])[valid] for axis in "xyz"], axis=1)
    assert np.abs(position - made[1].motion.position(pv_s)).max() < 0.005
    rotation = np.stack([np.array(rows[f"head_q{axis}"])[valid] for axis in "wxyz"], axis=1)
    along = np.abs(np.sum(rotation * made[1].motion.orientation(pv_s), axis=1))
    assert np.rad2deg(2 * np.arccos(np.clip(along, 0, 1))).max() < 1.0


def test_the_camera_can_be_the_master(made, take):
    answer = synchronize(take, master="gopro")
    table = pq.read_table(take / "sync" / "index.parquet").to_pydict()
    assert answer["master"] == "gopro"
    assert table["master_i"] == list(range(FRAMES))
    assert set(table["master_file"]) == {0}
    error = np.array(table["master_ticks"]) - truth_ticks(made[1], np.arange(FRAMES) * 1001 / 30000)
    assert np.abs(error).max() < 5000
    assert "pv_i" in table


def test_the_file_says_what_it_holds(take):
    synchronize(take)
    about = json.loads(pq.read_schema(take / "sync" / "index.parquet").metadata[b"kitchensync"])
    assert about["clock"] == "hl2_qpc_100ns"
    assert about["files"] == ["gopro/GX010001.MP4"]
    assert about["streams"]["depth_ahat"]["tolerance_us"] == pytest.approx(120_000, rel=0.01)


def test_again_gives_the_same_bytes(take):
    synchronize(take)
    first = {path: path.read_bytes() for path in sorted((take / "sync").rglob("*")) if path.is_file()}
    synchronize(take)
    assert {path: path.read_bytes() for path in first} == first
    assert len(first) == 5


def test_only_sync_is_written(take):
    before = {path: path.stat().st_mtime_ns for path in take.rglob("*") if path.is_file()}
    synchronize(take)
    after = {p: p.stat().st_mtime_ns for p in take.rglob("*") if p.is_file() and "sync" not in p.parts[-3:]}
    assert after == before


def test_another_kitchens_camera_is_refused_and_the_old_index_goes(made, take):
    synchronize(take)
    shutil.copy(made[0] / "other" / "GX010001.MP4", take / "gopro" / "GX010001.MP4")
    result, answer = run(take, "--json")
    assert result.exit_code == 1
    entry = answer["recordings"][0]
    assert entry["status"] == "not_aligned"
    assert entry["pairs"][0]["samples"] == []
    assert "map" not in entry["pairs"][0]
    assert sorted(p.name for p in (take / "sync").iterdir()) == ["alignment", "state.json"]


def test_one_of_two_files_can_be_refused(made, take):
    """The good file keeps its index columns; the recording's status is that of the worst."""
    shutil.copy(made[0] / "other" / "GX010001.MP4", take / "gopro" / "GX010002.MP4")
    answer = synchronize(take)
    assert [pair["status"] for pair in answer["pairs"]] == ["aligned", "not_aligned"]
    assert answer["status"] == "not_aligned"
    table = pq.read_table(take / "sync" / "index.parquet").to_pydict()
    assert set(table["gopro_file"]) == {-1, 0}


def test_without_a_camera_there_is_nothing_to_align(take):
    synchronize(take)
    shutil.rmtree(take / "gopro")
    with edit_manifest(take) as manifest:
        del manifest["devices"]["gopro"]
    result, answer = run(take, "--json")
    assert result.exit_code == 0
    assert answer["recordings"][0]["status"] == "nothing_to_align"
    assert answer["recordings"][0]["pairs"] == []
    table = pq.read_table(take / "sync" / "index.parquet")
    assert "gopro_i" not in table.column_names
    assert "depth_ahat_i" in table.column_names
    assert list((take / "sync" / "alignment").iterdir()) == []


def test_a_camera_alone_has_an_index_of_its_own(take):
    for stream in ("hololens", "clock"):
        shutil.rmtree(take / stream)
    with edit_manifest(take) as manifest:
        manifest["streams"] = {}
        del manifest["devices"]["hololens"]
    answer = synchronize(take)
    assert answer["status"] == "nothing_to_align"
    table = pq.read_table(take / "sync" / "index.parquet").to_pydict()
    assert table["master_ticks"][:3] == [0, 333_667, 667_333]
    assert answer["index"]["clock"] == "media_100ns"


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda take: (take / "gopro" / "GX010001.MP4").write_bytes(b"no film"), "GX010001.MP4"),
        (lambda take: (take / "gopro" / "GX010001.MP4").unlink(), "none of its files is here"),
    ],
)
def test_what_is_missing_is_said_in_words(take, spoil, words):
    spoil(take)
    result, answer = run(take, "--json")
    assert result.exit_code == 1
    pair = answer["recordings"][0]["pairs"][0]
    assert pair["status"] == "not_aligned"
    assert words in pair["reasons"][0]
    assert "\n" not in pair["reasons"][0]
    columns = pq.read_table(take / "sync" / "index.parquet").column_names
    assert "gyroscope_i0" in columns, "the headset keeps its index"
    assert not [name for name in columns if name.startswith("gopro")]


def test_without_a_gyroscope_the_head_pose_serves_with_an_honest_bound(made, take):
    shutil.rmtree(take / "hololens" / "gyroscope")
    answer = synchronize(take)
    assert answer["status"] == "check"
    [pair] = answer["pairs"]
    assert "head pose" in pair["reasons"][0]
    times = np.array([row[0] for row in pair["samples"]])
    error = np.array([row[1] for row in pair["samples"]]) - truth_ticks(made[1], times)
    assert np.abs(error).max() / 1e4 < max(pair["sigma"]["bound95_ms"])
    assert max(pair["sigma"]["bound95_ms"]) < 10.0
    assert any(part["part"] == "head_pose_filter" for part in pair["sigma"]["systematic_ms"])


def test_a_recording_tells_everything_at_an_instant(made, take):
    from kitchensync.storage.recording import open_recording

    synchronize(take)
    kitchen = made[1]
    with open_recording(take) as recording:
        assert recording.instants.master == "pv"
        here = recording.at(300)
        assert recording["hololens/pv"].index["device_ticks"][here.rows["pv"]] == here.ticks
        depth = recording["hololens/depth_ahat"].index["device_ticks"][here.rows["depth_ahat"]]
        assert int(depth) - here.ticks == pytest.approx(10 * here.dt_us["depth_ahat"], abs=10)
        assert here.files["gopro"] == "gopro/GX010001.MP4"
        shown_s = kitchen.camera_clock.world_s_at(here.rows["gopro"] * 1001 / 30000, START_WORLD_S)
        assert kitchen.headset_clock.ticks_at(shown_s) == pytest.approx(here.ticks, abs=180_000)
        position, _ = here.poses["head"]
        world_s = kitchen.headset_clock.world_s_at(here.ticks)
        assert position == pytest.approx(kitchen.motion.position(np.array([world_s]))[0], abs=2e-3)
        first, last = here.slices["gyroscope"]
        assert last - first == pytest.approx(GYRO_HZ / 29.97, abs=3)
        with pytest.raises(IndexError):
            recording.at(len(recording.instants))


def test_without_any_motion_the_clocks_serve_and_say_how_badly(made, take):
    for name in ("gyroscope", "spatial_input"):
        shutil.rmtree(take / "hololens" / name)
    answer = synchronize(take)
    assert answer["status"] == "check"
    [pair] = answer["pairs"]
    assert "gyroscope was not recorded" in pair["reasons"][0]
    assert "clocks alone" in pair["reasons"][1]
    times = np.array([row[0] for row in pair["samples"]])
    error = np.array([row[1] for row in pair["samples"]]) - truth_ticks(made[1], times)
    assert np.abs(error).max() / 1e4 < max(pair["sigma"]["bound95_ms"])


def test_without_any_motion_and_any_clock_there_is_no_alignment(take):
    for name in ("hololens/gyroscope", "hololens/spatial_input", "clock"):
        shutil.rmtree(take / name)
    answer = synchronize(take)
    assert answer["status"] == "not_aligned"
    assert "gyroscope was not recorded" in answer["pairs"][0]["reasons"][0]


def test_without_probes_and_media_the_motion_still_decides(made, take):
    shutil.rmtree(take / "clock")
    (take / "gopro" / "media.json").unlink()
    answer = synchronize(take)
    assert answer["status"] == "aligned"
    assert answer["pairs"][0]["evidence"]["timestamps"]["source"] == "none"


def test_undecodable_gyroscope_packets_are_left_out(take):
    folder = take / "hololens" / "gyroscope"
    seal(folder, 3, [Packet(9999, 1, 1, 1, 1, b"garbage", b"")], {})
    assert synchronize(take)["status"] == "aligned"


def test_one_bad_recording_never_stops_the_rest(take):
    bad = take.parent / "bad"
    bad.mkdir()
    (bad / "recording.json").write_text("{")
    result, answer = run(take.parent, "--json")
    assert result.exit_code == 1
    assert [(e["recording"], e["status"]) for e in answer["recordings"]] == [
        ("bad", "not_done"),
        ("take1", "aligned"),
    ]
    told = result.stderr.strip().splitlines()
    assert sum(line.startswith("kitchensync: bad: not a recording") for line in told) == 1
    assert {line.partition("  ")[0] for line in told[1:]} == {"1/2", "2/2"}


def test_a_folder_that_is_no_recording_is_one_line(tmp_path):
    result, _ = run(tmp_path / "nothing")
    assert result.exit_code == 2
    assert len(result.stderr.strip().splitlines()) == 1


def test_people_get_words(take):
    result, _ = run(take)
    assert result.exit_code == 0
    assert result.output.startswith("aligned  take1")
    assert "gopro/GX010001.MP4" in result.output


def test_a_master_that_was_not_recorded_is_refused(take):
    shutil.rmtree(take / "hololens" / "pv")
    result, answer = run(take, "--master", "pv", "--json")
    assert result.exit_code == 1
    assert "cannot use pv as master" in answer["recordings"][0]["reasons"][0]
    assert synchronize(take)["master"] == "gopro"
