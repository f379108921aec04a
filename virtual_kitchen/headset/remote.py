"""Remote configuration, port 3809: questions, orders, and silence for what has no answer."""

import socket
import struct
from collections.abc import Callable

from virtual_kitchen.faults import REMOTE
from virtual_kitchen.headset.client_configuration import ConfigurationReader, Rejected
from virtual_kitchen.headset.device import Headset
from virtual_kitchen.headset.stream_port import ListeningPort

PORT = 3809
POSE_MEMORY_S = 10.0  # rig poses older than this are forgotten
_MOST_POSES = 65536
# Orders without an answer: bytes of arguments after the command byte.
_ORDER_BYTES = {
    0x02: 4, 0x04: 20, 0x05: 4, 0x06: 4, 0x07: 4, 0x08: 8, 0x09: 4, 0x0A: 8, 0x0B: 4, 0x0C: 4, 0x0D: 4, 0x0E: 4,
    0x0F: 4, 0x10: 4, 0x11: 4, 0x12: 4, 0x13: 20, 0x14: 8, 0x15: 4, 0x19: 8, 0x20: 4, 0x21: 4, 0x22: 8,
}  # fmt: skip


class RemotePort(ListeningPort):
    """Executes a client's commands in order; an unknown one closes the connection."""

    def __init__(self, headset: Headset, host: str) -> None:
        super().__init__(host, PORT, REMOTE)
        self._headset = headset
        self._answers: dict[int, Callable[[ConfigurationReader], bytes]] = {
            0x00: self._version,
            0x01: lambda _: struct.pack("<Q", headset.utc_offset_ticks()),
            0x03: lambda _: bytes([headset.camera_on]),
            0x17: self._rig_poses,
            0x18: self._time,
        }

    def serve(self, client: socket.socket) -> None:
        """Answer until the client leaves."""
        reader = ConfigurationReader(client)
        if self._headset.faults.has("never_answer", REMOTE):
            self._headset.stopping.wait()
            return
        while True:
            command = reader.number("B")
            if command in self._answers:
                client.sendall(self._answers[command](reader))
            elif command in _ORDER_BYTES:
                reader.take(_ORDER_BYTES[command])
            else:
                raise Rejected(f"command {command:#x}")

    def _version(self, _: ConfigurationReader) -> bytes:
        return struct.pack("<4H", *self._headset.faults.version(), 0)

    def _time(self, reader: ConfigurationReader) -> bytes:
        source = reader.number("I")
        if source > 1:
            raise Rejected(f"time source {source}")
        return struct.pack("<Q", self._headset.now_filetime() if source else self._headset.now_ticks())

    def _rig_poses(self, reader: ConfigurationReader) -> bytes:
        count = reader.number("I")
        if count > _MOST_POSES:
            raise Rejected(f"{count} poses")
        return b"".join(
            self._rig_pose(ticks) for (ticks,) in struct.iter_unpack("<Q", reader.take(8 * count))
        )

    def _rig_pose(self, ticks: int) -> bytes:
        now_s, at_s = self._headset.now_s(), self._headset.clock.world_s_at(ticks)
        known = max(0.0, now_s - POSE_MEMORY_S) <= at_s <= now_s
        return self._headset.pose(at_s) if known else bytes(64)
