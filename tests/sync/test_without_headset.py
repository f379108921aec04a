"""Recordings of cameras alone: they are put on the media time of the first one that recorded motion."""

from __future__ import annotations

import json
import shutil
from html import unescape
from pathlib import Path
from typing import Any

import av
import camera_films
import numpy as np
import pyarrow.parquet as pq
import pytest
from camera_films import FilmPlan, synthesize
from filmed_motion import recording

from kitchensync.storage.manifest import write_json
from kitchensync.storage.recording import open_recording
from kitchensync.sync.errors import CannotFilm
from kitchensync.sync.report.page import write_report
from kitchensync.sync.side_by_side.side_by_side import film_side_by_side
from kitchensync.sync.synchronize import synchronize
from kitchensync.virtual_kitchen.gopro.files.chapters import ChapterRule
from kitchensync.virtual_kitchen.gopro.files.encoders import AAC_SAMPLES, AUDIO_HZ, AudioEncoder
from kitchensync.virtual_kitchen.world.clocks import camera_clock
from kitchensync.virtual_kitchen.world.motion import simulated_motion
from kitchensync.virtual_kitchen.world.sound import kitchen_sound

MOTION, SEEDS = 51, {"gopro-a": 52, "gopro-b": 53}
STARTS_S = {("gopro-a", 1): 3.0, ("gopro-a", 2): 60.0, ("gopro-b", 1): 0.0, ("gopro-b", 2): 64.5}
FRAME_S = 1001 / 30000
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording in which each of two cameras on one head was started twice."""
    root = tmp_path_factory.mktemp("cameras")
    path = recording(root, "cameras", 1, 0.0, motion=None)
    manifest = json.loads((path / "recording.json").read_text())
    manifest["devices"] = {name: {"kind": "gopro"} for name in reversed(SEEDS)}
    write_json(path / "recording.json", manifest)
    for (device, number), start_s in STARTS_S.items():
        (path / device).mkdir(exist_ok=True)
        plan = FilmPlan(900, 320, 180, b"avc1", seed=SEEDS[device], number=number, start_world_s=start_s)
        synthesize(path / device, plan, simulated_motion(MOTION))
    return path


@pytest.fixture
def cameras(made: Path, tmp_path: Path) -> Path:
    """A copy of it that a test may spoil."""
    shutil.copytree(made, tmp_path / "cameras")
    return tmp_path / "cameras"


def _world_s(device: str, number: int, media_s: np.ndarray) -> np.ndarray:
    return camera_clock(SEEDS[device]).world_s_at(media_s, STARTS_S[device, number])


def _off_ms(pair: dict[str, Any], number: int) -> float:
    """How far the map of a clip of the second camera lies from the kitchen's truth, at worst."""
    film_s, first_s = np.array(pair["samples"]).T
    true_s = _world_s("gopro-b", number, film_s)
    return float(np.abs(_world_s("gopro-a", number, first_s) - true_s).max() * 1e3)


def test_each_clip_is_put_on_the_clip_of_the_first_camera_that_it_belongs_to(cameras: Path) -> None:
    answer = synchronize(cameras)
    assert answer["status"] == "aligned"
    assert [pair["source"] for pair in answer["pairs"]] == ["gopro-b/GH010001.MP4", "gopro-b/GH010002.MP4"]
    for number, pair in enumerate(answer["pairs"], start=1):
        assert (pair["status"], pair["master_clock"]) == ("aligned", "reference_media_s")
        assert pair["master"] == f"gopro-a/GH01000{number}.MP4"
        assert _off_ms(pair, number) <= max(pair["sigma"]["bound95_ms"]) < 1.0
        name = f"gopro-b-GH01000{number}.MP4.json"
        assert json.loads((cameras / "sync" / "alignment" / name).read_text()) == pair


def test_the_index_counts_in_the_first_clip_and_holds_what_lies_on_it(cameras: Path) -> None:
    answer = synchronize(cameras)
    assert (answer["master"], answer["index"]["clock"]) == ("gopro-a", "media_100ns")
    assert any("GH010002.MP4 is a clip of its own" in reason for reason in answer["reasons"])
    table = pq.read_table(cameras / "sync" / "index.parquet").to_pydict()
    first = np.array(table["master_i"])
    assert len(first) == 900
    assert np.array_equal(table["master_ticks"], np.rint(first * FRAME_S * 1e7).astype(np.int64))
    shown, away_us = np.array(table["gopro-b_i"]), np.array(table["gopro-b_dt_us"])
    hit = shown >= 0
    assert 800 < hit.sum() < 900  # the second camera ends 3 s before the first
    true_s = _world_s("gopro-b", 1, shown[hit] * FRAME_S) - _world_s("gopro-a", 1, first[hit] * FRAME_S)
    assert np.abs(true_s * 1e6 - away_us[hit]).max() < 50
    assert np.abs(away_us[hit]).max() < 17_000


