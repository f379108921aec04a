"""What a recording of a data set lacks while its session ran: of which streams, when in the film, in which steps."""

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
from kitchensync.storage.verify.session_span import SessionTimes, session_of
from kitchensync.storage.verify.steps import StepTime, touched
from kitchensync.storage.verify.suitable_uses import clock, sentence
from kitchensync.storage.verify.thresholds import COVERAGE_WARN, HOLE_NAMED_S


def lacking_of(own: OwnRecording, *, with_headset: bool) -> tuple[list[LackingRow], list[CoverageRow]]:
    """Say of the camera, from its first picture on, and of the headset's streams what they lack by `verify`'s limits.

    `holes_s` are seconds of the film, `entries` the numbers of the entries that lie there, if only in part, from 0;
    `said` is both in words and counts entries from 1. What holds nothing that can be read is absent as a whole. The
    second list has every stream, with the share of the session that it covers and all its holes.
    """
    indexes = _indexes(own.recording.stored)
    try:
        notes = read_notes(own.recording.stored.readable)
    except BadChunk as error:  # then the session ends with the last packet
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

    taken = {own.camera: known_ns}
    host = own.recording.clock.host_clock(own.recording.stored.main_headset)
    for name, index in indexes.items() if with_headset else ():
        came_ns = index["host_ns"].astype(np.int64)  # counts where no exchange tells when a packet was taken
        ticks = index["device_ticks"].astype(np.int64)
        taken[name] = came_ns if host is None else host.to_host_ns(ticks, near_host_ns=came_ns)
    pauses = [(session.seconds(first), session.seconds(last)) for first, last in own.pauses]
    lacking: list[LackingRow] = []
    covered: list[CoverageRow] = []
    for name, taken_ns in taken.items():
        asked = replace(session, start_host_ns=int(known_ns[0])) if name == own.camera else session
        description = own.manifest["streams"].get(name, {"nominal_hz": float(own.frames.fps)})
        if not (nominal_hz := description.get("nominal_hz")):
            continue  # nobody said how often its packets come
        step_s = longest_step_s(float(nominal_hz), adaptive=is_adaptive(name, description))
        at_s = (np.sort(taken_ns) - asked.zero_host_ns) / 1e9
        seen = cover(PlacedPackets(at_s, at_s), asked, step_s, pauses)
        all_s = [[film_s(a), film_s(b)] for a, b in seen.holes]
        covered.append({"stream": name, "coverage": round(seen.share, 4), "holes_s": all_s, "step_s": step_s})
        # Those that are named in what a recording is good for.
        if holes := [h for h in seen.holes if seen.share < COVERAGE_WARN or h[1] - h[0] >= HOLE_NAMED_S]:
            short = name.rpartition("/")[2]
            lacking.append(
                {
                    "stream": name,
                    "holes_s": [[film_s(a), film_s(b)] for a, b in holes],
                    "entries": [number - 1 for number in touched(steps, holes)],
                    "said": sentence(short, holes, asked, steps, told=lambda at_s: clock(film_s(at_s))),
                }
            )
    return lacking, covered


def _indexes(recording: Recording) -> dict[str, npt.NDArray[np.void]]:
    """Return the packets of each stream of the main headset that has some and is not damaged."""
    found = {}
    for name in recording.streams:
        if name.rpartition("/")[0] == recording.main_headset:
            try:
                found[name] = recording[name].index
            except BadChunk as error:
                pass_on_trouble(error)
    return {name: index for name, index in found.items() if len(index)}


def _steps(own: OwnRecording, session: SessionTimes) -> Iterator[StepTime]:
    """Yield the entries that were done, by their number from 1: as touched, else by the pictures that were marked."""
    for number, one in enumerate(entries_of(own.state, own.place, lambda _: 0, own.accepted), start=1):
        span = one.taken_ns
        if not span and one.entry.performed:
            ends = [round(at_s * own.frames.fps) for at_s in (one.entry.start_s, one.entry.end_s)]
            first_ns, last_ns = (int(own.frames.capture_ns[min(end, len(own.frames) - 1)]) for end in ends)
            span = None if UNKNOWN in (first_ns, last_ns) else (first_ns, last_ns)
        if span:
            yield StepTime(number, session.seconds(span[0]), session.seconds(span[1]))
