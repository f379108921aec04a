"""Access units of H.264 and H.265: tell key frames apart without decoding, and decode lazily with PyAV.

The headset's H.264 units begin with an access unit delimiter; the decoder takes it, so nothing is cut.
There are no B frames: one unit in, one picture out, in the same order.
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
"Parameter sets stand before the first slice: it nearly always begins within this."


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
    """Make a decoder that gives each picture at once. Raises UnsupportedFormat; `codec` is "h264" or "h265"."""
    import av

    if codec not in _DECODERS:
        raise UnsupportedFormat(f"video codec {codec!r}", ", ".join(_DECODERS))
    context = cast("av.VideoCodecContext", av.CodecContext.create(_DECODERS[codec], "r"))
    context.thread_count = 1  # frame threads would hold pictures back
    return context


def decode_units(
    codec: str,
    units: Iterable[bytes | memoryview],
    on_bad: Callable[[int, str], None] | None = None,
) -> Iterator[tuple[int, av.VideoFrame]]:
    """Decode access units lazily: yields (index of the unit, picture); memory stays at a few pictures.

    Start at a key frame. A unit that does not decode, or that gives no picture, is told to `on_bad` with its
    index and the reason, and decoding goes on. `codec` is "h264" or "h265".
    """
    import av

    context = decoder(codec)
    told = on_bad or _ignore
    waiting: list[int] = []
    for index, packet in _packets(units):
        if packet is not None:
            if packet.size == 0:  # the decoder would take it for the end
                told(index, "empty")
                continue
            waiting.append(index)
        try:
            pictures = context.decode(packet)
        except av.FFmpegError as error:
            if packet is not None:
                waiting.remove(index)
                told(index, (error.strerror or str(error)).lower())
            continue
        for picture in pictures:
            while waiting and picture.pts is not None and waiting[0] < picture.pts:
                told(waiting.pop(0), "no picture")
            if waiting and waiting[0] == picture.pts:
                yield waiting.pop(0), picture
    for index in waiting:
        told(index, "no picture")


def _packets(units: Iterable[bytes | memoryview]) -> Iterator[tuple[int, av.Packet[Any] | None]]:
    """Number the units, and close with None, which makes the decoder give what it still holds."""
    import av

    index = -1
    for index, unit in enumerate(units):
        packet = av.Packet(bytes(unit))
        packet.pts = index
        yield index, packet
    yield index + 1, None


def _ignore(index: int, reason: str) -> None:
    """Let a bad unit pass: the caller counts pictures itself."""
