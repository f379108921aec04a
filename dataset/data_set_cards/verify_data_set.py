#!/usr/bin/env python3
"""Prove a data set: checksums, coverage, tables and alignment. Needs Python 3.9 or later, NumPy and PyAV.

    python verify.py
    python verify.py FOLDER --recording 1_26 --json

Everything is computed anew from the files here: two gyroscopes, the headset's and the camera's, tell how far apart
their times are. PASS: nothing was found. WARN: something is missing that is named. FAIL: a file is not what
SHA256SUMS says, times or columns contradict each other, or a film is not where its times say. Exit code 1 for FAIL.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

SUMS, LINKS = "SHA256SUMS", "metadata/download_links.json"
STEPS_JSON, STEPS_CSV = (
    "annotation_json/complete_step_annotations.json",
    "annotation_csv/step_annotations.csv",
)
BLOCK = 1 << 20
UNKNOWN = np.iinfo(np.int64).min
PASS, WARN, FAIL = "PASS", "WARN", "FAIL"
MOTION, HEADSET_MOTION = "gopro_gyroscope_npz", "hololens_sync_imu_gyroscope_npz"
FRAMES = "hololens_sync_frames_npz"
FILMS = {"gopro_360p": "gopro_360p_frames_npz", "gopro_720p": "gopro_720p_frames_npz"}

PERIODS, COVERAGE_WARN, COVERAGE_FAIL, HOLE_NAMED_S = 3.0, 0.95, 0.5, 1.0
LOST_S = 1.0
GRID_HZ = 100.0
SEARCH_S = 10.0
WINDOW_S = 5.0
LEAST_WINDOWS = 3
LEAST_TURNING = 0.05
"""Root mean square, rad/s, below which nothing can be said about two gyroscopes."""
ALIKE = 0.6
"""Correlation of two gyroscopes that sit on one head, at the least."""
MIRRORED = 0.03
"""What a mirror adds to the correlation of two gyroscopes that were read right: nothing but noise."""
OWN_MS = 0.15
"""How exact this comparison is by itself, beside the scatter of its windows."""
TIMES_MS = 1.0
"""How far the times of a film's pictures and of its motion may contradict each other."""
Arrays = dict[str, Any]


class RecordingFindings:
    """What was found of one recording; the worst of it is its status."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.said: list[tuple[str, str]] = []
        self.pairs: list[dict[str, Any]] = []

    def fail(self, why: str) -> None:
        """Note something that contradicts itself or is not there though it is promised."""
        self.said.append((FAIL, why))

    def warn(self, why: str) -> None:
        """Note something that is missing."""
        self.said.append((WARN, why))

    @property
    def status(self) -> str:
        """PASS, WARN or FAIL."""
        found = {status for status, _ in self.said}
        return FAIL if FAIL in found else WARN if WARN in found else PASS

    def told(self) -> dict[str, Any]:
        """Return the findings as JSON has them."""
        reasons = [why for _, why in self.said]
        return {"recording": self.name, "status": self.status, "reasons": reasons, "pairs": self.pairs}


# --- checksums


def read_sums(text: str) -> dict[str, str]:
    """Return path -> hash. Raises ValueError for a line that is none, or a path that leads out of the folder."""
    found = {}
    for line in text.splitlines():
        match = re.fullmatch(r"([0-9a-f]{64})  (\S.*)", line)
        path = PurePosixPath(match[2]) if match else PurePosixPath("..")
        if not match or path.is_absolute() or ".." in path.parts or "\\" in match[2]:
            raise ValueError(f"{SUMS}: not a line of it: {line[:80]!r}")
        found[match[2]] = match[1]
    return found


def corrupt_files(folder: Path, *, partial: bool) -> list[dict[str, str]]:
    """Return the files that are not what SHA256SUMS says; with `partial` those that are not here do not count."""
    corrupt = []
    for name, wanted in read_sums((folder / SUMS).read_text(encoding="utf-8")).items():
        path, digest = folder / name, hashlib.sha256()
        if not path.is_file():
            if not partial:
                corrupt.append({"file": name, "why": "is not here"})
            continue
        with path.open("rb") as file:
            while block := file.read(BLOCK):
                digest.update(block)
        if digest.hexdigest() != wanted:
            corrupt.append({"file": name, "why": f"is not what {SUMS} says"})
    return corrupt


# --- tables and films


def read_arrays(path: Path) -> Arrays:
    """Load an .npz without the pictures of depth: plain arrays by name. Raises ValueError."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files if not re.fullmatch(r"(depth|ab)-\d+", name)}
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"cannot be read as plain arrays ({type(error).__name__})") from error


