#!/usr/bin/env python3
"""Prove a data set: checksums, coverage, tables and alignment. Needs Python 3.9 or later, NumPy and PyAV.

    python verify.py
    python verify.py FOLDER --recording 1_26 --json

Everything is computed anew from the files here: two gyroscopes, the headset's and the camera's, tell how far apart
their times are. PASS: nothing was found. WARN: something is missing or cannot be proven, and is named. FAIL: a file
is not what SHA256SUMS says, times or columns contradict each other, a film is not where its times say, or a stream
covers less than half of the session. Exit code 1 for FAIL.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import importlib.util
import io
import json
import lzma
import re
import struct
import sys
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, BinaryIO, NamedTuple

import numpy as np

SUMS, LINKS = "SHA256SUMS", "metadata/download_links.json"
STEPS_JSON, STEPS_CSV = (
    "annotation_json/complete_step_annotations.json",
    "annotation_csv/step_annotations.csv",
)
BESIDE, ERROR_ROWS = "kitchensync.jsonl", "errors.jsonl"
BLOCK = 1 << 20
MOST_TEXT, MOST_VALUES = 64 << 20, 5_000_000
"""Bytes of a text, and values in one of JSON."""
ALWAYS_TAKEN, MOST_RATIO = 256 << 20, 100
"""Bytes that the arrays of a recording may unpack to, and how many times the size of their files."""
ONE_FILE = {"protocol_whitelist": "file", "format_whitelist": "mov,matroska,webm,avi,mpegts,mpeg,wav"}
"""For PyAV: a list of other files is no film."""
MOST_PICTURES, MOST_BOXES = 4_000_000, 1_000_000
"""Of a film, and boxes of an MP4 that are looked at."""
BAD_FILE = (
    OSError,
    EOFError,
    KeyError,
    ValueError,
    TypeError,
    IndexError,
    AttributeError,
    RuntimeError,
    MemoryError,
    OverflowError,
    SyntaxError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    csv.Error,
    tokenize.TokenError,
)
"""What reading a file raises that is not what it should be."""
UNKNOWN = np.iinfo(np.int64).min
PASS, WARN, FAIL = "PASS", "WARN", "FAIL"
MOTION, HEADSET_MOTION = "gopro_gyroscope_npz", "hololens_sync_imu_gyroscope_npz"
FRAMES = "hololens_sync_frames_npz"
FILMS = {"gopro_360p": "gopro_360p_frames_npz", "gopro_720p": "gopro_720p_frames_npz"}

PERIODS, COVERAGE_WARN, COVERAGE_FAIL, HOLE_NAMED_S = 3.0, 0.95, 0.5, 1.0
LEAST_STEP_NS = 40_000_000
"""Values beside frames come no closer than frames do, 30 a second."""
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
OWN_MS, MOST_OWN_MS = 0.15, 1.0
"""How exact this comparison is by itself, and what the noise of its windows may add at the most."""
MOST_BOUND_MS = 100.0
"""A larger bound promises nothing."""
FAR_M = 1000.0
"""No kitchen is so large."""
TIMES_MS = 1.0
"""How far the times of a film's pictures and of its motion may contradict each other."""
Arrays = dict[str, Any]


UNCOVERED, UNPROVEN = "uncovered", "unproven"


class RecordingFinding(NamedTuple):
    """One finding about a recording; `kind` is `UNCOVERED`, `UNPROVEN` or empty."""

    status: str
    why: str
    kind: str = ""


class RecordingFindings:
    """The findings of one recording. Its status is that of the worst one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.findings: list[RecordingFinding] = []
        self.pairs: list[dict[str, Any]] = []

    def fail(self, why: str) -> None:
        """Note something that contradicts itself or is not there though it is promised."""
        self.findings.append(RecordingFinding(FAIL, why))

    def warn(self, why: str) -> None:
        """Note something that is missing."""
        self.findings.append(RecordingFinding(WARN, why))

    def cannot_prove(self, why: str) -> None:
        """Note that files which a proof needs are not here, or do not suffice."""
        self.findings.append(RecordingFinding(WARN, why, UNPROVEN))

    def lacks(self, why: str, share: float) -> None:
        """Note that a stream covers only a share of the session."""
        self.findings.append(RecordingFinding(FAIL if share < COVERAGE_FAIL else WARN, why, UNCOVERED))

    @property
    def status(self) -> str:
        """PASS, WARN or FAIL."""
        found = {finding.status for finding in self.findings}
        return FAIL if FAIL in found else WARN if WARN in found else PASS

    def told(self) -> dict[str, Any]:
        """Return the findings as JSON has them."""
        reasons = [finding.why for finding in self.findings]
        return {"recording": self.name, "status": self.status, "reasons": reasons, "pairs": self.pairs}


# --- files


def read_text(path: Path) -> str:
    """Read a file as text. Raises OSError; ValueError for a pipe, a device, or more than `MOST_TEXT` bytes."""
    if not path.is_file():
        raise ValueError(f"{path.name} is no file")
    with path.open("rb") as file:
        content = file.read(MOST_TEXT + 1)
    if len(content) > MOST_TEXT:
        raise ValueError(f"{path.name} has more than {MOST_TEXT} bytes")
    return content.decode("utf-8")


@lru_cache(maxsize=4)
def read_json(path: Path) -> Any:
    """Read a file of JSON. Raises OSError; ValueError where it cannot be read or holds more than `MOST_VALUES`."""
    text = read_text(path)
    if sum(map(text.count, "[{,")) > MOST_VALUES:
        raise ValueError(f"{path.name} holds more than {MOST_VALUES} values")
    return json.loads(text)


def shown(text: str) -> str:
    """Return a text with control characters and the like as escapes."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


