"""Receive one stream: one socket, one buffer, whole wire frames cut out of it without copying."""

from __future__ import annotations

import socket
import struct
import sys
import time

from kitchensync.sensors.errors import (
    AbsurdSize,
    StreamClosed,
    StreamRefused,
    StreamSilent,
    StreamStalled,
    StreamStopped,
    StreamUnreachable,
)
from kitchensync.sensors.hololens.headset_stream import HeadsetStream
from kitchensync.sensors.hololens.wire import HEADER_BYTES
from kitchensync.shell.host_clock import host_ns

SMALL_BUFFER_BYTES = 64 * 1024
START_BUFFER_BYTES = 1024 * 1024
GULP_BYTES = 1024 * 1024
"Most to take in one call while the size of the frame is not known: leaves little to move to the front later."
SLAB_BYTES = 256 * 1024
LARGE_SLAB_BYTES = 4 * 1024 * 1024
"Frames that `take` gives away lie in slabs of this size; the large ones are for streams of large frames."
EXACT_READ_BYTES = 512 * 1024
"A frame that lacks this much or more is received exactly; a smaller rest takes whatever has come."

SO_TIMESTAMPNS = 35
"Linux: what is received comes with when it arrived (UTC). The socket module has no name for it."

_SIZE_FIELD = struct.Struct("<8xI")
_TIMESPEC = struct.Struct("@ll")
_ROOM_FOR_TIME = socket.CMSG_SPACE(_TIMESPEC.size)


