"""The extended streams: audio of the whole headset, any other camera, any other depth camera."""

import json
import struct
from dataclasses import dataclass

import numpy as np

from kitchensync.virtual_kitchen.headset.client_configuration import ConfigurationReader, Rejected
from kitchensync.virtual_kitchen.headset.device import HeadsetState
from kitchensync.virtual_kitchen.headset.stream import Feed, Schedule, SentPacket, Stream
from kitchensync.virtual_kitchen.headset.streams.ahat_stream import blob
from kitchensync.virtual_kitchen.headset.streams.longthrow_stream import HEIGHT, WIDTH, picture
from kitchensync.virtual_kitchen.headset.streams.microphone_stream import (
    AAC_BYTES_PER_S,
    AAC_LEVELS,
    RAW,
    AacFeed,
    PcmFeed,
)
from kitchensync.virtual_kitchen.headset.streams.pv_stream import (
    CLOSE_FLAG,
    MRC_BYTES,
    OPEN_FLAG,
    PvFeed,
    read_pv,
)
from kitchensync.virtual_kitchen.world.seeds import generator

DEVICES = ["Microphone Array (Virtual Kitchen)", "Headset Speakers (Virtual Kitchen)"]
CAMERAS = [
    {
        "DisplayName": "QC Back Camera",
        "Id": "virtual-kitchen-group-0",
        "SourceInfos": [{"SourceKind": "Color", "Id": "virtual-kitchen-source-0"}],
    }
]
MIXER_LIST = 3  # mixer mode that asks for the list of devices
MEDIA_INDEX, STRIDE_MASK = 2**64 - 5, 2**64 - 4  # option keys of hl2ss itself
DEPTH_HZ = 30
_MEDIA = ((WIDTH, HEIGHT), (160, 144))


def device_list(text: str) -> bytes:
    """Return a list as sent: u32 bytes, then UTF-16LE without a terminator."""
    encoded = text.encode("utf-16-le")
    return struct.pack("<I", len(encoded)) + encoded


class ExtendedAudioStream(Stream):
    """The audio port: mixer and gains, then the encoding; mixer mode 3 lists the devices."""

    name, port = "extended_audio", 3818

    def configure(self, reader: ConfigurationReader) -> Feed | None:
        """Read MRC_AUDIO and AUDIO_ENCODING."""
        mixer, _loopback, _microphone = struct.unpack("<Iff", reader.take(12))
        profile, level = reader.number("B"), reader.number("B")
        if profile != RAW and (profile >= len(AAC_BYTES_PER_S) or level not in AAC_LEVELS):
            raise Rejected(f"audio profile {profile}, level {level}")
        if mixer & 3 == MIXER_LIST:
            reader.answer(device_list("\n".join(DEVICES)))
            return None
        if profile == RAW:
            return PcmFeed(self._headset, False)
        return AacFeed(self._headset, AAC_BYTES_PER_S[profile])


class _Subsystem(Stream):
    """The start and stop flags that extended video and depth share with the front camera."""

    def __init__(self, headset: HeadsetState) -> None:
        super().__init__(headset)
        self._is_open = False
        self._closes = False

    def _mode(self, reader: ConfigurationReader) -> int:
        mode = reader.number("B")
        self._closes = bool(mode & CLOSE_FLAG)
        if mode & OPEN_FLAG:
            reader.take(MRC_BYTES)
            self._is_open = not self._headset.stopping.wait(0.1)
        return mode & 3

    def release(self) -> None:
        """Close the subsystem if the client asked for it."""
        self._is_open = self._is_open and not self._closes


class ExtendedVideoFeed(PvFeed):
    """The front camera's frames; metadata holds only the size, the pose is the rig's."""

    def _metadata(self) -> bytes:
        size = self._configuration.format
        return bytes(76) + struct.pack("<2H", size.width, size.height)

    def _pose(self, at_s: float) -> bytes:
        return self._headset.pose(at_s)


class ExtendedVideoStream(_Subsystem):
    """The port of another camera."""

    name, port = "extended_video", 3819

    def configure(self, reader: ConfigurationReader) -> Feed | None:
        """Obey the mode byte; mode 2 lists the cameras and needs no subsystem."""
        mode = self._mode(reader)
        if mode == 2:
            reader.answer(device_list(json.dumps(CAMERAS)))
        if mode > 1:
            return None
        if not self._is_open:
            raise Rejected("extended video is not open")
        return ExtendedVideoFeed(self._headset, read_pv(reader, mode == 1))


@dataclass(frozen=True, slots=True)
class _DepthConfiguration:
    with_pose: bool
    divisor: int
    is_zdepth: bool
    width: int
    height: int
    padded: int


class ExtendedDepthFeed(Feed):
    """Frames of another depth camera for one client."""

    def __init__(self, headset: HeadsetState, configuration: _DepthConfiguration) -> None:
        rng = generator(headset.kitchen.seed, "extended depth")
        self._headset, self._configuration = headset, configuration
        self._schedule = Schedule(configuration.divisor / DEPTH_HZ, float(rng.uniform(0, 1 / DEPTH_HZ)), 0.05)
        self._images: dict[int, bytes] = {}

    def packet(self, k: int) -> SentPacket:
        """Return frame k and its size."""
        configuration, at_s, index = self._configuration, self._schedule.captured_s(k), k % 10
        if index not in self._images:
            depth, _ = picture(self._headset.kitchen.seed, index)
            padded = np.zeros((configuration.height, configuration.padded), np.uint16)
            step = WIDTH // configuration.width
            padded[:, : configuration.width] = depth[::step, ::step]
            self._images[index] = blob(padded, index) if configuration.is_zdepth else padded.tobytes()
        payload = self._images[index] + struct.pack("<2H", configuration.padded, configuration.height)
        pose = self._headset.pose(at_s) if configuration.with_pose else b""
        return SentPacket(self._headset.clock.ticks_at(at_s), payload, pose)


class ExtendedDepthStream(_Subsystem):
    """The port of another depth camera."""

    name, port = "extended_depth", 3821

    def configure(self, reader: ConfigurationReader) -> Feed | None:
        """Obey the mode byte; there is no mode 2."""
        mode = self._mode(reader)
        if mode == 3:
            return None
        if mode == 2 or not self._is_open:
            raise Rejected(f"extended depth, mode {mode}")
        divisor, profile, options = reader.divisor(), reader.number("B"), reader.encoder_options()
        media, mask = options.get(MEDIA_INDEX, 0xFFFFFFFF), options.get(STRIDE_MASK, 63)
        if profile > 1 or media >= len(_MEDIA):
            raise Rejected(f"depth profile {profile}, media {media}")
        width, height = _MEDIA[media]
        configuration = _DepthConfiguration(
            mode == 1, divisor, profile == 1, width, height, (width + mask) & ~mask
        )
        return ExtendedDepthFeed(self._headset, configuration)
