"""Payloads of every default stream survive encoding and decoding, and garbage gives an error of this package."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from packed_depth import pack_nv12
from property_runs import examples

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.hololens import video, wire
from kitchensync.sensors.hololens.streams import (
    accelerometer,
    depth_ahat,
    gyroscope,
    magnetometer,
    microphone,
    pv,
    spatial_input,
    vlc,
)

blobs = st.binary(min_size=1, max_size=300)


def records(dtype: np.dtype) -> st.SearchStrategy[np.ndarray]:
    """Draw any bytes of the right length, viewed as a record, so that NaNs keep their bits."""
    return st.binary(min_size=dtype.itemsize, max_size=dtype.itemsize).map(
        lambda b: np.frombuffer(b, dtype)[0]
    )


@pytest.mark.promise("The wire is read as the headset sends it")
@pytest.mark.slow
@given(st.integers(0, 2**64 - 1), st.binary(max_size=500), st.sampled_from([0, 64]), st.randoms())
def test_frame_round_trip(ticks: int, payload: bytes, pose_bytes: int, random: np.random.Generator) -> None:
    pose = bytes(random.choices(range(256), k=pose_bytes)) if pose_bytes else b""  # type: ignore[attr-defined]
    back = wire.split_frame(wire.join_frame(ticks, payload, pose), pose_bytes)
    assert (back[0], bytes(back[1]), bytes(back[2])) == (ticks, payload, pose)


@given(blobs, records(pv.METADATA))
def test_pv_round_trip(picture: bytes, metadata: np.ndarray) -> None:
    payload = pv.encode(picture, metadata)
    packet = pv.decode(payload)
    assert bytes(packet.picture) == picture
    assert pv.encode(packet.picture, packet.metadata) == payload == picture + metadata.tobytes()


@given(blobs, records(vlc.METADATA))
def test_vlc_round_trip(picture: bytes, metadata: np.ndarray) -> None:
    payload = vlc.encode(picture, metadata)
    assert bytes(vlc.decode(payload).picture) == picture
    assert vlc.decode(payload).metadata.tobytes() == metadata.tobytes()


@given(st.binary(max_size=300), st.integers(0, 2**64 - 1), st.binary(max_size=300))
def test_ahat_round_trip(image: bytes, ticks: int, zdepth: bytes) -> None:
    packet = depth_ahat.decode(depth_ahat.encode(image, ticks, zdepth))
    assert (bytes(packet.image), packet.sensor_ticks, bytes(packet.zdepth)) == (image, ticks, zdepth)
    assert (packet.size_ab, packet.size_z) == (len(image), len(zdepth))


@pytest.mark.parametrize("module", [gyroscope, accelerometer, magnetometer])
@given(data=st.data())
def test_imu_round_trip(module: object, data: st.DataObject) -> None:
    raw = data.draw(st.integers(0, 20).flatmap(lambda n: st.binary(min_size=32 * n, max_size=32 * n)))
    assert module.STREAM.encode(module.STREAM.decode(raw)) == raw  # type: ignore[attr-defined]


@given(records(spatial_input.DTYPE))
@examples(30)
def test_spatial_input_round_trip(record: np.ndarray) -> None:
    assert spatial_input.encode(spatial_input.decode(record.tobytes())) == record.tobytes()


@given(st.binary(min_size=1, max_size=8000), st.sampled_from([8000, 44100, 48000]), st.integers(1, 7))
def test_microphone_round_trip(raw: bytes, rate: int, channels: int) -> None:
    frame = microphone.decode(microphone.encode(raw, rate, channels))
    assert bytes(frame.frame)[7:] == raw
    assert (frame.rate_hz, frame.channels) == (rate, channels)


@given(
    hnp.arrays(np.uint16, (512, 8), elements=st.integers(0, 1023)),
    hnp.arrays(np.uint16, (512, 8), elements=st.integers(0, 65025)),
)
@examples(15)
def test_ahat_packing(depth_part: np.ndarray, ab_part: np.ndarray) -> None:
    depth, ab = np.tile(depth_part, 64), np.tile(ab_part, 64)
    depth_back, ab_back = depth_ahat.unpack_nv12(pack_nv12(depth, ab))
    np.testing.assert_array_equal(depth_back, depth // 4 * 4)
    kept = np.floor(np.sqrt(ab[:, 0::2].astype(float))) ** 2
    np.testing.assert_array_equal(ab_back[:, 0::2], kept)
    np.testing.assert_array_equal(ab_back[:, 1::2], kept)


def test_ahat_depth_wraps_at_1024_and_planes_equal_nv12() -> None:
    depth = np.full((512, 512), 1024, np.uint16)
    ab = np.arange(512 * 512, dtype=np.uint32).reshape(512, 512) % 65026
    picture = pack_nv12(depth, ab.astype(np.uint16))
    depth_back, ab_back = depth_ahat.unpack_nv12(picture)
    assert not depth_back.any()
    # The specification's rule for a planar decoder.
    u, v = (
        picture[512:].reshape(-1)[0::2].reshape(256, 256),
        picture[512:].reshape(-1)[1::2].reshape(256, 256),
    )
    by_words = np.zeros((512, 512), np.uint16)
    u_rows, v_rows = (plane.reshape(512, 128).astype(np.uint16) for plane in (u, v))
    by_words[:, 0::4] = by_words[:, 1::4] = u_rows**2
    by_words[:, 2::4] = by_words[:, 3::4] = v_rows**2
    np.testing.assert_array_equal(ab_back, by_words)
    np.testing.assert_array_equal(depth_ahat.unpack_planes(picture[:512], u, v)[1], by_words)


def test_raw_ahat_is_two_images() -> None:
    both = np.arange(2 * 512 * 512, dtype=np.uint32).astype("<u2")
    depth, ab = depth_ahat.raw_images(both.tobytes())
    assert (depth[0, 1], ab[0, 0], ab[511, 511]) == (1, both[512 * 512], both[-1])


DECODERS = [
    pv.decode,
    vlc.decode,
    depth_ahat.decode,
    gyroscope.STREAM.decode,
    spatial_input.decode,
    microphone.decode,
    microphone.decode_pcm,
    microphone.decode_array,
    depth_ahat.raw_images,
]


@pytest.mark.slow
@pytest.mark.parametrize("decode", DECODERS, ids=lambda f: f"{f.__module__.split('.')[-1]}.{f.__name__}")
@given(garbage=st.binary(max_size=2100))
@examples(150)
def test_garbage_ends_in_our_own_error(decode: object, garbage: bytes) -> None:
    with suppress(SensorError):
        decode(garbage)  # type: ignore[operator]


@given(garbage=st.binary(max_size=200), codec=st.sampled_from(["h264", "h265"]))
def test_key_frame_test_survives_garbage(garbage: bytes, codec: str) -> None:
    assert video.is_key_frame(codec, garbage) in (True, False)
