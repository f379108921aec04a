"""What the app needs of whoever runs the devices. `capture` implements it; the command line joins the two.

Only plain values cross: neither side knows the other's classes.
"""

from __future__ import annotations

from typing import Any, Protocol

FRESH_NS = 3_000_000_000
"""Health older than this is no health: the tablet shows `unknown`."""


class RecordingWatch(Protocol):
    """Watches recordings."""

    def report(self, recording: str) -> dict[str, Any]:
        """Say how a recording is: `health` (recording, starting, stopped, problem, unknown), `reasons`, `host_ns`.

        Where it says `cook`, these are words for who cooks, of alarms alone; `alarm` is what the first is about:
        `camera`, `headset`, `recording`, `stopped` (it ended alone), or nothing.
        """

    def live(self, recording: str) -> dict[str, Any] | None:
        """Say all of it: `health`, `findings`, `streams`, `cameras`, `disk`, `processes`; None when none runs."""


class Capture(RecordingWatch, Protocol):
    """Starts, stops and watches recordings; what is refused comes back as reasons in words, each a line."""

    def devices(self) -> list[str]:
        """Name the kinds of devices that record: `headset`, `camera`, `sensor`; none where that cannot be told."""

    def start(self, recording: str, *, participant: str, consent: str, place: str) -> list[str]:
        """Return nothing once every expected stream delivers, or the reasons; then nothing is left of it."""

    def stop(self, recording: str) -> list[str]:
        """End a recording in order; what had arrived is kept."""

    def abort(self, recording: str, *, reason: str) -> list[str]:
        """End a recording that shall not be used; it is kept and says why."""