def test_the_other_camera_can_be_the_master_on_the_same_time(cameras: Path) -> None:
    answer = synchronize(cameras, master="gopro-b")
    assert (answer["master"], answer["index"]["clock_of"]) == ("gopro-b", "gopro-a")
    table = pq.read_table(cameras / "sync" / "index.parquet").to_pydict()
    shown = np.array(table["master_i"])
    true_s = _world_s("gopro-b", 1, shown * FRAME_S) - STARTS_S["gopro-a", 1]
    true_s /= 1 + camera_clock(SEEDS["gopro-a"]).drift_ppm * 1e-6
    assert np.abs(np.array(table["master_ticks"]) / 1e7 - true_s).max() < 1e-4


def test_an_instant_holds_both_cameras(cameras: Path) -> None:
    synchronize(cameras)
    with open_recording(cameras) as opened:
        here = opened.at(300)
        assert here.files == {"gopro-a": "gopro-a/GH010001.MP4", "gopro-b": "gopro-b/GH010001.MP4"}
        true_s = _world_s("gopro-a", 1, np.array([300 * FRAME_S]))
        assert here.rows["gopro-b"] == pytest.approx(float(true_s[0]) / FRAME_S, abs=0.6)


def test_the_report_says_on_what_it_is_put(cameras: Path) -> None:
    synchronize(cameras)
    page = unescape(" ".join(write_report(cameras).read_text(encoding="utf-8").split()))
    assert "of gopro-a/GH010001.MP4" in page
    assert "Reference's gyroscope" in page
    assert "headset's gyroscope" not in page.lower()


def test_films_that_belong_together_nowhere_have_no_index(cameras: Path) -> None:
    for name in ("GH010001.MP4", "GH010002.MP4"):
        (cameras / "gopro-b" / name).unlink()
    synthesize(cameras / "gopro-b", FilmPlan(900, 320, 180, b"avc1", seed=99), simulated_motion(99))
    answer = synchronize(cameras)
    assert (answer["status"], answer["master"]) == ("not_aligned", None)
    assert answer["pairs"][0]["reasons"]
    assert not (cameras / "sync" / "index.parquet").exists()


def test_a_camera_without_motion_is_no_reference(cameras: Path) -> None:
    for name in ("GH010001.MP4", "GH010002.MP4"):
        film = cameras / "gopro-a" / name
        film.write_bytes(film.read_bytes().replace(b"gpmd", b"none"))
    answer = synchronize(cameras)
    assert {pair["master"].partition("/")[0] for pair in answer["pairs"]} == {"gopro-b"}
    assert {pair["source"].partition("/")[0] for pair in answer["pairs"]} == {"gopro-a"}
    assert answer["status"] == "not_aligned"


def test_a_camera_whose_films_are_not_here_is_named(cameras: Path) -> None:
    shutil.rmtree(cameras / "gopro-b")
    answer = synchronize(cameras)
    assert answer["status"] == "not_aligned"
    assert "none of its files is here" in answer["pairs"][0]["reasons"][0]
    assert answer["master"] == "gopro-a"


def test_both_cameras_are_filmed_side_by_side(cameras: Path, tmp_path: Path) -> None:
    synchronize(cameras)
    with pytest.raises(CannotFilm, match="there are: gopro-a, gopro-b"):
        film_side_by_side(cameras, tmp_path / "none.mp4", streams=("pv",))
    assert film_side_by_side(cameras, tmp_path / "both.mp4", from_s=10.0, to_s=10.5) == 15
    with av.open(str(tmp_path / "both.mp4")) as film:
        picture = next(film.decode(video=0)).to_ndarray(format="rgb24")
    left, right = picture[24:384, :640], picture[24:384, 640:]
    assert left.std() > 5
    assert right.std() > 5


def _heard(seed: int, start_s: float, seconds: float) -> tuple[list[bytes], bytes]:
    """Encode what a camera of the kitchen hears from a moment of the world on, on its own crystal."""
    encoder = AudioEncoder()
    blocks: list[bytes] = []
    for number in range(round(seconds * AUDIO_HZ / AAC_SAMPLES)):
        media_s = (np.arange(AAC_SAMPLES) + number * AAC_SAMPLES) / AUDIO_HZ
        sound = kitchen_sound(MOTION, camera_clock(seed).world_s_at(media_s, start_s))
        blocks += encoder.encode(np.stack([sound, sound]))
    return blocks, encoder.configuration


