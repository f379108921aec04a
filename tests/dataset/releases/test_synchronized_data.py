"""Films and synchronized data of a release: every file beside what the recording's maker knows."""

from __future__ import annotations

import errno
import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import av
import numpy as np
import pytest
from click.testing import CliRunner
from headset_faults import add_faults
from numbered_pictures import luma_of, number_in
from numbered_recording import DEPTH_S, FRAME_S, PV_S, film_host_ns, write_numbered
from small_recordings import BATCH, FRAMES, GYRO_HZ, HOST0_NS, SECONDS, seal_stream

import kitchensync as ks
from kitchensync.cli import main
from kitchensync.dataset.release.release_media import Media, MediaWriter, Work, work_of
from kitchensync.dataset.source.own_recording import OwnRecording
from kitchensync.sensors.hololens.streams import spatial_input
from kitchensync.storage.exports.arrays_file import ArraysFile
from kitchensync.storage.manifest import edit_manifest
from kitchensync.storage.options.outputs import OutputRefused
from kitchensync.storage.privacy import FOR_EVER, Pauses
from kitchensync.virtual_kitchen.headset.device import HeadsetState
from kitchensync.virtual_kitchen.headset.streams.spatial_stream import EyeFeed, SpatialFeed
from kitchensync.virtual_kitchen.kitchen import Kitchen

pytestmark = pytest.mark.slow

SYNC = "captain_cook_4d/hololens/sync"
ALL = ("4k", "360p", "hololens")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Kitchen]:
    """A synchronized recording."""
    root = tmp_path_factory.mktemp("numbered")
    kitchen = write_numbered(root)
    result = CliRunner().invoke(main, ["sync", str(root / "take1"), "--jobs", "1"])
    assert result.exit_code == 0, result.output
    return root / "take1", kitchen


def opened(path: Path, pauses: Pauses = ()) -> OwnRecording:
    recording = ks.open(path)
    recording.stored.pauses = pauses
    return OwnRecording(recording, {}, [])


def write(
    path: Path, out: Path, wanted: tuple[str, ...] = ALL, *, force: bool = False, pauses: Pauses = ()
) -> Media:
    own = opened(path, pauses)
    try:
        return MediaWriter(own, "1_1", out, force, Work(lambda *_: None, 1)).write(wanted)
    finally:
        own.recording.close()


@pytest.fixture(scope="module")
def data_set(made: tuple[Path, Kitchen], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Media]:
    out = tmp_path_factory.mktemp("out")
    return out, write(made[0], out)


def arrays(out: Path, name: str) -> dict[str, np.ndarray]:
    with np.load(out / SYNC / name, allow_pickle=False) as file:
        return dict(file)


def films(path: Path) -> list[int | None]:
    with av.open(str(path)) as source:
        return [number_in(luma_of(picture)) for picture in source.decode(video=0)]


def test_every_picture_of_the_film_was_taken_when_the_table_says(
    made: tuple[Path, Kitchen], data_set: tuple[Path, Media]
) -> None:
    path = data_set[0] / "captain_cook_4d/gopro/resolution_360p/1_1_360p_frames.npz"
    with np.load(path, allow_pickle=False) as table:
        true = np.array([film_host_ns(made[1], k) for k in range(FRAMES)])
        assert (np.abs(table["capture_ns"] - true) <= table["bound_ns"]).all()
        assert 1e5 < table["bound_ns"].max() < 5e7
        assert table["fps"].tolist() == [30000, 1001]
        assert table["frame"].tolist() == list(range(FRAMES))


