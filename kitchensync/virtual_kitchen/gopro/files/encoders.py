"""Encode the virtual GoPro's video and sound into samples for an MP4.

H.265 at 640x360: a HERO12's 4K is H.265, and its files are named GX. Rendering and encoding this size takes about
6 ms a frame on one thread of a small machine, 768x432 nearly 9, 1280x720 more than 20: a live kitchen has a quarter
of a core to spare for its camera.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from fractions import Fraction

import av
import numpy as np

from kitchensync.virtual_kitchen.gopro.files.sensors import FRAME_TICKS, VIDEO_TIMESCALE

WIDTH, HEIGHT = 640, 360
AUDIO_HZ = 48000
AAC_SAMPLES = 1024
AAC_BITS_PER_S = 128000
FIRST_BLOCK = -1
# One thread and a fixed group of pictures: the same frames give the same bytes. No B-frames, as in cameras.
X265 = (
    "bframes=0:keyint=30:min-keyint=30:scenecut=0:no-open-gop=1:rc-lookahead=0:frame-threads=1:pools=none:no-wpp=1:"
    "ctu=16:min-cu-size=16:ref=1:rd=1:me=dia:subme=0:max-merge=1:no-sao=1:aq-mode=0:info=0:repeat-headers=0:log-level=error"
)
VPS, SPS, PPS, ACCESS_UNIT_DELIMITER = 32, 33, 34, 35  # NAL unit types of H.265


class VideoEncoder:
    """Encodes frames; every 30th, the first of a payload, is a key frame."""

    def __init__(self, width: int = WIDTH, height: int = HEIGHT, crf: int = 30) -> None:
        """Open the encoder; a lower `crf` is a better quality."""
        context = av.CodecContext.create("libx265", "w")
        assert isinstance(context, av.VideoCodecContext)
        context.width, context.height, context.pix_fmt = width, height, "yuv420p"
        context.time_base = Fraction(1, VIDEO_TIMESCALE)
        context.framerate = Fraction(VIDEO_TIMESCALE, FRAME_TICKS)
        context.thread_count = 1
        context.options = {"preset": "ultrafast", "crf": str(crf), "x265-params": X265}
        context.flags |= av.codec.context.Flags.global_header
        context.open()
        self._context = context

    @property
    def configuration(self) -> bytes:
        """The decoder configuration record (hvcC)."""
        return hevc_configuration(bytes(self._context.extradata or b""))

    def encode(self, frame: int, planes: np.ndarray) -> Iterator[tuple[bytes, bool]]:
        """Encode frame number frame, planar 4:2:0 (height * 3 / 2, width), yielding (sample, is a key frame)."""
        picture = av.VideoFrame.from_ndarray(planes, format="yuv420p")
        picture.pts = frame * FRAME_TICKS
        yield from self._samples(picture)

    def flush(self) -> Iterator[tuple[bytes, bool]]:
        """Yield the remaining samples."""
        yield from self._samples(None)

    def _samples(self, picture: av.VideoFrame | None) -> Iterator[tuple[bytes, bool]]:
        for packet in self._context.encode(picture):
            units = [
                unit
                for unit in annex_b_units(bytes(packet))
                if not VPS <= unit_type(unit) <= ACCESS_UNIT_DELIMITER
            ]
            yield b"".join(struct.pack(">I", len(unit)) + unit for unit in units), packet.is_keyframe


class AudioEncoder:
    """Encode stereo sound as AAC blocks of 1024 samples.

    The encoder delays by one block. Cameras write no edit list, so the sound starts one block before media time 0
    (FIRST_BLOCK) and the first two coded blocks are dropped: coded block n then decodes to media samples 1024 n and
    following.
    """

    def __init__(self) -> None:
        """Open the encoder."""
        context = av.CodecContext.create("aac", "w")
        assert isinstance(context, av.AudioCodecContext)
        context.sample_rate, context.layout, context.format = AUDIO_HZ, "stereo", "fltp"
        context.bit_rate = AAC_BITS_PER_S
        context.time_base = Fraction(1, AUDIO_HZ)
        context.options = {"aac_coder": "fast"}
        context.flags |= av.codec.context.Flags.global_header
        context.open()
        self._context = context
        self._fed_blocks = 0
        self._coded_blocks = 0

    @property
    def configuration(self) -> bytes:
        """The AudioSpecificConfig."""
        return bytes(self._context.extradata or b"")

    def encode(self, stereo: np.ndarray | None) -> Iterator[bytes]:
        """Encode one block, float32 (2, 1024) within +-1, or flush with None."""
        block: av.AudioFrame | None = None
        if stereo is not None:
            block = av.AudioFrame.from_ndarray(
                np.ascontiguousarray(stereo, np.float32), format="fltp", layout="stereo"
            )
            block.sample_rate = AUDIO_HZ
            block.pts = self._fed_blocks * AAC_SAMPLES
            self._fed_blocks += 1
        for packet in self._context.encode(block):
            self._coded_blocks += 1
            if self._coded_blocks > 1 - FIRST_BLOCK:
                yield bytes(packet)


def annex_b_units(data: bytes) -> list[bytes]:
    """Return the NAL units of a byte stream with start codes."""
    parts = data.split(b"\0\0\1")
    # A unit never ends in a zero byte, so zeros before a start code belong to the start code.
    return [part.rstrip(b"\0") for part in parts[1:]]


def unit_type(unit: bytes) -> int:
    """Return the H.265 NAL unit type."""
    return (unit[0] >> 1) & 0x3F


def hevc_configuration(extradata: bytes) -> bytes:
    """Return hvcC (ISO/IEC 14496-15, 8.3.3.1) of the parameter sets in Annex B form: 4:2:0, 8 bits, one layer."""
    units = annex_b_units(extradata)
    sps = next(unit for unit in units if unit_type(unit) == SPS)
    # The 12 bytes of the general profile and level follow the unit header (2 bytes) and four small fields (1 byte).
    profile = sps[2:].replace(b"\0\0\3", b"\0\0")[1:13]
    record = b"\1" + profile + struct.pack(">HBBBBHB", 0xF000, 0xFC, 0xFD, 0xF8, 0xF8, 0, 0x0F) + b"\3"
    for kind in (VPS, SPS, PPS):
        chosen = [unit for unit in units if unit_type(unit) == kind]
        record += struct.pack(">BH", 0x80 | kind, len(chosen))
        record += b"".join(struct.pack(">H", len(unit)) + unit for unit in chosen)
    return record
