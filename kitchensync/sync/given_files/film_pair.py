"""`kitchensync align --reference --film`: two cameras, or a camera and any motion, without a headset."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.files.bare_telemetry import BareTelemetry
from kitchensync.sensors.gopro.files.clip import Clip
from kitchensync.sensors.gopro.files.clue import Clue
from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.sensors.gopro.mp4.boxes import looks_like_mp4
from kitchensync.shell.array_types import Floats
from kitchensync.storage.errors import pass_on_trouble
from kitchensync.storage.timeline.alignment import CAMERA_CLOCK, Alignment, Input
from kitchensync.storage.timeline.clock_map import REFERENCE_CLOCK
from kitchensync.sync.align.gyro import align_pair
from kitchensync.sync.align.headset_gyro import HeadsetGyro, camera_as_reference
from kitchensync.sync.align.pair_alignment import PairAlignment, doubted
from kitchensync.sync.answers import plain
from kitchensync.sync.errors import BadArrays, TooShort
from kitchensync.sync.fit.resample import GyroTrack, make_track
from kitchensync.sync.given_files.arrays import file_input, track_report
from kitchensync.sync.recording.clip_rates import clip_rates
from kitchensync.sync.result.result import FILM_PICTURES, REFERENCE_PICTURES, pair_aligned, refused

Unit = Literal["auto", "deg_per_s", "rad_per_s"]
PER_RADIAN = {"deg_per_s": 180.0 / np.pi, "rad_per_s": 1.0}
COLUMNS = ("t_s", "x", "y", "z")
REPEATED_MOST, KEPT_LEAST = 0.01, 0.5
"Maximum share of rows with the time of the row before, and minimum share of kept rows."
SLOWEST_STEP_S, LONGEST_GAP_S = 0.5, 600.0  # up to 1 kHz, stamps in ms are 1 or more apart
MOST_RATE = 1e5  # above the rate of any sensor, in degrees or radians per second
FINEST_DIGITS, ROUNDING_S = 5, 2e-6


@dataclass(frozen=True, slots=True)
class Motion:
    """Rotation rates of one file on its own time, rad/s unless `unit` is auto."""

    path: Path
    track: GyroTrack
    unit: Unit = "rad_per_s"
    is_table: bool = False
    report: dict[str, object] = field(default_factory=dict)
    clues: tuple[Clue, ...] = ()
    doubts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    stamp_step_s: float = 0.0  # rounding of a table's stamps


def read_motion(path: Path, unit: Unit = "auto") -> Motion:
    """Read the rotation rates of a file; `unit` is that of a table, as a video has its own. Raises BadArrays."""
    if path.suffix.lower() == ".csv":
        return _read_table(path, unit)
    try:
        if not looks_like_mp4(path) and (bare := _bare(path)) is not None:
            return bare
        media = open_media(path)
        rates = clip_rates(Clip([media])) if media.payloads else None
    except SensorError as error:
        pass_on_trouble(error)
        raise BadArrays(path.name, " ".join(str(error).split()).removeprefix(f"{path}: ")) from error
    if rates is None:
        return _read_other_film(path)
    if rates.track is None:
        raise BadArrays(path.name, rates.problem.removeprefix(f"{path.name}: "))
    track = make_track(path.name, rates.track.t_s, rates.track.xyz)
    return Motion(
        path, track, report=rates.report, clues=rates.clues, doubts=rates.doubts, warnings=rates.noted
    )


def _bare(path: Path) -> Motion | None:
    """Read extracted telemetry of a GoPro; None for other files."""
    telemetry = BareTelemetry(path)
    try:
        if not telemetry.payloads:
            return None
    except SensorError as error:
        pass_on_trouble(error)
        return None
    rates = telemetry.gyroscope()
    track = make_track(path.name, rates.t_s, rates.xyz)
    doubt = f"{path.name} is telemetry without its film: its time counts from the first payload"
    return Motion(path, track, report=track_report(track), doubts=(doubt,))


def _read_table(path: Path, unit: Unit) -> Motion:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            names = [name.strip() for name in file.readline().split(",")]
            if missing := [name for name in COLUMNS if name not in names]:
                header = ",".join(COLUMNS)
                raise BadArrays(
                    path.name, f"its header has no column {', '.join(missing)}; it must be {header}"
                )
            columns = [names.index(name) for name in COLUMNS]
            with warnings.catch_warnings(category=UserWarning, action="ignore"):  # for a table without rows
                rows = np.loadtxt(file, delimiter=",", usecols=columns, ndmin=2)
    except (OSError, ValueError) as error:
        raise BadArrays(path.name, f"is not a table of numbers ({error})") from error
    rates = rows[:, 1:] / PER_RADIAN.get(unit, 1.0)
    rates[np.abs(rates) > MOST_RATE] = np.nan
    track = make_track(path.name, rows[:, 0], rates)
    repeated = int((np.diff(rows[:, 0]) == 0).sum())
    _check_times(path, track, len(rows) - repeated)
    lost = len(rows) - len(track.t_s) - repeated
    row_warnings = (
        (f"{path.name}: {lost} rows are out of order or no numbers and are left out",) if lost > 0 else ()
    )
    rounded = f"{path.name}: {repeated} rows have the time of the row before: its times are rounded"
    doubts = (rounded,) if repeated > REPEATED_MOST * len(rows) else ()
    report, step_s = track_report(track), stamp_step(track.t_s)
    return Motion(path, track, unit, True, report, doubts=doubts, warnings=row_warnings, stamp_step_s=step_s)


def _check_times(path: Path, track: GyroTrack, rows: int) -> None:
    """Refuse times in another unit or out of order. Raises BadArrays."""
    steps_s = np.diff(track.t_s)
    if len(track.t_s) < rows * KEPT_LEAST:
        raise BadArrays(path.name, f"only {len(track.t_s)} of {rows} rows are numbers with rising times")
    if float(np.median(steps_s)) > SLOWEST_STEP_S:
        raise BadArrays(path.name, f"its rows lie {np.median(steps_s):g} s apart: t_s must be in seconds")
    if float(steps_s.max()) > LONGEST_GAP_S:
        row = int(np.argmax(steps_s))
        raise BadArrays(path.name, f"its times jump by {steps_s.max():.0f} s after {track.t_s[row]:g} s")


def stamp_step(t_s: Floats) -> float:
    """Return the largest power of ten, seconds, of which all stamps are multiples, which is their rounding."""
    since_s = t_s - np.floor(t_s[0])
    for digits in range(FINEST_DIGITS):
        if np.abs(since_s - np.round(since_s, digits)).max() < ROUNDING_S:
            return float(10.0**-digits)
    return float(10.0**-FINEST_DIGITS)


def _read_other_film(path: Path) -> Motion:
    """Read a film of another camera or a phone by telemetry-parser, if it is installed."""
    try:
        import telemetry_parser
    except ImportError as error:
        raise BadArrays(
            path.name,
            "holds no GoPro telemetry; for other cameras and phones run"
            " pip install 'kitchensync[film-motion]' (Python 3.12 and older)",
        ) from error
    try:
        parser = telemetry_parser.Parser(str(path))
        samples = parser.normalized_imu()
    except (OSError, ValueError, RuntimeError) as error:
        raise BadArrays(
            path.name, f"holds no telemetry that can be read ({' '.join(str(error).split())})"
        ) from error
    rows_read = [
        (sample["timestamp_ms"] / 1e3, *sample["gyro"])
        for sample in samples
        if sample.get("gyro") is not None
    ]
    if not rows_read:
        raise BadArrays(path.name, "holds no rotation rates")
    rows = np.array(rows_read, dtype=np.float64)
    track = make_track(path.name, rows[:, 0], np.radians(rows[:, 1:]))
    report = track_report(track) | {"camera": f"{parser.camera} {parser.model or ''}".strip()}
    # other makers' telemetry counts from its own first sample
    doubt = f"nothing in {path.name} says where its telemetry lies on its pictures"
    return Motion(path, track, report=report, doubts=(doubt,))


MEDIA_CLOCK = "media_s"
LATEST_START_S = 3600.0
"A film's time starts at its first picture; a later first sample is a time of day or a date."


def align_films(reference_path: Path, film_path: Path, *, unit: Unit = "auto") -> dict[str, Any]:
    """Align the motion of a film with that of a reference; return the alignment object.

    `unit` is that of tables; auto finds it by comparison if the other file has its own unit. Raises BadArrays if a
    file has no rotation rates.
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
    begin_s = float(np.floor(reference.track.t_s[0]))  # near 0 to keep the digits
    gyro = camera_as_reference(GyroTrack(reference.track.t_s - begin_s, reference.track.rad_per_s))
    try:
        film = _in_radians(gyro, film) if film.unit == "auto" else film
        pair = align_pair(gyro, film.track, unit="auto" if reference.unit == "auto" else "rad_per_s")
    except TooShort as error:
        name = (reference if error.is_of_master else film).path.name
        answer = refused(
            f"{name} holds {error.seconds:.2f} s, {error.needed_s:g} s are needed", inputs=inputs
        )
    else:
        if (clock_map := pair.clock_map) is not None:  # back to the reference's own zero
            first_s, *later = clock_map.coef
            pair = replace(pair, clock_map=replace(clock_map, coef=(first_s + begin_s, *later)))
        answer = _answer(pair, reference, film, inputs)
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