class StreamClient:
    """One connection to one port of a headset; make a new one to reconnect.

    `read_frame` and `connect` belong to one thread; `stop` may be called from any other.
    Memory stays below the kind's largest frame (never below 64 KiB), whatever the peer sends.
    """

    def __init__(
        self,
        spec: HeadsetStream,
        host: str,
        configuration_bytes: bytes,
        connect_timeout_s: float = 5.0,
        first_packet_timeout_s: float = 15.0,
        stall_timeout_s: float = 10.0,
    ) -> None:
        self.spec = spec
        self.host = host
        self._configuration = configuration_bytes
        self._connect_timeout_s = connect_timeout_s
        self._first_timeout_s = first_packet_timeout_s
        self._stall_timeout_s = stall_timeout_s
        self._where = (host, spec.port, spec.name)
        self._overhead = HEADER_BYTES + spec.pose_bytes
        self._limit = spec.max_payload_bytes
        self._most = max(SMALL_BUFFER_BYTES, self._overhead + self._limit)
        self._buffer = bytearray(min(START_BUFFER_BYTES, self._most))
        self._view = memoryview(self._buffer)
        self._start = 0
        self._end = 0
        self._sock: socket.socket | None = None
        self._stopped = False
        self._heard = False
        self._arrived_utc_ns = 0
        self._empty_ns = host_ns()
        "When the socket was last known to be empty."
        self.arrived_ns = 0
        "When the last bytes of what was taken last had come, host_ns."
        self.expects_more = False
        "Whether more is there now or soon: the rest of a frame, or what the last reading had no room for."

    def connect(self) -> None:
        """Connect and send the configuration.

        Raises `StreamRefused` (nobody listens), `StreamUnreachable` (no answer), `StreamStopped`.
        """
        if self._stopped:
            raise self._stopped_error()
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._sock = sock
        try:
            sock.settimeout(self._connect_timeout_s)
            _set_up(sock)
            sock.connect((self.host, self.spec.port))
            if self._configuration:
                sock.sendall(self._configuration)
            self._set_limit(sock, self._first_timeout_s)
        except OSError as error:
            self.close()
            if self._stopped:
                raise StreamStopped(*self._where, at_boundary=True) from error
            if isinstance(error, ConnectionRefusedError):
                raise StreamRefused(*self._where) from error
            raise StreamUnreachable(*self._where, why=_reason(error)) from error
        if self._stopped:
            self.close()
            raise StreamStopped(*self._where, at_boundary=True)

    def read_frame(self) -> memoryview:
        """Return the next whole wire frame (header, payload, pose), valid until the next call.

        Raises `StreamClosed` when the peer ended (frames that came before are delivered first),
        `StreamStopped` after `stop()`, `AbsurdSize` before anything is allocated, `StreamSilent` when no byte
        ever came in time, `StreamStalled` when bytes ceased; after those two reading may be tried again.
        """
        start = self._start
        have = self._end - start
        if have >= HEADER_BYTES:
            size = _SIZE_FIELD.unpack_from(self._buffer, start)[0]
            if size > self._limit:
                raise AbsurdSize(*self._where, size=size, limit=self._limit)
            total = self._overhead + size
            if have >= total:
                self._start = start + total
                return self._view[start : start + total]
            return self._receive(total)
        return self._receive(HEADER_BYTES)

    def fileno(self) -> int:
        """Return the socket's descriptor, for a selector."""
        if self._sock is None:
            raise self._stopped_error()
        return self._sock.fileno()

    def take(self) -> list[memoryview]:
        """Receive once what is there, without waiting; return the frames that are whole now, maybe none.

        The views stay as they are for as long as they are kept: what comes later goes elsewhere.
        Raises what `read_frame` raises, silence apart (see `silence`).
        """
        lacking = self._lacking()
        if self._end + lacking > len(self._buffer):
            self._new_slab(lacking)
        looked_ns = host_ns()
        try:
            is_all = self._receive_some(self._view[self._end :], socket.MSG_DONTWAIT)
        except BlockingIOError:
            self._empty_ns = looked_ns
            self.expects_more = self._end > self._start
            return []
        self.arrived_ns = self._when_it_came()
        self._empty_ns = looked_ns if is_all else self._empty_ns
        frames = self._whole_frames()
        self.expects_more = not is_all or self._end > self._start
        return frames

    def _when_it_came(self) -> int:
        """Return when the last bytes had come, in host_ns: now where the kernel does not say.

        They were not there when the socket was last empty: a kernel that says so speaks of a UTC that was set since.
        """
        utc_ns = time.time_ns()
        now_ns = host_ns()  # in this order: who is held between the two is told too late, not too early
        arrived_ns = now_ns - (utc_ns - self._arrived_utc_ns)
        return arrived_ns if self._empty_ns <= arrived_ns <= now_ns else now_ns

    def check(self) -> None:
        """Raise `AbsurdSize` when the frame begun promises too much: the peer may send nothing more after it."""
        self._lacking()

    def silence(self) -> StreamSilent | StreamStalled:
        """Return the error for a peer that `take` has had nothing from for `timeout_s`."""
        if self._heard:
            return StreamStalled(*self._where, limit_s=self._stall_timeout_s)
        return StreamSilent(*self._where, limit_s=self._first_timeout_s)

    @property
    def timeout_s(self) -> float:
        """How long silence is borne now."""
        return self._stall_timeout_s if self._heard else self._first_timeout_s

    def _lacking(self) -> int:
        """Bytes that the frame begun still lacks, as far as its header is known."""
        have = self._end - self._start
        if have < HEADER_BYTES:
            return HEADER_BYTES - have
        size: int = _SIZE_FIELD.unpack_from(self._buffer, self._start)[0]
        if size > self._limit:
            raise AbsurdSize(*self._where, size=size, limit=self._limit)
        return self._overhead + size - have

    def _new_slab(self, lacking: int) -> None:
        """Begin a fresh buffer with the frame begun; the old one lives for as long as its frames are kept."""
        begun = self._view[self._start : self._end]
        usual = LARGE_SLAB_BYTES if self._limit > START_BUFFER_BYTES else SLAB_BYTES
        self._buffer = bytearray(max(min(usual, self._most), len(begun) + lacking))
        self._view = memoryview(self._buffer)
        self._view[: len(begun)] = begun
        self._start, self._end = 0, len(begun)

    def _whole_frames(self) -> list[memoryview]:
        frames = []
        start, end, view, overhead = self._start, self._end, self._view, self._overhead
        most = overhead + self._limit
        while end - start >= HEADER_BYTES:
            stop = start + overhead + _SIZE_FIELD.unpack_from(view, start)[0]
            if stop > end or stop - start > most:
                break  # half here, or absurd: the next call raises
            frames.append(view[start:stop])
            start = stop
        self._start = start
        return frames

    def _receive(self, wanted: int) -> memoryview:
        """Receive until the first frame in the buffer is whole; it needs at least `wanted` bytes."""
        self._make_room(wanted)
        header_known = wanted > HEADER_BYTES
        while True:
            have = self._end - self._start
            if not header_known and have >= HEADER_BYTES:
                return self.read_frame()
            if header_known and have >= wanted:
                self._start += wanted
                return self._view[self._start - wanted : self._start]
            lacking = wanted - have
            if lacking >= EXACT_READ_BYTES:
                self._receive_into(self._view[self._end : self._end + lacking], socket.MSG_WAITALL)
            else:
                self._receive_into(self._view[self._end : self._end + GULP_BYTES], 0)

    def _make_room(self, wanted: int) -> None:
        """Bring an unfinished frame to the front when its end would not fit; grow only for a larger frame."""
        start, end = self._start, self._end
        have = end - start
        if have == 0:
            self._start = self._end = 0
        if self._start + wanted <= len(self._buffer):
            return
        source = self._view[start:end]
        if wanted > len(self._buffer):
            self._buffer = bytearray(min(self._most, max(wanted, 2 * len(self._buffer))))
            self._view = memoryview(self._buffer)
        self._view[:have] = source
        self._start, self._end = 0, have

    def _receive_into(self, space: memoryview, flags: int) -> None:
        try:
            self._receive_some(space, flags)
        except BlockingIOError:
            raise (self._stopped_error() if self._stopped else self.silence()) from None

    def _receive_some(self, space: memoryview, flags: int) -> bool:
        """Receive; return whether it was all that was there.

        Raises BlockingIOError when nothing came in the socket's time limit, or at once when told so.
        """
        sock = self._sock
        if self._stopped or sock is None:
            raise self._stopped_error()
        try:
            count, notes, _, _ = sock.recvmsg_into([space], _ROOM_FOR_TIME, flags)
        except BlockingIOError:
            raise
        except OSError as error:
            if self._stopped:
                raise self._stopped_error() from None
            raise self._closed_error(_reason(error)) from error
        if count == 0:
            raise self._stopped_error() if self._stopped else self._closed_error("closed")
        self._end += count
        seconds, ns = _TIMESPEC.unpack(notes[0][2]) if notes else (0, 0)
        self._arrived_utc_ns = seconds * 10**9 + ns
        if not self._heard:
            self._heard = True
            self._set_limit(sock, self._stall_timeout_s)
        return count < len(space)

    def _set_limit(self, sock: socket.socket, seconds: float) -> None:
        """Let the kernel keep the time limit: a Python time-out costs one more system call a read."""
        sock.settimeout(None)
        whole = int(seconds)
        limit = struct.pack("@ll", whole, int((seconds - whole) * 1e6))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)

    def _stopped_error(self) -> StreamStopped:
        rest = self._end - self._start
        return StreamStopped(*self._where, at_boundary=rest == 0, lost_bytes=rest)

    def _closed_error(self, why: str) -> StreamClosed:
        rest = self._end - self._start
        return StreamClosed(*self._where, at_boundary=rest == 0, lost_bytes=rest, why=why)

    def stop(self) -> None:
        """Wake a blocked `read_frame` or `connect` at once, from any thread; it raises `StreamStopped`."""
        self._stopped = True
        sock = self._sock
        if sock is not None:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                return  # the peer was first: there is nothing left to wake

    def close(self) -> None:
        """Close the socket; harmless when closed already."""
        sock, self._sock = self._sock, None
        if sock is not None:
            sock.close()

    def __enter__(self) -> StreamClient:
        self.connect()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


def _set_up(sock: socket.socket) -> None:
    """Send at once, and be told when bytes came.

    The kernel asks after 10 s of silence: we send nothing that would tell of a headset that has gone.
    """
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if sys.platform == "linux":
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _reason(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "timed out"
    if isinstance(error, ConnectionResetError):
        return "reset"
    return (error.strerror or str(error)).lower()
