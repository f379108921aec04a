"""The headset as a producer runs it: all streams are received by one thread."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

from kitchensync.capture.plan import HeadsetPlan, Plan
from kitchensync.capture.produce.device import Device
from kitchensync.capture.produce.headset_setup import SETTLE_PACKETS, HeadsetSetup
from kitchensync.capture.produce.ledger_writer import Ledger
from kitchensync.capture.produce.probe_clock import ask_headset
from kitchensync.capture.produce.receiver import Receiver
from kitchensync.capture.produce.stream_recorder import StreamRecorder, StreamSource
from kitchensync.capture.queue.pipe import QueuePipe
from kitchensync.capture.queue.queue_connection import connect
from kitchensync.capture.queue.stream_entries import QueuedPacket
from kitchensync.sensors.errors import SensorError, StreamRefused, StreamStopped
from kitchensync.sensors.hololens import remote
from kitchensync.sensors.hololens.catalogue import headset_stream
from kitchensync.sensors.hololens.client import StreamClient
from kitchensync.sensors.hololens.headset_stream import HeadsetStream
from kitchensync.sensors.hololens.profile import Profile
from kitchensync.sensors.stream import SensorStream
from kitchensync.storage.ledger import CameraSettingsNote

END_TRIES_S = (0.2, 0.2, *[0.4] * 6)
"""Delays between connection attempts; a headset that ended a stream refuses all of them, for nearly 3 s."""


class HeadsetSource(StreamSource):
    """One stream of the headset, on its own port."""

    end_tries_s = END_TRIES_S

    def __init__(self, stream: HeadsetStream, setup: HeadsetSetup, receiver: Receiver) -> None:
        self.stream: HeadsetStream = stream
        self.pose_bytes = stream.pose_bytes
        self.settled_at = SETTLE_PACKETS if stream.is_front_camera else -1
        self._setup, self._receiver = setup, receiver
        self._configuration = stream.configure(setup.profile)
        self._client: StreamClient | None = None
        self._is_stopped = False

    def prepare(self) -> None:
        """Send the headset its commands and download the stream's calibration."""
        self._setup.before_stream(self.stream)

    def open(self, *, is_again: bool) -> None:
        """Connect. Raises SensorError."""
        if self.is_open:
            return
        client = self._new_client()
        self._setup.before_connect(self.stream, is_again=is_again)
        client.connect()
        self.is_open = True

    def opened(self, recorder: StreamRecorder) -> None:
        """Note a restart of the headset's app."""
        if recorder.state.connections > 1 or recorder.next_seq > 0:
            self._setup.note_app_start(recorder.name, recorder.state.connections, recorder.next_seq)

    def receive(self, recorder: StreamRecorder) -> None:
        """Receive in the thread of the receiver until the connection ends. Raises what the client raises."""
        assert self._client is not None
        with suppress(StreamStopped):
            self._receiver.receive(self._client, recorder)

    def refuses(self, *, only_ask: bool) -> bool:
        """Return whether the headset refuses a connection; unless `only_ask`, an accepted one is kept."""
        only_ask = only_ask or self.stream.is_front_camera  # connecting would switch the front camera on
        client = StreamClient(self.stream, self._setup.host, b"") if only_ask else self._new_client()
        try:
            if not only_ask:
                self._setup.before_connect(self.stream, is_again=True)
            client.connect()
        except (StreamRefused, StreamStopped):  # StreamStopped: the recording ended meanwhile
            return True
        except SensorError:
            return False
        if only_ask:
            client.close()
        self.is_open = not only_ask
        return False

    def unreachable_reason(self) -> str:
        """Return why the headset does not answer at its remote configuration port, "" if it does."""
        return self._setup.unreachable_reason()

    def settled(self, packet: QueuedPacket, recorder: StreamRecorder) -> None:
        """Note which of the front camera's settings differ from the profile, after it had time to apply them."""
        try:
            differ = self._setup.settings_that_differ(packet.body[: len(packet.body) - self.pose_bytes])
        except SensorError as error:
            differ = {str(error): [0.0, 0.0]}
        recorder.note(CameraSettingsNote(asked=self._setup.profile.camera_settings, differ=differ))
        if differ:
            recorder.state.problem = f"the camera did not take {', '.join(differ)}"

    def stop(self) -> None:
        """Interrupt waiting calls."""
        self._is_stopped = True
        if self._client is not None:
            self._client.stop()

    def close(self) -> None:
        """Close the connection."""
        self.is_open = False
        if self._client is not None:
            self._client.close()

    def _new_client(self) -> StreamClient:
        client = StreamClient(self.stream, self._setup.host, self._configuration)
        self._client = client
        if self._is_stopped:
            client.stop()
        return client


class HeadsetDevice(Device):
    """One headset: each stream has a thread that keeps it connected, one thread receives them all."""

    def __init__(self, plan: Plan, headset: HeadsetPlan, ledger: Ledger) -> None:
        """Connect to the queue, not yet to the headset."""
        self._headset = headset
        self._profile = Profile(**headset.profile)
        self._setup = HeadsetSetup(
            headset.name, headset.host, headset.streams, self._profile, Path(plan.path), ledger
        )
        self.pipe = QueuePipe(connect(plan.queue_url))
        self._receiver = Receiver(self.pipe, plan.linger_ms / 1e3)
        self._streams = [headset_stream(short) for short in headset.streams]
        self.sources = [HeadsetSource(stream, self._setup, self._receiver) for stream in self._streams]
        self.ask = ask_headset(headset.host, self._setup.lock)

    def rate_hz(self, stream: SensorStream) -> float:
        """Return the packet rate of a stream with the profile's settings."""
        return headset_stream(stream.name).rate_hz(self._profile)

    def start(self) -> None:
        """Start the thread that receives all streams."""
        self._receiver.start()

    def queue_stalls(self) -> list[tuple[int, int]]:
        """Return the new times in which the receiving thread waited for the queue."""
        stalls = self._receiver.queue_stalls
        return [stalls.popleft() for _ in range(len(stalls))]

    def switch_off(self) -> None:
        """Switch the front camera off, so that the headset does not run hot after the recording."""
        if not any(stream.is_front_camera for stream in self._streams):
            return
        try:
            with self._setup.lock:
                remote.stop_pv(self._headset.host, timeout_s=3)
        except SensorError as error:
            print(f"the front camera could not be switched off: {error}", file=sys.stderr, flush=True)

    def stop(self) -> None:
        """Stop the thread that receives all streams."""
        self._receiver.stop()
        self._receiver.join()
