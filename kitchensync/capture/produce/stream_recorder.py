"""One stream of any device into the queue: open, number, open again, and say what happened."""

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
    LossNote,
    Note,
    QueueLossNote,
    StampNote,
)

LOOK_S = 0.4
"""From one look whether other streams go on to the next."""

LEAST_WAIT_S, LONGEST_WAIT_S = 0.25, 2.0
"""From the end of an opening to the next one; an opening that brought nothing doubles it."""

REFUSED_WAIT_S = 0.5
"""The longest after a refusal: it costs next to nothing, and an app that starts again soon listens."""

MOST_FLAGS = 500
"""Flagged stamps that are noted one by one; verify counts all of them."""

_SIGNED_TICKS = struct.Struct("<q")


class StreamSource:
    """One stream of a device; a kind of device fills in the rest."""

    stream: SensorStream
    pose_bytes = 0
    cause = "network"
    """Of the hole when an opening is over and nothing else is known: a cause of the ledger."""
    tells_refusal = True
    """True when a device that has ended the stream refuses to open it; else an opening tells nothing."""
    end_tries_s: tuple[float, ...] = ()
    """A device that ended the stream refuses at each of these steps."""
    silent_ns: float = SILENT_NS
    """Stopped when nothing has come for so long, it was lost."""
    settled_at = -1
    """The number of the packet that `settled` wants to see, -1 for none."""

    is_open = False

    def prepare(self) -> None:
        """Do what comes before the first opening of the recording."""

    def open(self, *, is_again: bool) -> None:
        """Open the stream; nothing, when it is open. Raises SensorError."""

    def opened(self, recorder: StreamRecorder) -> None:
        """Report what a new opening means, once the ledger knows of it."""

    def receive(self, recorder: StreamRecorder) -> None:
        """Hand packets to the recorder until it is over; return when it was stopped. Raises SensorError."""
        raise NotImplementedError

    def refuses(self, *, only_ask: bool) -> bool:
        """Return whether the device refuses the stream now; unless only asked, an opening is kept for `open`."""
        return True

    def why_gone(self) -> str:
        """Return why the device does not answer elsewhere than at its streams, "" when it does or cannot be asked."""
        return ""

    def settled(self, packet: QueuedPacket, recorder: StreamRecorder) -> None:
        """Look at packet `settled_at`."""

    def stop(self) -> None:
        """Make a `receive` or `open` that waits return soon; from any thread."""

    def close(self) -> None:
        """Close what is open."""


