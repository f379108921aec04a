"""Read files of the virtual GoPro back with PyAV and a key-length-value walker of the test's own."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np
import pytest

from kitchensync.virtual_kitchen.gopro.files.chapters import WallTimes
from kitchensync.virtual_kitchen.gopro.files.encoders import HEIGHT, WIDTH
from kitchensync.virtual_kitchen.gopro.files.models import MODELS, FileIds
from kitchensync.virtual_kitchen.gopro.files.recorder import ClipFile
from kitchensync.virtual_kitchen.gopro.files.sensors import CameraMount, Timeline
from kitchensync.virtual_kitchen.kitchen import Kitchen
from kitchensync.virtual_kitchen.truth import Truth
from kitchensync.virtual_kitchen.world.motion import simulated_motion
from kitchensync.virtual_kitchen.world.replay import read_gyro
from kitchensync.virtual_kitchen.world.sound import kitchen_sound

pytestmark = pytest.mark.slow

SEED = 31
START_WORLD_S = 1.25
FRAMES = 190
LOCAL_S = 1_750_000_000.4  # 15 June 2025, 15:06:40.4


@dataclass(frozen=True)
class Written:
    path: Path
    kitchen: Kitchen
    timeline: Timeline


def write_clip(folder: Path, seed: int = SEED, frames: int = FRAMES, name: str = "GX010001.MP4") -> Written:
    kitchen = Kitchen(seed, simulated_motion(seed), Truth(folder, seed))
    timeline = Timeline(kitchen.camera_clock, START_WORLD_S)
    wall = WallTimes(created_utc_s=int(LOCAL_S) - 7200, local_s=LOCAL_S)
    ids = FileIds(MODELS["hero12"], seed, int(LOCAL_S), 120)
    file = ClipFile(folder / name, kitchen, timeline, ids, wall)
    for _ in range(frames):
        file.add_frame()
    assert file.finish() == (folder / name).stat().st_size
    return Written(folder / name, kitchen, timeline)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return write_clip(tmp_path_factory.mktemp("take"))


def klv(data: bytes) -> Iterator[tuple[str, bytes, int, bytes]]:
    """Yield (key, type, element size, data) of one level."""
    at = 0
    while at < len(data):
        key, kind, size, count = data[at : at + 4], data[at + 4 : at + 5], data[at + 5], data[at + 6 : at + 8]
        length = size * int.from_bytes(count, "big")
        if key == bytes(4):
            return
        yield key.decode("latin-1"), kind, size, data[at + 8 : at + 8 + length]
        at += 8 + (length + 3) // 4 * 4
    assert at == len(data)


def boxes(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 0
    while at < len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        head = 8
        if size == 1:
            size, head = struct.unpack_from(">Q", data, at + 8)[0], 16
        yield kind, data[at + head : at + size]
        at += size
    assert at == len(data)


def gpmd_payloads(path: Path) -> list[tuple[int, int, bytes]]:
    with av.open(str(path)) as container:
        stream = next(s for s in container.streams if "GoPro MET" in s.metadata["handler_name"])
        assert stream.time_base.denominator == 1000
        return [(p.pts, p.duration, bytes(p)) for p in container.demux(stream) if p.size]


def sensor_streams(payload: bytes) -> dict[str, dict[str, bytes]]:
    (device,) = [data for key, _, _, data in klv(payload) if key == "DEVC"]
    streams = {}
    for key, _, _, data in klv(device):
        if key == "STRM":
            entries = {k: d for k, _, _, d in klv(data)}
            streams[list(entries)[-1]] = entries
    return streams


def imu(path: Path, key: str, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Return media times by a line through the stamps, and camera X, Y, Z vectors."""
    stamps, counts, rows = [], [], []
    for _, _, payload in gpmd_payloads(path):
        streams = sensor_streams(payload)
        stamps.append(int.from_bytes(streams[key]["STMP"], "big"))
        rows.append(np.frombuffer(streams[key][key], ">i2").reshape(-1, 3))
        counts.append(len(rows[-1]))
        assert streams[key]["ORIN"] == b"ZXY"
        assert int.from_bytes(streams[key]["TSMP"], "big") == sum(counts)
        assert struct.unpack(">h", streams[key]["SCAL"]) == (scale,)
    shutter_us = int.from_bytes(sensor_streams(gpmd_payloads(path)[0][2])["SHUT"]["STMP"], "big")
    before = np.concatenate([[0], np.cumsum(counts)[:-1]])
    slope, first = np.polyfit(before, stamps, 1)
    zxy = np.concatenate(rows) / scale
    return (first - shutter_us) / 1e6 + np.arange(len(zxy)) * slope / 1e6, zxy[:, [1, 2, 0]]


