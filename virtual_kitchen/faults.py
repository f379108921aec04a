"""Things that go wrong on purpose, named on the command line and written into the truth."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from virtual_kitchen.errors import KitchenError

DEVICE = "hololens"
REMOTE = "remote_configuration"
STREAM_NAMES = (
    "pv",
    "depth_ahat",
    "gyroscope",
    "accelerometer",
    "magnetometer",
    "spatial_input",
    "microphone",
)
KINDS = {
    "wrong_version": "wrong_version[:A.B.C]      the server says it is version A.B.C (default 1.0.30)",
    "never_answer": "never_answer:STREAM        the port accepts, reads the configuration and stays silent",
    "refuse_port": "refuse_port:STREAM         nothing listens on that stream's port",
    "drop_connection": "drop_connection:STREAM@T   the connection is closed at world second T, once",
    "stall": "stall:STREAM@T+D           packets due in [T, T+D) leave late, at T+D; none is lost",
}
_AT = re.compile(r"(?P<stream>[\w/]+)@(?P<at>\d+(\.\d+)?)(\+(?P<length>\d+(\.\d+)?))?")


class BadFault(KitchenError):
    """Name a fault that cannot be done and what is known."""


@dataclass
class Fault:
    """One fault: `stream` is a short name, or empty; from `start_s` to `end_s` of world time (None: to the end)."""

    name: str
    stream: str = ""
    start_s: float = 0.0
    end_s: float | None = None
    version: tuple[int, int, int] = (1, 0, 30)
    done: bool = False


@dataclass
class FaultPlan:
    """All faults of a simulation, asked by the ports."""

    faults: list[Fault] = field(default_factory=list)

    def version(self) -> tuple[int, int, int]:
        """Return what the server says of itself."""
        return next((f.version for f in self.faults if f.name == "wrong_version"), (1, 0, 37))

    def has(self, name: str, stream: str) -> bool:
        """Return whether a stream has a fault that lasts from start to end."""
        return any(f.name == name and f.stream == stream for f in self.faults)

    def drop_due(self, stream: str, world_s: float) -> Fault | None:
        """Return the fault that closes this connection now, if one does; it is then spent."""
        for fault in self.faults:
            waiting = fault.name == "drop_connection" and fault.stream == stream and not fault.done
            if waiting and world_s >= fault.start_s:
                fault.done = True
                return fault
        return None

    def resumed(self, stream: str, world_s: float) -> None:
        """Let the windows of dropped connections end where the next connection's packets begin."""
        for fault in self.faults:
            if (
                fault.name == "drop_connection"
                and fault.stream == stream
                and fault.done
                and fault.end_s is None
            ):
                fault.end_s = world_s

    def stalled_until(self, stream: str, world_s: float) -> float | None:
        """Return when a packet due at `world_s` may leave, if a stall holds it."""
        for fault in self.faults:
            held = fault.name == "stall" and fault.stream == stream and fault.end_s is not None
            if held and fault.end_s is not None and fault.start_s <= world_s < fault.end_s:
                return fault.end_s
        return None


def parse_faults(texts: Sequence[str]) -> FaultPlan:
    """Return the plan of `--fault` values; raise `BadFault` for one that is not known or not complete."""
    return FaultPlan([_parse(text) for text in texts])


def _parse(text: str) -> Fault:
    name, _, arguments = text.partition(":")
    if name not in KINDS:
        raise BadFault(f"unknown fault {name!r}: choose from {', '.join(KINDS)}")
    if name == "wrong_version":
        return Fault(name, version=_version(arguments or "1.0.30"))
    if name in ("never_answer", "refuse_port"):
        return Fault(name, _stream(arguments, (*STREAM_NAMES, REMOTE)))
    match = _AT.fullmatch(arguments)
    if match is None or (match["length"] is None) == (name == "stall"):
        raise BadFault(f"fault {text!r} is not of the form {KINDS[name].split()[0]}")
    start_s, length = float(match["at"]), match["length"]
    end_s = start_s + float(length) if length else None
    return Fault(name, _stream(match["stream"], STREAM_NAMES), start_s, end_s)


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
