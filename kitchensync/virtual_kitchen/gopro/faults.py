"""Faults of a GoPro: network, card, heat, battery."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field

from kitchensync.virtual_kitchen.errors import KitchenError

PREFIX = "gopro_"
KINDS = {
    "gopro_ignore_range": "gopro_ignore_range         byte ranges are ignored: every answer begins at byte 0",
    "gopro_slow": "gopro_slow:BYTES           files come at so many bytes a second",
    "gopro_cut": "gopro_cut:BYTESxN          the next N file answers are reset after so many bytes each",
    "gopro_truncate": "gopro_truncate:BYTESxN     the next N file answers end early, closed in good order",
    "gopro_stall": "gopro_stall:BYTES+D        the next file answer rests for D seconds after so many bytes",
    "gopro_500": "gopro_500@T+D              every request in [T, T+D) is answered with 500",
    "gopro_vanish": "gopro_vanish@T+D           nobody answers in [T, T+D); a running recording goes on",
    "gopro_card_full": "gopro_card_full@T          the card is full at T: recording ends by itself",
    "gopro_overheat": "gopro_overheat@T           too hot at T: recording ends by itself",
    "gopro_write_error": "gopro_write_error@T        the card is too slow at T: recording ends by itself",
    "gopro_swap": "gopro_swap@T+D             off from T to T+D: its battery is changed, and its recording ended",
    "gopro_new_card": "gopro_new_card@T+D         as gopro_swap, then with an empty card that counts from 1",
    "gopro_battery_dead": "gopro_battery_dead@T       off for ever at T; the running file is left without its index",
}
CHANGES = ("gopro_swap", "gopro_new_card")
"""Faults that switch the camera off for a while, with another battery or card afterwards."""
SELF_ENDING = ("gopro_card_full", "gopro_overheat", "gopro_write_error", *CHANGES, "gopro_battery_dead")
_BYTES = re.compile(r"(?P<bytes>\d+)(x(?P<times>\d+))?(\+(?P<seconds>\d+(\.\d+)?))?")
_MOMENT = re.compile(r"(?P<at>\d+(\.\d+)?)(\+(?P<length>\d+(\.\d+)?))?")


class BadCameraFault(KitchenError):
    """A fault that cannot be understood."""


@dataclass
class CameraFault:
    """One fault: from `start_s` to `end_s` of world time (None: to the end), or the next `times` file answers."""

    name: str
    start_s: float = 0.0
    end_s: float | None = None
    after_bytes: int = 0
    seconds: float = 0.0
    times: int = 1

    def covers(self, world_s: float) -> bool:
        """Return whether a world time is in its window."""
        return self.start_s <= world_s and (self.end_s is None or world_s < self.end_s)


@dataclass
class CameraFaults:
    """All faults of one camera."""

    faults: list[CameraFault] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def active(self, name: str, world_s: float) -> bool:
        """Return whether a fault with a window is active now."""
        return any(fault.name == name and fault.covers(world_s) for fault in self.faults)

    def find(self, name: str) -> CameraFault | None:
        """Return the first fault of a kind."""
        return next((fault for fault in self.faults if fault.name == name), None)

    def spend(self, *names: str) -> CameraFault | None:
        """Return a fault that hits this file answer and count it down."""
        with self._lock:
            for fault in self.faults:
                if fault.name in names and fault.times > 0:
                    fault.times -= 1
                    return fault
        return None


def parse_camera_fault(text: str) -> CameraFault:
    """Parse one `--fault` value. Raises BadCameraFault."""
    name, sign, arguments = text.partition("@")
    if sign:
        match = _MOMENT.fullmatch(arguments)
        if name not in KINDS or "@" not in KINDS[name].split()[0] or match is None:
            raise BadCameraFault(f"fault {text!r} is not of the form {_form(name)}")
        start_s = float(match["at"])
        needs_length = KINDS[name].split()[0].endswith("+D")
        if needs_length != (match["length"] is not None):
            raise BadCameraFault(f"fault {text!r} is not of the form {_form(name)}")
        end_s = start_s + float(match["length"]) if match["length"] else None
        return CameraFault(name, start_s, end_s)
    name, sign, arguments = text.partition(":")
    if name == "gopro_ignore_range" and not sign:
        return CameraFault(name)
    match = _BYTES.fullmatch(arguments)
    if name not in KINDS or ":" not in KINDS[name].split()[0] or match is None:
        raise BadCameraFault(f"fault {text!r} is not of the form {_form(name)}")
    return CameraFault(
        name,
        after_bytes=int(match["bytes"]),
        seconds=float(match["seconds"] or 0),
        times=int(match["times"] or 1),
    )


def _form(name: str) -> str:
    return KINDS[name].split()[0] if name in KINDS else f"one of {', '.join(KINDS)}"
