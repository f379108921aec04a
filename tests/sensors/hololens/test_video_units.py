"""Decoding of access units, encoded like on the headset: with delimiter, without B frames."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import av
import numpy as np
import pytest

from kitchensync.sensors.errors import UnsupportedFormat
from kitchensync.sensors.hololens import video
from kitchensync.sensors.hololens.streams import depth_ahat, microphone

GOP, COUNT = 5, 12
AUD = b"\x00\x00\x00\x01\x09\x10"


def picture(k: int) -> np.ndarray:
    """Return a frame of a moving bright bar, planar 4:2:0, 64x64."""
    image = np.full((96, 64), 128, np.uint8)
    image[:64] = 30
    image[:64, 4 * k : 4 * k + 8] = 220
    return image


def units(codec: str) -> list[bytes]:
    name, options = {
        "h264": ("libx264", {"preset": "ultrafast", "tune": "zerolatency", "x264-params": "log-level=none"}),
        "h265": (
            "libx265",
            {
                "preset": "ultrafast",
                "tune": "zerolatency",
                "x265-params": "log-level=none:bframes=0:repeat-headers=1",
            },
        ),
    }[codec]
    context = av.CodecContext.create(name, "w")
    assert isinstance(context, av.VideoCodecContext)
    context.width = context.height = 64
    context.pix_fmt = "yuv420p"
    context.time_base = Fraction(1, 30)
    context.framerate = Fraction(30)
    context.gop_size = GOP
    context.options = options
    packets = []
    for k in range(COUNT):
        frame = av.VideoFrame.from_ndarray(picture(k), format="yuv420p")
        frame.pts = k
        packets += context.encode(frame)
    packets += context.encode(None)
    encoded = [bytes(packet) for packet in packets]
    return [AUD + unit for unit in encoded] if codec == "h264" else encoded


@pytest.mark.parametrize("codec", ["h264", "h265"])
def test_each_unit_gives_one_frame_in_order(codec: str) -> None:
    stored = units(codec)
    assert [video.is_key_frame(codec, unit) for unit in stored] == [k % GOP == 0 for k in range(COUNT)]
    decoded = list(video.decode_units(codec, stored))
    assert [index for index, _ in decoded] == list(range(COUNT))
    for index, frame in decoded:
        bar = frame.to_ndarray()[:64].mean(axis=0)
        assert abs(int(bar.argmax()) - 4 * index) <= 8
        assert bar[4 * index + 4] > 150


@pytest.mark.parametrize("codec", ["h264", "h265"])
def test_bad_units_are_reported_by_number_and_the_rest_is_read(codec: str) -> None:
    stored = units(codec)
    stored[7] = b"\x00\x00\x00\x01" + bytes([0xFF]) * 40
    stored[8] = b""
    reasons: dict[int, str] = {}
    good = [
        index for index, _ in video.decode_units(codec, stored, lambda i, why: reasons.setdefault(i, why))
    ]
    assert set(good) | set(reasons) == set(range(COUNT))
    assert not set(good) & set(reasons)
    assert {7, 8} <= set(reasons)
    assert set(range(7)) | {10, 11} <= set(good)


def test_decoding_is_lazy() -> None:
    taken = []

    def source() -> Iterator[bytes]:
        for k, unit in enumerate(units("h264")):
            taken.append(k)
            yield unit

    next(video.decode_units("h264", source()))
    assert len(taken) <= 2


def test_an_unknown_codec_is_refused() -> None:
    with pytest.raises(UnsupportedFormat):
        next(video.decode_units("av1", []))


def test_depth_from_a_decoded_frame() -> None:
    luma = np.arange(512 * 512, dtype=np.uint32).reshape(512, 512).astype(np.uint8)
    chroma = np.arange(256 * 512, dtype=np.uint32).astype(np.uint8)
    planar = np.concatenate([luma.reshape(-1), chroma[0::2], chroma[1::2]]).reshape(768, 512)
    frame = av.VideoFrame.from_ndarray(planar, format="yuv420p")
    depth, ab = depth_ahat.unpack_frame(frame)
    np.testing.assert_array_equal(depth, luma.astype(np.uint16) * 4)
    np.testing.assert_array_equal(ab[:, ::2], chroma.reshape(512, 256).astype(np.uint16) ** 2)
    nv12 = av.VideoFrame.from_ndarray(np.concatenate([luma, chroma.reshape(256, 512)]), format="nv12")
    for same, other in zip(depth_ahat.unpack_frame(nv12), (depth, ab), strict=True):
        np.testing.assert_array_equal(same, other)


def test_sound_of_aac_packets() -> None:
    context = av.CodecContext.create("aac", "w")
    assert isinstance(context, av.AudioCodecContext)
    context.sample_rate, context.layout, context.format = 48_000, "stereo", "fltp"
    context.bit_rate = 192_000
    tone = np.sin(2 * np.pi * 1000 * np.arange(1024 * 12) / 48_000).astype(np.float32) * 0.5
    packets: list[bytes] = []
    for k in range(12):
        frame = av.AudioFrame.from_ndarray(
            np.stack([tone[1024 * k : 1024 * (k + 1)]] * 2), format="fltp", layout="stereo"
        )
        frame.sample_rate, frame.pts = 48_000, 1024 * k
        packets += [microphone.encode(bytes(packet)) for packet in context.encode(frame)]
    blocks = list(microphone.sound(packets))
    assert [block.shape for block in blocks] == [(2, 1024)] * len(packets)
    spectrum = np.abs(np.fft.rfft(np.concatenate(blocks[3:7], axis=1)[0]))
    assert abs(np.argmax(spectrum) * 48_000 / 4096 - 1000) < 12
