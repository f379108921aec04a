"""Make the small video of a recording for review in the browser, and a JSON file about its frames.

The app runs it as a program, `PATH HEIGHT`, so that encoding does not block other requests. Prints `DONE WHOLE` in
frames as progress; an error is one line on stderr and exit code 1, or UNPLACED if the recording is not synchronized.
"""

from __future__ import annotations

import hashlib
import json
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from kitchensync.dataset.annotation.labels import labels_of
from kitchensync.dataset.films.film_lanes import EACH_S, motion_levels, sound_levels, thumbnails
from kitchensync.dataset.narration.narrations import NARRATED, SUBMITTED
from kitchensync.dataset.source.own_recording import NotSynchronized, OwnRecording
from kitchensync.operations.entries import entries_of
from kitchensync.operations.session_state import Frozen
from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.hololens.catalogue import STREAMS
from kitchensync.sensors.mask_runs import marked_runs
from kitchensync.shell.array_types import Int64
from kitchensync.shell.files_on_disk import file_sha256, matching
from kitchensync.shell.process_apart import limit_memory
from kitchensync.storage.consent import Purpose
from kitchensync.storage.errors import StorageError, words_of
from kitchensync.storage.events import events_of
from kitchensync.storage.exports.film import Progress, write_small_film
from kitchensync.storage.exports.headset_film import HeadsetFilm, write_headset_film
from kitchensync.storage.names import REVIEW
from kitchensync.storage.options.outputs import write_output, written
from kitchensync.storage.privacy import WRITERS, in_pauses
from kitchensync.storage.recording import StoredStream
from kitchensync.storage.timeline.device_clock import HostClock
from kitchensync.task_graphs.errors import RecipeError


def write_front_film(own: OwnRecording, out: Path, tell: Progress) -> HeadsetFilm | None:
    """Write the front camera's frames as a video as long as the camera's; None if it has fewer than two frames.

    A frame is black in a pause, or if the nearest front camera frame is further away than its median interval.
    Raises errors of reading a recording, OutputRefused.
    """
    stored = own.recording.stored
    headset = stored.main_headset
    host = own.recording.clock.host_clock(headset) if headset else None
    fronts = (f"{headset}/{short}" for short, stream in STREAMS.items() if stream.is_front_camera)
    name = next((name for name in fronts if name in stored.streams and len(stored[name]) > 1), "")
    if host is None or not name:
        return None
    rows = nearest_rows(own, stored[name], host)
    with written(out, force=True, ending=".mp4") as part:
        return write_headset_film(stored[name], rows, own.frames.fps, part, tell=tell)


def nearest_rows(own: OwnRecording, stream: StoredStream, host: HostClock) -> Int64:
    """Return the row of a camera's stream nearest in time to each video frame, (n,); -1 if there is none."""
    index = stream.index[:]
    near_ns = index["host_ns"].astype(np.int64)
    stream_ns = np.maximum.accumulate(
        host.to_host_ns(index["device_ticks"].astype(np.int64), near_host_ns=near_ns)
    )
    video_ns = own.frames.capture_ns
    later = np.clip(np.searchsorted(stream_ns, video_ns), 1, len(stream_ns) - 1)
    is_earlier = video_ns - stream_ns[later - 1] <= stream_ns[later] - video_ns
    rows = later - is_earlier
    distance_ns = np.abs(stream_ns[rows] - video_ns)
    hidden = own.hidden | in_pauses(stream_ns, host.bound_ns, own.pauses)[rows]
    return np.where(hidden | (distance_ns > np.median(np.diff(stream_ns))), -1, rows)


SCHEMA = "review-film/6"
UNPLACED = 3
"""Exit code if the recording is not synchronized."""
KINDS = (
    *("assign_review", "edit_step", "submit_steps", "rule_step", "accept_steps", NARRATED, SUBMITTED),
    *("judge_error", "submit_errors", "rule_error"),
    *("ask_opinions", "decide_step", "submit_decisions", "rate_question", "submit_ratings"),
    *("ask_questions", "judge_question", "submit_questions", "rule_question"),
    *("ask_evidence", "mark_evidence", "submit_evidence", "rule_evidence"),
    *("plan_error", "error", "add_error", "edit_error", "mark", "note", "voice", "finish", "claim"),
    *("awake", "close_review"),
)
"""Log operations of reviews, which change neither the video nor its facts."""
KNOT_FRAMES = 30
"""Interval of the stated capture times, frames."""
MOST_BYTES = 16 << 30
"""Limit of address space: an imported video must not use up the memory. Decoding 4K on many cores reserves some."""
STUCK_S = 600
"""Time without progress after which encoding is aborted, seconds."""


def film_of(recording: Path, height: int) -> Path:
    """Return the path of a recording's small video; its facts are beside it, as JSON."""
    return recording / REVIEW / f"gopro_{height}p.mp4"


def front_film_of(recording: Path) -> Path:
    """Return the path of the front camera's video; it has as many frames as the small video."""
    return recording / REVIEW / "front.mp4"