def test_a_moment_is_in_the_film_between_two_pictures_not_at_the_nearest(made: tuple[Path, Kitchen]) -> None:
    own, rng = opened(made[0]), random.Random(1)
    off_s = []
    for _ in range(200):
        number = rng.uniform(0, FRAMES - 1)
        place = own.frames.place(round(film_host_ns(made[1], number)), 5_000_000)
        assert place.outside == ""
        assert abs(place.film_s - number * FRAME_S) <= place.bound_s
        off_s.append(place.film_s - number * FRAME_S)
    assert np.ptp(off_s) < 0.0021, "all are off by the same, to a rounded millisecond and the drift"
    before, after = (own.frames.place(round(film_host_ns(made[1], n))) for n in (-30, FRAMES + 60))
    assert (before.film_s, before.outside) == (0.0, "before the first picture")
    assert (after.film_s, after.outside) == (round(FRAMES * FRAME_S, 3), "after the last picture")
    own.recording.close()


def test_the_front_camera_s_film_shows_at_frame_k_what_the_table_says(
    made: tuple[Path, Kitchen], data_set: tuple[Path, Media]
) -> None:
    out, kitchen = data_set[0], made[1]
    table, numbers = arrays(out, "metadata/1_1_frames.npz"), films(out / SYNC / "pv" / "1_1_360p.mp4")
    assert numbers == list(range(len(PV_S)))
    taken = HOST0_NS + 1e9 * PV_S
    assert (np.abs(table["capture_ns"] - taken) <= table["bound_ns"]).all()
    true = np.array([film_host_ns(kitchen, k) for k in range(FRAMES)])
    nearest = np.abs(taken[:, None] - true[None, :]).argmin(axis=1)
    inside = (taken > true[0]) & (taken < true[-1])
    assert (np.abs(table["film_frame"][inside] - nearest[inside]) <= 1).all()
    assert (table["film_frame"][inside] == nearest[inside]).mean() > 0.5
    assert (table["film_frame"][taken < true[0] - 1e9 * FRAME_S] == -1).all()


def test_poses_and_depth_stand_beside_the_nearest_frame_and_holes_are_holes(
    data_set: tuple[Path, Media],
) -> None:
    out, media = data_set
    pose = arrays(out, "pv_pose/1_1_pv_pose.npz")
    assert pose["frame"].tolist() == list(range(len(PV_S)))
    assert np.flatnonzero(~pose["head_tracked"]).tolist() == [50]
    assert np.isnan(pose["pose"][50]).all()
    assert (pose["pose"][:, 3, 0] == pose["frame"])[pose["head_tracked"]].all()
    depth, ab = (arrays(out, f"{kind}/1_1_depth_ahat_{kind}.npz") for kind in ("depth", "ab"))
    expected = {}
    for frame, at_s in enumerate(PV_S):
        row = int(np.abs(DEPTH_S - at_s).argmin())
        if abs(DEPTH_S[row] - at_s) <= 0.5 / 15 and row != 3:
            expected[frame] = row
    assert set(depth["frame"].tolist()) == set(expected)
    for frame, row in expected.items():
        assert (depth[f"depth-{frame:06d}"] == 100 + row).all()
        assert (ab[f"ab-{frame:06d}"] == 200 + row).all()
        assert depth[f"depth-{frame:06d}"].shape == (512, 512)
    rows = [expected[frame] for frame in depth["frame"].tolist()]
    assert np.abs(depth["sample_capture_ns"] - (HOST0_NS + 1e9 * DEPTH_S[rows])).max() < 2e6
    assert media.holes["hololens_sync_depth_ahat_depth_npz"] == len(PV_S) - len(expected)
    assert "hololens_sync_pv_pose_npz" not in media.holes


def test_samples_of_the_gyroscope_stand_from_each_frame_to_the_next(
    made: tuple[Path, Kitchen], data_set: tuple[Path, Media]
) -> None:
    gyro = arrays(data_set[0], "imu_gyroscope/1_1_imu_gyroscope.npz")
    world_s = np.arange(0, len(gyro["xyz"])) / GYRO_HZ
    assert len(gyro["xyz"]) % BATCH == 0
    assert np.abs(gyro["sample_capture_ns"] - (HOST0_NS + 1e9 * world_s)).max() < 3e6
    assert str(gyro["unit"]) == "rad/s"
    true = made[1].motion.angular_velocity(world_s)
    assert np.abs(gyro["xyz"] - true).max() < 1e-3
    first, stop = gyro["first"], gyro["stop"]
    assert (first[1:] == stop[:-1]).all()
    for k in range(0, len(PV_S) - 1, 37):
        times = gyro["sample_capture_ns"][first[k] : stop[k]]
        assert (times >= gyro["capture_ns"][k] - 1000).all()
        assert (times < gyro["capture_ns"][k + 1] + 1000).all()


