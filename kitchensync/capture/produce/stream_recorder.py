"""Record one stream of any device into the queue: open, number packets, reopen, and note what happened."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from kitchensync.capture.produce.ledger_writer import Ledger
from kitchensync.capture.produce.stream_end import DECIDE_NS, SILENT_NS, Streams, StreamState, end_of
from kitchensync.capture.produce.stream_watch import StampWatch, head_check, since
from kitchensync.capture.queue.pipe import PATIENCE_S
from kitchensync.capture.queue.queue_connection import lacks_room
from kitchensync.capture.queue.queue_writer import QueueWriter
from kitchensync.capture.queue.stream_entries import QueuedPacket
from kitchensync.sensors.errors import (
    AbsurdSize,
    ConnectFailed,
    PvNotStarted,
    SensorError,
    StreamRefused,
    StreamStopped,
)
from kitchensync.sensors.hololens.streams.inertial_samples import RepeatedSamples
from kitchensync.sensors.hololens.wire import HEADER_BYTES
from kitchensync.sensors.stream import SensorStream
from kitchensync.shell.host_clock import host_ns
from kitchensync.storage.ledger import (
    FAILED,
    ClosedNote,
    ConnectedNote,
    DeclaredLossNote,
    EndNote,
    Note,
    QueueLossNote,
    StampNote,
)

POLL_S = 0.4
"""Period of the checks whether other streams go on."""

MIN_WAIT_S, MAX_WAIT_S = 0.25, 2.0
"""Time from a lost connection to the next attempt; each attempt without a packet doubles it."""

REFUSED_WAIT_S = 0.5
"""Longest wait after a refusal: attempts are cheap then, and an app that restarts soon listens."""

MAX_FLAGS = 500
"""Number of suspicious timestamps that are noted one by one; verify counts all of them."""

_SIGNED_TICKS = struct.Struct("<q")


class StreamSource:
    """Base class of the streams of a device."""

    stream: SensorStream
    pose_bytes = 0
    cause = "network"
    """Cause of a gap after a lost connection, as in the ledger."""
    tells_refusal = True
    """Whether a device that has ended the stream refuses to open it."""
    end_tries_s: tuple[float, ...] = ()
    """Delays between attempts; a device that ended the stream refuses all of them."""
    silent_ns: float = SILENT_NS
    """A stream that delivered nothing for this long before its stop counts as lost."""
    settled_at = -1
    """Number of the packet that is passed to `settled`, -1 for none."""

    is_open = False

    def prepare(self) -> None:
        """Prepare the device before the stream is opened for the first time."""

    def open(self, *, is_again: bool) -> None:
        """Open the stream unless it is open. Raises SensorError."""

    def opened(self, recorder: StreamRecorder) -> None:
        """Handle a new connection, after it was noted in the ledger."""

    def receive(self, recorder: StreamRecorder) -> None:
        """Pass packets to the recorder until stopped. Raises SensorError when the connection ends."""
        raise NotImplementedError

    def refuses(self, *, only_ask: bool) -> bool:
        """Return whether the device refuses the stream; unless `only_ask`, an accepted connection is kept."""
        return True

    def unreachable_reason(self) -> str:
        """Return why the device itself does not answer, "" if it does or cannot be queried."""
        return ""

    def settled(self, packet: QueuedPacket, recorder: StreamRecorder) -> None:
        """Check packet `settled_at`."""

    def stop(self) -> None:
        """Make a waiting `receive` or `open` return soon; may be called from any thread."""

    def close(self) -> None:
        """Close the connection."""


@dataclass
class StreamRecorder:
    """Records one stream in a thread of its own; `stop` may be called from any thread."""

    name: str
    source: StreamSource
    writer: QueueWriter
    ledger: Ledger
    streams: Streams
    state: StreamState = field(default_factory=StreamState)
    has_own_queue: bool = False
    """Whether the queue server writes to the disk of the recording."""

    def __post_init__(self) -> None:
        self.streams.add(self.name, self.state)
        self._ending = threading.Event()
        self._stopped_ns = 0
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._pose_bytes, self._settled_at = self.source.pose_bytes, self.source.settled_at
        self.next_seq = self._seq_opened = 0
        self._wait_s = 0.0
        self._stamps = StampWatch()
        self._knows_head = head_check(self.source.stream, self._pose_bytes)
        self._still = RepeatedSamples() if getattr(self.source.stream, "is_gyroscope", False) else None
        self._missed = ""

    def start(self) -> None:
        """Start receiving."""
        self._thread.start()

    def stop(self) -> None:
        """Let the thread end after all received packets are queued."""
        self._stopped_ns = self._stopped_ns or host_ns()
        self._ending.set()
        self.source.stop()

    def is_alive(self) -> bool:
        """Return whether the stream is still being received."""
        return self._thread.is_alive()

    @property
    def is_ending(self) -> bool:
        """Whether `stop` was called."""
        return self._ending.is_set()

    def _run(self) -> None:
        end = EndNote(reason=FAILED)
        try:
            self.next_seq = self.state.received = self.writer.next_sequence()
            if self.next_seq == 0:
                self.state.state = "preparing"
                self.source.prepare()
            else:
                self.state.away = "restart"
                self._check_end_during_restart()
            while not self.state.closed_host_ns and self._open():
                self._receive()
            end = end_of(self.state, self._missed, self._stopped_ns, self.source.silent_ns)
        except Exception as error:
            self.state.problem = f"{type(error).__name__}: {error}"
            raise
        finally:
            self.source.close()
            self.state.state = self.state.ended = end.reason
            self.note(replace(end, received=self.next_seq))

    def _check_end_during_restart(self) -> None:
        """Check whether the device ended the stream while this process was restarted."""
        try:
            self.source.open(is_again=False)
        except StreamRefused:
            self._missed = self.state.away
            self._check_end_by_device()
        except SensorError as error:
            self._show("reconnecting", error)

    def _open(self) -> bool:
        """Retry until the stream is open; return False if stopped, or the device has ended its other streams."""
        while not self._ending.wait(0.0 if self.source.is_open else self._wait_s):
            self._wait_s = min(max(self._wait_s * 2, MIN_WAIT_S), MAX_WAIT_S)
            try:
                self.source.open(is_again=self.next_seq > 0)
            except StreamStopped:
                return False
            except StreamRefused as error:
                self._show("refused", error)
                self._wait_s = min(self._wait_s, REFUSED_WAIT_S)
                if self.state.away and self._all_others_ended():
                    return False
            except (ConnectFailed, PvNotStarted) as error:
                self._show("unreachable", error)
            except SensorError as error:
                self._show("reconnecting", error)
            else:
                self._opened()
                return True
        return False

    def _opened(self) -> None:
        self.state.connections += 1
        self.state.state = "connected"
        self.note(ConnectedNote(connection=self.state.connections, next_seq=self.next_seq))
        self._stamps, self._seq_opened = StampWatch(), self.next_seq
        self.state.lost_host_ns = self.state.still_host_ns = 0
        self.source.opened(self)

    def _receive(self) -> None:
        """Receive until the connection ends."""
        try:
            self.source.receive(self)
        except SensorError as error:
            self.source.close()
            self._missed = self.state.away
            self._show("reconnecting", error)
            cause = "corrupt_packet" if isinstance(error, AbsurdSize) else self.source.cause
            self.state.away, self.state.left_host_ns = self.state.away or cause, host_ns()
            at_boundary = getattr(error, "at_boundary", None)
            self.note(
                ClosedNote(cause=cause, next_seq=self.next_seq, why=str(error), at_boundary=at_boundary)
            )
            if at_boundary:
                self._check_end_by_device()
            elif not self.source.tells_refusal:
                self.state.fault = self.state.fault or str(error)
                self._all_others_ended()
        finally:
            if self.next_seq > self._seq_opened:
                self._wait_s = MIN_WAIT_S

    def packets(self, frames: list[memoryview], arrived_ns: int) -> list[QueuedPacket]:
        """Number and timestamp whole packets (header, payload, pose) that arrived together."""
        connection, pose_bytes, first_seq = self.state.connections, self._pose_bytes, self.next_seq
        packets = []
        for seq, frame in enumerate(frames, first_seq):
            (ticks,) = _SIGNED_TICKS.unpack_from(frame)
            if flag := self._stamps.flag(ticks, arrived_ns):
                kind, before = flag
                self.state.flagged, self.state.flagged_host_ns = self.state.flagged + 1, host_ns()
                if self.state.flagged <= MAX_FLAGS:
                    self.note(StampNote(flag=kind, seq=seq, ticks=ticks, ticks_before=before))
            packets.append(QueuedPacket(seq, ticks, arrived_ns, connection, frame[HEADER_BYTES:], pose_bytes))
        self.next_seq += len(packets)
        if packets:
            self._look_at_newest(packets[-1].body, arrived_ns)
        if self.state.away:
            self.state.away = self.state.fault = self.state.problem = ""
        if first_seq <= self._settled_at < self.next_seq:
            self.source.settled(packets[self._settled_at - first_seq], self)
        return packets

    def _look_at_newest(self, body: bytes | memoryview, arrived_ns: int) -> None:
        """Check whether the headset has lost tracking and whether its gyroscope repeats one value."""
        state = self.state
        if self._knows_head is not None:
            state.lost_host_ns = since(state.lost_host_ns, arrived_ns, holds=not self._knows_head(body))
        if self._still is not None:
            repeats = self._still.repeats(body[: len(body) - self._pose_bytes])
            state.still_host_ns = since(state.still_host_ns, arrived_ns, holds=repeats)

    def queued(self, packets: list[QueuedPacket], lost: list[tuple[int, int]]) -> None:
        """Count queued packets, and note the ranges of numbers that were lost because the queue had no room."""
        why = self.writer.pipe.refusal
        for first_seq, last_seq in lost:
            self.state.losses += last_seq - first_seq + 1
            reason = f" ({why})" if why else ""
            self.state.problem = f"the queue takes nothing{reason}: packets are being lost"
            is_of_queue = why and not (self.has_own_queue and lacks_room(why))  # else our own disk is full
            kind = QueueLossNote if is_of_queue else DeclaredLossNote
            self.note(kind(first_seq=first_seq, last_seq=last_seq, why=why or None))
        state = self.state
        state.received = packets[-1].seq + 1
        state.bytes += sum([len(packet.body) for packet in packets]) - len(packets) * self._pose_bytes
        state.last_host_ns, state.last_ticks = packets[-1].host_ns, packets[-1].device_ticks
        state.first_host_ns = state.first_host_ns or packets[0].host_ns
        state.state = "streaming"

    def silent(self, error: SensorError) -> None:
        """Show that nothing arrives; stay connected, because another client may hold the port."""
        self._show("silent", error)

    def note(self, note: Note) -> None:
        """Write a note about this stream into the ledger."""
        self.ledger.note(note, self.name, self.may_wait())

    def may_wait(self) -> Callable[[], bool]:
        """Return a function that tells when to give up waiting for room in the queue."""
        end_s = time.monotonic() + PATIENCE_S
        return lambda: time.monotonic() > end_s

    def _show(self, state: str, error: SensorError) -> None:
        self.state.state = state
        self.state.problem = str(error)

    def _all_others_ended(self) -> bool:
        """Return whether the device has ended another stream and none goes on; then this one has ended as well."""
        over_ns = self.streams.over_since(self.name)
        if over_ns:
            self._missed, self.state.closed_host_ns = self.state.away, over_ns
        return bool(over_ns)

    def _check_end_by_device(self) -> None:
        """Check whether the device ended the stream that was just closed."""
        closed_ns = host_ns()
        if self._ended_by_device(closed_ns):
            self.state.closed_host_ns = closed_ns

    def _ended_by_device(self, closed_ns: int) -> bool:
        """Return whether the stream is refused, the device itself answers, and none of its other streams goes on."""
        if not all(self._is_refused(wait_s) for wait_s in self.source.end_tries_s):
            return False
        if why := self.source.unreachable_reason():
            self.state.fault = why
            return False
        while self.streams.others_come(self.name) and host_ns() < closed_ns + DECIDE_NS:
            if self._ending.is_set() or self.streams.outlived(self.name, closed_ns):
                break
            if not self._is_refused(POLL_S):
                return False
        if self.streams.outlived(self.name, closed_ns, stopping=self._ending.is_set()):
            self.state.fault = "the device closed it while its other streams go on"
            return False
        return self._is_refused(0.0)

    def _is_refused(self, wait_s: float) -> bool:
        """Wait, then return whether the stream is refused; an accepted connection is used unless it is ending."""
        return self.source.refuses(only_ask=self._ending.wait(wait_s))
