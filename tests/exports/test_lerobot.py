"""`kitchensync export lerobot`, read by pyarrow, PyAV and LeRobot, agrees with `kitchensync.open`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import av
import numpy as np
import pandas
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from cooked_recording import WRONG, copied
from films import film
from numbered_pictures import luma_of, number_in
from small_recordings import HOST0_NS

import kitchensync as ks
from kitchensync.cli import main
from kitchensync.exports.lerobot import lerobot_data_set
from kitchensync.storage.events import EventLog
from kitchensync.storage.manifest import edit_manifest

pytestmark = pytest.mark.slow
FPS = 30
CAMERAS = ("pv", "gopro")


def run(*args: object) -> Result:
    return CliRunner().invoke(main, ["export", "lerobot", *map(str, args)])


def frames_of(folder: Path, episode: int = 0) -> pandas.DataFrame:
    return pq.read_table(folder / f"data/chunk-000/file-{episode:03d}.parquet").to_pandas()


def pictures_of(folder: Path, camera: str, episode: int = 0) -> list[tuple[float, int | None]]:
    """Return the time and the drawn number of each frame of a video, None for a frame without a number."""
    path = folder / f"videos/observation.images.{camera}/chunk-000/file-{episode:03d}.mp4"
    with av.open(str(path)) as container:
        return [(frame.time, number_in(luma_of(frame))) for frame in container.decode(video=0)]


def last_before(times: np.ndarray, at_s: np.ndarray) -> np.ndarray:
    """Return the last index whose time is not after each of `at_s`, by brute force."""
    return np.array([np.flatnonzero(np.isfinite(times) & (times <= at + 1e-9))[-1] for at in at_s])


def pause(take: Path, from_s: float, to_s: float) -> None:
    log = EventLog(take, "operator")
    for kind, at_s in (("pause", from_s), ("resume", to_s)):
        log.append(kind, host_ns=HOST0_NS + round(at_s * 1e9), uncertainty_ns=0, body={}, op_id=kind)


@pytest.fixture(scope="module")
def made(cooked: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("lerobot") / "set"
    done = run(cooked, "--out", out, "--json")
    assert done.exit_code == 0, done.output
    return out, json.loads(done.stdout)


def test_frames_have_an_exact_grid_without_gaps(cooked: Path, made: Any) -> None:
    folder, report = made
    info, rows = json.loads((folder / "meta/info.json").read_text()), frames_of(folder)
    assert (info["codebase_version"], info["fps"], info["splits"]) == ("v3.0", FPS, {"train": "0:1"})
    assert info["total_frames"] == report["frames"] == len(rows)
    assert rows["frame_index"].tolist() == rows["index"].tolist() == list(range(len(rows)))
    np.testing.assert_array_equal(rows["timestamp"], (np.arange(len(rows)) / FPS).astype(np.float32))
    since_ns = rows["session_ns"].to_numpy() - rows["session_ns"][0]
    np.testing.assert_allclose(since_ns, np.arange(len(rows)) * 1e9 / FPS, atol=0.51)
    with ks.open(cooked) as rec:
        assert rows["session_ns"][0] == max(rec.pv.session_ns.min(), rec.gopro.session_ns.min())
        last_ns = max(rec.pv.session_ns.max(), rec.gopro.session_ns.max())
    assert 0 <= last_ns - rows["session_ns"].iloc[-1] < 1e9 / FPS
    assert set(info["features"]) == set(rows.columns) | {f"observation.images.{name}" for name in CAMERAS}
    for name, feature in info["features"].items():
        if feature["dtype"] not in ("video", "string"):
            first = np.atleast_1d(np.asarray(rows[name][0]))
            assert list(first.shape) == feature["shape"], name
            assert str(first.dtype) == feature["dtype"], name


@pytest.mark.parametrize("camera", CAMERAS)
def test_each_frame_shows_the_last_frame_of_the_camera(cooked: Path, made: Any, camera: str) -> None:
    folder, _ = made
    rows, shown = frames_of(folder), pictures_of(folder, camera)
    assert [at for at, _ in shown] == pytest.approx((np.arange(len(rows)) / FPS).tolist(), abs=1e-6)
    with ks.open(cooked) as rec:
        stream = rec[rec.attributes[camera]]
        number = last_before(stream.times, rows["session_ns"].to_numpy() / 1e9)
        assert rows[f"capture_ns.{camera}"].tolist() == stream.session_ns[number].tolist()
        bounds = [stream.bound_at(float(at)) for at in stream.times[number[::50]]]
        np.testing.assert_allclose(rows[f"bound_s.{camera}"][::50], bounds, rtol=1e-6)
        assert source_numbers(stream, folder, camera, number) == number.tolist()
        age_s = (rows["session_ns"].to_numpy() - stream.session_ns[number]) / 1e9
    assert (rows[f"valid.{camera}"] == (age_s <= 1.5 * np.median(np.diff(stream.times)))).all()
    assert rows[f"valid.{camera}"].mean() > 0.9
    if camera == "pv":
        assert not rows["valid.pv"].all(), "three frames are missing"


def drawn(rgb: np.ndarray) -> int | None:
    return number_in(rgb.mean(axis=2))


def source_numbers(stream: Any, folder: Path, camera: str, about: np.ndarray) -> list[int]:
    """Return the stream's index of each frame of the video: by its drawn number, or else the most similar frame.

    The virtual camera repeats its frames each second, so only ten before and after `about` are compared.
    """
    numbers = {drawn(rgb): k for k, rgb in enumerate(stream)}
    if None not in numbers:
        return [numbers[number] for _, number in pictures_of(folder, camera)]
    small = np.stack([rgb[::6, ::6].astype(np.float32) for rgb in stream]).reshape(len(stream), -1)
    with av.open(str(folder / f"videos/observation.images.{camera}/chunk-000/file-000.mp4")) as container:
        decoded = (frame.to_ndarray(format="rgb24") for frame in container.decode(video=0))
        frames = [rgb[::6, ::6].astype(np.float32).reshape(-1) for rgb in decoded]
    most_similar = []
    for number, frame in zip(about, frames, strict=True):
        first = max(number - 10, 0)
        differences = np.abs(small[first : number + 11] - frame).mean(axis=1)
        most_similar.append(int(first + differences.argmin()))
    return most_similar


def test_state_agrees_with_reading_and_action_is_the_next_state(cooked: Path, made: Any) -> None:
    folder, _ = made
    rows, names = (
        frames_of(folder),
        json.loads((folder / "meta/info.json").read_text())["features"]["observation.state"]["names"],
    )
    state, action = np.stack(rows["observation.state"]), np.stack(rows["action"])
    tracked = np.stack(rows["valid.state"])
    assert np.isfinite(state).all()
    assert names[:7] == [f"head.{axis}" for axis in ("x", "y", "z", "qw", "qx", "qy", "qz")]
    assert state.shape[1] == len(names) == len(set(names)) == 19
    with ks.open(cooked) as rec:
        head = rec.head.sample(rows["session_ns"].to_numpy() / 1e9)
    is_tracked = np.isfinite(head[:, 0, 3])
    assert is_tracked.mean() > 0.9
    assert (tracked[:, 0] == is_tracked).all()
    np.testing.assert_allclose(state[is_tracked, :3], head[is_tracked, :3, 3], atol=1e-6)
    w, x, y, z = state[is_tracked, 3:7].astype(np.float64).T
    np.testing.assert_allclose(1 - 2 * (x * x + y * y), head[is_tracked, 2, 2], atol=1e-5)
    np.testing.assert_allclose(2 * (x * z + w * y), head[is_tracked, 0, 2], atol=1e-5)
    assert (np.einsum("ni,ni->n", state[1:, 3:7], state[:-1, 3:7]) > 0).all()
    assert not tracked[:, 1:].any()
    assert not state[:, 7:].any(), "no hands or gaze were recorded"
    np.testing.assert_array_equal(action[:-1], state[1:])
    np.testing.assert_array_equal(action[-1], state[-1])


def test_tasks_and_errors_are_those_of_the_steps(cooked: Path, made: Any) -> None:
    folder, report = made
    rows, tasks = frames_of(folder), pandas.read_parquet(folder / "meta/tasks.parquet")
    assert report["tasks"] == len(tasks)
    with ks.open(cooked) as rec:
        for k in range(0, len(rows), 11):
            at_s = rows["session_ns"][k] / 1e9
            assert tasks.index[tasks["task_index"] == rows["task_index"][k]].item() == (
                "; ".join(rec.at(at_s).steps) or "no step"
            )
            doing = rec.steps[(rec.steps["start"] <= at_s) & (rec.steps["end"] > at_s)]
            assert rows["error"][k] == doing["error"].any() == (WRONG in doing["node"].tolist())
            assert (rows["error_tags"][k] == "Technique Error") == rows["error"][k]
    assert rows["error"].any()
    assert not rows["error"].all()
    assert "no step" in tasks.index


def test_statistics_are_those_of_the_files(made: Any) -> None:
    folder, _ = made
    rows, report = frames_of(folder), json.loads((folder / "meta/stats.json").read_text())
    state = np.stack(rows["observation.state"]).astype(np.float64)
    for name in ("min", "max", "mean", "std"):
        values = getattr(state, name)(axis=0)
        np.testing.assert_allclose(report["observation.state"][name], values, atol=1e-9)
    path = folder / "videos/observation.images.gopro/chunk-000/file-000.mp4"
    with av.open(str(path)) as container:
        decoded = enumerate(container.decode(video=0))
        each_second = [frame.to_ndarray(format="rgb24") for k, frame in decoded if k % FPS == 0]
    pixels = np.stack(each_second) / 255
    of_images = report["observation.images.gopro"]
    assert of_images["count"] == [len(each_second)]
    np.testing.assert_allclose(np.ravel(of_images["mean"]), pixels.mean(axis=(0, 1, 2)), atol=0.02)
    np.testing.assert_allclose(np.ravel(of_images["std"]), pixels.std(axis=(0, 1, 2)), atol=0.02)
    episode = pq.read_table(folder / "meta/episodes/chunk-000/file-000.parquet").to_pylist()[0]
    assert episode["stats/observation.state/mean"] == report["observation.state"]["mean"]
    assert (episode["dataset_from_index"], episode["dataset_to_index"]) == (0, len(rows))
    assert episode["videos/observation.images.pv/to_timestamp"] == len(rows) / FPS


def test_a_pause_is_hidden_and_flagged(cooked: Path, tmp_path: Path) -> None:
    shutil.copytree(cooked, tmp_path / "take1")
    pause(tmp_path / "take1", 9.0, 12.5)
    assert run(tmp_path / "take1", "--out", tmp_path / "set").exit_code == 0
    rows = frames_of(tmp_path / "set")
    with ks.open(tmp_path / "take1") as rec, ks.open(cooked) as whole:
        from_s, to_s = rec.clock.of_host([HOST0_NS + 9 * 10**9, HOST0_NS + 12_500_000_000]) / 1e9
        at_s = rows["session_ns"].to_numpy() / 1e9
        inside = (at_s > from_s + 0.2) & (at_s < to_s - 0.2)
        assert inside.sum() > 90
        for camera in CAMERAS:
            stream, shown = whole[whole.attributes[camera]], pictures_of(tmp_path / "set", camera)
            hidden = set(stream.session_ns[(stream.times >= from_s) & (stream.times <= to_s)].tolist())
            assert not hidden & set(rows[f"capture_ns.{camera}"])
            assert not rows[f"valid.{camera}"][inside].any()
            assert len({number for (_, number), is_in in zip(shown, inside, strict=True) if is_in}) == 1
            assert rows[f"valid.{camera}"][(at_s > to_s + 1) & (at_s < to_s + 5)].mean() > 0.9
        assert not np.stack(rows["valid.state"])[inside].any()


def test_recordings_without_consent_are_left_out(cooked: Path, tmp_path: Path) -> None:
    shutil.copytree(cooked, tmp_path / "data" / "take1")

    def refuses(manifest: dict[str, Any]) -> None:
        manifest["consent_scopes"] = ["annotate"]

    other = copied(tmp_path / "data", "take2", refuses)
    refused = run(other, "--out", tmp_path / "none", "--json")
    assert refused.exit_code == 1
    assert "release_raw" in refused.output
    copied(tmp_path / "data", "take3")
    done = run(tmp_path / "data", "--out", tmp_path / "set", "--from", 5, "--to", 7, "--json")
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert [entry["recording"] for entry in report["episodes"]] == ["take1", "take3"]
    assert "release_raw" in report["left_out"]["take2"]
    first, second = frames_of(tmp_path / "set"), frames_of(tmp_path / "set", 1)
    assert (len(first), len(second), report["frames"]) == (60, 60, 120)
    assert second["index"].tolist() == list(range(60, 120))
    assert set(second["episode_index"]) == {1}
    assert first["session_ns"][0] == 5_000_000_000
    statistics = json.loads((tmp_path / "set/meta/stats.json").read_text())
    both = np.concatenate([first["session_ns"], second["session_ns"]]).astype(np.float64)
    assert statistics["session_ns"]["std"] == pytest.approx([both.std()])
    assert statistics["index"]["mean"] == [59.5]
    assert statistics["index"]["std"] == pytest.approx([np.arange(120).std()])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "set"]


def test_a_camera_that_some_recordings_lack_is_left_out(cooked: Path, tmp_path: Path) -> None:
    shutil.copytree(cooked, tmp_path / "take1")
    other = copied(tmp_path, "take2")
    shutil.rmtree(other / "sync")
    done = run(tmp_path / "take1", other, "--out", tmp_path / "set", "--to", 4, "--json")
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert list(report["cameras"]) == ["pv"]
    assert "take2" in report["left_out"]["gopro"]
    assert "kitchensync sync" in report["left_out"]["take2 gopro/video"]
    for episode in (0, 1):
        rows = frames_of(tmp_path / "set", episode)
        assert "valid.gopro" not in rows
        assert len(pictures_of(tmp_path / "set", "pv", episode)) == len(rows)
    assert [path.name for path in (tmp_path / "set/videos").iterdir()] == ["observation.images.pv"]


def test_a_step_is_cut_out_and_the_video_is_black_before_the_first_frame(
    cooked: Path, tmp_path: Path
) -> None:
    assert run(cooked, "--out", tmp_path / "set", "--step", 2, "--fps", 10, "--width", 160).exit_code == 0
    rows = frames_of(tmp_path / "set")
    with ks.open(cooked) as rec:
        start, end = rec.steps["start"][1], rec.steps["end"][1]
        first_s = rec.gopro.times[0]
    assert rows["session_ns"][0] == pytest.approx(start * 1e9, abs=1)
    assert end - 0.1 <= rows["session_ns"].iloc[-1] / 1e9 < end
    with av.open(str(tmp_path / "set/videos/observation.images.pv/chunk-000/file-000.mp4")) as container:
        assert (container.streams.video[0].width, container.streams.video[0].height) == (160, 90)
        assert container.streams.video[0].frames == len(rows)
    assert first_s > 1
    assert run(cooked, "--out", tmp_path / "early", "--from", 0.5, "--to", first_s + 1).exit_code == 0
    early = frames_of(tmp_path / "early")
    none_yet = early["session_ns"] < first_s * 1e9
    assert none_yet.sum() > 20
    assert set(early["capture_ns.gopro"][none_yet]) == {-1}
    assert not early["valid.gopro"][none_yet].any()
    assert early["valid.gopro"][~none_yet].all()
    with av.open(str(tmp_path / "early/videos/observation.images.gopro/chunk-000/file-000.mp4")) as container:
        lightest = [luma_of(frame).max() for frame in container.decode(video=0)]
    assert max(lightest[: none_yet.sum()]) <= 20 < 100 < min(lightest[none_yet.sum() :])
    assert early["valid.pv"][:80].all()
    assert run(cooked, "--out", tmp_path / "more", "--step", 9).exit_code == 1
    assert run(cooked, "--out", tmp_path / "more", "--from", 400, "--to", 500).exit_code == 1
    assert not (tmp_path / "more").exists()


def test_a_video_that_is_damaged_or_not_synchronized_is_left_out(cooked: Path, tmp_path: Path) -> None:
    shutil.copytree(cooked, tmp_path / "take1")
    (tmp_path / "take1/gopro/GX010001.MP4").write_bytes(b"no film")
    done = run(tmp_path / "take1", "--out", tmp_path / "set", "--json", "--to", 3)
    assert done.exit_code == 0, done.output
    assert "GX010001" in json.loads(done.stdout)["left_out"]["gopro/video"]
    assert "valid.gopro" not in frames_of(tmp_path / "set")
    shutil.copy(cooked / "gopro/GX010001.MP4", tmp_path / "take1/gopro/GX010001.MP4")
    shutil.rmtree(tmp_path / "take1/sync")
    done = run(tmp_path / "take1", "--out", tmp_path / "again", "--json", "--to", 3)
    assert "kitchensync sync" in json.loads(done.stdout)["left_out"]["gopro/video"]


def test_an_unreadable_frame_is_flagged(cooked: Path, tmp_path: Path, monkeypatch: Any) -> None:
    from kitchensync.reader.headset_streams import PictureStream
    from kitchensync.reader.timed_stream import Unreadable

    whole = PictureStream.frame

    def frame(self: Any, number: int) -> Any:
        if 100 <= number < 103:
            raise Unreadable("damaged")
        return whole(self, number)

    monkeypatch.setattr(PictureStream, "frame", frame)
    assert run(cooked, "--out", tmp_path / "set", "--from", 2.5, "--to", 5).exit_code == 0
    rows, shown = frames_of(tmp_path / "set"), pictures_of(tmp_path / "set", "pv")
    assert not set(rows["capture_ns.pv"]) & set(ks.open(cooked).pv.session_ns[100:103].tolist())
    bad = ~rows["valid.pv"].to_numpy()
    assert 3 <= bad.sum() <= 6
    assert len({shown[k][1] for k in np.flatnonzero(bad)}) == 1


def test_a_video_without_a_headset_has_no_state(tmp_path: Path) -> None:
    source = film(tmp_path / "card", 60, 60, seed=3)
    args = ["adopt", "found", str(source.chapters[0].path), "--data", str(tmp_path / "data")]
    assert CliRunner().invoke(main, args).exit_code == 0
    with edit_manifest(tmp_path / "data/found") as manifest:
        manifest |= {"consent": "form-1", "consent_scopes": ["release_raw"]}
    done = run(tmp_path / "data/found", "--out", tmp_path / "set")
    assert done.exit_code == 0, done.output
    rows = frames_of(tmp_path / "set")
    assert len(rows) == 60
    assert "observation.state" not in rows
    assert set(rows["bound_s.video"]) == {-1.0}


def test_existing_folders_are_kept_and_failures_leave_nothing(
    cooked: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    span = ("--from", 5, "--to", 6)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/letter.txt").write_text("mine")
    for force in ((), ("--force",)):
        refused = run(cooked, "--out", tmp_path / "mine", *span, *force)
        assert (refused.exit_code, len(refused.stderr.strip().splitlines())) == (1, 1)
    assert (tmp_path / "mine/letter.txt").read_text() == "mine"
    assert run(cooked, "--out", tmp_path / "set", *span).exit_code == 0
    again = run(cooked, "--out", tmp_path / "set", *span)
    assert (again.exit_code, "--force" in again.output) == (1, True)
    with monkeypatch.context() as patched:

        def full(*_: Any) -> None:
            raise OSError(28, "No space left on device")

        patched.setattr(lerobot_data_set.LeRobotSet, "finish", full)
        failed = run(cooked, "--out", tmp_path / "set", *span, "--force")
        assert (failed.exit_code, "no space" in failed.output) == (1, True)
    assert len(frames_of(tmp_path / "set")) == 30
    assert run(cooked, "--out", tmp_path / "set", "--from", 5, "--to", 5.5, "--force").exit_code == 0
    assert len(frames_of(tmp_path / "set")) == 15
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "set"]


READ = """
import json, sys
from lerobot.datasets.lerobot_dataset import LeRobotDataset

