"""The time of a report: session time, where a headset tells it."""

from __future__ import annotations

from dataclasses import dataclass

from storage.timeline.session_time import SessionTime


@dataclass(frozen=True, slots=True)
class ShownTime:
    """The seconds that are shown of host times: session time, or since `zero_host_ns` where no headset tells it."""

    session: SessionTime | None
    zero_host_ns: int

    def seconds(self, host_ns: int) -> float:
        """Seconds after zero."""
        session_ns = self.session.of_host([host_ns]) if self.session is not None else None
        if session_ns is None:
            return (int(host_ns) - self.zero_host_ns) / 1e9
        return float(session_ns[0]) / 1e9
