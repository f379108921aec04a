"""Pictures out of a recording: exact rows, stamps, poses and optics, whatever some packets hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from made_videos import grey_planes, video_units

from kitchensync.sensors.hololens.streams import pv
from kitchensync.storage.chunks.chunk_writer import Packet, seal
from kitchensync.storage.errors import NotOfThisKind
from kitchensync.storage.manifest import write_json
from kitchensync.storage.recording import StoredStream, open_recording

WIDTH, HEIGHT, GOP, COUNT, A_CHUNK = 424, 240, 10, 40, 15
FIRST_TICKS, STEP = 10**12, 333_333
IO = Path("/proc/self/io")


def luma(k: int) -> int:
    return 20 + 5 * k


def units() -> list[bytes]:
    """H.264 units of flat pictures, each lighter than the one before; every tenth is a key frame."""
    flat = (grey_planes(luma(k), WIDTH, HEIGHT) for k in range(COUNT))
    return video_units(flat, key_every=GOP)


def metadata(k: int) -> np.ndarray:
    record = np.zeros((), pv.METADATA)
    record["focal_length"], record["principal_point"] = (300 + k, 301 + k), (212, 120)
    record["width"], record["height"] = WIDTH, HEIGHT
    return record


def pose(k: int) -> bytes:
    matrix = np.eye(4, dtype="<f4")
    matrix[3, 0] = k
    return (matrix if k % 7 else np.zeros((4, 4), "<f4")).tobytes()


@pytest.fixture
def stored(tmp_path: Path) -> Callable[..., StoredStream]:
    """Store payloads as the stream `hololens/pv` of a recording, in several chunks, and open it."""

    def store(payloads: Sequence[bytes], codec: str) -> StoredStream:
        folder = tmp_path / "take" / "hololens" / "pv"
        folder.mkdir(parents=True)
        rows = [
            Packet(k, 1, FIRST_TICKS + k * STEP, k, 1, payload, pose(k)) for k, payload in enumerate(payloads)
        ]
        for number, start in enumerate(range(0, len(rows), A_CHUNK), 1):
            seal(folder, number, rows[start : start + A_CHUNK], {"stream": "hololens/pv"})
        stream = {"hololens/pv": {"format": {"codec": codec, "width": WIDTH, "height": HEIGHT}}}
        manifest = {"schema": "recording/1", "recording": "take", "state": "complete", "files": {}}
        manifest |= {"streams": stream, "devices": {}}
        write_json(tmp_path / "take" / "recording.json", manifest)
        return open_recording(tmp_path / "take")["hololens/pv"]

    return store


def test_a_stretch_in_the_middle_is_decoded_from_the_key_frame_before_it(stored):
    stream = stored([pv.encode(unit, metadata(k)) for k, unit in enumerate(units())], "h264")
    assert list(stream.frames(len(stream), len(stream))) == [], "behind the last one there is none"
    frames = list(stream.frames(17, 33))
    assert [frame.row for frame in frames] == list(range(17, 33))
    for frame in frames:
        k = frame.row
        assert frame.device_ticks == FIRST_TICKS + k * STEP
        assert abs(float(frame.grey().mean()) - luma(k)) < 1.5
        assert frame.intrinsics == (300 + k, 301 + k, 212, 120)
        assert frame.rgb().shape == (HEIGHT, WIDTH, 3)
        assert (frame.pose is None) == (k % 7 == 0)
        assert frame.pose is None or frame.pose[3, 0] == k
    assert stream.bad == {}
    stream.close()


def test_packets_that_do_not_decode_are_named_and_the_others_read(stored):
    payloads = [pv.encode(unit, metadata(k)) for k, unit in enumerate(units())]
    payloads[12] = np.random.default_rng(5).integers(0, 256, len(payloads[12]), np.uint8).tobytes()
    payloads[19] = b"short"
    payloads[26] = metadata(26).tobytes()
    stream = stored(payloads, "h264")
    rows = [frame.row for frame in stream.frames()]
    assert sorted(stream.bad) == [12, 19, 26]
    assert rows == [k for k in range(COUNT) if k not in stream.bad]
    after = list(stream.frames(30, 40))
    assert [frame.row for frame in after] == list(range(30, 40)), "from the next key frame on all is well"
    assert all(abs(float(frame.grey().mean()) - luma(frame.row)) < 1.5 for frame in after)
    stream.close()


def test_without_their_key_frame_pictures_are_named_until_the_next_one(stored):
    payloads = [pv.encode(unit, metadata(k)) for k, unit in enumerate(units())]
    payloads[20] = b"short"
    stream = stored(payloads, "h264")
    rows = [frame.row for frame in stream.frames()]
    assert sorted([*rows, *stream.bad]) == list(range(COUNT))
    assert 20 in stream.bad
    assert set(rows) >= {*range(20), *range(30, COUNT)}
    stream.close()


@pytest.mark.skipif(not IO.exists(), reason="only Linux tells how much a process has read")
def test_one_picture_does_not_cost_reading_the_file(stored):
    stride = 448
    picture = np.full((HEIGHT * 3 // 2, stride), 99, np.uint8).tobytes()
    payload = pv.encode(picture, metadata(0))
    stream = stored([payload] * COUNT, "raw")
    before = read_bytes()
    (frame,) = stream.frames(22, 23)
    cost = read_bytes() - before
    assert frame.pose is not None
    assert frame.pose[3, 0] == 22
    assert len(payload) <= cost < 4 * len(payload), f"{cost} bytes of {COUNT * len(payload)}"
    stream.close()


def read_bytes() -> int:
    return int(IO.read_text().split()[1])


def test_what_is_no_depth_is_refused(stored):
    stream = stored([b"x"], "raw")
    with pytest.raises(NotOfThisKind, match="depth"):
        next(stream.depth())
    stream.close()
