"""The microphone: the kitchen's sounds as AAC with ADTS headers, as PCM, or as the raw five-channel array."""

from collections import OrderedDict

import av
import numpy as np
import numpy.typing as npt

from kitchensync.virtual_kitchen.headset.client_configuration import ConfigurationReader, Rejected
from kitchensync.virtual_kitchen.headset.device import HeadsetState
from kitchensync.virtual_kitchen.headset.stream import Feed, Schedule, SentPacket, Stream
from kitchensync.virtual_kitchen.world.seeds import generator
from kitchensync.virtual_kitchen.world.sound import kitchen_sound

RATE_HZ = 48000
AAC_SAMPLES, PCM_SAMPLES = 1024, 768  # an AAC frame, and 16 ms of the audio engine
AAC_BYTES_PER_S = (12000, 16000, 20000, 24000)  # by number of the audio profile
RAW, ARRAY_LEVEL = 255, 0x2B  # profile without encoding, and its level with all five microphones
AAC_LEVELS = frozenset((0x29, 0x2A, 0x2B, 0x2C, 0x2E, 0x2F, 0x30, 0x31, 0x32, 0x33))
_SEGMENT = 47  # AAC frames encoded together, about a second
_LEAD_IN = 4  # AAC frames before them that only warm up the encoder
_ARRAY_DELAYS_S = np.array([-9e-5, 0.0, 9e-5, -6e-5, 6e-5])
_STEREO_DELAYS_S = np.array([-9e-5, 9e-5])
_SELF_NOISE = 0.002
Sound = npt.NDArray[np.float32]


def adts_header(frame_bytes: int) -> bytes:
    """Return the 7 byte ADTS header of an AAC-LC frame, 48 kHz, stereo; `frame_bytes` includes it."""
    return bytes(
        (
            0xFF,
            0xF1,
            0x4C,
            0x80 | frame_bytes >> 11,
            frame_bytes >> 3 & 0xFF,
            (frame_bytes & 7) << 5 | 0x1F,
            0xFC,
        )
    )


class Microphone:
    """Sound at the microphones: `sound(first, count, delays)` by sample number of the headset's audio crystal."""

    def __init__(self, headset: HeadsetState) -> None:
        rng = generator(headset.kitchen.seed, "microphone")
        self._seed = headset.kitchen.seed
        self.step_s = (1 + rng.uniform(-30e-6, 30e-6)) / RATE_HZ
        self.phase_s = float(rng.uniform(0, 0.02))

    def sound(self, first: int, count: int, delays_s: npt.NDArray[np.float64]) -> Sound:
        """Return (count, channels) float32 within +-1; silent before world time 0."""
        at_s = self.phase_s + self.step_s * np.arange(first, first + count)
        channels = [kitchen_sound(self._seed, at_s - delay_s) for delay_s in delays_s]
        noise = generator(self._seed, "microphone noise", max(first, 0), count).standard_normal(
            (count, len(delays_s)), dtype=np.float32
        )
        return np.clip(np.stack(channels, axis=1) + _SELF_NOISE * noise, -1, 1).astype(np.float32)


class AacFeed(Feed):
    """AAC frames. Each second is encoded separately after a lead-in, so the bytes of a frame depend only on k."""

    def __init__(self, headset: HeadsetState, bytes_per_s: int) -> None:
        self._headset, self._bits_per_s = headset, bytes_per_s * 8
        self._prepared = headset.prepared_sound.get(bytes_per_s, {})
        self._microphone = Microphone(headset)
        period_s = self._microphone.step_s * AAC_SAMPLES
        self._schedule = Schedule(period_s, self._microphone.phase_s, period_s + 0.01)
        self._segments: OrderedDict[int, list[bytes]] = OrderedDict()

    def packet(self, k: int) -> SentPacket:
        """Return frame k, stamped with its first sample."""
        number, place = divmod(k, _SEGMENT)
        frame = (self._prepared.get(number) or self._segment(number))[place]
        ticks = self._headset.clock.ticks_at(self._schedule.captured_s(k))
        return SentPacket(ticks, adts_header(len(frame) + 7) + frame)

    def segments(self, end_s: float) -> dict[int, list[bytes]]:
        """Encode all segments until `end_s` (world time); return them by number."""
        count = self._schedule.first_k(end_s) // _SEGMENT + 1
        return {number: self._encode(number * _SEGMENT) for number in range(count)}

    def _segment(self, number: int) -> list[bytes]:
        if number not in self._segments:
            self._segments[number] = self._encode(number * _SEGMENT)
            while len(self._segments) > 2:
                self._segments.popitem(last=False)
        return self._segments[number]

    def _encode(self, first_k: int) -> list[bytes]:
        codec = av.CodecContext.create("aac", "w")
        assert isinstance(codec, av.AudioCodecContext)
        codec.sample_rate, codec.layout, codec.format = RATE_HZ, "stereo", "fltp"
        codec.bit_rate, codec.thread_count = self._bits_per_s, 1
        codec.options = {"aac_coder": "fast"}
        frames: list[bytes] = []
        for k in range(first_k - _LEAD_IN, first_k + _SEGMENT):
            samples = self._microphone.sound(k * AAC_SAMPLES, AAC_SAMPLES, _STEREO_DELAYS_S)
            audio = av.AudioFrame.from_ndarray(
                np.ascontiguousarray(samples.T), format="fltp", layout="stereo"
            )
            audio.sample_rate, audio.pts = RATE_HZ, k * AAC_SAMPLES
            frames += [bytes(packet) for packet in codec.encode(audio)]
        frames += [bytes(packet) for packet in codec.encode(None)]
        return frames[-_SEGMENT:]


def prepare(headset: HeadsetState, end_s: float) -> None:
    """Encode the sound of a client with the usual settings until `end_s` (world time)."""
    rate = AAC_BYTES_PER_S[-1]
    headset.prepared_sound[rate] = AacFeed(headset, rate).segments(end_s)


class PcmFeed(Feed):
    """Buffers of the audio engine, 16 ms each: s16 stereo, or f32 of the five microphones."""

    def __init__(self, headset: HeadsetState, is_array: bool) -> None:
        self._headset, self._is_array = headset, is_array
        self._microphone = Microphone(headset)
        period_s = self._microphone.step_s * PCM_SAMPLES
        self._schedule = Schedule(period_s, self._microphone.phase_s, period_s + 0.005)

    def packet(self, k: int) -> SentPacket:
        """Return buffer k, stamped with its first sample."""
        delays_s = _ARRAY_DELAYS_S if self._is_array else _STEREO_DELAYS_S
        sound = self._microphone.sound(k * PCM_SAMPLES, PCM_SAMPLES, delays_s)
        payload = sound.astype("<f4") if self._is_array else np.rint(sound * 32767).astype("<i2")
        return SentPacket(self._headset.clock.ticks_at(self._schedule.captured_s(k)), payload.tobytes())


class MicrophoneStream(Stream):
    """The port: two bytes, profile and level."""

    name, port = "microphone", 3811

    def configure(self, reader: ConfigurationReader) -> Feed:
        """Read AUDIO_ENCODING; every known AAC level is sent as low complexity."""
        profile, level = reader.number("B"), reader.number("B")
        if profile == RAW:
            return PcmFeed(self._headset, level == ARRAY_LEVEL)
        if profile >= len(AAC_BYTES_PER_S) or level not in AAC_LEVELS:
            raise Rejected(f"audio profile {profile}, level {level}")
        return AacFeed(self._headset, AAC_BYTES_PER_S[profile])
