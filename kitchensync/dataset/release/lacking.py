"""Gaps of the streams of a recording during its session: when in the video, and in which steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from kitchensync.dataset.source.data_set import CoverageRow, LackingRow
from kitchensync.dataset.source.own_recording import OwnRecording
from kitchensync.operations.entries import entries_of
from kitchensync.storage.errors import BadChunk, pass_on_trouble
from kitchensync.storage.ledger_reader import read_notes
from kitchensync.storage.recording import Recording
from kitchensync.storage.timeline.film_times import UNKNOWN
from kitchensync.storage.verify.coverage import PlacedPackets, cover, is_adaptive, longest_step_s
from kitchensync.storage.verify.session_span import SessionTimes, StepTime, session_of
from kitchensync.storage.verify.suitable_uses import clock, sentence, touched
from kitchensync.storage.verify.thresholds import COVERAGE_WARN, HOLE_NAMED_S


def lacking_of(own: OwnRecording, *, with_headset: bool) -> tuple[list[LackingRow], list[CoverageRow]]:
    """Return the gaps by the limits of `verify`, and the coverage, of the camera and the headset's streams.

    `holes_s` are seconds of the video, `entries` the entries that overlap a gap, counted from 0; `said` is a sentence
    that counts entries from 1. Streams without a readable packet are left out. The second list has all streams with
    all their gaps. The camera counts from its first frame.
    """
    indexes = _indexes(own.recording.stored)
    try:
        notes = read_notes(own.recording.stored.readable)
    except BadChunk as error:  # without notes the session ends with the last packet
        pass_on_trouble(error)
        notes = {}
    times = session_of(indexes, notes, own.manifest)
    known_ns = own.frames.capture_ns[own.frames.capture_ns != UNKNOWN]
    if times is None or not len(known_ns):
        return [], []
    session = SessionTimes(int(known_ns[0]), times.start_host_ns, times.stop_host_ns)
    steps = list(_steps(own, session))

    def film_s(at_s: float) -> float:
        return own.frames.place(session.zero_host_ns + round(at_s * 1e9)).film_s

    capture_ns = {own.camera: known_ns}
    host = own.recording.clock.host_clock(own.recording.stored.main_headset)
    for name, index in indexes.items() if with_headset else ():
        arrival_ns = index["host_ns"].astype(np.int64)  # used if the headset's clock was never compared
        ticks = index["device_ticks"].astype(np.int64)
        capture_ns[name] = arrival_ns if host is None else host.to_host_ns(ticks, near_host_ns=arrival_ns)
    pauses = [(session.seconds(first), session.seconds(last)) for first, last in own.pauses]
    lacking: list[LackingRow] = []
    covered: list[CoverageRow] = []
    for name, taken_ns in capture_ns.items():
        session_of_stream = (
            replace(session, start_host_ns=int(known_ns[0])) if name == own.camera else session
        )
        description = own.manifest["streams"].get(name, {"nominal_hz": float(own.frames.fps)})
        if not (nominal_hz := description.get("nominal_hz")):
            continue  # without a rate there are no gaps
        step_s = longest_step_s(float(nominal_hz), adaptive=is_adaptive(name, description))
        at_s = (np.sort(taken_ns) - session_of_stream.zero_host_ns) / 1e9
        coverage = cover(PlacedPackets(at_s, at_s), session_of_stream, step_s, pauses)
        all_s = [[film_s(a), film_s(b)] for a, b in coverage.holes]
        covered.append(
            {"stream": name, "coverage": round(coverage.share, 4), "holes_s": all_s, "step_s": step_s}
        )
        # The same gaps as in the list of suitable uses.
        if holes := [
            h for h in coverage.holes if coverage.share < COVERAGE_WARN or h[1] - h[0] >= HOLE_NAMED_S
        ]:
            short = name.rpartition("/")[2]
            lacking.append(
                {
                    "stream": name,
                    "holes_s": [[film_s(a), film_s(b)] for a, b in holes],
                    "entries": [number - 1 for number in touched(steps, holes)],
                    "said": sentence(
                        short, holes, session_of_stream, steps, write=lambda at_s: clock(film_s(at_s))
                    ),
                }
            )
    return lacking, covered


def _indexes(recording: Recording) -> dict[str, npt.NDArray[np.void]]:
    """Return the packet index of each undamaged, non-empty stream of the main headset."""
    indexes = {}
    for name in recording.streams:
        if name.rpartition("/")[0] == recording.main_headset:
            try:
                indexes[name] = recording[name].index
            except BadChunk as error:
                pass_on_trouble(error)
    return {name: index for name, index in indexes.items() if len(index)}


def _steps(own: OwnRecording, session: SessionTimes) -> Iterator[StepTime]:
    """Yield the performed entries, numbered from 1, with times from touches, else from marked frames."""
    for number, notes in enumerate(entries_of(own.state, own.place, lambda _: 0, own.accepted), start=1):
        span = notes.taken_ns
        if not span and notes.entry.performed:
            ends = [round(at_s * own.frames.fps) for at_s in (notes.entry.start_s, notes.entry.end_s)]
            first_ns, last_ns = (int(own.frames.capture_ns[min(end, len(own.frames) - 1)]) for end in ends)
            span = None if UNKNOWN in (first_ns, last_ns) else (first_ns, last_ns)
        if span:
            yield StepTime(number, session.seconds(span[0]), session.seconds(span[1]))
