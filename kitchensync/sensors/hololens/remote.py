"""Client of the headset's remote configuration (port 3809), which also switches the front camera on and off."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kitchensync.sensors.errors import (
    PvNotStarted,
    StreamClosed,
    StreamRefused,
    StreamStalled,
    StreamUnreachable,
    UnsupportedServer,
)
from kitchensync.sensors.hololens import commands, wire
from kitchensync.sensors.hololens import constants as c
from kitchensync.sensors.hololens.streams import pv
from kitchensync.shell.host_clock import host_ns

Version = tuple[int, int, int, int]

POLL_S = 0.1
PV_TIMEOUT_S = 20.0
"Time limit for switching the camera, which takes up to a few seconds, seconds."

START_PV = bytes([c.Mode.NOTHING | c.Mode.START_CAMERA]) + wire.mrc_video()
STOP_PV = bytes([c.Mode.NOTHING | c.Mode.STOP_CAMERA])


@dataclass(frozen=True)
class ClockExchange:
    """One request for the headset's time, which was read between the two host times."""

    host_send_ns: int
    host_receive_ns: int
    device_ticks: int
    "100 ns since the headset booted, the clock of all packet timestamps."
    utc_filetime: int | None = None
    "The headset's precise UTC as FILETIME, requested directly afterwards; None if it was not requested."


class RemoteControl:
    """A connection to port 3809; a context manager. `timeout_s` limits every answer."""

    def __init__(self, host: str, timeout_s: float = 5.0) -> None:
        self.host = host
        self._timeout_s = timeout_s
        self._sock: socket.socket | None = None
        self._where = (host, c.REMOTE_CONFIGURATION_PORT, c.REMOTE_CONFIGURATION)

    def __enter__(self) -> RemoteControl:
        self._sock = _connect(self._where, self._timeout_s)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; harmless when closed already."""
        sock, self._sock = self._sock, None
        if sock is not None:
            sock.close()

    def _ask(self, command: bytes, answer_bytes: int) -> bytes:
        assert self._sock is not None, "use RemoteControl in a with statement"
        try:
            self._sock.settimeout(self._timeout_s)
            self._sock.sendall(command)
            answer, until_s = bytearray(), time.monotonic() + self._timeout_s
            while len(answer) < answer_bytes:
                wait_until(self._sock, until_s)
                part = self._sock.recv(answer_bytes - len(answer))
                if not part:
                    raise StreamClosed(*self._where, at_boundary=not answer, lost_bytes=len(answer))
                answer += part
            return bytes(answer)
        except TimeoutError:
            raise StreamStalled(*self._where, limit_s=self._timeout_s) from None
        except OSError as error:
            raise StreamClosed(*self._where, at_boundary=True, why=f"closed ({error.strerror})") from error

    def version(self) -> Version:
        """Request the server's version (also a barrier): major, minor, build, revision."""
        major, minor, build, revision = struct.unpack("<4H", self._ask(bytes([c.Command.VERSION]), 8))
        return major, minor, build, revision

    def utc_offset(self) -> int:
        """Request utc_offset: FILETIME = device_ticks + utc_offset, fixed at the start of the app."""
        return int.from_bytes(self._ask(bytes([c.Command.UTC_OFFSET]), 8), "little")

    def pv_is_on(self) -> bool:
        """Request whether the front camera's subsystem is on."""
        return self._ask(bytes([c.Command.PV_IS_ON]), 1) != b"\x00"

    def clock_exchange(self, with_utc: bool = False) -> ClockExchange:
        """Request device_ticks between two readings of the host clock, and `with_utc` UTC afterwards."""
        request = commands.current_time(c.TimeSource.DEVICE_TICKS)
        send_ns = host_ns()
        answer = self._ask(request, 8)
        receive_ns = host_ns()
        filetime = None
        if with_utc:
            filetime = struct.unpack("<Q", self._ask(commands.current_time(c.TimeSource.UTC_FILETIME), 8))[0]
        return ClockExchange(send_ns, receive_ns, struct.unpack("<Q", answer)[0], filetime)

    def give_orders(self, orders: bytes) -> None:
        """Send commands without an answer (see `commands`) and wait until all are executed."""
        self._ask(orders + bytes([c.Command.VERSION]), 8)

    def map_points(self, port: int, direction: c.MapDirection, points: np.ndarray) -> np.ndarray:
        """Map points (n, 2) between pixels and the unit plane, float32 (n, 2); failures are 0, 0 or -1, -1."""
        answer = self._ask(commands.map_points(port, direction, points), 8 * len(points))
        return np.frombuffer(answer, "<f4").reshape(-1, 2)

    def rig_poses(self, device_ticks: Sequence[int]) -> np.ndarray:
        """Request poses of the rig, (n, 4, 4) row-vector matrices in metres; zeros where they are unknown."""
        answer = self._ask(commands.rig_poses(device_ticks), 64 * len(device_ticks))
        return np.frombuffer(answer, "<f4").reshape(-1, 4, 4)


