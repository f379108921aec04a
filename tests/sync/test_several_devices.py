"""Two people with a headset and a camera each: every device on one clock, whoever it is worn by."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from small_recordings import FRAMES, START_WORLD_S, pv_times_s, truth_ticks, write_two_heads

from kitchensync.cli import main
from kitchensync.storage.manifest import edit_manifest
from kitchensync.storage.recording import open_recording
from kitchensync.storage.timeline.clock_map import ClockMap
from kitchensync.sync.errors import NoSuchMaster
from kitchensync.sync.report.page import write_report
from kitchensync.sync.synchronize import synchronize

pytestmark = pytest.mark.slow

FRAME_S = 1001 / 30000


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    root = tmp_path_factory.mktemp("both")
    return root / "pair", write_two_heads(root)


@pytest.fixture
def pair(both, tmp_path):
    shutil.copytree(both[0], tmp_path / "pair")
    return tmp_path / "pair"


def index_of(recording):
    return pq.read_table(recording / "sync" / "index.parquet").to_pydict()


def test_each_camera_finds_the_head_that_it_rides_on(both, pair):
    answer = synchronize(pair)
    assert answer["status"] == "aligned"
    found = {one["source"]: one for one in answer["pairs"]}
    assert set(found) == {"hololens-b", "gopro-a/GX010001.MP4", "gopro-b/GX010001.MP4"}
    for letter, other in (("a", "b"), ("b", "a")):
        one = found[f"gopro-{letter}/GX010001.MP4"]
        assert one["master"] == f"hololens-{letter}/gyroscope"
        assert [(o["master"], o["status"]) for o in one["other_headsets"]] == [
            (f"hololens-{other}/gyroscope", "not_aligned")
        ]
        times = np.array([row[0] for row in one["samples"]])
        error = np.array([row[1] for row in one["samples"]]) - truth_ticks(both[1][letter], times)
        assert np.abs(error).max() < 5000
    names = sorted(path.name for path in (pair / "sync" / "alignment").glob("*.json"))
    assert names == ["gopro-a-GX010001.MP4.json", "gopro-b-GX010001.MP4.json", "hololens-b.json"]


def test_the_report_says_who_moves_with_whom(pair):
    synchronize(pair)
    page = " ".join(write_report(pair).read_text(encoding="utf-8").split())
    assert "<dd>hololens-a, not with hololens-b</dd>" in page
    assert "<dd>hololens-b, not with hololens-a</dd>" in page
    assert "<h3>hololens-b: aligned</h3>" in page
    assert "Clock to clock, 95 % bound" in page


def test_headsets_are_related_by_their_clock_exchanges(both, pair):
    answer = synchronize(pair)
    [bridge] = [one for one in answer["pairs"] if one["source"] == "hololens-b"]
    assert (bridge["status"], bridge["master"], bridge["source_clock"]) == (
        "aligned",
        "hololens-a",
        "hl2_qpc_100ns",
    )
    world_s = np.linspace(0.0, 25.0, 11)
    of_a, of_b = (both[1][letter].headset_clock.ticks_of(world_s) for letter in "ab")
    since_s = (of_b - bridge["epoch_source_qpc"]) / 1e7
    error_ms = np.abs(ClockMap.from_object(bridge).to_ticks(since_s) - of_a) / 1e4
    assert error_ms.max() < bridge["sigma"]["bound95_ms"][0] < 5.0
    assert json.loads((pair / "sync" / "alignment" / "hololens-b.json").read_text()) == bridge


@pytest.mark.parametrize(
    ("master", "letter", "column"),
    [
        (None, "a", "hololens-a/pv"),
        ("hololens-b/pv", "b", "hololens-b/pv"),
        ("gopro-b/video", "a", "gopro-b"),
    ],
)
def test_any_stream_can_be_the_master(both, pair, master, letter, column):
    """Ticks are those of the master's headset; every device has its columns, right by the kitchens' own clocks."""
    answer = synchronize(pair, master=master)
    assert answer["master"] == column
    assert answer["index"]["clock_of"] == f"hololens-{letter}"
    table, clock = index_of(pair), both[1][letter].headset_clock
    expected = {"hololens-a/pv", "hololens-b/pv", "hololens-a/depth_ahat", "hololens-b/depth_ahat"}
    expected |= {"gopro-a", "gopro-b", "hololens-a/spatial_input", "hololens-b/spatial_input"}
    assert {name.removesuffix("_dt_us") for name in table if name.endswith("_dt_us")} == expected - {column}
    assert {"hololens-a/gyroscope_i0", "hololens-b/gyroscope_i0"} < set(table)
    at_s = np.array([clock.world_s_at(t) for t in table["master_ticks"]])
    for name in ("gopro-a", "gopro-b"):
        if name == column:
            continue
        shown = np.array(table[f"{name}_i"])
        camera = both[1][name[-1]].camera_clock
        true_s = np.array([camera.world_s_at(k * FRAME_S, START_WORLD_S) for k in shown[shown >= 0]])
        away_us = (true_s - at_s[shown >= 0]) * 1e6
        assert np.abs(away_us - np.array(table[f"{name}_dt_us"])[shown >= 0]).max() < 3000
        assert (shown >= 0).sum() > 50
    other = "hololens-b/pv" if letter == "a" else "hololens-a/pv"
    found = np.array(table[f"{other}_i"])
    away_us = (pv_times_s()[found[found >= 0]] - at_s[found >= 0]) * 1e6
    assert np.abs(away_us - np.array(table[f"{other}_dt_us"])[found >= 0]).max() < 3000


def test_poses_of_both_heads_have_columns_of_their_own(both, pair):
    synchronize(pair)
    table = pq.read_table(pair / "sync" / "poses.parquet").to_pydict()
    at = table["master_ticks"]
    for letter in "ab":
        kitchen, name = both[1][letter], f"hololens-{letter}/head"
        valid = np.array(table[f"{name}_valid"])
        assert valid.mean() > 0.98
        shown = np.stack([np.array(table[f"{name}_{axis}_m"]) for axis in "xyz"], axis=1)[valid]
        world_s = np.array([both[1]["a"].headset_clock.world_s_at(t) for t in at])[valid]
        assert np.abs(shown - kitchen.motion.position(world_s)).max() < 0.01
    with open_recording(pair) as recording:
        here = recording.at(200)
        assert {"hololens-a/pv", "hololens-b/pv", "gopro-a", "gopro-b"} < set(here.rows)
        assert set(here.poses) == {"hololens-a/head", "hololens-b/head"}


def test_a_headset_that_exchanged_no_clock_is_left_out_and_said(pair):
    shutil.rmtree(pair / "clock" / "hololens-b")
    answer = synchronize(pair)
    assert answer["status"] == "not_aligned"
    [bridge] = [one for one in answer["pairs"] if one["source"] == "hololens-b"]
    assert bridge["status"] == "not_aligned"
    assert "exchanged no clock" in bridge["reasons"][0]
    assert not any(name.startswith(("hololens-b/", "gopro-b")) for name in index_of(pair))


def test_two_cameras_on_one_head(pair):
    """Without the second headset its camera has nobody to ride with; the first two devices stay aligned."""
    with edit_manifest(pair) as manifest:
        del manifest["devices"]["hololens-b"]
        manifest["streams"] = {k: v for k, v in manifest["streams"].items() if "-b/" not in k}
    shutil.copy(pair / "gopro-a" / "GX010001.MP4", pair / "gopro-b" / "GX010001.MP4")
    answer = synchronize(pair)
    assert [one["status"] for one in answer["pairs"]] == ["aligned", "aligned"]
    table = index_of(pair)
    assert {"gopro-a_i", "gopro-b_i", "pv_i"} - set(table) == {"pv_i"}
    assert table["gopro-a_i"] == table["gopro-b_i"]
    assert max(table["gopro-a_i"]) == FRAMES - 1


def test_a_master_that_is_not_there_is_refused_with_what_there_is(pair):
    with pytest.raises(NoSuchMaster, match="there are: hololens-a/pv"):
        synchronize(pair, master="hololens-c/pv")
    result = CliRunner().invoke(main, ["sync", str(pair), "--master", "nonsense", "--json"])
    assert result.exit_code == 2
    assert "--master nonsense: no recording has it" in json.loads(result.stdout)["reason"]
