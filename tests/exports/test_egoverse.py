"""`kitchensync export egoverse`, read by Zarr, OpenCV and SciPy, against `kitchensync.open` and EgoVerse's rules."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import pytest
import zarr
from click.testing import CliRunner, Result
from cooked_recording import WRONG
from hand_shape import a_hand
from scipy.spatial.transform import Rotation
from small_recordings import HOST0_NS

import kitchensync as ks
from kitchensync.cli import main
from kitchensync.exports.egoverse_episodes import KEYPOINTS, hand_frames, keypoints_of, text_of
from kitchensync.reader.body_streams import Hands, HandStream
from kitchensync.storage.events import EventLog

SCHEMA = {
    "schema_version": str, "format_version": str, "embodiment": str, "data_status": str, "total_frames": int,
    "fps": int, "task_name": str, "task_description": str, "calibration": dict, "intrinsics": dict, "features": dict,
}  # fmt: skip


def run(*words: object) -> Result:
    return CliRunner().invoke(main, ["export", "egoverse", *map(str, words)])


def episodes(out: Path) -> list[zarr.Group]:
    return [zarr.open_group(str(path), mode="r") for path in sorted(out.glob("*.zarr"))]


def take_with(with_hands: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(with_hands, tmp_path / "data" / "take1"))


def not_seen(monkeypatch: pytest.MonkeyPatch, hand: str, from_s: float, to_s: float) -> None:
    """Let a hand not be seen for some session seconds."""
    sample = HandStream.sample

    def without(self: HandStream, times: Any) -> Hands:
        found, at_s = sample(self, times), np.atleast_1d(times)
        getattr(found, hand)[(at_s >= from_s) & (at_s < to_s)] = np.nan
        return found

    monkeypatch.setattr(HandStream, "sample", without)


@pytest.fixture(scope="module")
def made(with_hands: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("egoverse") / "set"
    done = run(with_hands, "--out", out, "--json")
    assert done.exit_code == 0, done.output
    assert "Warning" not in done.output
    return out, json.loads(done.stdout)


@pytest.mark.slow
def test_every_picture_of_each_step_is_there_at_its_time(with_hands: Path, made: Any) -> None:
    out, said = made
    told = said["recordings"][0]["episodes"]
    assert [one["episode"] for one in told] == sorted(path.name for path in out.glob("*.zarr"))
    with ks.open(with_hands) as rec:
        steps = rec.steps[rec.steps.done]
        times, at = np.sort(rec.pv.times), 0
        for episode, one in zip(episodes(out), told, strict=True):
            (row,) = [row for row in steps.itertuples() if row.node == one["node"]]
            hands = rec.hands.sample(times)
            seen = np.isfinite(hands.left[:, 0, 0]) | np.isfinite(hands.right[:, 0, 0])
            inside = (times >= max(row.start, at)) & (times < row.end) & seen
            stamps = rec.utc(times[inside]).astype(np.int64)
            kept = episode["obs_rgb_timestamps_ns"][:]
            assert abs(kept - stamps[: len(kept)]).max() <= 1
            assert episode.attrs["total_frames"] == len(kept) == one["frames"]
            assert episode.attrs["task_description"] == text_of(row.step) == f"Do thing {row.node}"
            assert episode.attrs["kitchensync"]["error"] == (row.node == WRONG)
            start = datetime.fromtimestamp(int(kept[0]) // 10**9, UTC)
            micros = int(kept[0]) % 10**9 // 1000 + row.entry
            assert one["episode"] == f"{start:%Y-%m-%d-%H-%M-%S}-{micros:06d}.zarr"


@pytest.mark.slow
def test_pictures_poses_and_hands_are_those_of_the_recording(with_hands: Path, made: Any) -> None:
    out, _ = made
    with ks.open(with_hands) as rec:
        stamps = rec.utc(rec.pv.times).astype(np.int64)
        for episode in episodes(out):
            for place in (0, episode.attrs["total_frames"] // 2, episode.attrs["total_frames"] - 1):
                number = int(np.argmin(abs(stamps - episode["obs_rgb_timestamps_ns"][place])))
                jpeg = np.frombuffer(episode["images.front_1"][place : place + 1][0], np.uint8)
                picture = cv2.imdecode(jpeg, cv2.IMREAD_COLOR)[:, :, ::-1].astype(int)
                assert abs(picture - rec.pv[number]).mean() < 4
                pose = episode["obs_head_pose"][place]
                world_from_head = np.eye(4)
                world_from_head[:3, :3] = Rotation.from_quat(pose[[4, 5, 6, 3]]).as_matrix()
                world_from_head[:3, 3] = pose[:3]
                np.testing.assert_allclose(world_from_head, rec.pv.world_from_camera[number], atol=1e-5)
                hands = rec.hands.sample(rec.pv.times[number])
                for side in ("left", "right"):
                    points = episode[f"{side}.obs_keypoints"][place].reshape(21, 3)
                    joints = [rec.hands.joints.index(name) for name in KEYPOINTS]
                    np.testing.assert_allclose(points, getattr(hands, side)[0][joints], atol=1e-6)
                    wrist = episode[f"{side}.obs_wrist_pose"][place]
                    np.testing.assert_allclose(wrist[:3], points[0])
                    assert np.linalg.norm(wrist[3:]) == pytest.approx(1)
                if place == episode.attrs["total_frames"] // 2:
                    ahead = world_from_head @ [0.1, -0.05, 1.0, 1.0]
                    x, y, depth = np.array(episode.attrs["intrinsics"]["front_1"]) @ [0.1, -0.05, 1.0, 1.0]
                    np.testing.assert_allclose(
                        [x / depth, y / depth], rec.pv.project(number, ahead[:3]), atol=1
                    )


@pytest.mark.slow
def test_the_rules_of_egoverse_hold(made: Any) -> None:
    """Those of its `episode_v3.yaml` and of `validate_episode` in its guide, read anew."""
    out, _ = made
    for path in out.glob("*.zarr"):
        episode = zarr.open_group(str(path), mode="r")
        about, count = episode.attrs, episode.attrs["total_frames"]
        assert json.loads((path / "zarr.json").read_text())["zarr_format"] == 3
        assert {name: type(about[name]) for name in SCHEMA} == SCHEMA
        assert about["fps"] in (30, 60)
        assert about["embodiment"] in ("human_bimanual", "human_left_arm", "human_right_arm")
        assert set(about["features"]) == set(episode.array_keys())
        assert np.shape(about["intrinsics"]["front_1"]) == (3, 4)
        assert set(about["calibration"]) == {"reference_frame", "cameras"}
        sides = (
            ("left", "right")
            if about["embodiment"] == "human_bimanual"
            else about["embodiment"].split("_")[1:2]
        )
        for key in [
            "obs_head_pose",
            *(f"{side}.obs_{what}_pose" for side in sides for what in ("ee", "wrist")),
        ]:
            rows = episode[key][:]
            assert (rows.shape, rows.dtype) == ((count, 7), np.float64)
            seen = rows[(rows < 1e8).all(axis=1)]
            assert np.allclose(np.linalg.norm(seen[:, 3:], axis=1), 1, atol=1e-4)
            assert len(np.unique(seen, axis=0)) > 1, "a pose that never changes"
            assert np.mean(np.all(np.abs(seen[:, 3:]) == [1, 0, 0, 0], axis=1)) < 0.01
        assert all(episode[f"{side}.obs_keypoints"].shape == (count, 63) for side in sides)
        steps_ns = np.diff(episode["obs_rgb_timestamps_ns"][:])
        quantum = int(np.gcd.reduce(steps_ns))
        assert (steps_ns > 0).all()
        assert quantum < 64 or quantum & (quantum - 1), "the mark of seconds that were floating-point"
        (said,) = map(json.loads, episode["annotations"][:])
        assert (said["start_idx"], said["end_idx"]) == (0, count)
        assert " | " not in said["text"]
        with av.open(str(path.with_suffix(".mp4"))) as film:
            assert sum(1 for _ in film.decode(video=0)) == count
        assert episode["images.front_1"].shape == (count,)


@pytest.mark.slow
def test_a_pause_parts_a_step_and_is_in_neither_episode(with_hands: Path, tmp_path: Path) -> None:
    take = take_with(with_hands, tmp_path)
    log = EventLog(take, "operator")
    for kind, at_s in (("pause", 10.0), ("resume", 11.5)):
        log.append(kind, host_ns=HOST0_NS + round(at_s * 1e9), uncertainty_ns=0, body={}, op_id=kind)
    done = run(take, "--out", tmp_path / "out", "--step", 3, "--json")
    assert done.exit_code == 0, done.output
    first, second = (one["session_s"] for one in (e.attrs["kitchensync"] for e in episodes(tmp_path / "out")))
    assert first[1] < second[0]
    assert 1.5 < second[0] - first[1] < 2
    with ks.open(take) as rec:
        count = sum(episode.attrs["total_frames"] for episode in episodes(tmp_path / "out"))
        (row,) = rec.steps[rec.steps.node == 3].itertuples()
        inside = rec.pv.times[(rec.pv.times >= row.start) & (rec.pv.times < row.end)]
        assert count == np.isfinite(rec.hands.sample(inside).left[:, 0, 0]).sum()
        assert len(inside) - 8 < count <= len(inside)


def damage(take: Path, row: int) -> float:
    """Flip a bit of a stored picture; return its session time."""
    with ks.open(take) as rec:
        payload = rec.stored["hololens/pv"].payload(row)
        at_s = float(rec.pv.times[row])
    (path,) = (path for path in (take / "hololens/pv").glob("*.h5") if payload in path.read_bytes())
    content = bytearray(path.read_bytes())
    content[content.index(payload) + len(payload) // 2] ^= 1
    path.write_bytes(content)
    return at_s


@pytest.mark.slow
def test_a_picture_that_cannot_be_read_parts_a_step(with_hands: Path, tmp_path: Path) -> None:
    take = take_with(with_hands, tmp_path)
    at_s = damage(take, 310)
    said = json.loads(run(take, "--out", tmp_path / "out", "--step", 3, "--json").stdout)["recordings"][0]
    first, second = (one.attrs["kitchensync"]["session_s"] for one in episodes(tmp_path / "out"))
    assert first[1] < at_s < second[0] < at_s + 1.1, "the next key picture is at most a second later"
    (why,) = said["left_out"].values()
    assert "pictures cannot be read" in why
    assert "does not match its checksum" in why


@pytest.mark.slow
def test_what_a_lost_picture_parts_begins_and_ends_with_a_hand(
    with_hands: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = take_with(with_hands, tmp_path)
    at_s = damage(take, 310)
    with ks.open(take) as rec:
        (row,) = rec.steps[rec.steps.node == 3].itertuples()
    for side in ("left", "right"):
        not_seen(monkeypatch, side, at_s - 0.5, row.end - 0.4)
    said = json.loads(run(take, "--out", tmp_path / "out", "--step", 3, "--json").stdout)["recordings"][0]
    (episode,) = episodes(tmp_path / "out")
    first_s, last_s = episode.attrs["kitchensync"]["session_s"]
    assert row.start <= first_s < row.start + 0.04
    assert at_s - 0.54 < last_s < at_s - 0.5
    lost, short = said["left_out"].values()
    assert "pictures cannot be read" in lost
    assert short == "less than 1 s without a break"


@pytest.mark.slow
def test_what_comes_before_the_first_hand_is_cut_off(
    with_hands: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    not_seen(monkeypatch, "left", 0, 99)
    not_seen(monkeypatch, "right", 3.25, 5.0)
    done = run(with_hands, "--out", tmp_path / "out", "--step", 2, "--json")
    assert done.exit_code == 0, done.output
    (episode,) = episodes(tmp_path / "out")
    assert 5.0 <= episode.attrs["kitchensync"]["session_s"][0] < 5.04
    assert episode.attrs["embodiment"] == "human_right_arm"
    assert not [key for key in episode.array_keys() if key.startswith("left.")]
    not_seen(monkeypatch, "right", 0, 99)
    refused = run(with_hands, "--out", tmp_path / "none")
    assert refused.exit_code == 1
    assert "no hand was seen" in refused.stderr
    assert not (tmp_path / "none").exists()


@pytest.mark.slow
def test_a_hand_that_is_lost_for_a_while_says_so(
    with_hands: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    not_seen(monkeypatch, "left", 5.0, 6.0)
    said = json.loads(run(with_hands, "--out", tmp_path / "out", "--step", 2, "--json").stdout)
    (episode,) = episodes(tmp_path / "out")
    lost = (episode["left.obs_ee_pose"][:] == 1e9).all(axis=1)
    assert 28 <= lost.sum() <= 31
    assert (episode["left.obs_keypoints"][:][lost] == 1e9).all()
    assert not (episode["right.obs_ee_pose"][:] == 1e9).any()
    told = said["recordings"][0]["episodes"][0]["hands_seen"]
    assert told == {"left": pytest.approx(1 - lost.mean(), abs=1e-3), "right": 1.0}


@pytest.mark.slow
def test_given_again_it_writes_what_is_missing(with_hands: Path, made: Any, tmp_path: Path) -> None:
    out = Path(shutil.copytree(made[0], tmp_path / "out"))
    first, *others = sorted(out.glob("*.zarr"))
    shutil.rmtree(first)
    before = {path: path.stat().st_mtime_ns for one in others for path in one.rglob("*")}
    done = run(with_hands, "--out", out, "--json")
    assert done.exit_code == 0, done.output
    there = [one.get("was_there", False) for one in json.loads(done.stdout)["recordings"][0]["episodes"]]
    assert there == [False, *(True for _ in others)]
    assert first.is_dir()
    assert before == {path: path.stat().st_mtime_ns for one in others for path in one.rglob("*")}
    (first / "zarr.json").write_text("{}")
    refused = run(with_hands, "--out", out)
    assert refused.exit_code == 1
    assert "exists and is not written over" in refused.stderr
    assert run(with_hands, "--out", out, "--force").exit_code == 0


@pytest.mark.slow
def test_a_recording_without_hands_is_refused(with_hands: Path, tmp_path: Path) -> None:
    take = take_with(with_hands, tmp_path)
    shutil.rmtree(take / "hololens" / "spatial_input")
    refused = run(take, "--out", tmp_path / "out")
    assert refused.exit_code == 1
    assert len(refused.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("is_left", [True, False])
def test_the_frame_of_a_hand_is_right_down_ahead(is_left: bool) -> None:
    points = keypoints_of(a_hand(is_left=is_left))
    frame = hand_frames(points, is_left=is_left)[0]
    np.testing.assert_allclose(frame[1, :3], [0, 1, 0], atol=1e-9)
    assert frame[2, 2] > 0.99
    assert np.linalg.det(frame[:3, :3]) == pytest.approx(1)
    np.testing.assert_allclose(frame[:3, 3], points[0, [0, 5, 9, 13]].mean(axis=0))
    turn = Rotation.from_euler("xyz", [0.4, -1.1, 2.0]).as_matrix()
    np.testing.assert_allclose(
        hand_frames(points @ turn.T, is_left=is_left)[0, :3, :3], turn @ frame[:3, :3], atol=1e-9
    )


def test_the_verb_before_a_label_is_not_said() -> None:
    assert text_of("Heat-Heat a dry pan") == "Heat a dry pan"
    assert text_of("Cut a half-moon") == "Cut a half-moon"
    assert text_of("Stir | wait") == "Stir, wait"


@pytest.mark.slow
def test_an_episode_of_a_recording_that_has_changed_is_not_passed_off(
    with_hands: Path, tmp_path: Path
) -> None:
    take = take_with(with_hands, tmp_path)
    words = ("--out", tmp_path / "out", "--step", 2)
    assert run(take, *words).exit_code == 0
    (preview,) = (tmp_path / "out").glob("*.mp4")
    preview.write_bytes(preview.read_bytes()[:1000])
    assert run(take, *words, "--force").exit_code == 0
    assert run(take, *words).exit_code == 0, "it is whole again"
    EventLog(take, "operator").append("mark", host_ns=HOST0_NS, uncertainty_ns=0, body={}, op_id="m")
    refused = run(take, *words)
    assert (refused.exit_code, "exists and is not written over" in refused.stderr) == (1, True)
    assert run(take, *words, "--force").exit_code == 0