def count_pictures(path: Path) -> int:
    """Count the pictures of a film without decoding them."""
    import av

    with av.open(str(path)) as film:
        return sum(packet.size > 0 for packet in film.demux(film.streams.video[0]))


def check_arrays(kind: str, arrays: Arrays, frames: Arrays | None, found: RecordingFindings) -> None:
    """Check what holds for every file of the headset: rising times, those of the table of frames, sound values."""
    frame, taken = arrays.get("frame"), arrays.get("capture_ns")
    if frame is None or taken is None or len(frame) != len(taken) or taken.dtype != np.int64:
        found.fail(f"{kind}: `frame` and `capture_ns` are not columns of equal length")
        return
    known = taken[taken != UNKNOWN]
    if np.any(np.diff(known) <= 0):
        found.fail(f"{kind}: capture_ns does not rise at row {int(np.argmax(np.diff(known) <= 0)) + 1}")
    if frames is not None and kind.startswith("hololens_sync"):
        table = frames["capture_ns"]
        if len(frame) and (frame.max() >= len(table) or frame.min() < 0):
            found.fail(f"{kind}: it has a frame that the table of frames has not")
        elif np.any(table[frame] != taken):
            found.fail(f"{kind}: capture_ns is not that of the table of frames")
    if "pose" in arrays:
        check_poses(kind, arrays["pose"], found)
    if "xyz" in arrays:
        check_samples(kind, arrays, found)


def check_poses(kind: str, poses: Any, found: RecordingFindings) -> None:
    """Check that matrices (n, 4, 4) are rotations with a place in the last row, where they are not NaN."""
    tracked = poses[np.isfinite(poses).all((1, 2))].astype(np.float64)
    turned = tracked[:, :3, :3] @ np.swapaxes(tracked[:, :3, :3], 1, 2)
    if np.abs(turned - np.eye(3)).max(initial=0.0) > 0.01 or np.any(np.linalg.det(tracked[:, :3, :3]) < 0):
        found.fail(f"{kind}: `pose` holds something that is no rotation")
    if np.abs(tracked[:, :, 3] - [0, 0, 0, 1]).max(initial=0.0) > 1e-3:
        found.fail(f"{kind}: the last column of `pose` is not 0, 0, 0, 1")


def check_samples(kind: str, arrays: Arrays, found: RecordingFindings) -> None:
    """Check the samples of an inertial sensor: as many times as values, and gravity in an accelerometer."""
    times, values = arrays.get("sample_capture_ns"), arrays["xyz"]
    if times is None or values.shape != (len(times), 3):
        found.fail(f"{kind}: `xyz` and `sample_capture_ns` are not of equal length")
        return
    if np.any(np.diff(times) < -1_000_000):
        found.fail(
            f"{kind}: sample_capture_ns falls at row {int(np.argmax(np.diff(times) < -1_000_000)) + 1}"
        )
    if str(arrays.get("unit")) == "m/s^2" and len(values):
        weight = float(np.nanmedian(np.linalg.norm(values.astype(np.float64), axis=1)))
        if not 8.0 < weight < 12.0:
            found.fail(f"{kind}: gravity is {weight:.2f} m/s^2 in it")


