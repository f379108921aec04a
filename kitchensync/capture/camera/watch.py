"""What the operator sees of one camera, and what its states say while it records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kitchensync.sensors.gopro.control.camera_types import CameraState as Answer
from kitchensync.storage.reading.swaps import DEVICE_SWAP

STUCK_S = 8.0
AWAY_S = 1.25
"""A camera is asked each second, and again at once where it does not answer: after this it was away."""
LOW_BATTERY_PERCENT = 10
LOW_CARD_S = 120
KEPT_STATUS = (6, 8, 10, 13, 33, 35, 39, 54, 70, 85, 111, 112)
"""Heat, busy, encoding, seconds recorded, card, seconds left, files, free KB, battery, cold, card too slow."""


@dataclass
class CameraHealth:
    """What the operator sees of one camera."""

    state: str = "waiting"
    problem: str = ""
    fetched_bytes: int = 0
    promised_bytes: int = 0
    fetching_since_ns: int | None = None
    "When the first byte of its files was asked for, on the host clock."
    battery_percent: int | None = None
    minutes_left: float | None = None
    recorded_s: int | None = None
    card_gb_left: float | None = None
    gaps: list[dict[str, Any]] = field(default_factory=list)
    "Times in which the camera did not answer: start_host_ns, end_host_ns, cause."

    @property
    def facts(self) -> str:
        """What the camera said last of itself, in a few words."""
        known = (
            (self.recorded_s, "{} s"),
            (self.battery_percent, "battery {} %"),
            (self.minutes_left, "{:.0f} min left"),
            (self.card_gb_left, "{:.1f} GB free"),
        )
        return ", ".join(words.format(value) for value, words in known if value is not None)


@dataclass
class CameraWatch:
    """Judges one state after the other; remembers why a recording ended by itself."""

    shown: CameraHealth
    _grown_host_ns: int = 0
    _recorded_s: int = -1
    _lost_since_ns: int | None = None
    ended_by_itself: str = ""
    _answered_ns: int = 0
    _ended_ns: int = 0
    _was_unfit: bool = False
    _other: str = ""
    is_swapped: bool = False
    "It is fit to film again, after it was away or had no card: the shutter is to be opened."

    def answered(self, answer: Answer) -> None:
        """Take in a state."""
        shown = self.shown
        self._look_for_a_swap(answer)
        self._answered_ns = answer.host_ns
        self.ended(answer.host_ns)
        shown.battery_percent, shown.recorded_s = answer.battery_percent, answer.recorded_s
        left_s = answer.video_seconds_left
        shown.minutes_left = None if left_s is None else round(left_s / 60, 1)
        free_kb = answer.number(54)
        shown.card_gb_left = None if free_kb is None else round(free_kb * 1024 / 1e9, 1)
        shown.problem = self._judge(answer)

    def _look_for_a_swap(self, answer: Answer) -> None:
        """Notice a camera that does not film any more, and was away or unfit: its battery or card was changed."""
        if answer.encoding:
            return
        last_ns = self._answered_ns or answer.host_ns
        was_away = self._lost_since_ns is not None or answer.host_ns - last_ns > AWAY_S * 1e9
        self._ended_ns = self._ended_ns or last_ns
        self._was_unfit |= was_away or bool(answer.complaints())
        self._lost_since_ns = None  # it is not the network that is to blame
        self.is_swapped = self._was_unfit and answer.ready and not answer.complaints()

    def went_on(self, host_ns: int, other: str = "") -> None:
        """Note that it films again, or the `other` of that serial number: what lies between is a gap."""
        gap = {"start_host_ns": self._ended_ns, "end_host_ns": host_ns, "cause": DEVICE_SWAP}
        self.shown.gaps.append(gap)
        self._other = other
        self._ended_ns, self._was_unfit, self.is_swapped, self.ended_by_itself = 0, False, False, ""

    def lost(self, why: str, host_ns: int) -> None:
        """Note that the camera does not answer."""
        if self._lost_since_ns is None:
            self._lost_since_ns = host_ns
        self.shown.problem = why

    def ended(self, host_ns: int) -> None:
        """Name the time until now in which it did not answer, if it did not."""
        if self._lost_since_ns is not None:
            self.shown.gaps.append(
                {"start_host_ns": self._lost_since_ns, "end_host_ns": host_ns, "cause": "network"}
            )
            self._lost_since_ns = None

    def verdict(self) -> str:
        """Say at the end what was wrong on the way."""
        if self.ended_by_itself:
            return self.ended_by_itself
        away_s, swapped_s = self._gaps_s("network"), self._gaps_s(DEVICE_SWAP)
        if swapped_s:
            what = (
                f"camera {self._other} took its place" if self._other else "its battery or card was changed"
            )
            return f"{what}: {swapped_s:.0f} s are not filmed"
        return f"the camera did not answer for {away_s:.0f} s; its recording went on" if away_s else ""

    def _gaps_s(self, cause: str) -> float:
        """Return how long it was missing for a cause."""
        gaps = (gap for gap in self.shown.gaps if gap["cause"] == cause)
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
    """Report what stops a recording, or soon will: heat, card, battery."""
    said = answer.complaints()
    if (percent := answer.battery_percent) is not None and 0 < percent < LOW_BATTERY_PERCENT:
        said.append(f"battery at {percent} %")
    if (left_s := answer.video_seconds_left) is not None and 0 < left_s < LOW_CARD_S:
        said.append(f"card full in {left_s} s")
    return said


def kept(answer: Answer) -> dict[str, Any]:
    """What media.json keeps of a state."""
    status = {str(number): answer.number(number) for number in KEPT_STATUS}
    known = {number: value for number, value in status.items() if value is not None}
    return {"host_ns": answer.host_ns, "status": known, "settings": answer.settings}
