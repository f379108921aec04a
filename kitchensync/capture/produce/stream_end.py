"""Decide how a stream ended: by its device, by a fault, or by us, from the other streams of the device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kitchensync.storage.ledger import BY_DEVICE, LOST, STOPPED, EndNote

CONNECTED = ("connected", "streaming", "silent")

OUTLIVED_NS = 5_000_000_000
"""A stream was not ended by its device if another stream of the device still delivers this long afterwards."""

OUTLIVED_BEFORE_STOP_NS = 1_000_000_000
"""The same if the recording is stopped during that time."""

DECIDE_NS = 8_000_000_000
"""Longest wait for other streams; packets that arrive later were sent earlier and only received late."""

SILENT_NS = 5_000_000_000
"""A stream that delivered nothing for this long before its stop counts as lost."""


@dataclass
class StreamState:
    """State of one stream for the supervisor and the operator; times in host_ns."""

    state: str = "waiting"
    received: int = 0
    bytes: int = 0
    first_host_ns: int = 0
    last_host_ns: int = 0
    last_ticks: int = 0
    connections: int = 0
    left_host_ns: int = 0
    """Time of the last lost connection, 0 for never."""
    flagged: int = 0
    """Number of suspicious timestamps."""
    flagged_host_ns: int = 0
    """Arrival of the last of them."""
    losses: int = 0
    lost_host_ns: int = 0
    """Start of the current loss of head tracking, 0 while the headset tracks."""
    still_host_ns: int = 0
    """Time since which the samples repeat one value, 0 while they do not."""
    problem: str = ""
    away: str = ""
    """Cause of a closed connection as in the ledger, "" since the next packet."""
    fault: str = ""
    """Message why this was no end by the device, "" since the next packet."""
    ended: str = ""
    closed_host_ns: int = 0
    """Time at which the device ended the stream, 0 if it did not; a lost stream may be ended by its device too."""


class Streams:
    """The states of all streams of one device; thread-safe."""

    def __init__(self) -> None:
        self._states: dict[str, StreamState] = {}

    def add(self, name: str, state: StreamState) -> None:
        """Add a stream."""
        self._states[name] = state

    def outlived(self, name: str, closed_ns: int, *, stopping: bool = False) -> bool:
        """Return whether another stream delivered long after this one closed, by arrival and by device timestamp.

        Both are compared because a slow computer may receive packets late that were sent in time.
        """
        own = self._states[name].last_ticks
        after_ns = OUTLIVED_BEFORE_STOP_NS if stopping else OUTLIVED_NS
        return any(
            other.last_host_ns >= closed_ns + after_ns
            and (not own or other.last_ticks >= own + after_ns // 100)
            for other in self._others(name)
        )

    def others_come(self, name: str) -> bool:
        """Return whether another stream is connected and its connection was not lost since its last packet."""
        return any(
            other.state in CONNECTED and not other.away and not other.ended for other in self._others(name)
        )

    def over_since(self, name: str) -> int:
        """Return when (host_ns) the device ended its other streams, 0 while one of them goes on."""
        ended_ns = max((other.closed_host_ns for other in self._others(name)), default=0)
        return 0 if self.others_come(name) else ended_ns

    def _others(self, name: str) -> Iterator[StreamState]:
        return (state for other, state in self._states.items() if other != name)


def end_of(state: StreamState, missed: str, stopped_ns: int, silent_ns: float = SILENT_NS) -> EndNote:
    """Return the ledger's note of an end: the reason, for a lost stream also the cause and until when it was missed.

    `missed` is why nothing arrived before the device ended the stream. `stopped_ns` is when the stream was stopped,
    0 if it was not; a stream that was silent for `silent_ns` by then is lost as well.
    """
    closed_ns = state.closed_host_ns or stopped_ns
    cause = missed if state.closed_host_ns else state.away
    if not cause and not state.closed_host_ns and state.last_host_ns:
        cause = "network" if stopped_ns - state.last_host_ns > silent_ns else ""
    if cause:
        return EndNote(reason=LOST, cause=cause, closed_host_ns=closed_ns)
    return EndNote(reason=BY_DEVICE if state.closed_host_ns else STOPPED)
