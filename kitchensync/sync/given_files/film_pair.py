"""`kitchensync align --reference --film`: two cameras, or a camera and any motion, without a headset."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from kitchensync.storage.timeline.alignment import CAMERA_CLOCK, Alignment, Input
from kitchensync.storage.timeline.clock_map import REFERENCE_CLOCK
from kitchensync.sync.align.gyro import align_pair
from kitchensync.sync.align.headset_gyro import HeadsetGyro, camera_as_reference
from kitchensync.sync.align.pair_alignment import PairAlignment, with_doubts
from kitchensync.sync.answers import plain
from kitchensync.sync.errors import BadArrays, TooShort
from kitchensync.sync.fit.resample import GyroTrack
from kitchensync.sync.given_files.arrays import file_input
from kitchensync.sync.given_files.motion_file import PER_RADIAN, Motion, Unit, read_motion
from kitchensync.sync.result.result import FILM_PICTURES, REFERENCE_PICTURES, pair_aligned, refused

MEDIA_CLOCK = "media_s"
LATEST_START_S = 3600.0
"A film's time counts from its first picture: a later first sample is a time of day or a date."


def align_films(reference_path: Path, film_path: Path, *, unit: Unit = "auto") -> dict[str, Any]:
    """Align the motion of a film with that of a reference; return the alignment object.

    `unit` is that of tables; auto finds it by comparison where the other file knows its own. Raises BadArrays when a
    file holds no rotation rates.
    """
    inputs = [file_input(reference_path), file_input(film_path)]
    reference, film = read_motion(reference_path, unit), read_motion(film_path, unit)
    first_s, last_s = film.track.t_s[[0, -1]]
    if first_s > LATEST_START_S or last_s <= 0:
        span = f"its times go from {first_s:g} to {last_s:g} s and do not count from 0"
        raise BadArrays(film.path.name, f"{span}: give it as --reference")
    if reference.unit == film.unit == "auto":
        raise BadArrays(
            f"{reference.path.name}, {film.path.name}",
            "neither says its unit: add --unit deg_per_s or --unit rad_per_s",
        )
    begin_s = float(np.floor(reference.track.t_s[0]))  # near 0 meanwhile, for the sake of the digits
    gyro = camera_as_reference(GyroTrack(reference.track.t_s - begin_s, reference.track.rad_per_s))
    try:
        film = _in_radians(gyro, film) if film.unit == "auto" else film
        found = align_pair(gyro, film.track, unit="auto" if reference.unit == "auto" else "rad_per_s")
    except TooShort as error:
        name = (reference if error.is_of_master else film).path.name
        answer = refused(
            f"{name} holds {error.seconds:.2f} s, {error.needed_s:g} s are needed", inputs=inputs
        )
    else:
        if (clock_map := found.clock_map) is not None:  # from the reference's own zero again
            first_s, *later = clock_map.coef
            found = replace(found, clock_map=replace(clock_map, coef=(first_s + begin_s, *later)))
        answer = _answer(_with_steps(found, reference, film), reference, film, inputs)
    answer = replace(
        answer,
        source=film.path.name,
        master=reference.path.name,
        master_clock=REFERENCE_CLOCK,
        source_clock=CAMERA_CLOCK if "stamp" in film.report else MEDIA_CLOCK,
        epoch_ticks=None,
        warnings=(*answer.warnings, *reference.warnings, *film.warnings),
        clues=film.clues,
    )
    return dict(plain(answer.as_object()))


def _answer(found: PairAlignment, reference: Motion, film: Motion, inputs: list[Input]) -> Alignment:
    films = {REFERENCE_PICTURES: reference, FILM_PICTURES: film}
    return pair_aligned(
        with_doubts(found, (*reference.doubts, *film.doubts)),
        epoch_ticks=0,
        last_t_s=float(film.track.t_s[-1]),
        headset=reference.report,
        camera=film.report,
        inputs=inputs,
        systematic=tuple(part for part, motion in films.items() if not motion.is_table),
    )


def _with_steps(found: PairAlignment, *motions: Motion) -> PairAlignment:
    """Let the bound hold what rounded stamps of a table may hide, and name the unit that was stated for it."""
    step_ms = 1e3 * sum(motion.stamp_step_s for motion in motions)
    first, middle, last = (part + step_ms for part in found.model_ms)
    unit = motions[0].unit
    stated = replace(found.unit, name=unit) if motions[0].is_table and unit != "auto" else found.unit
    return replace(found, model_ms=(first, middle, last), unit=stated)


def _in_radians(gyro: HeadsetGyro, film: Motion) -> Motion:
    """Find the unit of a table by a reference in rad/s: read as degrees, the reference seems to be in them or not."""
    as_degrees = film.track.scaled(1.0 / PER_RADIAN["deg_per_s"])
    is_in_degrees = align_pair(gyro, as_degrees).unit.scale < PER_RADIAN["deg_per_s"] ** 0.5
    unit: Unit = "deg_per_s" if is_in_degrees else "rad_per_s"
    told = f"{film.path.name}: its rates are in {unit} by comparison"
    track = as_degrees if is_in_degrees else film.track
    return replace(film, track=track, unit=unit, warnings=(*film.warnings, told))
