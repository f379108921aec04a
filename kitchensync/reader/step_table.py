"""Steps, errors and events of a recording as tables on session time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from kitchensync.operations.entries import EntryNotes, entries_of
from kitchensync.operations.error_rows import ERROR_COLUMNS, ErrorRow, error_rows, time_of
from kitchensync.operations.filed_log import read_log
from kitchensync.reader.film_streams import timeline_of
from kitchensync.reader.reading_clock import NotKnown
from kitchensync.reader.recording_source import RecordingSource
from kitchensync.reader.timed_stream import import_pandas
from kitchensync.storage.names import PART_OF
from kitchensync.storage.privacy import span_of
from kitchensync.storage.recording_files.annotation_folder import MarkedVideo, accepted_steps
from kitchensync.storage.timeline.film_times import UNKNOWN, FilmPlace
from kitchensync.task_graphs.categories import TAG_OF_COLUMN

if TYPE_CHECKING:
    import pandas


STEP_COLUMNS = (
    "recording", "recipe", "entry", "node", "step", "start", "end", "done", "source", "bound_s",
    "error", *TAG_OF_COLUMN, "errors",
)  # fmt: skip
ERROR_SECONDS = tuple(name for name in ERROR_COLUMNS if name.endswith("_s"))
EVENT_COLUMNS = ("session_s", "kind", "writer", "bound_s", "body")


def steps_of(recording: RecordingSource) -> pandas.DataFrame:
    """Return a row for each step, `start` and `end` in session seconds, NaN if it was not done.

    `source` is that of `start`: `touch`, `annotation` (accepted step times) or `end of the step before`. `bound_s` is
    the error bound of both times; `errors` describes the errors. Without a recipe there are no rows.

    Raises BadEventLog, BadAnnotations, NotKnown.
    """
    return import_pandas().DataFrame(recording.step_rows, columns=list(STEP_COLUMNS))


def step_rows_of(recording: RecordingSource) -> list[dict[str, Any]]:
    """Return the rows of `steps_of`, without pandas; of a part of a recording only those of steps done in it."""
    path = recording.path
    _, state = read_log(path)
    if state["recording"] is None:
        return []
    accepted = accepted_steps(path)
    entries = entries_of(state, session_places(recording), lambda label: 0, accepted)
    film = MarkedTimes(recording, accepted) if accepted is not None else None
    source = {"recording": recording.id, "recipe": state["recording"]["name"]}
    rows = [source | _row(number, notes, film) for number, notes in enumerate(entries)]
    if PART_OF not in recording.stored.manifest:
        return rows
    start_s, end_s = span_of(recording.stored.manifest)
    return [row for row in rows if row["start"] < end_s and row["end"] > start_s]


def session_places(recording: RecordingSource) -> Callable[[int], FilmPlace]:
    """Return a function from host ns to the session time, with the error bound of a touch at that moment."""
    touches_ns: dict[int, int] = {}
    for event in recording.stored.events():
        touches_ns[event["host_ns"]] = max(event["uncertainty_ns"], touches_ns.get(event["host_ns"], 0))

    def place_of(host_ns: int) -> FilmPlace:
        bound_s = recording.clock.bound_s + touches_ns.get(host_ns, 0) / 1e9
        return FilmPlace(float(recording.clock.of_host([host_ns])[0]) / 1e9, bound_s)

    return place_of


class MarkedTimes:
    """Map from seconds of the video that annotators marked to session seconds; `what` they marked.

    Raises NotKnown.
    """

    def __init__(self, recording: RecordingSource, marked: MarkedVideo, what: str = "steps") -> None:
        camera = next((name for name, files in recording.films.items() if files), "")
        if not camera:
            raise NotKnown(f"{recording.id}: its {what} were marked in a video that is missing")
        film = timeline_of(recording, camera)
        times = film.pictures.shown(film.clip.even_frames)
        if (marked.frames, marked.fps) != (len(times), times.fps):
            other = f"{marked.frames} frames, {marked.fps} a second"
            raise NotKnown(f"{recording.id}: its {what} were marked in a video of {other}; accept others")
        if not times.is_placed:
            why = times.why or "run `kitchensync sync`"
            raise NotKnown(f"{recording.id}: {what} were marked in {camera}'s video: {why}")
        self._placed_s = np.flatnonzero(times.capture_ns != UNKNOWN) / float(marked.fps)
        self._seconds = times.known / float(marked.fps)
        self._session_s = recording.clock.of_host(times.capture_ns[times.known]) / 1e9
        self._step_s = 1 / float(marked.fps)
        self.bound_s = float(times.bound_ns[times.known].max()) / 1e9

    def session_s(self, film_s: float) -> float:
        """Return session seconds; NaN in a part of the video that is not aligned."""
        near_s = np.abs(self._placed_s - film_s).min()
        if near_s > 1.5 * self._step_s:
            return float("nan")
        beyond_s = max(0.0, film_s - float(self._seconds[-1]))
        return float(np.interp(film_s, self._seconds, self._session_s)) + beyond_s

    def place(self, film_s: float) -> FilmPlace:
        """Return the session time of a moment; its bound is one frame plus that of the alignment."""
        session_s = self.session_s(film_s)
        outside = "this part of the video is not aligned" if np.isnan(session_s) else ""
        return FilmPlace(session_s, self._step_s + self.bound_s, outside)


def _row(number: int, notes: EntryNotes, film: MarkedTimes | None) -> dict[str, Any]:
    entry, beside = notes.entry, notes.beside
    start_s, end_s = (float(entry.start_s), float(entry.end_s)) if beside.get("done") else (np.nan, np.nan)
    if film is not None and beside.get("done"):
        start_s, end_s = film.session_s(start_s), film.session_s(end_s)
    flags = {name: entry.has_tag(tag) for name, tag in TAG_OF_COLUMN.items()}
    errors = [
        f"{error.tag}: {error.description}" if error.description else error.tag for error in entry.errors
    ]
    return {
        "entry": number,
        "node": notes.node,
        "step": entry.description,
        "start": start_s,
        "end": end_s,
        "done": bool(beside.get("done")),
        "source": beside.get("start", ""),
        "bound_s": float(beside.get("bound_s", np.nan)) + (film.bound_s if film is not None else 0.0),
        "error": bool(entry.errors),
        **flags,
        "errors": "; ".join(dict.fromkeys(errors)),
    }


def error_table(rows: Sequence[ErrorRow]) -> pandas.DataFrame:
    """Return errors as a table: an unknown time is NaN, any other unknown value None."""
    table = import_pandas().DataFrame(rows, columns=list(ERROR_COLUMNS))
    whole = {"node": "Int64", "planned": bool}
    return table.astype(dict.fromkeys(ERROR_SECONDS, float) | whole)


def error_rows_of(recording: RecordingSource) -> list[ErrorRow]:
    """Return one row for each error; of a part of a recording only those that happened or were entered in it.

    Raises BadEventLog, BadAnnotations, NotKnown.
    """
    operations, state = read_log(recording.path)
    if state["recording"] is None:
        return []
    marked = cache(lambda: MarkedTimes(recording, state["marked_video"], "errors"))
    places = session_places(recording), lambda film_s: marked().place(film_s)
    rows = error_rows(recording.id, state, operations, *places)
    if PART_OF in recording.stored.manifest:
        start_s, end_s = span_of(recording.stored.manifest)
        nodes = {step["node"] for step in recording.step_rows}
        timed = [row for row in rows if start_s <= time_of(row) < end_s]
        untimed = [row for row in rows if time_of(row) == float("inf") and row["node"] in nodes]
        rows = timed + untimed
    return rows


def events_of(recording: RecordingSource) -> pandas.DataFrame:
    """Return a row for each event in order of time: `session_s`, `kind`, `writer`, `bound_s`, `body`.

    Raises BadEventLog, NotKnown.
    """
    return import_pandas().DataFrame(event_rows_of(recording), columns=list(EVENT_COLUMNS))


def event_rows_of(recording: RecordingSource) -> list[tuple[float, str, str, float, dict[str, Any]]]:
    """Return the rows of `events_of`, without pandas."""
    events = recording.stored.events()
    if not events:
        return []
    session_ns = recording.clock.of_host([event["host_ns"] for event in events])
    return [
        (
            ns / 1e9,
            event["kind"],
            event["writer"],
            recording.clock.bound_s + event["uncertainty_ns"] / 1e9,
            event["body"],
        )
        for ns, event in zip(session_ns.tolist(), events, strict=True)
    ]
