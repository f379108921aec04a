"""Picture latency against films that the virtual kitchen took late or early, and against made-up turns."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from filmed_motion import film_of_motion
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation
from small_recordings import HOST0_NS

from kitchensync.cli import main
from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.storage.events import EventLog
from kitchensync.sync.errors import BadLatencyStore, NoCameraName
from kitchensync.sync.fit.resample import GyroTrack
from kitchensync.sync.latency.image_latency import measure_latency
from kitchensync.sync.latency.image_rotation import (
    LEAST_POINTS,
    ImageTurns,
    LensModel,
    Tracks,
    image_turns,
    track,
    turn_between,
)
from kitchensync.sync.recording.camera_latency import STORE, keep
from kitchensync.sync.synchronize import synchronize

pytestmark = pytest.mark.slow

SECONDS, FRAME_S = 24.0, 1001 / 30000


def run(*arguments):
    result = CliRunner().invoke(main, ["sync-camera", *map(str, arguments), "--json"])
    return result, json.loads(result.stdout)


@pytest.mark.slow
def test_an_early_camera_is_measured_by_its_own_pictures(tmp_path):
    late_ms = -15.0
    path = film_of_motion(tmp_path, 11, late_ms / 1e3, 330)
    result, answer = run(path, "--data", tmp_path)
    assert result.exit_code == 0, answer["reasons"]
    assert answer["latency_ms"] == pytest.approx(late_ms, abs=1.0)
    assert abs(answer["latency_ms"] - late_ms) < 2 * answer["sigma_ms"]
    assert answer["sigma_ms"] < 1.5
    assert answer["mode"] == "640x360 29.97 W"
    stored = json.loads((tmp_path / STORE).read_text())["cameras"][answer["serial"]][answer["mode"]]
    assert stored["latency_ms"] == answer["latency_ms"]


@pytest.mark.slow
def test_a_camera_that_stabilises_is_refused(shared_data, tmp_path):
    result, answer = run(shared_data("gopro/max-heromode.mp4"), "--data", tmp_path)
    assert result.exit_code == 1
    assert (answer["status"], answer["latency_ms"], answer["stored"]) == ("refused", None, None)
    assert any("stabilised these pictures" in reason for reason in answer["reasons"])
    assert not (tmp_path / STORE).exists()


def test_points_give_the_turn_whatever_else_moves():
    """A third of the points are hands: the rest decides."""
    random, lens = np.random.default_rng(4), LensModel.of_view("fisheye", 120)
    points = random.uniform([-0.5, -0.28], [0.5, 0.28], (240, 2))
    turn = Rotation.from_rotvec([0.02, -0.035, 0.012])
    seen = turn.inv().apply(lens.directions(points))
    angle = np.arccos(seen[:, 2])
    after = seen[:, :2] / np.linalg.norm(seen[:, :2], axis=1)[:, None] * (lens.focal * angle)[:, None]
    after += random.normal(0, 0.1 / 640, after.shape)
    after[:80] += random.normal(0, 15 / 640, (80, 2))
    found, near = turn_between(Tracks(0.0, FRAME_S, points, after, 640), lens)
    assert np.degrees(np.linalg.norm(found - turn.as_rotvec())) < 0.02
    assert near[80:].all()
    assert near[:80].mean() < 0.1


def test_pictures_without_anything_to_follow_are_not_used():
    grey = np.full((180, 320), 128, np.uint8)
    turns = image_turns(list(track([(0.0, grey), (0.03, grey)])), LensModel.of_view("pinhole", 70))
    assert turns.usable.tolist() == [False]


def turning(seed: int, hz: float = 1.0, strength: float = 0.7):
    random = np.random.default_rng(seed)
    knots = np.arange(-2.0, SECONDS + 2, 1 / (2 * hz))
    return CubicSpline(knots, random.normal(0, strength, (len(knots), 3)))


def clip(rate, late_s: float, *, noise: float = 3e-4, seconds: float = SECONDS):
    """Turns between pictures and gyroscope samples of the same rotation rate."""
    begins = np.arange(0.0, seconds, FRAME_S)
    angle = rate.antiderivative()
    turned = angle(begins + FRAME_S + late_s) - angle(begins + late_s)
    turned += np.random.default_rng(1).normal(0, noise, turned.shape)
    n = len(begins)
    turns = ImageTurns(begins, begins + FRAME_S, turned, np.ones(n, bool))
    t_s = np.arange(-0.5, seconds + 0.5, 1 / 200)
    return turns, GyroTrack(t_s, rate(t_s) + np.array([0.01, -0.02, 0.015]))


@pytest.mark.slow
@pytest.mark.parametrize("late_ms", [-60.0, -15.0, 0.0, 40.0])
def test_the_bound_holds_over_many_clips(late_ms):
    errors = []
    for seed in range(8):
        found = measure_latency(*clip(turning(seed), late_ms / 1e3))
        assert found.refusals == ()
        errors.append(abs(found.latency_s * 1e3 - late_ms) / (found.sigma_s * 1e3))
    assert max(errors) < 3.0


def test_a_camera_hung_upside_down_is_measured_as_well():
    turns, gyro = clip(turning(3), -0.015)
    turns.radians[:, :2] *= -1.0
    found = measure_latency(turns, gyro)
    assert found.is_upside_down
    assert found.latency_s == pytest.approx(-0.015, abs=1e-3)


class Shaking:
    """The same turn to and fro for ever."""

    def __call__(self, t_s):
        return np.sin(2 * np.pi * 4.0 * np.asarray(t_s))[:, None] * np.array([0.0, 1.0, 0.0])

    def antiderivative(self):
        return lambda t_s: (
            -np.cos(2 * np.pi * 4.0 * np.asarray(t_s))[:, None] / (8 * np.pi) * np.array([0.0, 1.0, 0.0])
        )


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: clip(turning(1, strength=0.02), 0.0, noise=1e-5), "deg/s only"),
        (lambda: (clip(turning(1), 0.0)[0], clip(turning(2), 0.0)[1]), "do not follow the gyroscope"),
        (lambda: clip(Shaking(), 0.0), "another latency fits nearly as well"),
        (lambda: clip(turning(1), 0.0, seconds=5.0), "s of pictures"),
        (lambda: clip(turning(1), 0.35), "edge of the search"),
    ],
)
def test_poor_clips_are_refused_in_words(made, words):
    refusals = measure_latency(*made()).refusals
    assert any(words in reason for reason in refusals), refusals


def test_a_clip_that_changes_its_mind_is_refused():
    early, gyro = clip(turning(5), 0.0)
    late = clip(turning(5), 0.012)[0]
    half = len(early.t0_s) // 2
    early.radians[half:] = late.radians[half:]
    assert any("halves" in reason for reason in measure_latency(early, gyro).refusals)


def test_few_points_are_refused():
    turns, gyro = clip(turning(5), 0.0)
    turns.usable[::2] = False
    assert LEAST_POINTS > 0
    assert any("have enough points" in reason for reason in measure_latency(turns, gyro).refusals)


def answer_for(path, latency_ms: float, sigma_ms: float):
    media = open_media(path)
    told = {"path": path.name, "sha256": "0" * 64}
    return {
        "serial": media.serial, "model": media.camera_model, "mode": media.mode.latency_name, "version": "0",
        "latency_ms": latency_ms, "sigma_ms": sigma_ms, "evidence": {"r2": 0.99}, "input": told,
    }  # fmt: skip


def test_sync_uses_what_was_measured(take):
    """The map stays that of the gyroscopes; the pictures move by the latency, and the total error shrinks."""

    def shown_late_ms():
        """How long after an event the picture of frame 0 would be, were pictures evenly spaced."""
        [event] = json.loads((take / "sync" / "events.json").read_text())["events"]
        place = event["frames"]["gopro/video"]
        return place["dt_ms"] - place["frame"] * 1001 / 30

    path = take / "gopro" / "GX010001.MP4"
    EventLog(take, "tablet").append(
        "step", host_ns=HOST0_NS + 12 * 10**9, uncertainty_ns=0, op_id="a", body={}
    )
    before = synchronize(take, master="gopro")["pairs"][0]
    late_ms = shown_late_ms()
    ticks = pq.read_table(take / "sync" / "index.parquet")["master_ticks"].to_numpy()
    keep(answer_for(path, -14.0, 0.5), take.parent)
    after = synchronize(take, master="gopro")["pairs"][0]
    table = pq.read_table(take / "sync" / "index.parquet")
    moved_ms = (table["master_ticks"].to_numpy() - ticks) / 1e4
    assert moved_ms == pytest.approx(np.full(len(ticks), -14.0), abs=0.01)
    assert shown_late_ms() - late_ms == pytest.approx(-14.0, abs=0.1)
    assert after["samples"] == before["samples"]
    [part] = [p for p in after["sigma"]["systematic_ms"] if p["part"] == "gyro_to_frame"]
    assert part == {"part": "gyro_to_frame", "value": -14.0, "sigma": 0.5, "source": "measured"}
    assert before["sigma"]["total_ms"] > 15.0
    parts = [p["sigma"] for p in after["sigma"]["systematic_ms"]]
    stat = np.hypot(max(after["sigma"]["stat_ms"]), max(after["sigma"]["model_ms"]))
    assert after["sigma"]["total_ms"] == pytest.approx(np.sqrt(np.sum(np.square([*parts, stat]))), abs=0.01)
    about = json.loads(table.schema.metadata[b"kitchensync"])
    assert about["picture_late_ms"] == {"gopro/GX010001.MP4": -14.0}


def test_another_mode_or_camera_is_not_used(take):
    answer = answer_for(take / "gopro" / "GX010001.MP4", -14.0, 0.5)
    keep(answer | {"mode": "3840x2160 29.97 W"}, take.parent)
    keep(answer | {"serial": "C0000000000000"}, take.parent)
    [pair] = synchronize(take)["pairs"]
    assert {p["source"] for p in pair["sigma"]["systematic_ms"]} == {"default"}


def test_a_new_measurement_lets_a_folder_be_done_again(take):
    def read():
        assert CliRunner().invoke(main, ["sync", str(take.parent)]).exit_code == 0
        return json.loads((take / "sync" / "alignment" / "GX010001.MP4.json").read_text())["sigma"][
            "total_ms"
        ]

    first = read()
    keep(answer_for(take / "gopro" / "GX010001.MP4", -14.0, 0.5), take.parent)
    assert read() < first


def test_a_damaged_store_is_named_and_not_overwritten(take):
    (take.parent / STORE).write_text("{")
    result = CliRunner().invoke(main, ["sync", str(take), "--json"])
    assert result.exit_code == 1
    assert STORE in json.loads(result.stdout)["recordings"][0]["reasons"][0]
    with pytest.raises(BadLatencyStore):
        keep(answer_for(take / "gopro" / "GX010001.MP4", 1.0, 0.5), take.parent)
    with pytest.raises(NoCameraName):
        keep(answer_for(take / "gopro" / "GX010001.MP4", 1.0, 0.5) | {"serial": None}, take.parent)
