"""A film as phones write it: rotation rates in a camera motion track (CAMM), one sample a picture, and no GoPro."""

from __future__ import annotations

import struct
from functools import partial
from pathlib import Path

import numpy as np
from camera_films import FilmPlan, ring, sound_ring

from kitchensync.virtual_kitchen.gopro.files.chapters import ChapterWriter, PictureFormat, WallTimes
from kitchensync.virtual_kitchen.gopro.files.models import MODELS, FileIds, chapter_path
from kitchensync.virtual_kitchen.gopro.files.sensors import frame_media_s
from kitchensync.virtual_kitchen.world.motion import HeadMotion

MARKS = {b"gpmd": b"camm", b"GoPro": b"Phone", b"HERO": b"PHON", b"GPMF": b"free"}
"""What names the track and the camera in the boxes of a GoPro's film, and what stands there instead."""
ROTATION_RATE = 2
"""Type of a CAMM packet of three float32, rad/s."""


def write_phone_film(path: Path, film: FilmPlan, motion: HeadMotion) -> Path:
    """Write a film of `film.frames` pictures whose camera turns as the head does."""
    pictures, configuration = ring(film.codec, film.width, film.height)
    sound, sound_configuration = sound_ring(film.seed)
    ids = FileIds(MODELS[film.model], film.seed, int(film.local_s), film.zone_minutes)
    wall = WallTimes(created_utc_s=int(film.local_s), local_s=film.local_s)
    shape = PictureFormat(film.codec, film.width, film.height, configuration)
    writer = ChapterWriter(partial(chapter_path, path), shape, sound_configuration, ids, wall, film.rule)
    rates = motion.angular_velocity(film.start_world_s + frame_media_s(np.arange(film.frames)))
    for number, rate in enumerate(rates):
        writer.video(pictures[number % len(pictures)], is_key=number % len(pictures) == 0)
        writer.audio(sound[number % len(sound)])
        writer.metadata(struct.pack("<HH3f", 0, ROTATION_RATE, *rate), 1)
    writer.finish()
    content = path.read_bytes()
    for mark, other in MARKS.items():
        content = content.replace(mark, other)
    path.write_bytes(content)
    return path