def test_head_poses_are_plain_arrays(made: tuple[Path, Kitchen], data_set: tuple[Path, Media]) -> None:
    head = arrays(data_set[0], "spatial_pose/1_1_spatial.npz")
    near_s = np.rint(PV_S[head["frame"]] * 30) / 30
    assert np.abs(head["head_position"] - made[1].motion.position(near_s)).max() < 1e-3
    assert head["left_hand_position"].shape[1:] == (26, 3)
    assert all(values.dtype.names is None and values.dtype != object for values in head.values())


LOST_S = (5.3, 7.3)


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Synchronized data of a recording with hands and eyes, whose headset lost itself for two seconds."""
    root = tmp_path_factory.mktemp("lost")
    kitchen, path = write_numbered(root), root / "take1"
    headset = HeadsetState(kitchen)
    shutil.rmtree(path / "hololens" / "spatial_input")
    for name, feed in (("spatial_input", SpatialFeed(headset)), ("eye_tracking", EyeFeed(headset, 30))):
        packets = [feed.packet(k) for k in range(feed.first_k(0.1), round(30 * SECONDS))]
        rows = [(packet.ticks, packet.payload) for packet in packets]
        seal_stream(path, f"hololens/{name}", rows, poses=[packet.pose for packet in packets])
    with edit_manifest(path) as manifest:
        manifest["streams"]["hololens/eye_tracking"] = {"device": "hololens", "format": {}}
    add_faults(path, kitchen, f"lost_tracking:@{LOST_S[0]}+{LOST_S[1] - LOST_S[0]:g}")
    result = CliRunner().invoke(main, ["sync", str(path), "--jobs", "1"])
    assert result.exit_code == 0, result.output
    write(path, root / "out", ("hololens",))
    return root / "out"


@pytest.mark.parametrize(
    "name", ["pv_pose/1_1_pv_pose", "depth_pose/1_1_depth_ahat_pose", "eye_tracking/1_1_eye_tracking"]
)
def test_lost_tracking_is_a_column_beside_poses_and_eye_rays(lost: Path, name: str) -> None:
    found = arrays(lost, f"{name}.npz")
    inside, far = lost_at(found)
    assert inside.sum() >= 5
    assert far.sum() >= 3
    assert not found["head_tracked"][inside].any()
    untracked_outside = found["frame"][far & ~found["head_tracked"]].tolist()
    assert untracked_outside == ([50] if name.startswith("pv") else [])
    if "pose" in found:
        assert (np.isfinite(found["pose"]).all((1, 2)) == found["head_tracked"]).all()
        assert (np.isfinite(found["pose"]).any((1, 2)) == found["head_tracked"]).all()


def test_spatial_input_says_by_its_bits_what_was_lost_and_gives_no_stale_value(lost: Path) -> None:
    found = arrays(lost, "spatial_pose/1_1_spatial.npz")
    inside, far = lost_at(found)
    assert inside.sum() >= 50
    assert not found["valid"][inside].any()
    assert (found["valid"][far] & spatial_input.HEAD).all()
    for field, bit in (
        ("head_position", spatial_input.HEAD),
        ("head_forward", spatial_input.HEAD),
        ("eye_direction", spatial_input.EYE_RAY),
        ("left_hand_position", spatial_input.LEFT_HAND),
        ("right_hand_radius", spatial_input.RIGHT_HAND),
    ):
        flat = found[field].reshape(len(found["frame"]), -1)
        seen = (found["valid"] & bit) != 0
        assert seen.any(), field
        assert (np.isfinite(flat).all(1) == seen).all(), field
        assert (np.isfinite(flat).any(1) == seen).all(), field


def lost_at(found: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return which rows were taken while tracking was lost, and which surely were not."""
    taken_s = (found["sample_capture_ns"] - HOST0_NS) / 1e9
    doubt_s = 0.005
    inside = (taken_s > LOST_S[0] + doubt_s) & (taken_s < LOST_S[1] - doubt_s)
    return inside, (taken_s < LOST_S[0] - doubt_s) | (taken_s > LOST_S[1] + doubt_s)


