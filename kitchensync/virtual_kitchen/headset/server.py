"""The virtual HoloLens: all its ports at one address."""

import contextlib
import socket
import threading
from collections.abc import Callable

from kitchensync.virtual_kitchen.headset.cameras import VLC
from kitchensync.virtual_kitchen.headset.client_configuration import (
    RequestedEncoding,
    VideoEncoding,
    VideoFormat,
)
from kitchensync.virtual_kitchen.headset.device import HeadsetState
from kitchensync.virtual_kitchen.headset.remote import GuestPort, RemotePort, UnityPort, VoicePort
from kitchensync.virtual_kitchen.headset.stream import Stream
from kitchensync.virtual_kitchen.headset.stream_port import ListeningPort, StreamPort
from kitchensync.virtual_kitchen.headset.streams.ahat_stream import (
    HZ,
    AhatConfiguration,
    AhatFeed,
    AhatStream,
    GroupShelf,
)
from kitchensync.virtual_kitchen.headset.streams.extended_streams import (
    ExtendedAudioStream,
    ExtendedDepthStream,
    ExtendedVideoStream,
)
from kitchensync.virtual_kitchen.headset.streams.imu_streams import (
    ACCELEROMETER,
    GYROSCOPE,
    MAGNETOMETER,
    ImuStream,
)
from kitchensync.virtual_kitchen.headset.streams.longthrow_stream import LongThrowStream
from kitchensync.virtual_kitchen.headset.streams.microphone_stream import (
    AAC_BYTES_PER_S,
    AacFeed,
    MicrophoneStream,
)
from kitchensync.virtual_kitchen.headset.streams.microphone_stream import prepare as prepare_sound
from kitchensync.virtual_kitchen.headset.streams.pv_stream import PvConfiguration, PvFeed, PvStream
from kitchensync.virtual_kitchen.headset.streams.pv_stream import prepare as prepare_pv
from kitchensync.virtual_kitchen.headset.streams.spatial_stream import EyeStream, SpatialStream
from kitchensync.virtual_kitchen.headset.streams.vlc_stream import VlcStream

_RESEARCH_PORTS = range(3800, 3809)
_MARK = "\0kitchensync-virtual-headset/{host}"
_REPLAY = "\0kitchensync-replayed-headset/{host}/{uuid}"
_TICK_S = 0.1
_LAST_PACKETS_S = 15.0  # a client that does not read for this long after the end is cut off