def _answer(pair: PairAlignment, reference: Motion, film: Motion, inputs: list[Input]) -> Alignment:
    """Include the rounding of a table's stamps in the bound, and the stated unit."""
    step_ms = 1e3 * sum(motion.stamp_step_s for motion in (reference, film))
    first, middle, last = (part + step_ms for part in pair.model_ms)
    unit = pair.unit
    if reference.is_table and reference.unit != "auto":
        unit = replace(unit, name=reference.unit)
    pair = replace(pair, model_ms=(first, middle, last), unit=unit)
    films = {REFERENCE_PICTURES: reference, FILM_PICTURES: film}
    return pair_aligned(
        doubted(pair, "; ".join((*reference.doubts, *film.doubts))),
        epoch_ticks=0,
        last_t_s=float(film.track.t_s[-1]),
        headset=reference.report,
        camera=film.report,
        inputs=inputs,
        systematic=tuple(part for part, motion in films.items() if not motion.is_table),
    )


def _in_radians(gyro: HeadsetGyro, film: Motion) -> Motion:
    """Find the unit of a table: read as degrees, it is compared with a reference in rad/s."""
    as_degrees = film.track.scaled(1.0 / PER_RADIAN["deg_per_s"])
    is_in_degrees = align_pair(gyro, as_degrees).unit.scale < PER_RADIAN["deg_per_s"] ** 0.5
    unit: Unit = "deg_per_s" if is_in_degrees else "rad_per_s"
    warning = f"{film.path.name}: its rates are in {unit} by comparison"
    track = as_degrees if is_in_degrees else film.track
    return replace(film, track=track, unit=unit, warnings=(*film.warnings, warning))
