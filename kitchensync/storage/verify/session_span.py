"""The session of a recording: from the first packets of all armed streams until the stop; the steps in it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kitchensync.storage.errors import BadEventLog
from kitchensync.storage.events import LogEvent, event_logs, read_lines, taken_back
from kitchensync.storage.ledger import BY_DEVICE, LOST, STOPPED, EndNote, Note, of_kind
from kitchensync.storage.manifest import Manifest
from kitchensync.storage.names import PART_OF

RECOVERED = "recovered"


@dataclass(frozen=True)
class SessionTimes:
    """Times of arrival on the capture clock, host ns."""

    zero_host_ns: int
    "The first packet of all streams: 0:00 in messages."
    start_host_ns: int
    stop_host_ns: int

    def seconds(self, host_ns: int) -> float:
        """Return seconds since the first packet."""
        return (host_ns - self.zero_host_ns) / 1e9

    @property
    def start_s(self) -> float:
        """When every armed stream had sent a packet."""
        return self.seconds(self.start_host_ns)

    @property
    def stop_s(self) -> float:
        """When the recording was stopped."""
        return self.seconds(self.stop_host_ns)


def session_of(
    indexes: Mapping[str, npt.NDArray[np.void]], notes: Mapping[str, list[Note]], manifest: Manifest
) -> SessionTimes | None:
    """Return the session; None without packets.

    Its end is that of the recording, not of a stream that died early. A part of a recording begins and ends where it
    was cut, even if its packets arrived late; its 0:00 is that of the whole recording.
    """
    filled = [index for index in indexes.values() if len(index)]
    if not filled:
        return None
    firsts = [int(index["host_ns"][0]) for index in filled]
    # If the devices ended all streams, no later packets were expected.
    ends = [of_kind(notes.get(name, []), EndNote) for name in indexes]
    if all(stream_ends and stream_ends[-1].reason == BY_DEVICE for stream_ends in ends):
        stop_ns = max(map(_last_sent_ns, filled))
    else:
        stop_ns = _stop(notes, manifest, max(int(index["host_ns"][-1]) for index in filled))
    if (part := manifest.get(PART_OF)) is None:
        return SessionTimes(min(firsts), max(firsts), stop_ns)
    first_ns, last_ns = part["host_ns"]
    begun = [int(index["host_ns"][0]) for index in filled if index["seq"][0] == 0]  # others had come before
    return SessionTimes(part["first_host_ns"] or 0, max([*begun, first_ns]), min(stop_ns, last_ns))


def _last_sent_ns(index: npt.NDArray[np.void]) -> int:
    """Return when the last packet would have arrived with the least delay of its connection."""
    run = index[
        (index["epoch_ms"] == index["epoch_ms"][-1]) & (index["connection"] == index["connection"][-1])
    ]
    delay_ns = run["host_ns"] - 100 * run["device_ticks"]
    return int(run["host_ns"][-1]) - int(delay_ns[-1] - delay_ns.min())


def _stop(notes: Mapping[str, list[Note]], manifest: Manifest, last_host_ns: int) -> int:
    """Return when the stop was requested, by the notes of the streams; without notes, the last packet.

    For a device the earliest of its streams counts, because others still send queued packets. If all its streams were
    lost, the last of them counts.
    """
    stopped_ns: dict[str, list[int]] = defaultdict(list)
    lost: dict[str, list[int]] = defaultdict(list)
    for stream, stream_notes in notes.items():
        ends = of_kind(stream_notes, EndNote)
        if ends and ends[-1].reason in (STOPPED, LOST):
            times = stopped_ns if ends[-1].reason == STOPPED else lost
            times[stream.rpartition("/")[0]].append(ends[-1].closed_host_ns or ends[-1].host_ns)
    if stops := [*map(min, stopped_ns.values()), *map(max, lost.values())]:
        return max(stops)
    stopped = manifest.get("stopped") or {}
    if stopped.get("reason") == RECOVERED and stopped.get("host_ns"):
        return max(int(stopped["host_ns"]), last_host_ns)
    return last_host_ns


@dataclass(frozen=True)
class StepTime:
    """One finished step: its place in the shown order, and its time on the session's axis."""

    position: int
    start_s: float
    end_s: float


def read_steps(recording: Path, session: SessionTimes) -> list[StepTime]:
    """Return the finished steps by the tablet's events: from the start, or the end of the step before, to Done.

    Of a damaged log those before the damage count.
    """
    events_read: list[LogEvent] = []
    for path in event_logs(recording):
        try:
            for event, _ in read_lines(path):
                if isinstance(event.get("body"), dict) and isinstance(event.get("host_ns"), int):
                    events_read.append(event)
        except (BadEventLog, OSError):
            continue  # reported by the check of the logs
    events = sorted(events_read, key=lambda event: int(event["host_ns"]))
    undone = taken_back(events)
    starts_s: dict[int, float] = {}
    done: dict[int, StepTime] = {}
    before_s = session.start_s
    for event in events:
        position = event["body"].get("position")
        if (
            not isinstance(position, int)
            or event.get("op_id") in undone
            or event["kind"] not in ("start", "done")
        ):
            continue
        at_s = session.seconds(int(event["host_ns"]))
        if event["kind"] == "start":
            starts_s.setdefault(position, at_s)
        elif position not in done:
            done[position] = StepTime(position, min(starts_s.get(position, before_s), at_s), at_s)
            before_s = at_s
    return sorted(done.values(), key=lambda step: step.end_s)