data = LeRobotDataset("local/set", root=sys.argv[1], video_backend="pyav")
rows_read = {"frames": len(data), "episodes": data.num_episodes, "rows": {}}
for k in map(int, sys.argv[2:]):
    row = data[k]
    rows_read["rows"][k] = {
        name: value if isinstance(value, str) else value.tolist()
        for name, value in row.items() if not name.startswith("observation.images")
    }
    rows_read["rows"][k]["luma"] = (row["observation.images.pv"].mean(dim=0) * 255).tolist()
print(json.dumps(rows_read))
"""


def test_lerobot_itself_reads_the_same(cooked: Path, made: Any) -> None:
    python = os.environ.get("LEROBOT_PYTHON")
    if not python:
        pytest.skip("LEROBOT_PYTHON names no interpreter with lerobot")
    folder, report = made
    rows, tasks = frames_of(folder), pandas.read_parquet(folder / "meta/tasks.parquet")
    sampled = [0, 1, 100, 333, len(rows) - 1]
    args = [python, "-c", READ, str(folder), *map(str, sampled)]
    environment = os.environ | {"HF_HUB_OFFLINE": "1"}
    done = subprocess.run(args, capture_output=True, text=True, env=environment, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    read = json.loads(done.stdout.splitlines()[-1])
    assert (read["frames"], read["episodes"]) == (report["frames"], 1)
    shown = pictures_of(folder, "pv")
    for k in sampled:
        row = read["rows"][str(k)]
        assert shown[k][1] is not None
        assert number_in(np.array(row["luma"])) == shown[k][1]
        for name in rows.columns:
            np.testing.assert_array_equal(row[name], rows[name][k], err_msg=name)
        assert tasks.loc[row["task"], "task_index"] == rows["task_index"][k]
