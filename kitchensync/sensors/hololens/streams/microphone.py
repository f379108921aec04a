"""Microphone: AAC with ADTS headers (default), 16-bit stereo, or the raw array of five; 48 kHz.

The timestamp of a packet is that of its first sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from kitchensync.sensors.errors import BadPacket
from kitchensync.sensors.hololens import wire
from kitchensync.sensors.hololens.encoding import ARRAY_CHANNELS, AUDIO, audio_hz, describe_audio
from kitchensync.sensors.hololens.headset_stream import RAW, SOUND, HeadsetStream
from kitchensync.sensors.stream import Format

NAME = "microphone"
RATE_HZ = 48_000
AAC_SAMPLES = 1024  # a frame of AAC-LC has as many

_ADTS_BYTES = 7  # without a checksum, which would add two
# In the order of the index in the header (ISO 14496-3).
_ADTS_RATES = (96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000, 7350)


class AacFrame(NamedTuple):
    """One AAC frame with its header (ISO 14496-3, ADTS)."""

    frame: memoryview
    "The whole payload, the input of a decoder."
    object_type: int
    "2 = AAC-LC."
    rate_hz: int
    channels: int
    samples: int


def decode(payload: memoryview | bytes) -> AacFrame:
    """Read the ADTS header of an AAC payload. Raises `BadPacket` if it is missing or its length is wrong."""
    view = memoryview(payload)
    if len(view) <= _ADTS_BYTES or view[0] != 0xFF or view[1] & 0xF6 != 0xF0:
        raise BadPacket(NAME, "no ADTS header")
    rate_index = view[2] >> 2 & 0xF
    length = (view[3] & 0x3) << 11 | view[4] << 3 | view[5] >> 5
    if length != len(view):
        raise BadPacket(NAME, f"ADTS frame of {length} bytes in a payload of {len(view)}")
    if rate_index >= len(_ADTS_RATES):
        raise BadPacket(NAME, f"ADTS rate index {rate_index}")
    channels = (view[2] & 0x1) << 2 | view[3] >> 6
    blocks = (view[6] & 0x3) + 1
    return AacFrame(view, (view[2] >> 6) + 1, _ADTS_RATES[rate_index], channels, AAC_SAMPLES * blocks)


def encode(raw_aac: bytes | memoryview, rate_hz: int = RATE_HZ, channels: int = 2) -> bytes:
    """Encode a raw AAC frame with an ADTS header (AAC-LC, no checksum)."""
    length = len(raw_aac) + _ADTS_BYTES
    if length >= 1 << 13:
        raise BadPacket(NAME, f"{len(raw_aac)} bytes are too many for one ADTS frame")
    rate_index = _ADTS_RATES.index(rate_hz)
    header = bytes(
        [
            0xFF,
            0xF1,
            1 << 6 | rate_index << 2 | channels >> 2,
            (channels & 0x3) << 6 | length >> 11,
            length >> 3 & 0xFF,
            (length & 0x7) << 5 | 0x1F,
            0xFC,
        ]
    )
    return header + bytes(raw_aac)


def decode_pcm(payload: memoryview | bytes) -> np.ndarray:
    """View a raw payload as (n, 2) int16 samples."""
    if len(payload) % 4:
        raise BadPacket(NAME, f"{len(payload)} bytes, not a multiple of 4")
    return np.frombuffer(payload, "<i2").reshape(-1, 2)


def decode_array(payload: memoryview | bytes) -> np.ndarray:
    """View a raw-array payload as (n, 5) float32 samples, channels as `ARRAY_CHANNELS`."""
    if len(payload) % 20:
        raise BadPacket(NAME, f"{len(payload)} bytes, not a multiple of 20")
    return np.frombuffer(payload, "<f4").reshape(-1, len(ARRAY_CHANNELS))


def sound(payloads: Iterable[bytes | memoryview]) -> Iterator[np.ndarray]:
    """Decode AAC payloads in order to (2, samples) float32 arrays, with one packet in memory.

    Raises `BadPacket` for a payload that cannot be decoded.
    """
    import av

    context = av.CodecContext.create("aac", "r")
    for payload in payloads:
        yield from decode_aac(context, payload)


def decode_aac(codec: Any, payload: bytes | memoryview) -> list[np.ndarray]:
    """Decode one payload with an `av` AAC decoder that decoded the previous payloads: (2, samples) float32 arrays.

    Raises `BadPacket` if it cannot be decoded.
    """
    import av

    decode(payload)
    try:
        return [frame.to_ndarray() for frame in codec.decode(av.Packet(bytes(payload)))]
    except av.FFmpegError as error:
        raise BadPacket(NAME, (error.strerror or str(error)).lower()) from error


def check(payload: bytes, form: Format) -> None:
    """Raise BadPacket for a payload that is not sound of this form."""
    if form.get("codec", RAW) == "aac":
        decode(payload)
    elif form.get("channels", 2) == 2:
        decode_pcm(payload)
    else:
        decode_array(payload)


_BITS_PER_S = {"aac": 0.2e6, "pcm": 1.5e6, "array": 7.7e6}
STREAM = HeadsetStream(
    NAME,
    nominal_hz=46.9,
    max_payload_bytes=256 << 10,
    port=3811,
    pose_bytes=0,
    module=__name__,
    kind=SOUND,
    is_default=True,
    is_voice=True,
    configure=lambda p: wire.audio_encoding(*AUDIO[p.microphone]),
    details=lambda p: describe_audio(p.microphone),
    hz_by_profile=lambda p: audio_hz(p.microphone),
    bits_per_s=lambda p: _BITS_PER_S[p.microphone],
    check=check,
    decode=decode,
    encode=encode,
)
