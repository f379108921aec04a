"""Faults to inject, named on the command line and recorded in the truth."""

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from kitchensync.virtual_kitchen.errors import KitchenError
from kitchensync.virtual_kitchen.gopro.faults import KINDS as CAMERA_KINDS
from kitchensync.virtual_kitchen.gopro.faults import (
    PREFIX,
    BadCameraFault,
    CameraFault,
    CameraFaults,
    parse_camera_fault,
)

DEVICE = "hololens"
REMOTE = "remote_configuration"
STREAM_NAMES = (
    "pv",
    "vlc_leftfront",
    "vlc_leftleft",
    "vlc_rightfront",
    "vlc_rightright",
    "depth_ahat",
    "depth_longthrow",
    "gyroscope",
    "accelerometer",
    "magnetometer",
    "spatial_input",
    "microphone",
    "eye_tracking",
    "extended_audio",
    "extended_video",
    "extended_depth",
)
KINDS = {
    "wrong_version": "wrong_version[:A.B.C]      the server says it is version A.B.C (default 1.0.30)",
    "research_mode_off": "research_mode_off          nothing listens on 3800-3808, as with Research Mode off",
    "never_answer": "never_answer:STREAM        the port accepts, reads the configuration and stays silent",
    "refuse_port": "refuse_port:STREAM         nothing listens on that stream's port",
    "drop_connection": "drop_connection:STREAM@T   the connection is closed at world second T, once",
    "kill_port": "kill_port:STREAM@T         the connection is closed at T and the port refuses from then on",
    "half_packet": "half_packet:STREAM@T       half of the packet due at T is sent, then the connection closed",
    "garbage_size": "garbage_size:STREAM@T      a header at T promises 4 GB; the port waits for the client to leave",
    "garbage_payload": "garbage_payload:STREAM@T+D payloads due in [T, T+D) are random bytes of the same sizes",
    "time_jump": "time_jump:STREAM@T+D       stamps of packets due from T on are D seconds late (@T-D: early)",
    "duplicate_stamps": "duplicate_stamps:STREAM@T+D  packets due in [T, T+D) all carry the first one's stamp",
    "stall": "stall:STREAM@T+D           packets due in [T, T+D) leave late, at T+D; none is lost",
    "burst": "burst:STREAM@T+D           packets due in [T, T+D) leave in bunches, every half second",
    "slow_drip": "slow_drip:STREAM@T+D       packets due in [T, T+D) are sent a few bytes at a time",
    "depth_rate_drop": "depth_rate_drop:STREAM@T+D a depth stream slows down to 5 Hz (no hands seen); no loss",
    "lost_tracking": "lost_tracking:@T+D         no poses in [T, T+D); spatial input repeats the last place",
    "black_pictures": "black_pictures:pv@T+D      pictures taken in [T, T+D) are black, in an intact stream",
    "frozen_gaze": "frozen_gaze:@T+D           the gaze repeats one value as valid while the head moves",
    "still_sensor": "still_sensor:STREAM@T+D    an inertial sensor repeats its last value",
    "app_restart": "app_restart:@T+D           all ports close at T and refuse for D s; a new world frame after",
    "headset_swap": "headset_swap:@T+D          as app_restart, and its clock counts anew: was off, or is another",
    "hostile_half_header": "hostile_half_header:STREAM@T  five bytes of a header, then silence",
    "hostile_drip": "hostile_drip:STREAM@T      a packet comes at five bytes a second",
    "hostile_empty": "hostile_empty:STREAM@T     packets without payload, as fast as they go",
    "hostile_flood": "hostile_flood:STREAM@T     one packet under new stamps, as fast as it goes",
    "hostile_backwards": "hostile_backwards:STREAM@T 300 packets whose stamps go back",
    "hostile_far_stamps": "hostile_far_stamps:STREAM@T stamps from 0 to 2**64 - 1",
    "hostile_wrong_kind": "hostile_wrong_kind:STREAM@T 300 payloads that are not of this stream",
    "hostile_lengths": "hostile_lengths:STREAM@T   payloads as long as one limit or another",
    "hostile_web": "hostile_web:STREAM@T       answers of a web server",
    "hostile_noise": "hostile_noise:STREAM@T     random bytes without end",
    "hostile_reset": "hostile_reset:STREAM@T     half of a packet, then a reset",
    "hostile_storm": "hostile_storm:STREAM@T     the next 30 connections are closed at once",
    "die": "die:@T                     all ports close at T, after whole packets, and refuse for ever, 3809 too",
    **CAMERA_KINDS,
}
HOSTILE = tuple(name for name in KINDS if name.startswith("hostile_"))
CUTS = ("drop_connection", "half_packet", "garbage_size", "kill_port", *HOSTILE)
"Faults that end a connection."
STORM = 30  # the description of hostile_storm names it
OF_HEADSET = ("lost_tracking", "frozen_gaze")
"Faults that hit several streams together: their argument names no stream."
ONLY_OF = {
    "depth_rate_drop": ("depth_ahat", "depth_longthrow"),
    "black_pictures": ("pv",),
    "still_sensor": ("gyroscope", "accelerometer", "magnetometer"),
}
"Streams that can have the fault; faults that are not listed can hit any stream."
WHOLE = ("app_restart", "headset_swap", "die")
"Faults of the whole headset."
ARMED = "@armed+"
"Replaces `@` for a time that counts from when every connected stream has sent a packet."
NEVER_S = 1e9
"Offset added to the times of a fault until it is armed, seconds."
BUNCH_S = 0.5
SLOW_HZ = 5.0  # AHAT falls to 15 or 5 Hz while it sees no hands
_FORMS = {
    "stream": ("never_answer", "refuse_port"),
    "moment": (*CUTS, "die"),
    "bare": ("research_mode_off",),
    "version": ("wrong_version",),
}
_FORM_OF = {name: form for form, names in _FORMS.items() for name in names}
_AT = re.compile(r"(?P<stream>[\w/]*)@(?P<at>\d+(\.\d+)?)((?P<sign>[+-])(?P<length>\d+(\.\d+)?))?")