def test_without_motion_the_sound_places_a_camera_and_certifies_nothing(
    cameras: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts_s = {"gopro-a": 3.0, "gopro-b": 4.5}
    for device, start_s in starts_s.items():
        for film in (cameras / device).glob("*.MP4"):
            film.unlink()
        heard = _heard(SEEDS[device], start_s, 46.0)
        monkeypatch.setattr(camera_films, "sound_ring", lambda _seed, heard=heard: heard)
        plan = FilmPlan(1350, 320, 180, b"avc1", seed=SEEDS[device], start_world_s=start_s)
        synthesize(cameras / device, plan, simulated_motion(MOTION))
    film = cameras / "gopro-b" / "GH010001.MP4"
    film.write_bytes(film.read_bytes().replace(b"gpmd", b"none"))
    [pair] = synchronize(cameras)["pairs"]
    assert (pair["source"], pair["status"]) == ("gopro-b/GH010001.MP4", "check")
    assert "GH010001.MP4: no telemetry" in pair["reasons"]
    assert any("by sound alone" in reason for reason in pair["reasons"])
    assert pair["samples"][0][1] == pytest.approx(1.5, abs=0.03)


def _three_chapters(folder: Path, seed: int, start_s: float) -> None:
    """Write a clip of three chapters of ten seconds."""
    for film in folder.glob("*.MP4"):
        film.unlink()
    rule = ChapterRule(frames=300)
    plan = FilmPlan(900, 320, 180, b"avc1", seed=seed, start_world_s=start_s, rule=rule)
    synthesize(folder, plan, simulated_motion(MOTION))


@pytest.mark.parametrize("is_deleted", [True, False], ids=["deleted", "damaged"])
def test_a_reference_whose_first_chapter_is_lost_counts_from_the_second(
    cameras: Path, is_deleted: bool
) -> None:
    _three_chapters(cameras / "gopro-a", SEEDS["gopro-a"], 3.0)
    (cameras / "gopro-b" / "GH010002.MP4").unlink()
    first, second = sorted((cameras / "gopro-a").glob("*.MP4"))[:2]
    assert second.name == "GH020001.MP4"
    if is_deleted:
        first.unlink()
    else:
        first.write_bytes(bytes(first.stat().st_size))
    [pair] = synchronize(cameras)["pairs"]
    assert (pair["status"], pair["master"]) == ("aligned", "gopro-a/GH020001.MP4")
    film_s, second_s = np.array(pair["samples"]).T
    world_s = _world_s("gopro-a", 1, second_s + 300 * FRAME_S)
    assert np.abs(world_s - _world_s("gopro-b", 1, film_s)).max() < 1e-3
    said = any("chapter 1 of recording 0001 is not here" in text for text in pair["warnings"])
    assert said is is_deleted


def test_the_index_is_on_the_clip_that_others_lie_on(cameras: Path) -> None:
    (cameras / "gopro-b" / "GH010001.MP4").unlink()
    answer = synchronize(cameras)
    assert (answer["status"], answer["index"]["clock_of"]) == ("aligned", "gopro-a")
    assert any("gopro-a/GH010001.MP4 is a clip of its own" in reason for reason in answer["reasons"])
    table = pq.read_table(cameras / "sync" / "index.parquet").to_pydict()
    shown, hit = np.array(table["master_i"]), np.array(table["gopro-b_i"]) >= 0
    true_s = _world_s("gopro-b", 2, np.array(table["gopro-b_i"])[hit] * FRAME_S)
    away_s = true_s - _world_s("gopro-a", 2, shown[hit] * FRAME_S)
    assert np.abs(away_s * 1e6 - np.array(table["gopro-b_dt_us"])[hit]).max() < 50


def test_a_clip_of_the_reference_camera_is_compared_with_none(cameras: Path) -> None:
    film = cameras / "gopro-a" / "GH010002.MP4"
    film.write_bytes(film.read_bytes().replace(b"gpmd", b"none"))
    (cameras / "gopro-b" / "GH010002.MP4").unlink()
    answer = synchronize(cameras)
    assert [pair["source"] for pair in answer["pairs"]] == ["gopro-b/GH010001.MP4"]
    assert answer["status"] == "aligned"
