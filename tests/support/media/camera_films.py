"""Make camera files of any length at once, from a ring of encoded pictures: what a card looks like afterwards."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache, partial
from pathlib import Path

import av
import cv2
import numpy as np

from kitchensync.virtual_kitchen.gopro.files.chapters import (
    Chapter,
    ChapterRule,
    ChapterWriter,
    PictureFormat,
    WallTimes,
)
from kitchensync.virtual_kitchen.gopro.files.encoders import (
    AAC_SAMPLES,
    AUDIO_HZ,
    FIRST_BLOCK,
    VPS,
    AudioEncoder,
    annex_b_units,
    hevc_configuration,
    unit_type,
)
from kitchensync.virtual_kitchen.gopro.files.models import MODELS, FileIds, chapter_path
from kitchensync.virtual_kitchen.gopro.files.sensors import (
    FRAME_TICKS,
    FRAMES_PER_PAYLOAD,
    VIDEO_TIMESCALE,
    CameraMount,
    Instruments,
    TelemetryWriter,
    Timeline,
)
from kitchensync.virtual_kitchen.world.clocks import CameraCrystal, camera_clock
from kitchensync.virtual_kitchen.world.motion import HeadMotion, simulated_motion
from kitchensync.virtual_kitchen.world.seeds import generator
from kitchensync.virtual_kitchen.world.sound import kitchen_sound

RING_BLOCKS = 47
AVC_SPS, AVC_PPS = 7, 8
ALL_INSTRUMENTS = Instruments()
ONE_CHAPTER = ChapterRule()


@dataclass(frozen=True)
class FilmPlan:
    """What is to be filmed. 4K is 3840 x 2160; codec hvc1 or avc1; number is the recording's on the card."""

    frames: int
    width: int = 3840
    height: int = 2160
    codec: bytes = b"hvc1"
    model: str = "hero12"
    seed: int = 1
    number: int = 1
    rule: ChapterRule = ONE_CHAPTER
    instruments: Instruments = ALL_INSTRUMENTS
    local_s: float = 1_750_000_000.4
    zone_minutes: int = 120
    start_world_s: float = 0.0


@dataclass
class Synthesis:
    """What was made: its files, and what every sample of them held."""

    chapters: list[Chapter]
    pictures: list[bytes]
    "The ring: frame k shows sample k modulo its length."
    sound: list[bytes]
    payloads: list[bytes] = field(default_factory=list)
    serial: str = ""


def synthesize(folder: Path, film: FilmPlan, motion: HeadMotion | None = None) -> Synthesis:
    """Write the chapters of one recording into a folder, as fast as the disk takes them."""
    pictures, configuration = ring(film.codec, film.width, film.height)
    samples = ((pictures[k % len(pictures)], k % len(pictures) == 0) for k in range(film.frames))
    return write_clip(folder, film, samples, configuration, pictures, motion)