def test_the_original_keeps_every_sample_and_loses_the_serial_number(
    made: tuple[Path, Kitchen], data_set: tuple[Path, Media]
) -> None:
    source = next((made[0] / "gopro").glob("*.MP4"))
    target = data_set[0] / "captain_cook_4d/gopro/resolution_4k/1_1_4K.mp4"

    def pictures(path: Path) -> list[bytes]:
        with av.open(str(path)) as film:
            return [bytes(packet) for packet in film.demux(video=0)]

    assert pictures(target) == pictures(source)
    own = opened(made[0])
    serial = own.clip.chapters[0].serial
    own.recording.close()
    assert serial is not None
    assert serial.encode() in source.read_bytes()
    assert serial.encode() not in target.read_bytes()


def test_what_is_not_there_is_named_with_its_reason(data_set: tuple[Path, Media]) -> None:
    said = {one["kind"]: one["why"] for one in data_set[1].absent}
    assert said["gopro_720p"] == "not asked for"
    assert said["hololens_sync_imu_magnetometer_npz"] == "nothing was recorded of it"
    assert not any(kind in said for kind in data_set[1].links)
    assert all((data_set[0] / path).is_file() for path in data_set[1].links.values())


def test_a_second_run_writes_nothing_and_another_alignment_is_not_mixed_in(
    made: tuple[Path, Kitchen], data_set: tuple[Path, Media], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(data_set[0], out)
    times = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}
    assert write(made[0], out).links == data_set[1].links
    assert {path: path.stat().st_mtime_ns for path in times} == times
    take = tmp_path / "take1"
    shutil.copytree(made[0], take)
    alignment = next((take / "sync" / "alignment").glob("*.json"))
    alignment.write_text(alignment.read_text().replace('"total_ms"', '"total_ms" '))
    with pytest.raises(OutputRefused, match="--force"):
        write(take, out)
    write(take, out, force=True)
    changed = {path.relative_to(out).as_posix() for path in times if path.stat().st_mtime_ns != times[path]}
    assert f"{SYNC}/depth/1_1_depth_ahat_depth.npz" in changed
    assert f"{SYNC}/pv/1_1_360p.mp4" in changed, (
        "the front camera's film is counted in the frames of the index"
    )


def all_but_at(calls: int, error: BaseException) -> Iterator[None]:
    for _ in range(calls):
        yield
    raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device")])
@pytest.mark.parametrize("calls", [3, 12, 30])
def test_an_interruption_or_a_full_disk_leaves_no_half_file_and_the_next_run_goes_on(
    made: tuple[Path, Kitchen], data_set: tuple[Path, Media], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, error: BaseException, calls: int,
) -> None:  # fmt: skip
    steps, add = all_but_at(calls, error), ArraysFile.add

    def stopped(self: ArraysFile, name: str, values: np.ndarray) -> None:
        next(steps)
        add(self, name, values)

    monkeypatch.setattr(ArraysFile, "add", stopped)
    with pytest.raises((KeyboardInterrupt, OutputRefused)):
        write(made[0], tmp_path, ("hololens",))
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    for path in left:
        assert path.read_bytes() == (data_set[0] / path.relative_to(tmp_path)).read_bytes()
    monkeypatch.undo()
    assert set(write(made[0], tmp_path, ("hololens",)).links) < set(data_set[1].links)


