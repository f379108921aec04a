"""One sensor stream from its socket into the queue: connect, number, reconnect, and say what happened."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from capture.produce.headset_setup import SETTLE_PACKETS, HeadsetSetup
from capture.produce.notes import Ledger
from capture.produce.receiver import QUEUE_PATIENCE_S, Receiver
from capture.produce.stream_end import DECIDE_NS, FAILED, Streams, StreamState, end_of
from capture.produce.stream_watch import StampWatch
from capture.queue.stream_queue import QueuedPacket, QueueWriter
from sensors.errors import (
    AbsurdSize,
    ConnectFailed,
    PvNotStarted,
    SensorError,
    StreamClosed,
    StreamRefused,
    StreamStalled,
    StreamStopped,
)
from sensors.hololens import wire
from sensors.hololens.client import StreamClient
from sensors.hololens.headset_stream import HeadsetStream
from sensors.host_clock import host_ns

END_TRIES_S = (0.2, 0.2, *[0.4] * 6)
"""A device that ended a stream refuses every connect of nearly 3 s."""

MOST_FLAGS = 500
"""Flagged stamps that are noted one by one; verify counts all of them."""

_SIGNED_TICKS = struct.Struct("<q")


@dataclass
class StreamRecorder:
    """Runs in a thread of its own; `stop` may be called from any other."""

    name: str
    host: str
    stream: HeadsetStream
    configuration: bytes
    writer: QueueWriter
    ledger: Ledger
    setup: HeadsetSetup
    receiver: Receiver
    streams: Streams
    state: StreamState = field(default_factory=StreamState)

    def __post_init__(self) -> None:
        """Prepare the thread."""
        self.streams.add(self.name, self.state)
        self._ending = threading.Event()
        self._stopped_ns = 0
        self._client: StreamClient | None = None
        self._connected_client: StreamClient | None = None
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._seq = 0
        self._stamps = StampWatch()
        self._flags = 0
        self._missed = ""

    def start(self) -> None:
        """Start receiving."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the end: what was received is queued, then the thread ends."""
        self._stopped_ns = self._stopped_ns or host_ns()
        self._ending.set()
        client = self._client
        if client is not None:
            client.stop()

    def is_alive(self) -> bool:
        """Tell whether the stream is still being received."""
        return self._thread.is_alive()

    def _run(self) -> None:
        end: dict[str, object] = {"reason": FAILED}
        try:
            self._seq = self.state.received = self.writer.next_sequence()
            if self._seq == 0:
                self.state.state = "preparing"
                self.setup.before_stream(self.stream)
            else:
                self.state.away = "restart"
                self._ended_meanwhile()
            while not self.state.closed_host_ns and not self._ending.is_set():
                self._one_connection()
            end = end_of(self.state, self._missed, self._stopped_ns)
        except Exception as error:
            self.state.problem = f"{type(error).__name__}: {error}"
            raise
        finally:
            self.state.state = self.state.ended = str(end["reason"])
            self.ledger.note("end", self.name, self._patience(), received=self._seq, **end)

    def _one_connection(self) -> None:
        """Connect and receive until it is over."""
        client = self._connect(self._backoff_s())
        if client is None:
            return
        try:
            self.receiver.receive(client, self)
        except StreamStopped:
            return
        except StreamClosed as error:
            self._missed = self.state.away
            self._closed(error, "network", at_boundary=error.at_boundary)
            if error.at_boundary:
                self._look_for_end()
        except AbsurdSize as error:
            self._closed(error, "corrupt_packet")
        except StreamStalled as error:
            self._closed(error, "network")
        finally:
            client.close()

    def _ended_meanwhile(self) -> None:
        """See whether the device ended the stream while nobody listened; a connection that comes is used."""
        client = self._new_client()
        try:
            if self.stream.is_front_camera:
                self.setup.open_camera()
            client.connect()
        except StreamRefused:
            self._missed = self.state.away
            self._look_for_end()
        except SensorError as error:
            self._show("reconnecting", error)
        else:
            self._connected_client = client

    def _backoff_s(self) -> float:
        return min(0.25 * 2 ** min(self.state.connections - 1, 3), 2.0) if self.state.connections else 0.0

    def _new_client(self) -> StreamClient:
        client = StreamClient(self.stream, self.host, self.configuration)
        self._client = client
        if self._ending.is_set():
            client.stop()
        return client

    def _connect(self, wait_s: float) -> StreamClient | None:
        """Connect, as often as it takes; None when the end was asked first, or the device has ended all else."""
        if (client := self._connected_client) is not None:
            self._connected_client, self._client = None, client
            if self._ending.is_set():
                client.close()
                return None
            self._connected()
            return client
        while not self._ending.wait(wait_s):
            client = self._new_client()
            try:
                self.setup.before_connect(self.stream, is_again=self._seq > 0)
                client.connect()
            except StreamStopped:
                return None
            except (ConnectFailed, PvNotStarted) as error:
                is_refused = isinstance(error, StreamRefused)
                self._show("refused" if is_refused else "unreachable", error)
                if is_refused and self.state.away and (over_ns := self.streams.over_since(self.name)):
                    self._missed, self.state.closed_host_ns = self.state.away, over_ns
                    return None
            except SensorError as error:
                self._show("reconnecting", error)
            else:
                self._connected()
                return client
            wait_s = min(max(wait_s * 2, 0.25), 2.0)
        return None

    def _connected(self) -> None:
        self.state.connections += 1
        self.state.state = "connected"
        facts = {"connection": self.state.connections, "next_seq": self._seq}
        self.ledger.note("connected", self.name, self._patience(), **facts)
        self._stamps = StampWatch()
        if self.state.connections > 1 or self._seq > 0:
            self.setup.note_app_start(self.name, self.state.connections, self._seq)

    def packets(self, frames: list[memoryview], arrived_ns: int) -> list[QueuedPacket]:
        """Number and stamp whole frames that arrived together."""
        connection, pose_bytes, first_seq = self.state.connections, self.stream.pose_bytes, self._seq
        packets = []
        for seq, frame in enumerate(frames, first_seq):
            (ticks,) = _SIGNED_TICKS.unpack_from(frame)
            if flag := self._stamps.flag(ticks, arrived_ns):
                self._note_stamp(seq, ticks, *flag)
            body = frame[wire.HEADER_BYTES :]
            packets.append(QueuedPacket(seq, ticks, arrived_ns, connection, body, pose_bytes))
        self._seq += len(packets)
        if self.state.away:
            self.state.away = self.state.fault = self.state.problem = ""
        if self.stream.is_front_camera and first_seq <= SETTLE_PACKETS < self._seq:
            self._read_settings_back(packets[SETTLE_PACKETS - first_seq].body)
        return packets

    def queued(self, packets: list[QueuedPacket], lost: list[tuple[int, int]]) -> None:
        """Count what is in the queue now, and name what found no room there."""
        for first_seq, last_seq in lost:
            self._declare_loss(first_seq, last_seq)
        state = self.state
        state.received = packets[-1].seq + 1
        state.bytes += sum([len(packet.body) for packet in packets]) - len(packets) * self.stream.pose_bytes
        state.last_host_ns, state.last_ticks = packets[-1].host_ns, packets[-1].device_ticks
        state.first_host_ns = state.first_host_ns or packets[0].host_ns
        state.state = "streaming"

    def silent(self, error: SensorError) -> None:
        """Show that nothing has come: another client may hold the port, so stay in its line."""
        self._show("silent", error)

    def _note_stamp(self, seq: int, ticks: int, kind: str, before: int) -> None:
        """Tell the ledger of a stamp that does not go forward, some hundred times at most: it is kept as it is."""
        self._flags += 1
        if self._flags <= MOST_FLAGS:
            facts = {"flag": kind, "seq": seq, "ticks": ticks, "ticks_before": before}
            self.ledger.note("stamp", self.name, self._patience(), **facts)

    def _read_settings_back(self, body: bytes | memoryview) -> None:
        """Compare the front camera's settings with those asked for, once it had time to take them."""
        try:
            differ = self.setup.settings_seen(body[: len(body) - self.stream.pose_bytes])
        except SensorError as error:
            differ = {str(error): [0.0, 0.0]}
        asked = self.setup.profile.camera_settings
        self.ledger.note("camera_settings", self.name, self._patience(), asked=asked, differ=differ)
        if differ:
            self.state.problem = f"the camera did not take {', '.join(differ)}"

    def _patience(self) -> Callable[[], bool]:
        end_s = time.monotonic() + QUEUE_PATIENCE_S
        return lambda: time.monotonic() > end_s

    def _declare_loss(self, first_seq: int, last_seq: int) -> None:
        self.state.losses += last_seq - first_seq + 1
        self.state.problem = "the queue takes nothing: packets are being lost"
        self.ledger.note("declared_loss", self.name, self._patience(), first_seq=first_seq, last_seq=last_seq)

    def _closed(self, error: SensorError, cause: str, **facts: object) -> None:
        self._show("reconnecting", error)
        self.state.away = self.state.away or cause
        facts |= {"cause": cause, "next_seq": self._seq, "why": str(error)}
        self.ledger.note("closed", self.name, self._patience(), **facts)

    def _show(self, state: str, error: SensorError) -> None:
        self.state.state = state
        self.state.problem = str(error)

    def _look_for_end(self) -> None:
        """See whether the device ended the stream that was closed just now; a connection that comes is used."""
        closed_ns = host_ns()
        if self._ended_by_device(closed_ns):
            self.state.closed_host_ns = closed_ns

    def _ended_by_device(self, closed_ns: int) -> bool:
        """Tell whether the port refuses, the device answers elsewhere, and no other stream of it goes on for long."""
        if not all(self._is_refused(wait_s) for wait_s in END_TRIES_S):
            return False
        if why := self.setup.why_gone():
            self.state.fault = why
            return False
        while self.streams.others_come(self.name) and host_ns() < closed_ns + DECIDE_NS:
            if self._ending.is_set() or self.streams.outlived(self.name, closed_ns):
                break
            if not self._is_refused(END_TRIES_S[-1]):
                return False
        if self.streams.outlived(self.name, closed_ns, stopping=self._ending.is_set()):
            self.state.fault = "the device closed it while its other streams go on"
            return False
        return self._is_refused(0.0)

    def _is_refused(self, wait_s: float) -> bool:
        """Wait, then tell whether a connect is refused; a connection that comes is used, if there is time for it."""
        only_asks = (
            self._ending.wait(wait_s) or self.stream.is_front_camera
        )  # the camera wants to be on first
        client = StreamClient(self.stream, self.host, b"") if only_asks else self._new_client()
        try:
            if not only_asks:
                self.setup.before_connect(self.stream, is_again=True)
            client.connect()
        except (StreamRefused, StreamStopped):  # stopped while it asked: it is asked once more
            return True
        except SensorError:
            return False
        if only_asks:
            client.close()
        else:
            self._connected_client = client
        return False
