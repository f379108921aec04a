"""Access units of H.264 and H.265: detect key frames without decoding, and decode lazily with PyAV.

The headset's H.264 units begin with an access unit delimiter, which the decoder accepts. There are no B frames: each
unit gives one frame, in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

from kitchensync.sensors.errors import UnsupportedFormat

if TYPE_CHECKING:
    import av

_DECODERS = {"h264": "h264", "h265": "hevc"}
CODECS = tuple(_DECODERS)
_START_CODE = b"\x00\x00\x01"
_HEAD_BYTES = 2048
"Bytes that nearly always contain the parameter sets and the start of the first slice."


def nal_types(codec: str, unit: bytes | memoryview) -> Iterator[int]:
    """List the NAL unit types of an Annex B access unit in order."""
    data = bytes(unit)
    at = data.find(_START_CODE)
    while at >= 0 and at + 3 < len(data):
        byte = data[at + 3]
        yield byte & 0x1F if codec == "h264" else byte >> 1 & 0x3F
        at = data.find(_START_CODE, at + 3)


def is_key_frame(codec: str, unit: bytes | memoryview) -> bool:
    """Return whether decoding can start here: the first slice is NAL type 5 (H.264) or 16-21 (H.265)."""
    for part in (memoryview(unit)[:_HEAD_BYTES], unit):
        for kind in nal_types(codec, part):
            if codec == "h264" and 1 <= kind <= 5:
                return kind == 5
            if codec != "h264" and kind < 32:
                return 16 <= kind <= 21
    return False


def decoder(codec: str) -> av.VideoCodecContext:
    """Return a decoder without frame delay for "h264" or "h265". Raises UnsupportedFormat."""
    import av

    if codec not in _DECODERS:
        raise UnsupportedFormat(f"video codec {codec!r}", ", ".join(_DECODERS))
    context = cast("av.VideoCodecContext", av.CodecContext.create(_DECODERS[codec], "r"))
    context.thread_count = 1  # frame threads would delay frames
    return context


def decode_units(
    codec: str,
    units: Iterable[bytes | memoryview],
    on_bad: Callable[[int, str], None] | None = None,
) -> Iterator[tuple[int, av.VideoFrame]]:
    """Decode access units lazily: yield (index of the unit, frame), with few frames in memory.

    The first unit must be a key frame. For a unit that cannot be decoded or has no frame, `on_bad` is called with its
    index and the reason, and decoding continues. `codec` is "h264" or "h265".
    """
    import av

    context = decoder(codec)
    report = on_bad or (lambda index, reason: None)
    waiting: list[int] = []
    for index, packet in _packets(units):
        if packet is not None:
            if packet.size == 0:  # for the decoder an empty packet is the end of the stream
                report(index, "empty")
                continue
            waiting.append(index)
        try:
            frames = context.decode(packet)
        except av.FFmpegError as error:
            if packet is not None:
                waiting.remove(index)
                report(index, (error.strerror or str(error)).lower())
            continue
        for frame in frames:
            while waiting and frame.pts is not None and waiting[0] < frame.pts:
                report(waiting.pop(0), "no picture")
            if waiting and waiting[0] == frame.pts:
                yield waiting.pop(0), frame
    for index in waiting:
        report(index, "no picture")


def _packets(units: Iterable[bytes | memoryview]) -> Iterator[tuple[int, av.Packet[Any] | None]]:
    """Yield numbered packets, and None at the end, which flushes the decoder."""
    import av

    index = -1
    for index, unit in enumerate(units):
        packet = av.Packet(bytes(unit))
        packet.pts = index
        yield index, packet
    yield index + 1, None
