"""Extended audio: the microphone, the headset's own sound, or both; 48 kHz.

Packets are those of the microphone: AAC with ADTS headers, or 16-bit stereo.
"""

from __future__ import annotations

import struct

from kitchensync.sensors.hololens import wire
from kitchensync.sensors.hololens.constants import AAC_LEVEL_L2, AudioProfile, MixerMode
from kitchensync.sensors.hololens.encoding import AUDIO, audio_hz, describe_audio
from kitchensync.sensors.hololens.headset_stream import SOUND, HeadsetStream
from kitchensync.sensors.hololens.profile import MIXER_MODES
from kitchensync.sensors.hololens.streams.microphone import check, decode, decode_pcm, encode, sound

__all__ = ["LIST_DEVICES", "STREAM", "configuration", "decode", "decode_pcm", "encode", "sound"]


def configuration(mixer_mode: int, audio_profile: int, level: int) -> bytes:
    """MRC_AUDIO with both gains 1, then the audio encoding."""
    return struct.pack("<Iff", mixer_mode, 1.0, 1.0) + wire.audio_encoding(audio_profile, level)


LIST_DEVICES = configuration(MixerMode.DEVICE_LIST, AudioProfile.AAC_24000, AAC_LEVEL_L2)
"Sent after connecting: the headset answers with its audio devices (u32 bytes, UTF-16LE text) and closes."
STREAM = HeadsetStream(
    "extended_audio",
    nominal_hz=46.9,
    max_payload_bytes=256 << 10,
    port=3818,
    pose_bytes=0,
    module=__name__,
    kind=SOUND,
    opens_a_device=True,
    configure=lambda p: configuration(MIXER_MODES[p.extended_audio_source], *AUDIO[p.extended_audio]),
    details=lambda p: describe_audio(p.extended_audio) | {"source": p.extended_audio_source},
    hz_by_profile=lambda p: audio_hz(p.extended_audio),
    bits_per_s=lambda p: 0.2e6 if p.extended_audio == "aac" else 1.5e6,
    device_list=LIST_DEVICES,
    check=check,
    decode=decode,
    encode=encode,
)