def wait_until(sock: socket.socket, until_s: float) -> None:
    """Set a socket's timeout to the time until a deadline of `time.monotonic`. Raises TimeoutError."""
    remaining_s = until_s - time.monotonic()
    if remaining_s <= 0:
        raise TimeoutError("timed out")
    sock.settimeout(remaining_s)


def _connect(where: tuple[str, int, str], timeout_s: float) -> socket.socket:
    host, port, stream = where
    try:
        sock = socket.create_connection((host, port), timeout_s)
    except ConnectionRefusedError as error:
        raise StreamRefused(host, port, stream) from error
    except ConnectionResetError as error:
        raise _dropped(where, error) from error
    except OSError as error:
        why = "timed out" if isinstance(error, TimeoutError) else (error.strerror or str(error)).lower()
        raise StreamUnreachable(host, port, stream, why) from error
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _send_to_pv(host: str, message: bytes, timeout_s: float) -> None:
    camera = pv.STREAM
    where = (host, camera.port, camera.name)
    with _connect(where, timeout_s) as sock:
        try:
            sock.sendall(message)
        except OSError as error:
            raise _dropped(where, error) from error


def _dropped(where: tuple[str, int, str], error: OSError) -> StreamClosed:
    """Return the error for an app that is shutting down, which accepts connections and drops them."""
    return StreamClosed(*where, at_boundary=True, why=f"closed ({error.strerror or error})")


def _wait_for_pv(host: str, on: bool, limit_s: float) -> None:
    deadline_ns = host_ns() + int(limit_s * 1e9)
    with RemoteControl(host, timeout_s=min(5.0, limit_s)) as remote:
        while remote.pv_is_on() != on:
            if host_ns() > deadline_ns:
                raise PvNotStarted(host, "on" if on else "off", limit_s)
            time.sleep(POLL_S)


def start_pv(host: str, timeout_s: float = PV_TIMEOUT_S) -> None:
    """Switch the front camera on with a separate connection, and wait until it is on.

    A camera that is already on (from a recorder that died) is switched off first, so that its settings are reset.
    Raises `PvNotStarted` after `timeout_s`, or a connection error.
    """
    with RemoteControl(host, timeout_s=min(5.0, timeout_s)) as remote:
        was_on = remote.pv_is_on()
    if was_on:
        stop_pv(host, timeout_s)
    _send_to_pv(host, START_PV, timeout_s)
    _wait_for_pv(host, True, timeout_s)


def stop_pv(host: str, timeout_s: float = PV_TIMEOUT_S) -> None:
    """Switch the front camera off, which also resets its settings, and wait until it is off."""
    _send_to_pv(host, STOP_PV, timeout_s)
    _wait_for_pv(host, False, timeout_s)


def is_virtual(host: str) -> bool:
    """Return whether the headset at an address is simulated on this computer.

    The simulator announces itself by an abstract Unix socket, so that nothing is sent to a real headset.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(f"\0kitchensync-virtual-headset/{socket.gethostbyname(host)}")
        except OSError:
            return False
        return True


def replayed_uuid(host: str) -> str:
    """Return the uuid of the recording that is replayed as the headset at an address; empty for other headsets."""
    prefix = f"@kitchensync-replayed-headset/{socket.gethostbyname(host)}/"
    try:
        names = Path("/proc/net/unix").read_text().split()
    except OSError:  # not Linux
        return ""
    return next((name.removeprefix(prefix) for name in names if name.startswith(prefix)), "")


def parse_version(text: str) -> tuple[int, int, int]:
    """Parse `A.B.C`. Raises ValueError."""
    parts = text.split(".")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() for part in parts):
        raise ValueError(f"version {text!r}: write it as A.B.C, for example 1.0.37")
    major, minor, build = (int(part) for part in parts)
    return major, minor, build


def require_version(version: tuple[int, ...], accept: tuple[int, int, int] | str | None = None) -> str | None:
    """Check a server version: return None for 1.0.37, a warning for later ones. Raises `UnsupportedServer`.

    With `accept` only exactly that version is accepted.
    """
    numbers = tuple(version[:3])
    text = ".".join(map(str, numbers))
    if accept is not None:
        accepted = parse_version(accept) if isinstance(accept, str) else tuple(accept)
        if numbers != accepted:
            raise UnsupportedServer(text, f"is not the accepted {'.'.join(map(str, accepted))}")
        return None
    if numbers < c.MINIMUM_VERSION:
        raise UnsupportedServer(text, "is older than 1.0.37 and uses another wire format")
    if numbers > c.MINIMUM_VERSION:
        return f"hl2ss server version {text} is newer than the tested 1.0.37; watch a first recording"
    return None