@dataclass
class StreamRecorder:
    """Runs in a thread of its own; `stop` may be called from any other."""

    name: str
    source: StreamSource
    writer: QueueWriter
    ledger: Ledger
    streams: Streams
    state: StreamState = field(default_factory=StreamState)
    has_own_queue: bool = False
    "Whether the queue server writes to the disk of the recording."

    def __post_init__(self) -> None:
        """Prepare the thread."""
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
        """Ask the end: what was received is queued, then the thread ends."""
        self._stopped_ns = self._stopped_ns or host_ns()
        self._ending.set()
        self.source.stop()

    def is_alive(self) -> bool:
        """Return whether the stream is still being received."""
        return self._thread.is_alive()

    @property
    def is_ending(self) -> bool:
        """Return whether the end was asked."""
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
                self._look_whether_it_ended_meanwhile()
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

    def _look_whether_it_ended_meanwhile(self) -> None:
        """See whether the device ended the stream while nobody listened; an opening that comes is used."""
        try:
            self.source.open(is_again=False)
        except StreamRefused:
            self._missed = self.state.away
            self._look_for_end()
        except SensorError as error:
            self._show("reconnecting", error)

    def _open(self) -> bool:
        """Open the stream, as often as it takes; False when the end was asked, or the device has ended all else."""
        while not self._ending.wait(0.0 if self.source.is_open else self._wait_s):
            self._wait_s = min(max(self._wait_s * 2, LEAST_WAIT_S), LONGEST_WAIT_S)
            try:
                self.source.open(is_again=self.next_seq > 0)
            except StreamStopped:
                return False
            except StreamRefused as error:
                self._show("refused", error)
                self._wait_s = min(self._wait_s, REFUSED_WAIT_S)
                if self.state.away and self._all_else_is_over():
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
        """Receive until the opening is over, and see what that means."""
        try:
            self.source.receive(self)
        except SensorError as error:
            self.source.close()
            self._over(error)
        finally:
            if self.next_seq > self._seq_opened:
                self._wait_s = LEAST_WAIT_S

    def _over(self, error: SensorError) -> None:
        self._missed = self.state.away
        self._show("reconnecting", error)
        cause = "corrupt_packet" if isinstance(error, AbsurdSize) else self.source.cause
        self.state.away, self.state.left_host_ns = self.state.away or cause, host_ns()
        at_boundary = getattr(error, "at_boundary", None)
        self.note(ClosedNote(cause=cause, next_seq=self.next_seq, why=str(error), at_boundary=at_boundary))
        if at_boundary:
            self._look_for_end()
        elif not self.source.tells_refusal:
            self.state.fault = self.state.fault or str(error)
            self._all_else_is_over()

    def packets(self, frames: list[memoryview], arrived_ns: int) -> list[QueuedPacket]:
        """Number and stamp whole frames (header, payload, pose) that arrived together."""
        connection, pose_bytes, first_seq = self.state.connections, self._pose_bytes, self.next_seq
        packets = []
        for seq, frame in enumerate(frames, first_seq):
            (ticks,) = _SIGNED_TICKS.unpack_from(frame)
            if flag := self._stamps.flag(ticks, arrived_ns):
                self._note_stamp(seq, ticks, *flag)
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
        """See whether the headset knows its head, and whether its gyroscope repeats one value."""
        state = self.state
        if self._knows_head is not None:
            state.lost_host_ns = since(state.lost_host_ns, arrived_ns, holds=not self._knows_head(body))
        if self._still is not None:
            repeats = self._still.repeats(body[: len(body) - self._pose_bytes])
            state.still_host_ns = since(state.still_host_ns, arrived_ns, holds=repeats)

    def queued(self, packets: list[QueuedPacket], lost: list[tuple[int, int]]) -> None:
        """Count what is in the queue now, and name what found no room there."""
        why = self.writer.pipe.refusal
        for first_seq, last_seq in lost:
            self.state.losses += last_seq - first_seq + 1
            words = f" ({why})" if why else ""
            self.state.problem = f"the queue takes nothing{words}: packets are being lost"
            self.note(self._loss(first_seq, last_seq, why))
        state = self.state
        state.received = packets[-1].seq + 1
        state.bytes += sum([len(packet.body) for packet in packets]) - len(packets) * self._pose_bytes
        state.last_host_ns, state.last_ticks = packets[-1].host_ns, packets[-1].device_ticks
        state.first_host_ns = state.first_host_ns or packets[0].host_ns
        state.state = "streaming"

    def _loss(self, first_seq: int, last_seq: int, why: str) -> LossNote:
        """Return the note of a loss: a server that refused, but for a full disk of this computer, lost them."""
        is_of_queue = why and not (self.has_own_queue and lacks_room(why))
        kind = QueueLossNote if is_of_queue else DeclaredLossNote
        return kind(first_seq=first_seq, last_seq=last_seq, why=why or None)

    def silent(self, error: SensorError) -> None:
        """Show that nothing has come: another client may hold the port, so stay in its line."""
        self._show("silent", error)

    def note(self, note: Note) -> None:
        """Write a note of the ledger about this stream."""
        self.ledger.note(note, self.name, self.may_wait())

    def may_wait(self) -> Callable[[], bool]:
        """Return what says when to give up waiting for room in the queue."""
        end_s = time.monotonic() + PATIENCE_S
        return lambda: time.monotonic() > end_s

    def _note_stamp(self, seq: int, ticks: int, kind: str, before: int) -> None:
        """Tell the ledger of a stamp that does not go forward, some hundred times at most: it is kept as it is."""
        self.state.flagged, self.state.flagged_host_ns = self.state.flagged + 1, host_ns()
        if self.state.flagged <= MOST_FLAGS:
            self.note(StampNote(flag=kind, seq=seq, ticks=ticks, ticks_before=before))

    def _show(self, state: str, error: SensorError) -> None:
        self.state.state = state
        self.state.problem = str(error)

    def _all_else_is_over(self) -> bool:
        """Return whether the device has ended another stream and none goes on: then nothing is left to come here."""
        over_ns = self.streams.over_since(self.name)
        if over_ns:
            self._missed, self.state.closed_host_ns = self.state.away, over_ns
        return bool(over_ns)

    def _look_for_end(self) -> None:
        """See whether the device ended the stream that was closed just now; an opening that comes is used."""
        closed_ns = host_ns()
        if self._ended_by_device(closed_ns):
            self.state.closed_host_ns = closed_ns

    def _ended_by_device(self, closed_ns: int) -> bool:
        """Return whether the stream is refused, the device answers elsewhere, and no other stream of it goes on."""
        if not all(self._is_refused(wait_s) for wait_s in self.source.end_tries_s):
            return False
        if why := self.source.why_gone():
            self.state.fault = why
            return False
        while self.streams.others_come(self.name) and host_ns() < closed_ns + DECIDE_NS:
            if self._ending.is_set() or self.streams.outlived(self.name, closed_ns):
                break
            if not self._is_refused(LOOK_S):
                return False
        if self.streams.outlived(self.name, closed_ns, stopping=self._ending.is_set()):
            self.state.fault = "the device closed it while its other streams go on"
            return False
        return self._is_refused(0.0)

    def _is_refused(self, wait_s: float) -> bool:
        """Wait, then tell whether the stream is refused; an opening that comes is used, if there is time for it."""
        return self.source.refuses(only_ask=self._ending.wait(wait_s))