@pytest.mark.slow
def test_every_frame_decodes_at_its_exact_time(written: Written) -> None:
    with av.open(str(written.path)) as container:
        stream = container.streams.video[0]
        frames = list(container.decode(stream))
        assert (stream.codec_context.name, stream.codec_context.codec_tag) == ("hevc", "hvc1")
        assert [frame.pts for frame in frames] == [3003 * k for k in range(FRAMES)]
        assert stream.time_base.denominator == 90000
        assert (frames[0].width, frames[0].height) == (WIDTH, HEIGHT)


@pytest.mark.slow
def test_a_frame_shows_the_scene_as_the_camera_saw_it_then(written: Written) -> None:
    mount = CameraMount.of_seed(SEED)
    frame_no = 100
    with av.open(str(written.path)) as container:
        seen = [f.to_ndarray(format="gray") for f in container.decode(video=0)][frame_no]
    errors = []
    for shift in (-2, -1, 0, 1, 2):
        world_s = written.timeline.world_s(np.array([(frame_no + shift) * 1001 / 30000]))
        view = mount.camera_orientation(written.kitchen.motion.orientation(world_s))[0]
        expected = written.kitchen.scene.render_i420(view, WIDTH, HEIGHT, mount.focal_per_width * WIDTH)[
            :HEIGHT
        ]
        errors.append(np.abs(expected.astype(float) - seen).mean())
    assert int(np.argmin(errors)) == 2


def test_sound_lies_where_it_was_heard(written: Written) -> None:
    with av.open(str(written.path)) as container:
        frames = list(container.decode(audio=0))
    assert frames[0].pts == 0
    heard = np.concatenate([frame.to_ndarray()[0] for frame in frames])
    duration_s = FRAMES * 1001 / 30000
    assert 0 <= len(heard) / 48000 - duration_s < 1024 / 48000
    made = kitchen_sound(SEED, written.timeline.world_s(np.arange(len(heard)) / 48000))
    spectrum = np.fft.rfft(heard, 1 << 20) * np.conj(np.fft.rfft(made, 1 << 20))
    lag = int(np.argmax(np.fft.irfft(spectrum)))
    assert lag in (0, 1, (1 << 20) - 1)


def test_the_gyroscope_is_the_heads_on_the_cameras_clock(written: Written) -> None:
    t_s, camera = imu(written.path, "GYRO", 939)
    mount = CameraMount.of_seed(SEED)
    assert t_s[0] == pytest.approx(-0.002273, abs=2e-6)
    assert 1 / np.diff(t_s).mean() == pytest.approx(mount.imu_hz, abs=1e-3)

    def head_turn(shift_s: float) -> np.ndarray:
        world_s = START_WORLD_S + (t_s + shift_s) * (1 + written.kitchen.camera_clock.drift_ppm * 1e-6)
        return mount.to_camera(written.kitchen.motion.angular_velocity(world_s)) + mount.gyro_bias

    assert np.abs(camera - head_turn(0.0)).max() < 0.01
    shifts = np.linspace(-0.003, 0.003, 61)
    costs = [np.square(camera - head_turn(shift)).sum() for shift in shifts]
    curve = np.polyfit(shifts, costs, 2)
    assert abs(-curve[1] / (2 * curve[0])) < 2e-4


