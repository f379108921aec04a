"""What the app needs of whoever runs the devices: `capture.station` in the kitchen, a stand-in in tests.

Only plain values cross: neither side knows the other's classes.
"""

from __future__ import annotations

from typing import Any, Protocol

FRESH_NS = 3_000_000_000
"""Health older than this is no health: the tablet shows `unknown`."""


class RecordingWatch(Protocol):
    """Watches recordings."""

    def report(self, recording: str) -> dict[str, Any]:
        """Report how a recording is: `health` (recording, starting, stopped, problem, unknown), `reasons`, `host_ns`.

        Where it says `cook`, these are words for who cooks, of alarms alone; `alarm` is what the first is about:
        `camera`, `headset`, `recording`, `stopped` (it ended alone), or nothing.
        """

    def room(self) -> list[dict[str, Any]]:
        """Say the same of every recording that this computer makes."""

    def live(self, recording: str) -> dict[str, Any] | None:
        """Say all of it: `health`, `findings`, `streams`, `cameras`, `disk`, `processes`; None when none runs."""


class Capture(RecordingWatch, Protocol):
    """Starts, stops and watches recordings; what is refused comes back as reasons in words, each a line."""

    def devices(self, place: str = "") -> list[str]:
        """Name the kinds of devices that record in a kitchen: `headset`, `camera`, `sensor`; none where unknown."""

    def check(self, place: str = "") -> dict[str, Any]:
        """Look over this computer and the devices of a kitchen; return `status` and `findings`.

        A finding has `what`, `status` (good, look, bad), `seen` and `advice`.
        """

    def start(
        self, recording: str, *, participant: str, consent: str, place: str, override: str = ""
    ) -> list[str]:
        """Return nothing once every expected stream delivers, or the reasons; then nothing is left of it.

        With an override, a reason that is kept, it begins though streams are missing.
        """

    def stop(self, recording: str, *, by: str = "") -> list[str]:
        """End a recording in order; return when everything that had arrived is kept and accounted for.

        `by` is the pseudonym of who ends it: the recording says so.
        """

    def tell(self, recording: str, what: str, text: str = "") -> list[str]:
        """Tell a running one to `mark` this moment, `pause`, `resume`, `swap`, `swapped` or `leave_films`."""

    def abort(self, recording: str, *, reason: str, by: str = "") -> list[str]:
        """End a recording that shall not be used; it is kept and says why, and by whom."""