class BadFault(KitchenError):
    """A fault cannot be played; the message lists the known ones."""


@dataclass
class Fault:
    """One fault: `stream` is a short name, or empty; from `start_s` to `end_s` of world time (None: to the end)."""

    name: str
    stream: str = ""
    start_s: float = 0.0
    end_s: float | None = None
    version: tuple[int, int, int] = (1, 0, 30)
    jump_s: float = 0.0
    done: bool = False
    times: int = 1
    "Number of connections that the fault ends."

    def covers(self, world_s: float) -> bool:
        """Return whether a world time is in its window."""
        return self.start_s <= world_s and (self.end_s is None or world_s < self.end_s)


@dataclass
class FaultPlan:
    """All faults of a simulation."""

    faults: list[Fault] = field(default_factory=list)
    camera: CameraFaults = field(default_factory=CameraFaults)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def version(self) -> tuple[int, int, int]:
        """Return the version that the server reports."""
        return next((f.version for f in self.faults if f.name == "wrong_version"), (1, 0, 37))

    def has(self, name: str, stream: str = "") -> bool:
        """Return whether a stream has a fault that lasts from start to end."""
        return any(f.name == name and f.stream == stream for f in self.faults)

    def cut_due(self, stream: str, world_s: float) -> Fault | None:
        """Return the fault that ends this connection now, if any, and use it up."""
        with self._lock:
            for fault in self.faults:
                waiting = fault.name in CUTS and fault.stream == stream and not fault.done
                if waiting and world_s >= fault.start_s:
                    fault.times -= 1
                    fault.done = fault.times <= 0
                    return fault
        return None

    def resumed(self, stream: str, world_s: float) -> None:
        """End the windows of faults that cut connections where the packets of the next connection begin."""
        for fault in self.faults:
            cut = fault.name in CUTS and fault.stream == stream and fault.done
            if cut and fault.end_s is None:
                fault.end_s = world_s

    def active(self, name: str, stream: str, world_s: float) -> Fault | None:
        """Return the fault of this kind that is active for a packet due at `world_s`."""
        matches = (f for f in self.faults if f.name == name and f.stream == stream and f.covers(world_s))
        return next(matches, None)

    def held_until(self, stream: str, world_s: float) -> tuple[float, str] | None:
        """Return when a packet due at `world_s` may leave and the fault that delays it, if any."""
        if (stall := self.active("stall", stream, world_s)) and stall.end_s is not None:
            return stall.end_s, "stall"
        if burst := self.active("burst", stream, world_s):
            bunch = int((world_s - burst.start_s) / BUNCH_S) + 1
            return burst.start_s + bunch * BUNCH_S, "burst"
        return None

    def every(self) -> list[Fault | CameraFault]:
        """Return the faults of headset and camera."""
        return [*self.faults, *self.camera.faults]

    def has_waiting(self) -> bool:
        """Return whether a fault waits to be armed."""
        return any(is_waiting(fault) for fault in self.every())

    def arm(self, world_s: float) -> None:
        """Count the times of waiting faults from a world time."""
        for fault in filter(is_waiting, self.every()):
            _delay(fault, world_s - NEVER_S)

    def fire(self, text: str, world_s: float) -> None:
        """Add a fault that begins at a world time, or `@T` seconds after it. Raises BadFault."""
        head, length = re.fullmatch(r"(.*?)([+-][\d.]+)?", text, re.DOTALL).groups("")  # type: ignore[union-attr]
        at_once = (f"{head}@0{length}", f"{head}:@0{length}")
        forms = [text] if "@" in text else [text, *at_once]
        for form in forms:
            try:
                fault = _parse_any(form)
            except BadFault as error:
                refusal = error
                continue
            self._add(fault, later_s=world_s if "@" in form else 0.0)
            return
        raise refusal

    def _add(self, fault: Fault | CameraFault, later_s: float) -> None:
        _delay(fault, later_s)
        if isinstance(fault, Fault):
            self.faults.append(fault)
        else:
            self.camera.faults.append(fault)

    def due_whole(self, world_s: float) -> Fault | None:
        """Return the next restart, swap or death of the headset that is due and was not played yet."""
        due = [f for f in self.faults if f.name in WHOLE and not f.done and f.start_s <= world_s]
        return min(due, key=lambda f: f.start_s, default=None)