def check_steps(folder: Path, name: str, lasts_s: float | None, found: RecordingFindings) -> None:
    """Check the steps of a recording: the table says what the JSON says, and each lies in the film."""
    steps = json.loads((folder / STEPS_JSON).read_text(encoding="utf-8"))[name]["steps"]
    with (folder / STEPS_CSV).open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["recording_id"] == name]
    ours = [(str(one["step_id"]), float(one["start_time"]), float(one["end_time"])) for one in steps]
    theirs = [(row["step_id"], float(row["start_time"]), float(row["end_time"])) for row in rows]
    if ours != theirs:
        found.fail(f"{STEPS_CSV} does not say what {STEPS_JSON} says of it")
    for number, (_, start, end) in enumerate(ours, start=1):
        if end < start:
            found.fail(f"step {number} ends before it starts")
        elif lasts_s is not None and end > lasts_s + 0.1:
            found.fail(f"step {number} ends at {end:.1f} s, its film at {lasts_s:.1f} s")


def check_film(kind: str, path: Path, table: Arrays, found: RecordingFindings) -> float:
    """Check that a film has a picture for each row of its table; return its length in seconds."""
    pictures, rows = count_pictures(path), len(table["capture_ns"])
    if pictures != rows:
        found.fail(f"{kind}: {pictures} pictures, and its table tells the times of {rows}")
    return float(pictures * table["fps"][1] / table["fps"][0]) if "fps" in table else 0.0


# --- coverage and tracking


def spans_s(holes: list[tuple[float, float]]) -> str:
    """Return spans in words, the longest three of them."""
    longest = sorted(sorted(holes, key=lambda one: one[0] - one[1])[:3])
    words = ", ".join(f"{a:.1f} to {b:.1f} s" for a, b in longest)
    return words + (f" and {len(holes) - 3} more" if len(holes) > 3 else "")


def holes_of(taken_ns: Any, step_ns: float, session: tuple[int, int]) -> list[tuple[int, int]]:
    """Return where samples at `taken_ns` are further apart than `step_ns`, the ends of the session included."""
    at = np.concatenate([[session[0]], np.sort(taken_ns), [session[1]]])
    wide = np.flatnonzero(np.diff(at) > step_ns)
    return [(int(at[k]), int(at[k + 1])) for k in wide]


def check_coverage(
    kind: str,
    taken_ns: Any,
    session: tuple[int, int],
    hidden: list[tuple[int, int]],
    found: RecordingFindings,
) -> None:
    """Say where a stream holds nothing of the session; what a pause hides is no hole."""
    inside = taken_ns[(taken_ns >= session[0]) & (taken_ns <= session[1])]
    if len(inside) < 2:
        found.fail(f"{kind}: covers 0 % of the session")
        return
    step_ns = PERIODS * max(float(np.median(np.diff(np.sort(inside)))), 1.0)
    holes = [
        (a, b)
        for a, b in holes_of(inside, step_ns, session)
        if not any(first < b and a < last for first, last in hidden)
    ]
    length = max(session[1] - session[0] - sum(b - a for a, b in hidden), 1)
    share = 1 - sum(b - a for a, b in holes) / length
    named = [one for one in holes if share < COVERAGE_WARN or (one[1] - one[0]) / 1e9 >= HOLE_NAMED_S]
    if not named:
        return
    seconds = [((a - session[0]) / 1e9, (b - session[0]) / 1e9) for a, b in named]
    said = f"{kind}: covers {100 * share:.0f} % of the session; nothing at {spans_s(seconds)}"
    (found.fail if share < COVERAGE_FAIL else found.warn)(said)


def check_tracking(kind: str, arrays: Arrays, start_ns: int, found: RecordingFindings) -> None:
    """Say where the headset did not know its place for longer than a second."""
    tracked, taken = arrays["head_tracked"], arrays["capture_ns"]
    edges = np.flatnonzero(np.diff(np.concatenate([[0], (~tracked).astype(np.int8), [0]])))
    lost = [
        ((int(taken[a]) - start_ns) / 1e9, (int(taken[b - 1]) - start_ns) / 1e9)
        for a, b in zip(edges[::2], edges[1::2])  # noqa: B905 (Python 3.9)
        if (taken[b - 1] - taken[a]) / 1e9 >= LOST_S
    ]
    if lost:
        found.warn(f"{kind}: tracking was lost at {spans_s(lost)}")


# --- alignment: one gyroscope against the other


