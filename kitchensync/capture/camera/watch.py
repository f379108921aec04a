"""Health of one camera, judged from its states while it records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kitchensync.sensors.gopro.control.camera_types import CameraState as Answer
from kitchensync.storage.reading.swaps import DEVICE_SWAP

STUCK_S = 8.0
AWAY_S = 1.25
"""Time between two answers from which on a camera was away; it is queried every second."""
LOW_BATTERY_PERCENT = 10  # an alarm; the monitor's rules warn from 20 % on
LOW_CARD_S = 120  # an alarm; the monitor's rules warn from ten minutes on
MEDIA_STATUS = (6, 8, 10, 13, 33, 35, 39, 54, 70, 85, 111, 112)
"""Ids of the status values in media.json: heat, busy, encoding, seconds recorded, card, seconds left, files, free KB,
battery, cold, card too slow."""


@dataclass
class CameraHealth:
    """State of one camera for the operator."""

    state: str = "waiting"
    problem: str = ""
    fetched_bytes: int = 0
    promised_bytes: int = 0
    fetching_since_ns: int | None = None
    """Start of the download of its files, in host_ns."""
    battery_percent: int | None = None
    minutes_left: float | None = None
    recorded_s: int | None = None
    card_gb_left: float | None = None
    gaps: list[dict[str, Any]] = field(default_factory=list)
    """Times without video or without an answer: start_host_ns, end_host_ns, cause."""

    @property
    def facts(self) -> str:
        """Newest values from the camera, as a short text."""
        values = (
            (self.recorded_s, "{} s"),
            (self.battery_percent, "battery {} %"),
            (self.minutes_left, "{:.0f} min left"),
            (self.card_gb_left, "{:.1f} GB free"),
        )
        return ", ".join(text.format(value) for value, text in values if value is not None)


@dataclass
class CameraWatch:
    """Updates the health of a camera from its states."""

    health: CameraHealth
    _grown_host_ns: int = 0
    _recorded_s: int = -1
    _lost_since_ns: int | None = None
    ended_by_itself: str = ""
    _answered_ns: int = 0
    _ended_ns: int = 0
    _was_unfit: bool = False
    _new_serial: str = ""
    is_swapped: bool = False
    """Whether the camera is ready again after a swap of battery or card, and has to be started."""

    def answered(self, answer: Answer) -> None:
        """Process a state."""
        health = self.health
        if not answer.encoding:
            # A camera that stopped and was away or not ready: its battery or card was swapped.
            last_ns = self._answered_ns or answer.host_ns
            was_away = self._lost_since_ns is not None or answer.host_ns - last_ns > AWAY_S * 1e9
            self._ended_ns = self._ended_ns or last_ns
            self._was_unfit |= was_away or bool(answer.complaints())
            self._lost_since_ns = None  # the network was not the cause
            self.is_swapped = self._was_unfit and answer.ready and not answer.complaints()
        self._answered_ns = answer.host_ns
        self.ended(answer.host_ns)
        health.battery_percent, health.recorded_s = answer.battery_percent, answer.recorded_s
        remaining_s = answer.video_seconds_left
        health.minutes_left = None if remaining_s is None else round(remaining_s / 60, 1)
        free_kb = answer.number(54)
        health.card_gb_left = None if free_kb is None else round(free_kb * 1024 / 1e9, 1)
        health.problem = self._judge(answer)

    def resumed(self, host_ns: int, new_serial: str = "") -> None:
        """Note that it records again after a gap; `new_serial` is set if another camera took its place."""
        gap = {"start_host_ns": self._ended_ns, "end_host_ns": host_ns, "cause": DEVICE_SWAP}
        self.health.gaps.append(gap)
        self._new_serial = new_serial
        self._ended_ns, self._was_unfit, self.is_swapped, self.ended_by_itself = 0, False, False, ""

    def lost(self, why: str, host_ns: int) -> None:
        """Note that the camera does not answer."""
        if self._lost_since_ns is None:
            self._lost_since_ns = host_ns
        self.health.problem = why

    def ended(self, host_ns: int) -> None:
        """End a gap in its answers, if there is one."""
        if self._lost_since_ns is not None:
            self.health.gaps.append(
                {"start_host_ns": self._lost_since_ns, "end_host_ns": host_ns, "cause": "network"}
            )
            self._lost_since_ns = None

    def verdict(self) -> str:
        """Return a message about problems during the recording, "" if there were none."""
        if self.ended_by_itself:
            return self.ended_by_itself
        away_s, swapped_s = self._gaps_s("network"), self._gaps_s(DEVICE_SWAP)
        if swapped_s:
            cause = "its battery or card was changed"
            if self._new_serial:
                cause = f"camera {self._new_serial} took its place"
            return f"{cause}: {swapped_s:.0f} s are not filmed"
        return f"the camera did not answer for {away_s:.0f} s; its recording went on" if away_s else ""

    def _gaps_s(self, cause: str) -> float:
        """Return the total length of the gaps with a cause."""
        gaps = (gap for gap in self.health.gaps if gap["cause"] == cause)
        return float(sum(gap["end_host_ns"] - gap["start_host_ns"] for gap in gaps)) / 1e9

    def _judge(self, answer: Answer) -> str:
        if not answer.encoding and not self.ended_by_itself:
            reasons = ", ".join(answer.complaints())
            why = f" ({reasons})" if reasons else ""
            self.ended_by_itself = f"the camera stopped recording by itself{why}"
        if self.ended_by_itself:
            return self.ended_by_itself
        recorded_s = answer.recorded_s
        if recorded_s is not None and recorded_s != self._recorded_s:
            self._recorded_s, self._grown_host_ns = recorded_s, answer.host_ns
        if recorded_s is not None and answer.host_ns - self._grown_host_ns > STUCK_S * 1e9:
            return "the recording does not grow; look at the camera"
        return ", ".join(concerns(answer))


def concerns(answer: Answer) -> list[str]:
    """Return messages about what stops a recording or soon will: heat, card, battery."""
    messages = answer.complaints()
    if (percent := answer.battery_percent) is not None and 0 < percent < LOW_BATTERY_PERCENT:
        messages.append(f"battery at {percent} %")
    if (remaining_s := answer.video_seconds_left) is not None and 0 < remaining_s < LOW_CARD_S:
        messages.append(f"card full in {remaining_s} s")
    return messages


def media_state(answer: Answer) -> dict[str, Any]:
    """Return a state as media.json keeps it."""
    values = {str(number): answer.number(number) for number in MEDIA_STATUS}
    status = {number: value for number, value in values.items() if value is not None}
    return {"host_ns": answer.host_ns, "status": status, "settings": answer.settings}
