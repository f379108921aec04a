"""How a stream ends: by its device, by a fault, or by us; what the streams of one device know of each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kitchensync.storage.ledger import BY_DEVICE, LOST, STOPPED, EndNote

CONNECTED = ("connected", "streaming", "silent")

OUTLIVED_NS = 5_000_000_000
"""A stream that ends while another of its device delivers so long after was not ended by the device."""

OUTLIVED_BEFORE_STOP_NS = 1_000_000_000
"""The same where the recording is stopped before that can be seen."""

DECIDE_NS = 8_000_000_000
"""So long that is looked for; what a slow computer receives later was sent before."""

SILENT_NS = 5_000_000_000
"""A stream that is stopped when nothing has come for so long is lost since then."""


@dataclass
class StreamState:
    """What the supervisor and the operator see of one stream."""

    state: str = "waiting"
    received: int = 0
    bytes: int = 0
    first_host_ns: int = 0
    last_host_ns: int = 0
    last_ticks: int = 0
    connections: int = 0
    left_host_ns: int = 0
    "When a connection was lost last, 0 for never."
    flagged: int = 0
    "Stamps that are not to be trusted."
    flagged_host_ns: int = 0
    "When the last of them came."
    losses: int = 0
    lost_host_ns: int = 0
    "Since when the headset has not known its head, 0 while it does."
    still_host_ns: int = 0
    "Since when its samples repeat one value, 0 while they do not."
    problem: str = ""
    away: str = ""
    "Why its connection was closed, for as long as no packet has come since: a cause of the ledger."
    fault: str = ""
    "Why that was no end by its device, in words, for as long as no packet has come since."
    ended: str = ""
    closed_host_ns: int = 0
    "When its device ended it, 0 where it did not; a lost stream may be ended by its device as well."


class Streams:
    """The streams of one device; any thread may ask."""

    def __init__(self) -> None:
        """Know of none."""
        self._states: dict[str, StreamState] = {}

    def add(self, name: str, state: StreamState) -> None:
        """Know of one more."""
        self._states[name] = state

    def outlived(self, name: str, closed_ns: int, *, stopping: bool = False) -> bool:
        """Return whether another stream delivered long after this one closed: by arrival and by its stamps.

        Stamps are asked too because a slow computer may receive late what was sent in time.
        """
        own = self._states[name].last_ticks
        after_ns = OUTLIVED_BEFORE_STOP_NS if stopping else OUTLIVED_NS
        return any(
            other.last_host_ns >= closed_ns + after_ns
            and (not own or other.last_ticks >= own + after_ns // 100)
            for other in self._others(name)
        )

    def others_come(self, name: str) -> bool:
        """Return whether another stream is connected and was not closed since its last packet."""
        return any(
            other.state in CONNECTED and not other.away and not other.ended for other in self._others(name)
        )

    def over_since(self, name: str) -> int:
        """Return since when (host_ns) nothing is left to come, 0 while something is.

        That is when the device has ended another stream, and none goes on.
        """
        ended_ns = max((other.closed_host_ns for other in self._others(name)), default=0)
        return 0 if self.others_come(name) else ended_ns

    def _others(self, name: str) -> Iterator[StreamState]:
        return (state for other, state in self._states.items() if other != name)


def end_of(state: StreamState, missed: str, stopped_ns: int, silent_ns: float = SILENT_NS) -> EndNote:
    """Return what the ledger says of an end: reason, and for a lost stream the cause and until when it was missed.

    `missed` is the cause for which nothing had come before its device ended it; `stopped_ns` is when it was asked to
    stop (0: it was not). A stream from which nothing had come for `silent_ns` then is lost as well.
    """
    closed_ns = state.closed_host_ns or stopped_ns
    cause = missed if state.closed_host_ns else state.away
    if not cause and not state.closed_host_ns and state.last_host_ns:
        cause = "network" if stopped_ns - state.last_host_ns > silent_ns else ""
    if cause:
        return EndNote(reason=LOST, cause=cause, closed_host_ns=closed_ns)
    return EndNote(reason=BY_DEVICE if state.closed_host_ns else STOPPED)
