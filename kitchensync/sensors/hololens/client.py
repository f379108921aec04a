"""Receive one stream: one socket and one buffer, from which complete wire frames are returned without copying."""

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

SMALL_BUFFER_BYTES = 64 * 1024  # one read gets many frames of a stream of small ones
START_BUFFER_BYTES = 1024 * 1024  # streams with larger frames get LARGE_SLAB_BYTES later
GULP_BYTES = 1024 * 1024
"Largest read while the size of the frame is unknown, so that little has to be moved to the front later."
SLAB_BYTES = 256 * 1024
LARGE_SLAB_BYTES = 4 * 1024 * 1024
"Sizes of the buffers of the frames that `take` returns; the large one is for streams of large frames."
EXACT_READ_BYTES = 512 * 1024
"If a frame lacks this much or more, exactly the rest is read; otherwise all that is available."

SO_TIMESTAMPNS = 35
"Linux: received data come with their arrival time (UTC). The socket module has no name for it."

_SIZE_FIELD = struct.Struct("<8xI")
_TIMESPEC = struct.Struct("@ll")
_ROOM_FOR_TIME = socket.CMSG_SPACE(_TIMESPEC.size)


class StreamClient:
    """One connection to one port of a headset; make a new one to reconnect.

    `read_frame` and `connect` belong to one thread; `stop` may be called from any other thread. The buffer is never
    larger than the stream's largest frame (or 64 KiB), whatever the peer sends.
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
        "When the socket was last known to be empty, host_ns."
        self.arrived_ns = 0
        "Arrival of the last bytes that `take` received, host_ns."
        self.expects_more = False
        "True if more data are available or expected soon: the rest of a frame, or data that did not fit."

    def connect(self) -> None:
        """Connect and send the configuration.

        Raises `StreamRefused` (no program listens), `StreamUnreachable` (no answer), `StreamStopped`.
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
        """Return the next complete wire frame (header, payload, pose), valid until the next call.

        Raises `StreamClosed` after the peer closed and all frames were returned, `StreamStopped` after `stop()`,
        `AbsurdSize` before anything is allocated, `StreamSilent` if no byte came in time, `StreamStalled` if no more
        bytes came. After the last two the call may be repeated.
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
        """Receive the available bytes once, without waiting; return the complete frames, maybe none.

        The views stay valid as long as they are referenced: later bytes go to other memory. Raises the errors of
        `read_frame` except those of silence (see `silence`).
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
        """Return the arrival of the last bytes, host_ns; the current time if the kernel does not report it.

        A time before the socket was last empty is impossible: UTC was set in between, and the current time is used.
        """
        utc_ns = time.time_ns()
        now_ns = host_ns()  # after UTC, so that a delay between the two makes the result late, never early
        arrived_ns = now_ns - (utc_ns - self._arrived_utc_ns)
        return arrived_ns if self._empty_ns <= arrived_ns <= now_ns else now_ns

    def check(self) -> None:
        """Raise `AbsurdSize` if the current frame's header has an impossible size; the peer may send no more data."""
        self._lacking()

    def silence(self) -> StreamSilent | StreamStalled:
        """Return the error for a peer that has sent nothing for `timeout_s`."""
        if self._heard:
            return StreamStalled(*self._where, limit_s=self._stall_timeout_s)
        return StreamSilent(*self._where, limit_s=self._first_timeout_s)

    @property
    def timeout_s(self) -> float:
        """Time limit for silence now, seconds."""
        return self._stall_timeout_s if self._heard else self._first_timeout_s

    def _lacking(self) -> int:
        """Return the bytes that the current frame lacks, or those of its header."""
        have = self._end - self._start
        if have < HEADER_BYTES:
            return HEADER_BYTES - have
        size: int = _SIZE_FIELD.unpack_from(self._buffer, self._start)[0]
        if size > self._limit:
            raise AbsurdSize(*self._where, size=size, limit=self._limit)
        return self._overhead + size - have

    def _new_slab(self, lacking: int) -> None:
        """Continue in a new buffer with the incomplete frame.

        The old one lives as long as its frames are referenced.
        """
        incomplete = self._view[self._start : self._end]
        usual = LARGE_SLAB_BYTES if self._limit > START_BUFFER_BYTES else SLAB_BYTES
        self._buffer = bytearray(max(min(usual, self._most), len(incomplete) + lacking))
        self._view = memoryview(self._buffer)
        self._view[: len(incomplete)] = incomplete
        self._start, self._end = 0, len(incomplete)

    def _whole_frames(self) -> list[memoryview]:
        frames = []
        start, end, view, overhead = self._start, self._end, self._view, self._overhead
        most = overhead + self._limit
        while end - start >= HEADER_BYTES:
            stop = start + overhead + _SIZE_FIELD.unpack_from(view, start)[0]
            if stop > end or stop - start > most:
                break  # incomplete, or of an absurd size, for which the next call raises
            frames.append(view[start:stop])
            start = stop
        self._start = start
        return frames

    def _receive(self, needed: int) -> memoryview:
        """Receive until the first frame in the buffer is complete; it has at least `needed` bytes."""
        self._make_room(needed)
        header_known = needed > HEADER_BYTES
        while True:
            have = self._end - self._start
            if not header_known and have >= HEADER_BYTES:
                return self.read_frame()
            if header_known and have >= needed:
                self._start += needed
                return self._view[self._start - needed : self._start]
            lacking = needed - have
            if lacking >= EXACT_READ_BYTES:
                self._receive_into(self._view[self._end : self._end + lacking], socket.MSG_WAITALL)
            else:
                self._receive_into(self._view[self._end : self._end + GULP_BYTES], 0)

    def _make_room(self, needed: int) -> None:
        """Move an incomplete frame to the front if its end would not fit; grow only for a larger frame."""
        start, end = self._start, self._end
        have = end - start
        if have == 0:
            self._start = self._end = 0
        if self._start + needed <= len(self._buffer):
            return
        source = self._view[start:end]
        if needed > len(self._buffer):
            self._buffer = bytearray(min(self._most, max(needed, 2 * len(self._buffer))))
            self._view = memoryview(self._buffer)
        self._view[:have] = source
        self._start, self._end = 0, have

    def _receive_into(self, space: memoryview, flags: int) -> None:
        try:
            self._receive_some(space, flags)
        except BlockingIOError:
            raise (self._stopped_error() if self._stopped else self.silence()) from None

    def _receive_some(self, space: memoryview, flags: int) -> bool:
        """Receive; return whether all available bytes were read.

        Raises BlockingIOError if nothing came within the socket's time limit, or immediately with MSG_DONTWAIT.
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
        """Set the time limit in the kernel, as a timeout of Python costs one more system call for each read."""
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
        """Wake a blocked `read_frame` or `connect` immediately, from any thread; it raises `StreamStopped`."""
        self._stopped = True
        sock = self._sock
        if sock is not None:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                return  # the peer has closed already, which wakes the other thread too

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
    """Set the options of a socket: no delay, arrival times, and keep-alive.

    The client sends nothing, so only keep-alive, after 10 s of silence, detects a headset that has disappeared.
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
