"""The virtual HoloLens: all its ports, taken together or not at all."""

from virtual_kitchen.headset.ahat_stream import HZ, AhatConfiguration, AhatFeed, AhatStream, GroupShelf
from virtual_kitchen.headset.client_configuration import VideoEncoding, VideoFormat, VideoProfile
from virtual_kitchen.headset.device import Headset
from virtual_kitchen.headset.imu_streams import ACCELEROMETER, GYROSCOPE, MAGNETOMETER, ImuStream
from virtual_kitchen.headset.microphone_stream import AAC_BYTES_PER_S, AacFeed, MicrophoneStream
from virtual_kitchen.headset.pv_stream import PvConfiguration, PvFeed, PvStream
from virtual_kitchen.headset.remote import RemotePort
from virtual_kitchen.headset.spatial_stream import SpatialStream
from virtual_kitchen.headset.stream_port import ListeningPort, Stream, StreamPort

_LAST_PACKETS_S = 5.0  # a client that does not read for this long after the end is cut off


class VirtualHeadset:
    """Binds, listens and stops the ports of one headset at one address."""

    def __init__(self, headset: Headset, host: str) -> None:
        self._headset = headset
        streams: tuple[Stream, ...] = (
            PvStream(headset),
            AhatStream(headset),
            *(ImuStream(headset, kind) for kind in (GYROSCOPE, ACCELEROMETER, MAGNETOMETER)),
            SpatialStream(headset),
            MicrophoneStream(headset),
        )
        self._streams = [StreamPort(headset, stream, host) for stream in streams]
        self._remote = RemotePort(headset, host)

    @property
    def _ports(self) -> list[ListeningPort]:
        """Return the ports that a fault does not refuse."""
        refused = self._headset.faults
        return [p for p in (*self._streams, self._remote) if not refused.has("refuse_port", p.name)]

    def warm_up(self) -> None:
        """Make one packet of what takes long at first, so that the first client is served in time."""
        size = VideoFormat(640, 360, 30)
        encoding = VideoEncoding(VideoProfile.H265_MAIN, 552_960)
        PvFeed(self._headset, PvConfiguration(True, size, 1, encoding, 30)).packet(0)
        AhatFeed(
            self._headset, AhatConfiguration(True, 1, encoding, HZ), GroupShelf(self._headset.kitchen.seed)
        ).packet(0)
        AacFeed(self._headset, AAC_BYTES_PER_S[-1]).packet(0)

    def bind(self) -> None:
        """Take every address; raise `PortBusy` for the first that is taken."""
        for port in self._ports:
            port.bind()

    def listen(self) -> None:
        """Let clients in on every port."""
        for port in self._ports:
            port.listen()

    def end_streams(self) -> None:
        """Let every stream end after a whole packet, and refuse its port from now on; 3809 stays."""
        for port in self._streams:
            port.refuse()
        for port in self._streams:
            port.finish(_LAST_PACKETS_S)

    def stop(self) -> None:
        """End everything."""
        self._headset.stopping.set()
        self.end_streams()
        self._remote.refuse()
        self._remote.finish(0.0)