def write_clip(
    folder: Path,
    film: FilmPlan,
    samples: Iterator[tuple[bytes, bool]],
    configuration: bytes,
    pictures: list[bytes],
    motion: HeadMotion | None = None,
) -> Synthesis:
    """Write the chapters of a recording whose encoded pictures (sample, is a key frame) are given."""
    sound, sound_configuration = sound_ring(film.seed)
    model = MODELS[film.model]
    ids = FileIds(model, film.seed, int(film.local_s), film.zone_minutes)
    wall = WallTimes(created_utc_s=int(film.local_s) - 60 * film.zone_minutes, local_s=film.local_s)
    letters = "GX" if film.codec == b"hvc1" else "GH"
    first = folder / f"{letters}01{film.number:04d}.MP4"
    shape = PictureFormat(film.codec, film.width, film.height, configuration)
    writer = ChapterWriter(partial(chapter_path, first), shape, sound_configuration, ids, wall, film.rule)
    crystal: CameraCrystal = camera_clock(film.seed)
    telemetry = TelemetryWriter(
        motion or simulated_motion(film.seed),
        Timeline(crystal, film.start_world_s),
        CameraMount.of_seed(film.seed),
        model.name,
        film.seed,
        film.instruments,
    )
    made = Synthesis(writer.chapters, pictures, sound, serial=model.serial(film.seed))
    blocks = 0
    for begin in range(0, film.frames, FRAMES_PER_PAYLOAD):
        frames = min(FRAMES_PER_PAYLOAD, film.frames - begin)
        for _ in range(frames):
            sample, is_key = next(samples)
            writer.video(sample, is_key=is_key)
        end_block = -(-(begin + frames) * FRAME_TICKS * AUDIO_HZ // (VIDEO_TIMESCALE * AAC_SAMPLES))
        for block in range(blocks, end_block):
            writer.audio(sound[block % len(sound)])
        blocks = end_block
        made.payloads.append(telemetry.next_payload(frames))
        writer.metadata(made.payloads[-1], frames)
    writer.finish()
    return made


@lru_cache(maxsize=4)
def ring(codec: bytes, width: int, height: int) -> tuple[list[bytes], bytes]:
    """Encode one group of pictures, a textured picture that moves; return samples and configuration record."""
    return encode_ring(codec, _pictures(width, height))


def _pictures(width: int, height: int) -> Iterator[np.ndarray]:
    random = generator(0, "gopro ring")
    coarse = random.integers(0, 256, (height // 8, width // 8), dtype=np.uint8)
    texture = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
    texture = texture // 2 + random.integers(0, 12, texture.shape, dtype=np.uint8)
    chroma = np.full((height // 2, width), 128, np.uint8)
    for k in range(FRAMES_PER_PAYLOAD):
        yield np.concatenate([np.roll(texture, 8 * k, axis=1), chroma])


@lru_cache(maxsize=4)
def sound_ring(seed: int) -> tuple[list[bytes], bytes]:
    """Encode a second of sound; return AAC blocks and configuration."""
    encoder = AudioEncoder()
    blocks: list[bytes] = []
    for number in range(FIRST_BLOCK, RING_BLOCKS + 2):
        media_s = (np.arange(AAC_SAMPLES) + number * AAC_SAMPLES) / AUDIO_HZ
        heard = kitchen_sound(seed, media_s)
        blocks += encoder.encode(np.stack([heard, heard]))
    return blocks[:RING_BLOCKS], encoder.configuration


def encode_ring(codec: bytes, pictures: Iterator[np.ndarray]) -> tuple[list[bytes], bytes]:
    """Encode one closed group of pictures, planar 4:2:0; return its samples and the decoder configuration record.

    Repeated for ever it is a film of any length that costs no encoding: hvc1 or avc1.
    """
    first = next(pictures)
    height, width = first.shape[0] * 2 // 3, first.shape[1]
    context = av.CodecContext.create("libx265" if codec == b"hvc1" else "libx264", "w")
    assert isinstance(context, av.VideoCodecContext)
    context.width, context.height, context.pix_fmt = width, height, "yuv420p"
    context.time_base = Fraction(1, VIDEO_TIMESCALE)
    context.framerate = Fraction(VIDEO_TIMESCALE, FRAME_TICKS)
    wide = "bframes=0:keyint=9999:scenecut=0:no-open-gop=1:info=0:repeat-headers=0:log-level=error"
    options = (
        {"x265-params": wide}
        if codec == b"hvc1"
        else {"bf": "0", "g": "9999", "x264-params": "log-level=none"}
    )
    context.options = {"preset": "ultrafast", "crf": "28", **options}
    context.flags |= av.codec.context.Flags.global_header
    context.open()
    samples: list[bytes] = []
    for number, planes in enumerate(itertools.chain([first], pictures)):
        picture = av.VideoFrame.from_ndarray(planes, format="yuv420p")
        picture.pts = number * FRAME_TICKS
        samples += [_length_prefixed(bytes(packet), codec) for packet in context.encode(picture)]
    samples += [_length_prefixed(bytes(packet), codec) for packet in context.encode(None)]
    extradata = bytes(context.extradata or b"")
    return samples, hevc_configuration(extradata) if codec == b"hvc1" else avc_configuration(extradata)


def _length_prefixed(data: bytes, codec: bytes) -> bytes:
    """Return an access unit as an MP4 sample, without the parameter sets that the configuration record holds."""
    kept = []
    for unit in annex_b_units(data):
        is_slice = unit_type(unit) < VPS if codec == b"hvc1" else unit[0] & 0x1F in (1, 5)
        kept += [struct.pack(">I", len(unit)) + unit] if is_slice else []
    return b"".join(kept)


def avc_configuration(extradata: bytes) -> bytes:
    """Return avcC (ISO/IEC 14496-15, 5.3.3.1) of the parameter sets in Annex B form."""
    units = annex_b_units(extradata)
    sps = next(unit for unit in units if unit[0] & 0x1F == AVC_SPS)
    pps = next(unit for unit in units if unit[0] & 0x1F == AVC_PPS)
    head = bytes([1, *sps[1:4], 0xFF, 0xE1])
    return head + struct.pack(">H", len(sps)) + sps + b"\x01" + struct.pack(">H", len(pps)) + pps