def test_without_an_alignment_there_is_no_table_and_no_synchronized_data(
    made: tuple[Path, Kitchen], tmp_path: Path
) -> None:
    shutil.copytree(made[0], tmp_path / "take1", ignore=shutil.ignore_patterns("sync"))
    media = write(tmp_path / "take1", tmp_path / "out")
    said = {one["kind"]: one["why"] for one in media.absent}
    assert set(media.links) == {"gopro_360p", "gopro_4k", "calibration_json"}
    assert "kitchensync sync" in said["hololens_sync"]
    assert said["gopro_360p_frames_npz"]


def test_a_damaged_original_is_absent_and_said(made: tuple[Path, Kitchen], tmp_path: Path) -> None:
    shutil.copytree(made[0], tmp_path / "take1")
    other = {"file": "GX010001.MP4", "bytes": 1, "sha256": "0" * 64}
    (tmp_path / "take1/gopro/media.json").write_text(json.dumps({"files": [other]}))
    media = write(tmp_path / "take1", tmp_path / "out", ("4k",))
    assert media.links == {}
    assert {
        "kind": "gopro_4k",
        "why": "GX010001.MP4 is not what was recorded; take it from a copy",
    } in media.absent


def test_nothing_that_was_recorded_in_a_privacy_pause_leaves(
    made: tuple[Path, Kitchen], tmp_path: Path
) -> None:
    begin_s, end_s = 5.21, 9.0
    pause = (HOST0_NS + round(begin_s * 1e9), HOST0_NS + round(end_s * 1e9))
    media = write(made[0], tmp_path, pauses=(pause,))
    said = {one["kind"]: one["why"] for one in media.absent}
    assert "pause" in said["gopro_4k"]
    film = tmp_path / "captain_cook_4d/gopro/resolution_360p/1_1_360p.mp4"
    taken_s = (np.array([film_host_ns(made[1], k) for k in range(FRAMES)]) - HOST0_NS) / 1e9
    inside, doubt_s = (taken_s >= begin_s) & (taken_s <= end_s), 0.06
    far = (taken_s < begin_s - doubt_s) | (taken_s > end_s + doubt_s)
    with av.open(str(film)) as source:
        light = np.array([luma_of(picture).mean() for picture in source.decode(video=0)])
    assert len(light) == FRAMES
    assert (light[inside] < 20).all()
    assert (light[far] > 40).all()
    assert inside.sum() <= media.holes["gopro_360p"] <= (~far).sum()
    with np.load(f"{film.parent}/1_1_360p_frames.npz", allow_pickle=False) as table:
        assert (table["hidden"] == (light < 20)).all()
    with av.open(str(film)) as source:
        heard_s = [
            float(p.pts * p.time_base) for p in source.demux(source.streams.audio[0]) if p.pts is not None
        ]
    start_s = taken_s[0]
    assert heard_s
    assert not [at for at in heard_s if begin_s - 0.02 < at + start_s < end_s]
    pv_inside = (begin_s <= PV_S) & (end_s >= PV_S)
    pv_far = (begin_s - 0.01 > PV_S) | (end_s + 0.01 < PV_S)
    numbers = films(tmp_path / SYNC / "pv" / "1_1_360p.mp4")
    assert all(numbers[k] is None for k in np.flatnonzero(pv_inside))
    assert all(numbers[k] == k for k in np.flatnonzero(pv_far))
    for name in ("pv_pose/1_1_pv_pose", "spatial_pose/1_1_spatial", "depth/1_1_depth_ahat_depth"):
        found = arrays(tmp_path, f"{name}.npz")
        assert not pv_inside[found["frame"]].any(), name
        sample_s = (found["sample_capture_ns"] - HOST0_NS) / 1e9
        assert not ((sample_s >= begin_s) & (sample_s <= end_s)).any(), name
    gyro = arrays(tmp_path, "imu_gyroscope/1_1_imu_gyroscope.npz")
    sample_s = np.arange(len(gyro["xyz"])) / GYRO_HZ
    assert np.isnan(gyro["xyz"][(sample_s >= begin_s) & (sample_s <= end_s)]).all()
    assert not np.isnan(gyro["xyz"][(sample_s < begin_s - 0.01) | (sample_s > end_s + 0.01)]).any()