def _delay(fault: Fault | CameraFault, by_s: float) -> None:
    fault.start_s += by_s
    fault.end_s = None if fault.end_s is None else fault.end_s + by_s


def is_waiting(fault: Fault | CameraFault) -> bool:
    """Return whether a fault is waiting to be armed."""
    return fault.start_s >= NEVER_S


def parse_faults(texts: Sequence[str]) -> FaultPlan:
    """Parse `--fault` values. Raises BadFault for one that is unknown or incomplete."""
    plan = FaultPlan()
    for text in texts:
        plan._add(_parse_any(text.replace(ARMED, "@", 1)), NEVER_S if ARMED in text else 0.0)
    return plan


def _parse_any(text: str) -> Fault | CameraFault:
    try:
        return parse_camera_fault(text) if text.startswith(PREFIX) else _parse(text)
    except BadCameraFault as error:
        raise BadFault(str(error)) from error


def _parse(text: str) -> Fault:
    name, _, arguments = text.partition(":")
    if name not in KINDS:
        raise BadFault(f"unknown fault {name!r}: choose from {', '.join(KINDS)}")
    form = _FORM_OF.get(name, "window")
    if form == "version":
        return Fault(name, version=_version(arguments or "1.0.30"))
    if form == "bare" and not arguments:
        return Fault(name)
    if form == "stream":
        return Fault(name, _stream(arguments, (*STREAM_NAMES, REMOTE)))
    match = _AT.fullmatch(arguments)
    if match is None or (match["length"] is None) != (form == "moment"):
        raise BadFault(f"fault {text!r} is not of the form {KINDS[name].split()[0]}")
    return _timed(name, match, text)


def _timed(name: str, match: re.Match[str], text: str) -> Fault:
    start_s, length_s = float(match["at"]), float(match["length"] or 0)
    if name in WHOLE:
        if match["stream"] or match["sign"] == "-":
            raise BadFault(f"fault {text!r} is not of the form {KINDS[name].split()[0]}")
        return Fault(name, "", start_s, start_s + length_s if match["length"] else None)
    if name in OF_HEADSET and not match["stream"] and match["sign"] == "+":
        return Fault(name, "", start_s, start_s + length_s)
    stream = _stream(match["stream"], ONLY_OF.get(name, STREAM_NAMES))
    if name == "time_jump":
        return Fault(name, stream, start_s, jump_s=length_s if match["sign"] == "+" else -length_s)
    if match["sign"] == "-" or name in OF_HEADSET:
        raise BadFault(f"fault {text!r} is not of the form {KINDS[name].split()[0]}")
    times = STORM if name == "hostile_storm" else 1
    return Fault(name, stream, start_s, start_s + length_s if match["length"] else None, times=times)


def _version(text: str) -> tuple[int, int, int]:
    parts = text.split(".")
    if len(parts) != 3 or not all(part.isdecimal() and int(part) < 65536 for part in parts):
        raise BadFault(f"version {text!r} is not of the form A.B.C")
    return int(parts[0]), int(parts[1]), int(parts[2])


def _stream(text: str, known: Sequence[str]) -> str:
    stream = text.removeprefix(DEVICE + "/")
    if stream not in known:
        raise BadFault(f"unknown stream {text!r} in a fault: choose from {', '.join(known)}")
    return stream
