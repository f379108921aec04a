"""Extended audio, port 3818: the microphone, what the headset plays, or both; 48 kHz.

Packets are those of the microphone: AAC with ADTS headers, or 16-bit stereo.
"""

from __future__ import annotations

from sensors.hololens.configurations import extended_audio_configuration
from sensors.hololens.constants import AAC_LEVEL_L2, AudioProfile, MixerMode
from sensors.hololens.microphone import decode, decode_pcm, encode, sound

NAME = "extended_audio"
PORT = 3818
LIST_DEVICES = extended_audio_configuration(MixerMode.DEVICE_LIST, AudioProfile.AAC_24000, AAC_LEVEL_L2)
"Sent after connecting: the headset answers with its audio devices (u32 bytes, UTF-16LE text) and closes."

__all__ = ["LIST_DEVICES", "NAME", "PORT", "decode", "decode_pcm", "encode", "sound"]