# --- checksums


def read_sums(text: str) -> dict[str, str]:
    """Return path -> hash. Raises ValueError for a line that is none, or a path that leads out of the folder."""
    found = {}
    for number, line in enumerate(text.splitlines(), start=1):
        match = re.fullmatch(r"([0-9a-f]{64})  (\S.*)", line)
        if not match or leads_out(match[2]):
            raise ValueError(f"{SUMS}: line {number} is not a line of it")
        if match[2] in found:
            raise ValueError(f"{SUMS}: line {number} names {match[2]} a second time")
        found[match[2]] = match[1]
    return found


def leads_out(name: str) -> bool:
    """Return whether a name is that of no file in the data set."""
    path = PurePosixPath(name)
    is_elsewhere = path.is_absolute() or bool(PureWindowsPath(name).drive)
    return is_elsewhere or not path.parts or ".." in path.parts or "\\" in name or "\0" in name


def inside(folder: Path, name: str) -> Path:
    """Return the path of a file of the data set. Raises ValueError for one that leads out of its folder."""
    if leads_out(name):
        raise ValueError(f"{name[:80]!r} leads out of the data set")
    return folder / name


ABSENT = "is not here"


def changed_files(folder: Path, sums: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each file that does not have the hash of its line, and what is wrong with it."""
    for name, wanted in sums.items():
        path, digest = folder / name, hashlib.sha256()
        if not path.is_file():
            yield name, ABSENT
            continue
        with path.open("rb") as file:
            while block := file.read(BLOCK):
                digest.update(block)
        if digest.hexdigest() != wanted:
            yield name, f"is not what {SUMS} says"


def corrupt_files(folder: Path, *, partial: bool) -> list[dict[str, str]]:
    """Return the files that are not what SHA256SUMS says, or that it does not name.

    With `partial` those that are not here do not count.
    """
    sums = read_sums(read_text(folder / SUMS))
    corrupt = [
        {"file": name, "why": why}
        for name, why in changed_files(folder, sums)
        if not (partial and why == ABSENT)
    ]
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        is_ours = "__pycache__" in path.parts or name.startswith(".") or name.endswith(".part")
        if path.is_file() and name not in sums and name != SUMS and not is_ours:
            corrupt.append({"file": name, "why": f"has no line in {SUMS}"})
    return corrupt


# --- tables and films


def read_arrays(path: Path, left_bytes: int = ALWAYS_TAKEN) -> Arrays:
    """Load an .npz: plain arrays by name, of the pictures of depth only how many there are.

    Raises ValueError, also where they unpack to more than `left_bytes` and than files of that size do.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
        images = {one.filename for one in members if re.fullmatch(r"(depth|ab)-\d+\.npy", one.filename)}
        loaded_bytes = sum(one.file_size for one in members if one.filename not in images)
        if loaded_bytes > max(left_bytes, MOST_RATIO * path.stat().st_size):
            raise ValueError("far too large when unpacked")
        with np.load(path, allow_pickle=False) as file:
            found = {name: file[name] for name in file.files if f"{name}.npy" not in images}
    except BAD_FILE as error:
        raise ValueError("cannot be read as plain arrays") from error
    return found | ({"images": np.array(len(images))} if images else {})


def mp4_boxes(file: BinaryIO, at: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield the boxes of an MP4: kind, first byte of what is in it, end."""
    while at + 8 <= end:
        file.seek(at)
        size, kind = struct.unpack(">I4s", file.read(8))
        start = at + 8
        if size == 1:
            size, start = struct.unpack(">Q", file.read(8))[0], at + 16
        size = size or end - at
        if at + size < start or at + size > end:
            return
        yield kind, start, at + size
        if kind in (b"moov", b"trak", b"mdia", b"minf", b"stbl", b"moof", b"traf"):
            yield from mp4_boxes(file, start, at + size)
        at += size


def check_index(path: Path) -> None:
    """Refuse an MP4 with more pictures than any has: libav makes room for each. Raises ValueError, OSError."""
    with path.open("rb") as file:
        for kind, start, end in islice(mp4_boxes(file, 0, path.stat().st_size), MOST_BOXES):
            if kind in (b"stsz", b"trun") and end - start >= 12:
                file.seek(start + 4)
                same, count = struct.unpack(">II", file.read(8))
                if (count if kind == b"stsz" else same) > MOST_PICTURES:
                    raise ValueError("is no film: its index promises more pictures than any has")


def count_pictures(path: Path) -> int:
    """Count the pictures of a film without decoding them. Raises ValueError."""
    import av

    try:
        check_index(path)
        with av.open(str(path), options=ONE_FILE) as film:
            return sum(packet.size > 0 for packet in film.demux(film.streams.video[0]))
    except (av.FFmpegError, OSError, IndexError) as error:
        raise ValueError(f"is no film that can be read ({type(error).__name__})") from error


COLUMNS = (
    (r"hololens_sync_frames_npz", ("frame", "capture_ns", "bound_ns", "hidden", "fps")),
    (r"gopro_\d+p_frames_npz", ("frame", "capture_ns", "bound_ns", "hidden", "fps")),
    (r"gopro_gyroscope_npz", ("sample_motion_s", "sample_capture_ns", "xyz", "gyroscope_bound_ns", "unit")),
    (
        r"hololens_sync_\w+_pose_npz",
        ("frame", "capture_ns", "sample_capture_ns", "head_tracked", "pose", "world"),
    ),
    (
        r"hololens_sync_imu_\w+_npz",
        ("frame", "capture_ns", "sample_capture_ns", "xyz", "unit", "first", "stop"),
    ),
    (r"hololens_sync_spatial_npz", ("frame", "capture_ns", "sample_capture_ns", "valid", "head_position")),
    (r"hololens_sync_\w+_(depth|ab)_npz", ("frame", "capture_ns", "sample_capture_ns", "images")),
)
"""Kind of file -> columns that it has."""


def lacks_columns(kind: str, arrays: Arrays, found: RecordingFindings) -> bool:
    """Name the columns that a file should have and has not."""
    wanted = next((names for pattern, names in COLUMNS if re.fullmatch(pattern, kind)), ())
    missing = [name for name in wanted if name not in arrays]
    if missing:
        found.fail(f"{kind}: it has no {', '.join(missing)}")
    return bool(missing)


def check_arrays(kind: str, arrays: Arrays, frames: Arrays | None, found: RecordingFindings) -> None:
    """Check what holds for every file of the headset: rising times, those of the table of frames, sound values."""
    frame, taken = arrays["frame"], arrays["capture_ns"]
    if frame.shape != taken.shape or taken.ndim != 1 or taken.dtype != np.int64:
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
    if "images" in arrays and int(arrays["images"]) != len(frame):
        found.fail(f"{kind}: {int(arrays['images'])} pictures, and {len(frame)} frames that should have one")
    if "pose" in arrays:
        check_poses(kind, arrays, found)
    if "xyz" in arrays:
        check_samples(kind, arrays, found)
    if "head_position" in arrays:
        seen = arrays["head_position"][(arrays["valid"] & 1) != 0]
        if not np.isfinite(seen).all() or np.abs(seen).max(initial=0.0) > FAR_M:
            found.fail(f"{kind}: the head is said to be seen, and its place is none in a room")


def check_poses(kind: str, arrays: Arrays, found: RecordingFindings) -> None:
    """Check that matrices (n, 4, 4) are rotations with a place in the last row, where the headset knew its place."""
    poses = arrays["pose"][arrays["head_tracked"]].astype(np.float64)
    if not np.isfinite(poses).all():
        found.fail(f"{kind}: `pose` is not known where `head_tracked` says so")
        return
    turned = poses[:, :3, :3] @ np.swapaxes(poses[:, :3, :3], 1, 2)
    if np.abs(turned - np.eye(3)).max(initial=0.0) > 0.01 or np.any(np.linalg.det(poses[:, :3, :3]) < 0):
        found.fail(f"{kind}: `pose` holds something that is no rotation")
    if np.abs(poses[:, :, 3] - [0, 0, 0, 1]).max(initial=0.0) > 1e-3:
        found.fail(f"{kind}: the last column of `pose` is not 0, 0, 0, 1")
    if np.abs(poses[:, 3, :3]).max(initial=0.0) > FAR_M:
        found.fail(f"{kind}: `pose` lies {np.abs(poses[:, 3, :3]).max():.0f} m away")


def check_samples(kind: str, arrays: Arrays, found: RecordingFindings) -> None:
    """Check samples of an inertial sensor: as many times as values, ranges in order, gravity in an accelerometer."""
    times, values = arrays["sample_capture_ns"], arrays["xyz"]
    first, stop = arrays["first"], arrays["stop"]
    if values.shape != (len(times), 3):
        found.fail(f"{kind}: `xyz` and `sample_capture_ns` are not of equal length")
        return
    if np.any(np.diff(times) < -1_000_000):
        found.fail(
            f"{kind}: sample_capture_ns falls at row {int(np.argmax(np.diff(times) < -1_000_000)) + 1}"
        )
    if np.any(first > stop) or np.any(first < 0) or np.any(stop > len(times)) or np.any(np.diff(first) < 0):
        found.fail(f"{kind}: `first` and `stop` are no ranges of samples")
    if str(arrays["unit"]) == "m/s^2" and np.isfinite(values).any():
        weight = float(np.nanmedian(np.linalg.norm(values.astype(np.float64), axis=1)))
        if not 8.0 < weight < 12.0:
            found.fail(f"{kind}: gravity is {weight:.2f} m/s^2 in it")


@lru_cache(maxsize=1)
def step_rows(path: Path) -> dict[str, list[dict[str, str]]]:
    """Return the rows of the table of steps by recording."""
    found: dict[str, list[dict[str, str]]] = {}
    for row in csv.DictReader(io.StringIO(read_text(path), newline="")):
        found.setdefault(row["recording_id"], []).append(row)
    return found


def check_steps(folder: Path, name: str, lasts_s: float | None, found: RecordingFindings) -> None:
    """Check the steps of a recording: the table says what the JSON says, and each lies in the film."""
    steps = read_json(folder / STEPS_JSON)[name]["steps"]
    rows = step_rows(folder / STEPS_CSV).get(name, [])
    ours = [(str(one["step_id"]), float(one["start_time"]), float(one["end_time"])) for one in steps]
    theirs = [(row["step_id"], float(row["start_time"]), float(row["end_time"])) for row in rows]
    if ours != theirs:
        found.fail(f"{STEPS_CSV} does not say what {STEPS_JSON} says of it")
    for number, (_, start, end) in enumerate(ours, start=1):
        if (start, end) == (-1.0, -1.0):
            continue
        if not 0 <= start <= end:
            found.fail(f"step {number} is from {start:.1f} to {end:.1f} s")
        elif lasts_s is not None and end > lasts_s + 0.1:
            found.fail(f"step {number} ends at {end:.1f} s, its film at {lasts_s:.1f} s")


ERROR_TIMES = ("at_s", "end_s", "point_of_no_return_s", "noticed_s", "corrected_s", "reported_s")


def bad_error_rows(folder: Path, recordings: Iterable[str]) -> Iterator[str]:
    """Yield what is wrong with the rows of errors, line by line. Raises BAD_FILE where one is no row."""
    known = set(recordings)
    for number, line in enumerate(read_text(folder / ERROR_ROWS).splitlines(), start=1):
        row = json.loads(line)
        times = {name: float(row[name]) for name in ERROR_TIMES if row[name] is not None}
        if row["recording"] not in known:
            yield f"line {number}: there is no recording {row['recording']}"
        if not all(0 <= seconds < float("inf") for seconds in times.values()):
            yield f"line {number}: a time is not in the film"
        elif times.get("end_s", float("inf")) < times.get("at_s", 0.0):
            yield f"line {number}: it ends before it begins"


def check_film(kind: str, path: Path, table: Arrays, found: RecordingFindings) -> float | None:
    """Check that a film has a picture for each row of its table; return its length in seconds."""
    try:
        pictures = count_pictures(path)
    except ValueError as error:
        found.fail(f"{kind}: {error}")
        return None
    rows, (over, under) = len(table["capture_ns"]), table["fps"].tolist()
    if pictures != rows:
        found.fail(f"{kind}: {pictures} pictures, and its table tells the times of {rows}")
    known = np.flatnonzero(table["capture_ns"] != UNKNOWN)
    if len(known) < rows:
        found.warn(f"{kind}: {rows - len(known)} of {rows} pictures have no time")
    if over <= 0 or under <= 0:
        found.fail(f"{kind}: {over}/{under} pictures a second")
        return None
    if len(known) > 1:
        steps_s = np.diff(table["capture_ns"][known])[np.diff(known) == 1] / 1e9
        if len(steps_s) and not 0.9 < float(np.median(steps_s)) * over / under < 1.1:
            found.fail(f"{kind}: {over}/{under} pictures a second, and they were taken at another rate")
    return float(pictures * under / over)


def check_film_frames(frames: Arrays, table: Arrays, found: RecordingFindings) -> None:
    """Check that the pictures beside the headset's frames were taken when the film's table says."""
    if "film_frame" not in frames:
        return
    there = frames["film_frame"] >= 0
    numbers = frames["film_frame"][there]
    is_outside = len(numbers) > 0 and numbers.max() >= len(table["capture_ns"])
    if is_outside or np.any(table["capture_ns"][numbers] != frames["film_capture_ns"][there]):
        found.fail(f"{FRAMES}: the pictures beside its frames are not those of the film's table")


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


def without_pauses(
    holes: list[tuple[int, int]], hidden: list[tuple[int, int]], step_ns: float
) -> list[tuple[int, int]]:
    """Return what is left of holes where pauses are taken out of them."""
    left = holes
    for first, last in hidden:
        left = [
            part for a, b in left for part in ((a, min(b, first)), (max(a, last), b)) if part[0] < part[1]
        ]
    return left if not hidden else [(a, b) for a, b in left if b - a > step_ns]


def check_coverage(
    kind: str, taken_ns: Any, session: tuple[int, int], hidden: list[tuple[int, int]], stated_s: float | None,
    found: RecordingFindings,
) -> None:  # fmt: skip
    """Say where a stream holds nothing of the session; what a pause hides is no hole.

    `stated_s` is how far apart its values may be, by kitchensync.jsonl; else three usual steps of what is there.
    """
    inside_ns = taken_ns[(taken_ns >= session[0]) & (taken_ns <= session[1])]
    if len(inside_ns) < 2:
        found.lacks(f"{kind}: covers 0 % of the session", 0.0)
        return
    usual_ns = max(float(np.median(np.diff(np.sort(inside_ns)))), 1.0)
    step_ns = PERIODS * usual_ns if stated_s is None else max(stated_s * 1e9, 2 * LEAST_STEP_NS)
    holes = without_pauses(holes_of(inside_ns, step_ns, session), hidden, step_ns)
    length = max(session[1] - session[0] - sum(b - a for a, b in hidden), 1)
    share = max(1 - sum(b - a for a, b in holes) / length, 0.0)
    named = [one for one in holes if share < COVERAGE_WARN or (one[1] - one[0]) / 1e9 >= HOLE_NAMED_S]
    if not named:
        return
    seconds = [((a - session[0]) / 1e9, (b - session[0]) / 1e9) for a, b in named]
    found.lacks(f"{kind}: covers {100 * share:.0f} % of the session; nothing at {spans_s(seconds)}", share)


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
    start_ns = int(headset["sample_capture_ns"][0]) if len(headset["sample_capture_ns"]) else 0
    (their_s, theirs), (our_s, ours) = samples_of(headset, start_ns), samples_of(camera, start_ns)
    bound_ms = float(np.max(np.atleast_1d(camera["gyroscope_bound_ns"]), initial=0)) / 1e6
    pair: dict[str, Any] = {"status": "cannot_tell", "off_ms": None, "bound95_ms": bound_ms}
    if not 0 < bound_ms <= MOST_BOUND_MS:
        return pair | {"bound95_ms": None, "why": f"not proven: a bound of {bound_ms:g} ms promises nothing"}
    if min(len(their_s), len(our_s)) < 100 or min(their_s[-1], our_s[-1]) - max(their_s[0], our_s[0]) < 10:
        return pair | {"why": "not proven: the gyroscopes do not overlap for ten seconds"}
    edges = np.arange(max(their_s[0], our_s[0]), min(their_s[-1], our_s[-1]), 1 / GRID_HZ)
    a, b = means(their_s, theirs, edges), means(our_s, ours, edges)
    good = np.isfinite(a).all(1) & np.isfinite(b).all(1)
    if good.sum() < WINDOW_S * GRID_HZ * LEAST_WINDOWS:
        return pair | {"why": "not proven: the gyroscopes have too little in common"}
    a, b = (np.where(good[:, None], one - np.nanmedian(one[good], axis=0), 0.0) for one in (a, b))
    if min(np.sqrt(np.mean(a[good] ** 2)), np.sqrt(np.mean(b[good] ** 2))) < LEAST_TURNING:
        return pair | {"why": "not proven: the head hardly turned"}
    lag, alike, mirrored = coarse_lag(a, b)
    if mirrored > MIRRORED:
        return pair | {"status": "off", "why": "an axis of one is mirrored, or two are exchanged"}
    if alike < ALIKE:
        return pair | {"status": "off", "why": f"they do not turn alike: correlation {alike:.2f}"}
    there, here = overlapping(a, b, lag)
    scale = float(np.sqrt(np.sum(there**2) / np.sum(here**2)))
    if not 0.8 < scale < 1.25:
        return pair | {"status": "off", "why": f"one turns {scale:.2f} times as fast as the other"}
    return pair | judged(windows_of(their_s, theirs, edges, b * scale, good, lag / GRID_HZ), edges, bound_ms)


class LagWindow(NamedTuple):
    """A stretch of both gyroscopes: its lag and one sigma of that; without a lag where they do not agree at any."""

    at_s: float
    lag_ms: float | None
    sigma_ms: float


def judged(windows: list[LagWindow], edges: Any, bound_ms: float) -> dict[str, Any]:
    """Return the verdict over the windows in which the head turned."""
    if len(windows) < LEAST_WINDOWS:
        return {"why": "not proven: the head turned in too little of it"}
    lags = [(one.at_s, one.lag_ms) for one in windows if one.lag_ms is not None]
    line_ms, own_ms = (0.0, OWN_MS) if len(lags) < LEAST_WINDOWS else largest_lag(lags, windows)

    def is_off(one: LagWindow) -> bool:
        most_ms = bound_ms + OWN_MS + min(4 * one.sigma_ms, MOST_OWN_MS)
        return one.lag_ms is None or abs(one.lag_ms) > most_ms

    wrong = [one for one in windows if is_off(one)]
    farthest_ms = max([line_ms, *(abs(one.lag_ms) for one in wrong if one.lag_ms is not None)])
    found = {"off_ms": round(farthest_ms, 3) if len(lags) >= LEAST_WINDOWS else None}
    if line_ms > bound_ms + own_ms:
        return found | {
            "status": "off", "why": f"by their gyroscopes the film is {farthest_ms:.2f} ms from where its times say",
        }  # fmt: skip
    if len(wrong) >= 2 or len(wrong) > 0.1 * len(windows):
        since_s = [one.at_s - float(edges[0]) for one in wrong]
        ends = f"around {min(since_s):.0f} to {max(since_s):.0f} s"
        places = f"{len(wrong)} of {len(windows)} stretches, {ends}"
        told = (
            f"{farthest_ms:.2f} ms from where its times say"
            if farthest_ms > bound_ms
            else "not where its times say"
        )
        return found | {"status": "off", "why": f"by their gyroscopes the film is {told} in {places}"}
    return found | {"status": "aligned"}


def windows_of(their_s: Any, theirs: Any, edges: Any, ours: Any, good: Any, lag_s: float) -> list[LagWindow]:
    """Return the lag of each stretch in which the head turned; the camera may have been moved on the head."""
    step, found = int(WINDOW_S * GRID_HZ), []
    moved = means(their_s, theirs, edges + lag_s)
    usable = good & np.isfinite(moved).all(1)
    if usable.sum() < 2 * step:
        return []
    turn = best_rotation(moved[usable] - moved[usable].mean(0), ours[usable] - ours[usable].mean(0))
    for here in stretches(usable, step):
        if np.sqrt(np.mean(ours[here] ** 2)) < LEAST_TURNING:
            continue
        part, around = ours[here] - ours[here].mean(0), edges[here.start : here.stop + 1]
        own = best_rotation(moved[here] - moved[here].mean(0), part)
        lag = window_lag(their_s, theirs, around, part @ turn.T, lag_s)
        lag = lag or window_lag(their_s, theirs, around, part @ own.T, lag_s)
        at_s = float(around.mean())
        found.append(
            LagWindow(at_s, None, 0.0) if lag is None else LagWindow(at_s, 1e3 * lag[0], 1e3 * lag[1])
        )
    return found


def stretches(usable: Any, step: int) -> Iterator[slice]:
    """Yield windows of `step` in each unbroken run, overlapping by half, up to its end; of a short run one."""
    ends = np.flatnonzero(np.diff(np.concatenate([[0], usable.astype(np.int8), [0]])))
    for a, b in zip(ends[::2].tolist(), ends[1::2].tolist()):  # noqa: B905 (Python 3.9)
        if b - a < step // 2:
            continue
        starts = {*range(a, b - step + 1, step // 2), max(b - step, a)}
        yield from (slice(first, min(first + step, b)) for first in sorted(starts))


def largest_lag(lags: list[tuple[float, float]], windows: list[LagWindow]) -> tuple[float, float]:
    """Return the largest lag (ms) of a robust line through windows, and how exact it is (95 %)."""
    at_s, lags_ms = np.array(lags).T
    away = np.subtract.outer(at_s, at_s)
    pairs = away > WINDOW_S
    slope = float(np.median(np.subtract.outer(lags_ms, lags_ms)[pairs] / away[pairs])) if pairs.any() else 0.0
    middle = float(np.median(lags_ms - slope * (at_s - at_s.mean())))
    ends = middle + slope * (np.array([at_s[0], at_s[-1]]) - at_s.mean())
    noise_ms = 4 * float(np.median([one.sigma_ms for one in windows])) / np.sqrt(len(lags_ms) / 2)
    return float(np.abs(ends).max()), OWN_MS + min(noise_ms, MOST_OWN_MS)


def window_lag(their_s: Any, theirs: Any, edges: Any, ours: Any, lag_s: float) -> tuple[float, float] | None:
    """Return the lag of one window and one sigma of it in seconds, by Gauss-Newton; None where they do not agree.

    The noise is coloured: its sum over a quarter of a second counts as one value.
    """
    lag = lag_s
    for _ in range(8):
        a = means(their_s, theirs, edges + lag)
        if not np.isfinite(a).all():
            return None
        a = a - a.mean(0)
        slope = np.gradient(a, 1 / GRID_HZ, axis=0)
        size = float(np.sum(slope**2))
        if size < 1e-3:
            return None
        change = float(np.clip(np.sum(slope * (ours - a)) / size, -0.02, 0.02))
        lag += change
        if abs(change) < 1e-6:
            break
    alike = np.sum(a * ours) / np.sqrt(np.sum(a**2) * np.sum(ours**2))
    noise = np.sum(slope * (ours - a), axis=1)
    parts = np.add.reduceat(noise, np.arange(0, len(noise), int(GRID_HZ / 4)))
    return (lag, float(np.sqrt(np.sum(parts**2))) / size) if alike > 0.8 else None


def check_film_times(kind: str, table: Arrays, camera: Arrays, found: RecordingFindings) -> None:
    """Check that the times of pictures are those that the camera's own motion track has beside them."""
    known = table["capture_ns"] != UNKNOWN
    motion = camera["sample_capture_ns"] != UNKNOWN
    if not known.any() or np.count_nonzero(motion) < 2:
        return
    if np.any(~np.isfinite(table["motion_s"][known])):
        found.fail(f"{kind}: pictures have a time, and no place in the camera's motion that proves it")
        return
    at_s, taken = camera["sample_motion_s"][motion], camera["sample_capture_ns"][motion]
    zero = int(taken[0])
    beside = known & (table["motion_s"] >= at_s[0]) & (table["motion_s"] <= at_s[-1])
    expected = np.interp(table["motion_s"][beside], at_s, (taken - zero) / 1e6)
    off_ms = np.abs((table["capture_ns"][beside] - zero) / 1e6 - expected)
    if len(off_ms) and float(off_ms.max()) > TIMES_MS:
        found.fail(f"{kind}: its times are {off_ms.max():.1f} ms from those of the camera's own motion")


# --- a recording, a data set, the command


def check_recording(
    folder: Path, name: str, links: dict[str, str], facts: dict[str, Any], *, partial: bool
) -> RecordingFindings:
    """Check everything of one recording that is here."""
    found = RecordingFindings(name)
    lasts_s = check_media(folder, links, facts, found, partial=partial)
    try:
        check_steps(folder, name, lasts_s, found)
    except BAD_FILE as error:
        found.fail(f"its steps cannot be read: {type(error).__name__}: {error}")
    return found


def check_media(
    folder: Path, links: dict[str, str], facts: dict[str, Any], found: RecordingFindings, *, partial: bool
) -> float | None:
    """Check the films and tables of one recording that are here; return the length of its film in seconds."""
    tables, films = dict[str, Arrays](), dict[str, Path]()
    left_bytes = ALWAYS_TAKEN
    for kind, path in links.items():
        try:
            place = inside(folder, path)
            if not place.is_file():
                if not partial:
                    found.fail(f"{kind}: {path} is not here")
            elif path.endswith(".npz"):
                arrays = read_arrays(place, left_bytes)
                left_bytes -= sum(values.nbytes for values in arrays.values())
                if not kind.startswith("calibration") and not lacks_columns(kind, arrays, found):
                    tables[kind] = arrays
            elif path.endswith(".json"):
                read_json(place)
            else:
                films[kind] = place
        except BAD_FILE as error:
            found.fail(f"{kind}: {error}")
    try:
        return _check_tables(tables, films, facts, found)
    except BAD_FILE as error:
        found.fail(f"it is not of the form that is checked here: {type(error).__name__}: {error}")
        return None


def _check_tables(
    tables: dict[str, Arrays], films: dict[str, Path], facts: dict[str, Any], found: RecordingFindings
) -> float | None:
    frames, lasts_s = tables.get(FRAMES), None
    for kind, arrays in tables.items():
        if kind != MOTION:
            check_arrays(kind, arrays, frames, found)
    for film, kind in FILMS.items():
        if kind not in tables and film in films:
            found.cannot_prove(f"{film}: nothing tells when its pictures were taken")
        if kind in tables and film not in films:
            found.cannot_prove(f"{film}: there are times of its pictures, and no film")
        if kind in tables and film in films:
            lasts_s = check_film(film, films[film], tables[kind], found) or lasts_s
        if kind in tables and frames is not None:
            check_film_frames(frames, tables[kind], found)
    for kind, path in films.items():
        if kind.startswith("hololens_sync") and frames is not None:
            check_film(kind, path, frames, found)
    if frames is not None and len(frames["capture_ns"]):
        _check_session(tables, frames, facts, found)
    elif any(kind.startswith("hololens_sync") for kind in tables):
        found.cannot_prove(f"coverage: not proven, {FRAMES} is not here or empty")
    _check_alignment(tables, bool(films), found)
    return lasts_s


def _check_alignment(tables: dict[str, Arrays], has_films: bool, found: RecordingFindings) -> None:
    """Compare both gyroscopes, and the film's times with its own motion; say where that cannot be done."""
    lacking = [kind for kind in (MOTION, HEADSET_MOTION) if kind not in tables]
    if lacking:
        if has_films:
            found.cannot_prove(f"alignment: not proven, {' and '.join(lacking)} is not here")
        return
    for kind in FILMS.values():
        if kind in tables:
            check_film_times(kind, tables[kind], tables[MOTION], found)
    if str(tables[MOTION]["unit"]) != "rad/s":
        found.fail(f"{MOTION}: its unit is {tables[MOTION]['unit']!s}, not rad/s")
        return
    headset = dict(tables[HEADSET_MOTION])
    if "deg" in str(headset["unit"]):
        headset["xyz"] = np.deg2rad(headset["xyz"])
    pair = compare_gyroscopes(headset, tables[MOTION])
    found.pairs.append(pair)
    if pair["status"] != "aligned":
        (found.fail if pair["status"] == "off" else found.cannot_prove)(f"alignment: {pair['why']}")


def _check_session(
    tables: dict[str, Arrays], frames: Arrays, facts: dict[str, Any], found: RecordingFindings
) -> None:
    """Check coverage and tracking over the session, which lasts from the first frame to the last of any table."""
    inertial = [one["sample_capture_ns"] for one in tables.values() if "xyz" in one and "first" in one]
    every = np.concatenate([frames["capture_ns"], *inertial])
    session = int(every.min()), int(every.max())
    hidden, told = hidden_spans(frames), set()
    stated = {
        one["stream"].rpartition("/")[2]: one["step_s"]
        for one in facts.get("coverage", [])
        if "step_s" in one
    }
    for kind, arrays in tables.items():
        if kind == FRAMES or not kind.startswith("hololens_sync"):
            continue
        stream = re.sub(r"^hololens_sync_(imu_)?|(_depth|_ab|_pose)?_npz$", "", kind)
        name = "spatial_input" if stream == "spatial" else stream
        if stream not in told:  # depth, brightness and poses are of one packet
            taken = arrays["sample_capture_ns"]
            shown = np.isfinite(arrays["xyz"]).all(1) if "xyz" in arrays else np.ones(len(taken), bool)
            check_coverage(stream, np.unique(taken[shown]), session, hidden, stated.get(name), found)
            told.add(stream)
        if "head_tracked" in arrays:
            check_tracking(kind, arrays, session[0], found)
    table = next((tables[kind] for kind in FILMS.values() if kind in tables), None)
    if table is not None:
        taken = table["capture_ns"][table["capture_ns"] != UNKNOWN]
        if len(taken) > 1:
            check_coverage("the camera's film", taken, (int(taken[0]), int(taken[-1])), [], None, found)


def hidden_spans(frames: Arrays) -> list[tuple[int, int]]:
    """Return the spans of capture ns that a pause hides, a frame wider on each side."""
    hidden, taken = frames["hidden"], frames["capture_ns"]
    edges = np.flatnonzero(np.diff(np.concatenate([[0], hidden.astype(np.int8), [0]])))
    last = len(taken) - 1
    return [
        (int(taken[max(a - 1, 0)]), int(taken[min(b, last)]))
        for a, b in zip(edges[::2], edges[1::2])  # noqa: B905 (Python 3.9)
    ]


def read_facts(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what kitchensync.jsonl says of each recording; nothing where it is not there or not of that form."""
    try:
        lines = [json.loads(line) for line in read_text(folder / BESIDE).splitlines()]
        return {one["recording_id"]: one for one in lines if one["kind"] == "recording"}
    except BAD_FILE:
        return {}


def read_links(folder: Path) -> dict[str, dict[str, str]]:
    """Return the files of each recording by kind. Raises ValueError."""
    found = read_json(folder / LINKS)
    if not isinstance(found, dict) or not found:
        raise ValueError("names no recording")
    for kinds in found.values():
        if not isinstance(kinds, dict) or not all(isinstance(path, str) for path in kinds.values()):
            raise ValueError("is not recording -> kind -> file")
    return found


def verify(folder: Path, only: list[str], *, partial: bool = False) -> dict[str, Any]:
    """Return what the whole data set is worth, as `--json` prints it. Raises OSError, ValueError."""
    corrupt, links = corrupt_files(folder, partial=partial), dict[str, dict[str, str]]()
    try:
        links = read_links(folder)
    except BAD_FILE as error:
        corrupt.append({"file": LINKS, "why": str(error)})
    if links and (unknown := sorted(set(only) - set(links))):
        raise ValueError(f"no recording {unknown[0]}; there are {', '.join(sorted(links))}")
    corrupt += [{"file": ERROR_ROWS, "why": why} for why in wrong_errors(folder, links)]
    facts = read_facts(folder)
    found = [
        check_recording(folder, name, kinds, facts.get(name, {}), partial=partial)
        for name, kinds in links.items()
        if not only or name in only
    ]
    worst = {FAIL} if corrupt else set()
    worst |= {one.status for one in found}
    return {
        "schema": "release-verify/1",
        "status": FAIL if FAIL in worst else WARN if WARN in worst else PASS,
        "recordings": [one.told() for one in found],
        "corrupt": corrupt,
    }


def wrong_errors(folder: Path, recordings: Iterable[str]) -> list[str]:
    """Return what is wrong with the rows of errors, also where they cannot be read; a data set may have none."""
    try:
        return list(bad_error_rows(folder, recordings)) if (folder / ERROR_ROWS).exists() else []
    except BAD_FILE as error:
        return [f"cannot be read: {type(error).__name__}: {error}"]


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
    if importlib.util.find_spec("av") is None:
        print("verify.py: PyAV reads the films; pip install av", file=sys.stderr)
        return 2
    try:
        answer = verify(asked.folder, asked.recording, partial=asked.partial)
    except (OSError, ValueError) as error:
        print(f"verify.py: {shown(str(error))}", file=sys.stderr)
        return 2
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    print(json.dumps(answer, indent=1) if asked.json else "\n".join(map(shown, card(answer))))
    return 1 if answer["status"] == FAIL else 0


if __name__ == "__main__":
    sys.exit(main())