def facts_of(recording: Path, height: int) -> dict[str, Any] | None:
    """Return the facts of the small video; None if it does not exist or is out of date.

    A pause that was entered later, a redaction or another synchronization makes it out of date.
    """
    film = film_of(recording, height)
    try:
        facts: dict[str, Any] = json.loads(film.with_suffix(".json").read_bytes())
        is_same_film = (facts["schema"], facts["bytes"]) == (SCHEMA, film.stat().st_size)
        has_front = not facts["front"] or front_film_of(recording).exists()
        is_current = is_same_film and has_front and facts["made_of"] == _made_of(recording)
    except (OSError, ValueError, KeyError):
        return None
    return facts if is_current else None


def _made_of(recording: Path) -> str:
    """Return a digest of the touches, pauses, alignment and camera files."""
    digest = hashlib.sha256()
    for writer in WRITERS:
        for event in events_of(recording, writer):
            if event["body"].get("undone_kind", event["kind"]) not in KINDS:
                digest.update(f"{event.get('op_id')} {event['kind']} {event['host_ns']}".encode())
    for path in sorted((recording / "sync" / "alignment").glob("*.json")):
        digest.update(path.read_bytes())
    for path in matching(recording, "*/*.MP4"):
        digest.update(f"{path.name} {path.stat().st_size} {path.stat().st_mtime_ns}".encode())
    return digest.hexdigest()


def make(recording: Path, height: int) -> None:
    """Write the small video of a recording and its facts. Raises errors of opening a recording, OSError."""
    # Whether somebody may watch it is checked when the app serves it.
    with OwnRecording.open(recording, purpose=Purpose.LOOK) as own:
        own.check_filmed()
        own.check_placed()
        film = film_of(recording, height)
        film.parent.mkdir(parents=True, exist_ok=True)
        made_of = _made_of(recording)  # before encoding, so that later changes are noticed
        with written(film, force=True, ending=".mp4") as part:
            made = write_small_film(own.clip, part, height=height, hidden=own.hidden, tell=_tell)
        front = write_front_film(own, front_film_of(recording), _tell)
        facts = {
            "schema": SCHEMA,
            "made_of": made_of,
            "sha256": file_sha256(film),
            "bytes": film.stat().st_size,
            "camera": own.camera,
            "fps": [made.fps.numerator, made.fps.denominator],
            "frames": made.frames,
            "taken_ns": own.frames.knots(KNOT_FRAMES),
            "width": made.width,
            "height": made.height,
            "steps": steps_of(own.state["recording"]),
            "touches": list(touches_of(own)),
            "hidden": [[first, end - 1] for first, end in marked_runs(own.hidden)],
            "missing": list(made.missing),
            "lane_s": EACH_S,
            "sound": sound_levels(film, own.film_s),
            "motion": motion_levels(own),
            "thumbnails": thumbnails(film, made.frames),
            "front": None if front is None else {"missing": list(front.missing)},
        }
        write_output(film.with_suffix(".json"), json.dumps(facts).encode(), force=True)


def steps_of(frozen: Frozen) -> list[dict[str, Any]]:
    """Return the steps with labels, in the order of the recipe, which does not reveal the script."""
    return [{"node": node, "label": label} for node, label in labels_of(frozen).items()]


def touches_of(own: OwnRecording) -> Iterable[dict[str, Any]]:
    """Yield each touch of a step as done: first and last frame (from 0), and their uncertainty in frames.

    `ended_ns`, the time of the touch on the capture clock, does not change with another synchronization.
    """
    last = len(own.frames) - 1
    ended_ns = {
        int(node): iter([run["end"] for run in step["runs"] if run["end"] is not None])
        for node, step in own.state["steps"].items()
    }
    for notes in entries_of(own.state, own.place, lambda _: 0):
        if not notes.beside["done"]:
            continue
        touched_ns = next(ended_ns[notes.node])  # also for runs that are skipped below
        if notes.entry.end_s < 0:
            continue
        start = min(max(round(notes.entry.start_s * own.frames.fps), 0), last)
        end = min(max(round(notes.entry.end_s * own.frames.fps) - 1, start), last)
        doubt = round(float(notes.beside.get("bound_s", 0) * own.frames.fps), 1)
        ends = {"start": start, "end": end, "ended_ns": touched_ns}
        yield {"node": notes.node, **ends, "doubt": doubt, "begun": notes.beside["start"]}


def _tell(done: int, whole: int) -> None:
    signal.alarm(STUCK_S)
    print(done, whole, flush=True)


def main(recording: str, height: str) -> int:
    """Make the video; return the exit code."""
    limit_memory(MOST_BYTES)
    signal.alarm(STUCK_S)
    try:
        make(Path(recording), int(height))
    except MemoryError:
        print("encoding the video needs too much memory", file=sys.stderr)
        return 1
    except (StorageError, SensorError, RecipeError, OSError) as error:
        print(words_of(error), file=sys.stderr)
        return UNPLACED if isinstance(error, NotSynchronized) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