def test_the_gyroscope_is_the_turning_of_the_picture(written: Written) -> None:
    """Differentiate the orientation the pictures were drawn with; compare in GoPro axes X left, Y back, Z up."""
    t_s, camera = imu(written.path, "GYRO", 939)
    mount, step_s = CameraMount.of_seed(SEED), 1e-4
    moments = t_s[100:1000:50]

    def matrices(shift_s: float) -> np.ndarray:
        world_s = written.timeline.world_s(moments + shift_s)
        w, x, y, z = mount.camera_orientation(written.kitchen.motion.orientation(world_s)).T
        rows = [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
        return np.moveaxis(np.array(rows), -1, 0)

    turn = np.einsum("nji,njk->nik", matrices(-step_s), matrices(step_s)) / (2 * step_s)
    optical = np.stack([turn[:, 2, 1], turn[:, 0, 2], turn[:, 1, 0]], axis=1)
    in_gopro_axes = np.stack([-optical[:, 0], optical[:, 2], optical[:, 1]], axis=1) + mount.gyro_bias
    assert np.abs(camera[100:1000:50] - in_gopro_axes).max() < 0.01


def test_an_upright_camera_feels_gravity_on_its_first_channel(written: Written) -> None:
    _, camera = imu(written.path, "ACCL", 417)
    assert np.linalg.norm(camera, axis=1).mean() == pytest.approx(9.81, abs=0.2)
    assert camera[:, 2].mean() > 7.0


def test_payloads_hold_one_second_and_varying_counts(written: Written) -> None:
    payloads = gpmd_payloads(written.path)
    assert [(pts, duration) for pts, duration, _ in payloads] == [
        *((1001 * k, 1001) for k in range(FRAMES // 30)),
        (1001 * (FRAMES // 30), round(FRAMES % 30 * 1001 / 30)),
    ]
    streams = [sensor_streams(payload) for _, _, payload in payloads]
    assert {len(s["GYRO"]["GYRO"]) // 6 for s in streams[:-1]} == {199, 200}
    assert [len(s["SHUT"]["SHUT"]) // 4 for s in streams] == [30] * (FRAMES // 30) + [FRAMES % 30]
    shutter_us = [int.from_bytes(s["SHUT"]["STMP"], "big") for s in streams]
    assert set(np.diff(shutter_us)) == {1001000}
    assert all(list(s["GYRO"])[-1] == "GYRO" for s in streams)


def test_the_boxes_are_a_cameras(written: Written) -> None:
    data = written.path.read_bytes()
    top = list(boxes(data))
    assert [kind for kind, _ in top] == [b"ftyp", b"mdat", b"moov"]
    assert top[0][1] == b"mp41" + struct.pack(">I", 538120216) + b"mp41"
    assert top[1][1][:4] == b"GPRO"
    movie = list(boxes(top[2][1]))
    assert [kind for kind, _ in movie] == [b"mvhd", b"udta", b"iods", b"trak", b"trak", b"trak", b"trak"]
    names = []
    for _, track in movie[3:]:
        media = dict(boxes(dict(boxes(track))[b"mdia"]))
        names.append((media[b"hdlr"][4:12], media[b"hdlr"][25:]))
        assert media[b"hdlr"][24] == len(media[b"hdlr"][25:])
    assert names == [
        (b"mhlrvide", b"GoPro H.265"),
        (b"mhlrsoun", b"GoPro AAC  "),
        (b"mhlrtmcd", b"GoPro TCD  "),
        (b"mhlrmeta", b"GoPro MET  "),
    ]
    user_data = dict(boxes(dict(movie)[b"udta"]))
    assert user_data[b"FIRM"].startswith(b"H23.01.")
    assert len(user_data[b"GPMF"]) == 25600
    settings = {k: d for k, _, _, d in klv(next(d for k, _, _, d in klv(user_data[b"GPMF"]) if k == "DEVC"))}
    assert settings["MINF"] == b"HERO12 Black"
    assert settings["CASN"].endswith(b"031")
    assert struct.unpack(">f", settings["SROT"]) == (16.0,)


def test_the_timecode_counts_frames_since_local_midnight(written: Written) -> None:
    with av.open(str(written.path)) as container:
        stream = next(s for s in container.streams if "GoPro TCD" in s.metadata["handler_name"])
        (count,) = [int.from_bytes(bytes(p), "big") for p in container.demux(stream) if p.size]
        created = container.metadata["creation_time"]
    assert count * 1001 / 30000 == pytest.approx(15 * 3600 + 6 * 60 + 40.4, abs=0.02)
    assert created.startswith("2025-06-15T13:06:40")


@pytest.mark.slow
def test_same_seed_and_times_give_the_same_bytes(tmp_path: Path) -> None:
    takes = [write_clip(tmp_path, seed, 35, f"GX01000{k}.MP4") for k, seed in enumerate((5, 5, 6))]
    first, again, other = (take.path.read_bytes() for take in takes)
    assert first == again
    assert first != other


def test_read_gyro_gives_the_head_back(written: Written) -> None:
    t_s, rad_per_s = read_gyro(written.path)
    mount = CameraMount.of_seed(SEED)
    camera_axes = np.stack([-rad_per_s[:, 0], rad_per_s[:, 2], rad_per_s[:, 1]], axis=1)
    head = mount.to_camera(written.kitchen.motion.angular_velocity(written.timeline.world_s(t_s)))
    assert np.abs(camera_axes - mount.gyro_bias - head).max() < 0.01