class VirtualHeadset:
    """Binds, listens and stops the ports of one headset at one address."""

    def __init__(
        self, headset: HeadsetState, host: str, *, replace: Callable[[Stream], Stream | None] | None = None
    ) -> None:
        """`replace` returns the stream to serve instead of one, or None to leave its port closed."""
        self._headset = headset
        self._are_ending = threading.Event()
        self._host = host
        self._marks: list[socket.socket] = []
        self._ahat = AhatStream(headset)
        streams: tuple[Stream, ...] = (
            PvStream(headset),
            self._ahat,
            *(ImuStream(headset, kind) for kind in (GYROSCOPE, ACCELEROMETER, MAGNETOMETER)),
            SpatialStream(headset),
            MicrophoneStream(headset),
            *(VlcStream(headset, camera) for camera in VLC),
            LongThrowStream(headset),
            EyeStream(headset),
            ExtendedAudioStream(headset),
            ExtendedVideoStream(headset),
            ExtendedDepthStream(headset),
        )
        replaced = [stream if replace is None else replace(stream) for stream in streams]
        self._streams = [StreamPort(headset, stream, host) for stream in replaced if stream is not None]
        self._commands: list[ListeningPort] = [
            RemotePort(headset, host),
            VoicePort(host),
            UnityPort(host),
            GuestPort(host),
        ]
        self._restarter = threading.Thread(target=self._restart_when_due, name="app restarts", daemon=True)

    @property
    def _ports(self) -> list[ListeningPort]:
        """Return the ports that no fault refuses."""
        return [port for port in (*self._streams, *self._commands) if not self._is_refused(port)]

    def _is_refused(self, port: ListeningPort) -> bool:
        faults = self._headset.faults
        without_research = faults.has("research_mode_off") and port.address[1] in _RESEARCH_PORTS
        return without_research or faults.has("refuse_port", port.name)

    def warm_up(self) -> None:
        """Make one packet of each slow stream, so that the first client is served in time."""
        size = VideoFormat(640, 360, 30)
        encoding = VideoEncoding(RequestedEncoding.H265_MAIN, 552_960)
        PvFeed(self._headset, PvConfiguration(True, size, 1, encoding, 30)).packet(0)
        AhatFeed(
            self._headset, AhatConfiguration(True, 1, encoding, HZ), GroupShelf(self._headset.kitchen.seed)
        ).packet(0)
        AacFeed(self._headset, AAC_BYTES_PER_S[-1]).packet(0)

    def prepare(self, end_s: float) -> None:
        """Encode frames and sound of a client with the usual settings until `end_s` (world time)."""
        prepare_pv(self._headset, end_s)
        prepare_sound(self._headset, end_s)
        self._ahat.prepare()

    def bind(self) -> None:
        """Bind every address. Raises PortBusy for the first that is in use."""
        for port in self._ports:
            port.bind()

    def listen(self) -> None:
        """Accept clients on every port."""
        if self._headset.is_virtual:
            self._mark(_MARK.format(host=self._host))
        if self._headset.replays:
            self._mark(_REPLAY.format(host=self._host, uuid=self._headset.replays))
        for port in self._ports:
            port.listen()
        self._restarter.start()

    def _mark(self, name: str) -> None:
        """Mark the headset at this address as virtual or replayed for programs on this computer.

        The mark is an abstract socket name that ends with this process; systems without such names get no mark.
        """
        mark = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._marks.append(mark)
        with contextlib.suppress(OSError):
            mark.bind(name)

    def _restart_when_due(self) -> None:
        """Close and reopen all ports as the app restarts; after the fault `die` they stay closed."""
        headset = self._headset
        while not headset.kitchen.wait_started(_TICK_S):
            if headset.stopping.is_set():
                return
        while not headset.kitchen.clock.nap(headset.stopping, _TICK_S):
            fault = headset.faults.due_whole(headset.now_s() + 2 * _TICK_S * headset.kitchen.speed)
            if fault is None:
                continue
            fault.done = True
            if not headset.wait_until(fault.start_s) or self._are_ending.is_set():
                return
            closed = [port for port in self._ports if not (isinstance(port, StreamPort) and port.has_ended)]
            for port in closed:
                port.refuse()
            for port in closed:
                port.finish(0.0)
            if fault.end_s is None:
                return
            headset.restart(is_swap=fault.name == "headset_swap")
            self._record_frame()
            if not headset.wait_until(fault.end_s) or self._are_ending.is_set():
                return
            for port in closed:
                port.resume()

    def _record_frame(self) -> None:
        """Add the new world frame to the truth: the matrix maps row vectors from the world to it."""
        entry = {"from_ticks": self._headset.now_ticks(), "matrix": self._headset.frame().tolist()}
        if self._headset.swaps:
            now_s = self._headset.now_s()
            first = self._headset.kitchen.headset_clock
            entry["clock_ahead_ticks"] = self._headset.clock.ticks_at(now_s) - first.ticks_at(now_s)
        self._headset.kitchen.truth.notes.setdefault("world_frames", []).append(entry)

    @property
    def all_sent(self) -> bool:
        """Return whether at least one stream was served and all served streams have ended."""
        served = [port for port in self._streams if port.was_served]
        return bool(served) and all(port.has_ended for port in served)

    @property
    def client_seen_ns(self) -> int:
        """Return when a client was last connected to any port (host_ns), 0 before the first."""
        return max(port.client_seen_ns for port in (*self._streams, *self._commands))

    @property
    def streams_sending(self) -> int:
        """Return the number of connected streams if each has sent a packet, else 0."""
        states = [port.has_sent for port in self._streams if port.has_sent is not None]
        return len(states) if all(states) else 0

    def end_streams(self) -> None:
        """End every stream after a whole packet and refuse its port from now on; 3809 stays open."""
        self._are_ending.set()
        for port in self._streams:
            port.refuse()
        for port in self._streams:
            port.finish(_LAST_PACKETS_S)

    def stop(self) -> None:
        """Close all ports and end all threads."""
        self._headset.stopping.set()
        for mark in self._marks:
            mark.close()
        self.end_streams()
        for port in self._commands:
            port.refuse()
            port.finish(0.0)
        if self._restarter.ident is not None:
            self._restarter.join()