def means(at_s: Any, values: Any, edges_s: Any) -> Any:
    """Return the mean of samples (n, 3) between edges (m + 1,), by differences of their integral; NaN over gaps."""
    steps = np.diff(at_s)
    integral = np.vstack([np.zeros(3), np.cumsum(steps[:, None] * (values[1:] + values[:-1]) / 2, axis=0)])
    at = np.column_stack([np.interp(edges_s, at_s, one, np.nan, np.nan) for one in integral.T])
    found = np.diff(at, axis=0) / np.diff(edges_s)[:, None]
    wide = np.flatnonzero(steps > max(4 * float(np.median(steps)), 0.03))
    for k in wide:
        found[(edges_s[1:] > at_s[k]) & (edges_s[:-1] < at_s[k + 1])] = np.nan
    return found


def samples_of(arrays: Arrays, start_ns: int) -> tuple[Any, Any]:
    """Return seconds since `start_ns` (n,) that rise, and the values (n, 3); samples without a value are left out."""
    times, values = arrays["sample_capture_ns"], arrays["xyz"].astype(np.float64)
    good = (times != UNKNOWN) & np.isfinite(values).all(1)
    at_s, first = np.unique((times[good] - start_ns) / 1e9, return_index=True)
    return at_s, values[good][first]


def best_rotation(theirs: Any, ours: Any) -> Any:
    """Return the rotation (3, 3) that turns `ours` (n, 3) into `theirs` (Kabsch)."""
    u, _, vt = np.linalg.svd(theirs.T @ ours)
    return u @ np.diag([1.0, 1.0, np.sign(np.linalg.det(u @ vt))]) @ vt


def overlapping(theirs: Any, ours: Any, lag: int) -> tuple[Any, Any]:
    """Return the parts of two series that stand beside each other where one is `lag` steps late."""
    return (theirs[lag:], ours[: len(ours) - lag]) if lag >= 0 else (theirs[:lag], ours[-lag:])


def coarse_lag(theirs: Any, ours: Any) -> tuple[int, float, float]:
    """Return the lag (steps of the grid) at which two turnings (n, 3) agree best, how well, and how much is mirrored.

    Nine correlations by FFT; the sum of the singular values of each 3 x 3 matrix is what the best rotation reaches,
    and where its determinant is negative the smallest of them is what only a mirror could reach.
    """
    most = int(SEARCH_S * GRID_HZ)
    size = 1 << int(np.ceil(np.log2(len(theirs) + most)))
    a, b = np.fft.rfft(theirs, size, axis=0), np.fft.rfft(ours, size, axis=0)
    found = np.fft.irfft(a[:, :, None] * np.conj(b[:, None, :]), size, axis=0)
    lags = np.concatenate([np.arange(most + 1), np.arange(-most, 0)])
    matrices = found[lags % size]
    values = np.linalg.svd(matrices, compute_uv=False)
    signs = np.sign(np.linalg.det(matrices))
    score = values[:, 0] + values[:, 1] + signs * values[:, 2]
    best = int(np.argmax(score))
    lag = int(lags[best])
    a, b = overlapping(theirs, ours, lag)
    energy = max(float(np.sqrt(np.sum(a**2) * np.sum(b**2))), 1e-12)
    mirrored = float(values[best, 2] / energy) if signs[best] < 0 else 0.0
    return lag, float(score[best]) / energy, mirrored