def test_a_pause_that_nobody_ended_lasts_to_the_end(made: tuple[Path, Kitchen], tmp_path: Path) -> None:
    media = write(made[0], tmp_path, ("360p",), pauses=((HOST0_NS + 10**10, FOR_EVER),))
    with av.open(str(tmp_path / media.links["gopro_360p"])) as source:
        light = [luma_of(picture).mean() for picture in source.decode(video=0)]
    hidden = [film_host_ns(made[1], k) >= HOST0_NS + 10**10 for k in range(FRAMES)]
    assert all(level < 20 for level, is_hidden in zip(light, hidden, strict=True) if is_hidden)
    assert light[0] > 40


def test_a_second_camera_and_a_second_take_are_named_as_absent(
    made: tuple[Path, Kitchen], tmp_path: Path
) -> None:
    take = tmp_path / "take1"
    shutil.copytree(made[0], take)
    film = next((take / "gopro").glob("*.MP4"))
    shutil.copy(film, take / "gopro" / "GX010099.MP4")
    (take / "gopro-right").mkdir()
    shutil.copy(film, take / "gopro-right" / "GX010001.MP4")
    with edit_manifest(take) as manifest:
        manifest["devices"]["gopro-right"] = {"kind": "gopro"}
    said = {one["kind"]: one["why"] for one in write(take, tmp_path / "out", ("360p",)).absent}
    assert {"gopro/GX010099.MP4", "gopro-right"} < said.keys()


def test_progress_rises_over_all_kinds_and_recordings(made: tuple[Path, Kitchen], tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    wanted = ("4k", "360p", "hololens")
    work = Work(lambda done, whole, _words: seen.append((done, whole)), 2 * work_of(wanted, FRAMES))
    for name in ("1_1", "1_2"):
        with opened(made[0]) as own:
            MediaWriter(own, name, tmp_path, False, work).write(wanted)
    done = [one for one, _ in seen]
    assert done == sorted(done)
    assert {whole for _, whole in seen} == {2 * (FRAMES // 10 + 2 * FRAMES)}
    assert work.done == work.whole
    assert done[-1] == work.whole


def test_a_small_film_is_never_higher_than_what_was_filmed(
    made: tuple[Path, Kitchen], tmp_path: Path
) -> None:
    media = write(made[0], tmp_path, ("720p",))
    assert media.links == {}
    assert {"kind": "gopro_720p", "why": "the camera's video has fewer than 720 lines"} in media.absent


def test_frames_of_the_camera_carry_the_bound_of_its_alignment(
    made: tuple[Path, Kitchen], tmp_path: Path
) -> None:
    shutil.copytree(made[0], tmp_path / "take1")
    result = CliRunner().invoke(main, ["sync", str(tmp_path / "take1"), "--master", "gopro", "--jobs", "1"])
    assert result.exit_code == 0, result.output
    write(tmp_path / "take1", tmp_path / "out", ("hololens",))
    table = arrays(tmp_path / "out", "metadata/1_1_frames.npz")
    true_ns = np.array([film_host_ns(made[1], k) for k in table["film_frame"]])
    assert (np.abs(table["capture_ns"] - true_ns) <= table["bound_ns"]).all()
    assert (table["bound_ns"] == table["film_bound_ns"]).all()
    assert table["fps"].tolist() == [30000, 1001]
    numbers = films(tmp_path / "out" / SYNC / "pv" / "1_1_360p.mp4")
    away_s = (table["capture_ns"] - HOST0_NS) / 1e9 - [np.nan if n is None else PV_S[n] for n in numbers]
    assert np.nanmax(np.abs(away_s)) < 0.5 / 29.97 + 0.03
    assert np.isfinite(away_s).sum() > 500
