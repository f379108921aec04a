"""One file of motion: a GoPro's film or its bare telemetry, another film with telemetry, or a table of rates."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.gopro.files.bare_telemetry import BareTelemetry
from kitchensync.sensors.gopro.files.clip import Clip
from kitchensync.sensors.gopro.files.clue import Clue
from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.sensors.gopro.mp4.boxes import looks_like_mp4
from kitchensync.shell.array_types import Floats
from kitchensync.storage.errors import pass_on_trouble
from kitchensync.sync.errors import BadArrays
from kitchensync.sync.fit.resample import GyroTrack, make_track
from kitchensync.sync.recording.clip_rates import clip_rates

Unit = Literal["auto", "deg_per_s", "rad_per_s"]
PER_RADIAN = {"deg_per_s": 180.0 / np.pi, "rad_per_s": 1.0}
COLUMNS = ("t_s", "x", "y", "z")
NO_CLUES = "nothing in {} says where its telemetry lies on its pictures"
"""Other makers' telemetry counts from its own first sample."""
REPEATED = "{}: {} rows have the time of the row before: its times are rounded"
REPEATED_MOST, KEPT_LEAST = 0.01, 0.5
"Shares of rows with the time of the row before, and of rows that are kept."
SLOWEST_STEP_S, LONGEST_GAP_S = 0.5, 600.0
MOST_RATE = 1e5
"No sensor turns as fast, in degrees or radians a second."
FINEST_DIGITS, ROUNDING_S = 5, 2e-6
NO_FILM = "{} is telemetry without its film: its time counts from the first payload"


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
    stamp_step_s: float = 0.0
    "How far a table's stamps may be rounded."


def read_motion(path: Path, unit: Unit = "auto") -> Motion:
    """Read the rotation rates of a file; `unit` is that of a table, a film knows its own.

    Raises BadArrays when it holds none, or is not what it seems.
    """
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
    """Read the telemetry of a GoPro that was taken out of its film; None for what is none."""
    telemetry = BareTelemetry(path)
    try:
        if not telemetry.payloads:
            return None
    except SensorError as error:
        pass_on_trouble(error)
        return None
    rates = telemetry.gyroscope()
    track = make_track(path.name, rates.t_s, rates.xyz)
    return Motion(path, track, report=_report(track), doubts=(NO_FILM.format(path.name),))


def _read_table(path: Path, unit: Unit) -> Motion:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            names = [name.strip() for name in file.readline().split(",")]
            if missing := [name for name in COLUMNS if name not in names]:
                wanted = ",".join(COLUMNS)
                raise BadArrays(
                    path.name, f"its header has no column {', '.join(missing)}; it must be {wanted}"
                )
            columns = [names.index(name) for name in COLUMNS]
            with warnings.catch_warnings(category=UserWarning, action="ignore"):  # of a table without rows
                rows = np.loadtxt(file, delimiter=",", usecols=columns, ndmin=2)
    except (OSError, ValueError) as error:
        raise BadArrays(path.name, f"is not a table of numbers ({error})") from error
    rates = rows[:, 1:] / PER_RADIAN.get(unit, 1.0)
    rates[np.abs(rates) > MOST_RATE] = np.nan
    track = make_track(path.name, rows[:, 0], rates)
    repeated = int((np.diff(rows[:, 0]) == 0).sum())
    _check_times(path, track, len(rows) - repeated)
    lost = len(rows) - len(track.t_s) - repeated
    told = (f"{path.name}: {lost} rows are out of order or no numbers and are left out",) if lost > 0 else ()
    doubts = (REPEATED.format(path.name, repeated),) if repeated > REPEATED_MOST * len(rows) else ()
    return Motion(
        path,
        track,
        unit,
        is_table=True,
        report=_report(track),
        doubts=doubts,
        warnings=told,
        stamp_step_s=stamp_step(track.t_s),
    )


def _check_times(path: Path, track: GyroTrack, rows: int) -> None:
    """Refuse times that are no seconds or in no order. Raises BadArrays."""
    steps_s = np.diff(track.t_s)
    if len(track.t_s) < rows * KEPT_LEAST:
        raise BadArrays(path.name, f"only {len(track.t_s)} of {rows} rows are numbers with rising times")
    if float(np.median(steps_s)) > SLOWEST_STEP_S:
        raise BadArrays(path.name, f"its rows lie {np.median(steps_s):g} s apart: t_s must be in seconds")
    if float(steps_s.max()) > LONGEST_GAP_S:
        row = int(np.argmax(steps_s))
        raise BadArrays(path.name, f"its times jump by {steps_s.max():.0f} s after {track.t_s[row]:g} s")


def stamp_step(t_s: Floats) -> float:
    """Return the coarsest power of ten, seconds, of which all stamps are multiples: so far each may be rounded."""
    since_s = t_s - np.floor(t_s[0])
    for digits in range(FINEST_DIGITS):
        if np.abs(since_s - np.round(since_s, digits)).max() < ROUNDING_S:
            return float(10.0**-digits)
    return float(10.0**-FINEST_DIGITS)


def _read_other_film(path: Path) -> Motion:
    """Read a film of another maker's camera or a phone by telemetry-parser, where that is installed."""
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
    turned = [(one["timestamp_ms"] / 1e3, *one["gyro"]) for one in samples if one.get("gyro") is not None]
    if not turned:
        raise BadArrays(path.name, "holds no rotation rates")
    rows = np.array(turned, dtype=np.float64)
    track = make_track(path.name, rows[:, 0], np.radians(rows[:, 1:]))
    report = _report(track) | {"camera": f"{parser.camera} {parser.model or ''}".strip()}
    return Motion(path, track, report=report, doubts=(NO_CLUES.format(path.name),))


def _report(track: GyroTrack) -> dict[str, object]:
    rate_hz = 1.0 / float(np.median(np.diff(track.t_s)))
    return {"rate_hz": round(rate_hz, 4), "samples": len(track.t_s)}