def compare_gyroscopes(headset: Arrays, camera: Arrays) -> dict[str, Any]:
    """Return how far the camera's times are off the headset's by their gyroscopes: status, ms, bound, and why."""
    start_ns = int(headset["sample_capture_ns"][0])
    (their_s, theirs), (our_s, ours) = samples_of(headset, start_ns), samples_of(camera, start_ns)
    bounds = np.atleast_1d(camera["gyroscope_bound_ns"])
    pair: dict[str, Any] = {"status": "cannot_tell", "off_ms": None, "bound95_ms": float(bounds.max() / 1e6)}
    if min(len(their_s), len(our_s)) < 100 or min(their_s[-1], our_s[-1]) - max(their_s[0], our_s[0]) < 10:
        return pair | {"why": "they do not overlap for ten seconds"}
    edges = np.arange(max(their_s[0], our_s[0]), min(their_s[-1], our_s[-1]), 1 / GRID_HZ)
    a, b = means(their_s, theirs, edges), means(our_s, ours, edges)
    good = np.isfinite(a).all(1) & np.isfinite(b).all(1)
    a, b = (np.where(good[:, None], one - np.nanmedian(one[good], axis=0), 0.0) for one in (a, b))
    if min(np.sqrt(np.mean(a[good] ** 2)), np.sqrt(np.mean(b[good] ** 2))) < LEAST_TURNING:
        return pair | {"why": "the head hardly turned"}
    lag, alike, mirrored = coarse_lag(a, b)
    if mirrored > MIRRORED:
        return pair | {"status": "off", "why": "an axis of one is mirrored, or two are exchanged"}
    if alike < ALIKE:
        return pair | {"status": "off", "why": f"they do not turn alike: correlation {alike:.2f}"}
    there, here = overlapping(a, b, lag)
    scale = float(np.sqrt(np.sum(there**2) / np.sum(here**2)))
    b *= scale
    if str(headset.get("unit")) == "rad/s" and not 0.8 < scale < 1.25:
        return pair | {"status": "off", "why": f"one turns {scale:.2f} times as fast as the other"}
    fine = fine_lags(their_s, theirs, edges, b, good, lag / GRID_HZ)
    if fine is None:
        return pair | {"why": "no window of it turns enough"}
    off_ms, own_ms = fine
    is_off = off_ms > pair["bound95_ms"] + own_ms
    why = (
        {"why": f"by their gyroscopes the film is {off_ms:.2f} ms from where its times say"} if is_off else {}
    )
    return pair | {"status": "off" if is_off else "aligned", "off_ms": round(off_ms, 3)} | why


def fine_lags(
    their_s: Any, theirs: Any, edges: Any, ours: Any, good: Any, lag_s: float
) -> tuple[float, float] | None:
    """Return the largest lag over the film (ms), by a robust line through windows, and how exact it is (95 %)."""
    step, places, lags = int(WINDOW_S * GRID_HZ), [], []
    moved = means(their_s, theirs, edges + lag_s)
    usable = good & np.isfinite(moved).all(1)
    if usable.sum() < 2 * step:
        return None
    turn = best_rotation(moved[usable] - moved[usable].mean(0), ours[usable] - ours[usable].mean(0))
    for first in range(0, len(usable) - step + 1, step // 2):
        here = slice(first, first + step)
        if not usable[here].all():
            continue
        turned = ours[here] @ turn.T
        lag = window_lag(their_s, theirs, edges[first : first + step + 1], turned, lag_s)
        if lag is not None:
            places.append(edges[first] + WINDOW_S / 2)
            lags.append(lag)
    return largest_lag(np.array(places), np.array(lags)) if len(lags) >= LEAST_WINDOWS else None


def largest_lag(at_s: Any, lags_s: Any) -> tuple[float, float]:
    """Return the largest lag (ms) of a robust line through windows, and how exact it is (95 %)."""
    away = np.subtract.outer(at_s, at_s)
    pairs = away > WINDOW_S
    slope = float(np.median(np.subtract.outer(lags_s, lags_s)[pairs] / away[pairs])) if pairs.any() else 0.0
    middle = float(np.median(lags_s - slope * (at_s - at_s.mean())))
    left = lags_s - middle - slope * (at_s - at_s.mean())
    sigma = 1.4826 * float(np.median(np.abs(left))) / np.sqrt(len(lags_s) / 2)
    ends = middle + slope * (np.array([at_s[0], at_s[-1]]) - at_s.mean())
    return 1e3 * float(np.abs(ends).max()), OWN_MS + 1e3 * 4 * sigma


def window_lag(their_s: Any, theirs: Any, edges: Any, ours: Any, lag_s: float) -> float | None:
    """Return the lag of one window in seconds by Gauss-Newton; None where it does not settle."""
    ours, lag = ours - ours.mean(0), lag_s
    for _ in range(6):
        a = means(their_s, theirs, edges + lag)
        if not np.isfinite(a).all():
            return None
        a = a - a.mean(0)
        slope = np.gradient(a, 1 / GRID_HZ, axis=0)
        size = float(np.sum(slope**2))
        if size < 1.0:
            return None
        change = float(np.clip(np.sum(slope * (ours - a)) / size, -0.02, 0.02))
        lag += change
        if abs(change) < 1e-6:
            break
    alike = np.sum(a * ours) / np.sqrt(np.sum(a**2) * np.sum(ours**2))
    return lag if alike > 0.8 else None


def check_film_times(kind: str, table: Arrays, camera: Arrays, found: RecordingFindings) -> None:
    """Check that the times of pictures are those that the camera's own motion track has beside them."""
    known = table["capture_ns"] != UNKNOWN
    motion = camera["sample_capture_ns"] != UNKNOWN
    if not known.any() or np.count_nonzero(motion) < 2:
        return
    at_s, taken = camera["sample_motion_s"][motion], camera["sample_capture_ns"][motion]
    zero = int(taken[0])
    inside = known & (table["motion_s"] >= at_s[0]) & (table["motion_s"] <= at_s[-1])
    expected = np.interp(table["motion_s"][inside], at_s, (taken - zero) / 1e6)
    off_ms = np.abs((table["capture_ns"][inside] - zero) / 1e6 - expected)
    if len(off_ms) and float(np.median(off_ms)) > TIMES_MS:
        found.fail(f"{kind}: its times are {np.median(off_ms):.1f} ms from those of the camera's own motion")


# --- a recording, a data set, the command


def check_recording(folder: Path, name: str, links: dict[str, str], *, partial: bool) -> RecordingFindings:
    """Check everything of one recording that is here."""
    found, tables = RecordingFindings(name), dict[str, Arrays]()
    for kind, path in links.items():
        place = folder / path
        if not place.is_file():
            if not partial:
                found.fail(f"{kind}: {path} is not here")
        elif path.endswith(".npz") and not kind.startswith("calibration"):
            try:
                tables[kind] = read_arrays(place)
            except ValueError as error:
                found.fail(f"{kind}: {error}")
    try:
        _check_tables(folder, name, links, tables, found)
    except (KeyError, IndexError, TypeError, ValueError, OSError) as error:
        found.fail(f"it is not of the form that is checked here: {type(error).__name__}: {error}")
    return found


def _check_tables(
    folder: Path, name: str, links: dict[str, str], tables: dict[str, Arrays], found: RecordingFindings
) -> None:
    frames, lasts_s = tables.get(FRAMES), None
    for kind, arrays in tables.items():
        if kind != MOTION:
            check_arrays(kind, arrays, frames, found)
    for film, kind in FILMS.items():
        if film in links and kind in tables and (folder / links[film]).is_file():
            lasts_s = check_film(film, folder / links[film], tables[kind], found)
    check_steps(folder, name, lasts_s, found)
    if frames is not None and len(frames["capture_ns"]):
        _check_session(tables, frames, found)
    if MOTION in tables:
        for kind in FILMS.values():
            if kind in tables:
                check_film_times(kind, tables[kind], tables[MOTION], found)
        if HEADSET_MOTION in tables:
            pair = compare_gyroscopes(tables[HEADSET_MOTION], tables[MOTION])
            found.pairs.append(pair)
            if pair["status"] != "aligned":
                (found.fail if pair["status"] == "off" else found.warn)(f"alignment: {pair['why']}")


def _check_session(tables: dict[str, Arrays], frames: Arrays, found: RecordingFindings) -> None:
    """Check coverage and tracking over the session, which lasts from the first frame to the last of any table."""
    films = [tables[kind] for kind in FILMS.values() if kind in tables]
    every = [frames["capture_ns"]] + [
        one["sample_capture_ns"] for one in tables.values() if "xyz" in one and "frame" in one
    ]
    session = (
        int(min(one.min() for one in every if len(one))),
        int(max(one.max() for one in every if len(one))),
    )
    hidden = hidden_spans(frames)
    told = set()
    for kind, arrays in tables.items():
        if kind == FRAMES or not kind.startswith("hololens_sync"):
            continue
        stream = re.sub(r"^hololens_sync_(imu_)?|(_depth|_ab|_pose)?_npz$", "", kind)
        if stream not in told:  # depth, brightness and poses are of one packet
            taken = arrays["sample_capture_ns"]
            shown = np.isfinite(arrays["xyz"]).all(1) if "xyz" in arrays else np.ones(len(taken), bool)
            check_coverage(stream, np.unique(taken[shown]), session, hidden, found)
            told.add(stream)
        if "head_tracked" in arrays:
            check_tracking(kind, arrays, session[0], found)
    for table in films[:1]:
        taken = table["capture_ns"][table["capture_ns"] != UNKNOWN]
        if len(taken) > 1:
            check_coverage("the camera's film", taken, (int(taken[0]), int(taken[-1])), [], found)


def hidden_spans(frames: Arrays) -> list[tuple[int, int]]:
    """Return the spans of capture ns that a pause hides, a frame wider on each side."""
    hidden, taken = frames["hidden"], frames["capture_ns"]
    edges = np.flatnonzero(np.diff(np.concatenate([[0], hidden.astype(np.int8), [0]])))
    last = len(taken) - 1
    return [
        (int(taken[max(a - 1, 0)]), int(taken[min(b, last)]))
        for a, b in zip(edges[::2], edges[1::2])  # noqa: B905 (Python 3.9)
    ]


def verify(folder: Path, only: list[str], *, partial: bool = False) -> dict[str, Any]:
    """Return what the whole data set is worth, as `--json` prints it. Raises OSError, ValueError."""
    corrupt = corrupt_files(folder, partial=partial)
    links: dict[str, dict[str, str]] = json.loads((folder / LINKS).read_text(encoding="utf-8"))
    if unknown := sorted(set(only) - set(links)):
        raise ValueError(f"no recording {unknown[0]}; there are {', '.join(sorted(links))}")
    wanted = {name: kinds for name, kinds in links.items() if not only or name in only}
    found = [check_recording(folder, name, kinds, partial=partial) for name, kinds in wanted.items()]
    worst = {FAIL} if corrupt else set()
    worst |= {one.status for one in found}
    return {
        "schema": "release-verify/1",
        "status": FAIL if FAIL in worst else WARN if WARN in worst else PASS,
        "recordings": [one.told() for one in found],
        "corrupt": corrupt,
    }


def card(answer: dict[str, Any]) -> Iterator[str]:
    """Yield the lines that people read."""
    for one in answer["recordings"]:
        pairs = [
            f"gyroscopes {pair['off_ms']:.2f} ms apart, {pair['bound95_ms']:.2f} ms promised"
            for pair in one["pairs"]
            if pair["off_ms"] is not None
        ]
        yield f"{one['status']:4}  {one['recording']}" + "".join(f"  {words}" for words in pairs)
        yield from (f"      {why}" for why in one["reasons"])
    for one in answer["corrupt"]:
        yield f"{FAIL:4}  {one['file']} {one['why']}"
    yield f"{answer['status']}: {len(answer['recordings'])} recordings, {len(answer['corrupt'])} corrupt files"


def main() -> int:
    """Verify what is asked for; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    here = Path(__file__).resolve().parent
    parser.add_argument(
        "folder", nargs="?", type=Path, default=here, help="the data set [this script's folder]"
    )
    parser.add_argument("--recording", action="append", default=[], metavar="ID", help="only this one; again")
    parser.add_argument("--partial", action="store_true", help="files that were not fetched do not count")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    asked = parser.parse_args()
    try:
        answer = verify(asked.folder, asked.recording, partial=asked.partial)
    except (OSError, ValueError) as error:
        print(f"verify.py: {error}", file=sys.stderr)
        return 2
    print(json.dumps(answer, indent=1) if asked.json else "\n".join(card(answer)))
    return 1 if answer["status"] == FAIL else 0


if __name__ == "__main__":
    sys.exit(main())
