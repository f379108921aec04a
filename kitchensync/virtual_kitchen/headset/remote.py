"""Remote configuration (port 3809): queries, commands with and without an answer; and the message ports."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Container

import numpy as np

from kitchensync.virtual_kitchen.faults import REMOTE
from kitchensync.virtual_kitchen.headset.cameras import BY_PORT
from kitchensync.virtual_kitchen.headset.client_configuration import ConfigurationReader, Rejected
from kitchensync.virtual_kitchen.headset.device import HeadsetState
from kitchensync.virtual_kitchen.headset.stream_port import ListeningPort

PORT = 3809
POSE_MEMORY_S = 10.0  # rig poses older than this are forgotten
_MOST_POSES = 65536
_MOST_POINTS = 1 << 20
_U32 = range(2**32)
_SWITCH = (range(2),)
# Commands without an answer: the allowed values of each u32 argument. Any other value closes the connection.
_ORDERS: dict[int, tuple[Container[int], ...]] = {
    0x02: _SWITCH,
    0x04: (range(4), range(3), range(3), range(170, 10_001), range(2)),
    0x05: _SWITCH,
    0x06: (range(8),),
    0x07: (range(92, 301),),
    0x08: (_U32, range(100, 66_001)),
    0x09: _SWITCH,
    0x0A: (_U32, range(100, 3201)),
    0x0B: _SWITCH,
    0x0C: ((0, *range(2, 13)),),
    0x0D: _SWITCH,
    0x0E: (_U32,),
    0x0F: (range(7),),
    0x10: (range(3),),
    0x11: _SWITCH,
    0x12: (range(3),),
    0x13: (_U32,) * 5,
    0x14: (range(3800, 3822), (0, 1, 2, 2**32 - 1, 2**32 - 2)),
    0x15: _SWITCH,
    0x19: (_U32,) * 2,
    0x20: _SWITCH,
    0x21: _SWITCH,
    0x22: (range(3800, 3804), range(2)),
}
_RESEARCH_MODE = (0x0E, 0x16, 0x17)  # closed when Research Mode is off
_FOCUS, _WHITE_BALANCE, _EXPOSURE, _ISO, _LOOP_CONTROL = 0x04, 0x07, 0x08, 0x0A, 0x22
_MANUAL_FOCUS, _MANUAL_EXPOSURE, _MANUAL_ISO, _KELVIN_STEP = 3, 0, 0, 25  # white balance comes as K / 25
# In an automatic mode the value is ignored: command -> its manual mode, the index of the value.
_MANUAL_ONLY = {_FOCUS: (_MANUAL_FOCUS, 3), _EXPOSURE: (_MANUAL_EXPOSURE, 1), _ISO: (_MANUAL_ISO, 1)}


class RemotePort(ListeningPort):
    """Executes a client's commands in order; an unknown one, or a value out of range, closes the connection."""

    def __init__(self, headset: HeadsetState, host: str) -> None:
        super().__init__(host, PORT, REMOTE)
        self._headset = headset
        self._answers: dict[int, Callable[[ConfigurationReader], bytes]] = {
            0x00: lambda _: struct.pack("<4H", *headset.faults.version(), 0),
            0x01: lambda _: struct.pack("<Q", headset.utc_offset_ticks()),
            0x03: lambda _: bytes([headset.camera_on]),
            0x16: self._map_points,
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
            if command in _RESEARCH_MODE and self._headset.faults.has("research_mode_off"):
                raise Rejected(f"command {command:#x} without Research Mode")
            if command in self._answers:
                client.sendall(self._answers[command](reader))
            elif command in _ORDERS:
                self._execute(command, [reader.number("I") for _ in _ORDERS[command]])
            else:
                raise Rejected(f"command {command:#x}")

    def _execute(self, command: int, values: list[int]) -> None:
        """Apply the three camera commands while the camera is on: its packets show them. Others have no effect here.

        The truth notes loop control: a client has to send it before it opens a grey camera, after every app start.
        """
        for place, (value, good) in enumerate(zip(values, _ORDERS[command], strict=True)):
            manual, value_place = _MANUAL_ONLY.get(command, (None, None))
            is_checked = place != value_place or values[0] == manual
            if is_checked and value not in good:
                raise Rejected(f"command {command:#x} with {value} as argument {place + 1}")
        if command == _LOOP_CONTROL:
            entry = {"port": values[0], "on": bool(values[1]), "ticks": self._headset.now_ticks()}
            self._headset.kitchen.truth.notes.setdefault("loop_control", []).append(entry)
        if not self._headset.camera_on:
            return
        camera = self._headset.camera
        if command == _FOCUS and values[0] == _MANUAL_FOCUS:
            camera.lens_position = values[3]
        elif command == _WHITE_BALANCE:
            camera.white_balance_k = values[0] * _KELVIN_STEP
        elif command == _EXPOSURE and values[0] == _MANUAL_EXPOSURE:
            camera.exposure_us = values[1]

    def _map_points(self, reader: ConfigurationReader) -> bytes:
        port, direction, count = reader.number("I"), reader.number("I"), reader.number("I")
        if port not in BY_PORT or direction > 1 or count > _MOST_POINTS:
            raise Rejected(f"{count} points of port {port}")
        points = np.frombuffer(reader.take(8 * count), "<f4").reshape(-1, 2).astype(np.float64)
        camera = BY_PORT[port]
        mapped = camera.to_pixels(points) if direction else camera.to_unit_plane(points)
        return mapped.astype("<f4").tobytes()

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


VOICE_PORT, UNITY_PORT, GUEST_PORT = 3815, 3816, 3820
RESERVED = 0xFFFFFFFF  # id of a pull, and of the answer without a message
_MOST_BYTES = 64 << 20
_POLL, _STOP = 1, 0


class VoicePort(ListeningPort):
    """Takes lists of phrases and polls; no phrase is ever recognised."""

    def __init__(self, host: str) -> None:
        super().__init__(host, VOICE_PORT, "voice_input")

    def serve(self, client: socket.socket) -> None:
        """Serve lists until the client leaves."""
        reader = ConfigurationReader(client)
        while True:
            for _ in range(reader.number("H")):
                reader.take(reader.number("H"))
            while (order := reader.number("B")) != _STOP:
                if order != _POLL:
                    raise Rejected(f"voice order {order}")
                client.sendall(struct.pack("<I", 0))


class UnityPort(ListeningPort):
    """Answers every message with its size in bytes."""

    def __init__(self, host: str) -> None:
        super().__init__(host, UNITY_PORT, "unity_message_queue")

    def serve(self, client: socket.socket) -> None:
        """Take messages until the client leaves."""
        reader = ConfigurationReader(client)
        while True:
            number, size = reader.number("I"), reader.number("I")
            if number == RESERVED or size > _MOST_BYTES:
                raise Rejected(f"message {number:#x} of {size} bytes")
            reader.take(size)
            client.sendall(struct.pack("<I", size))


class GuestPort(ListeningPort):
    """Never has a message to pull; takes results without an answer."""

    def __init__(self, host: str) -> None:
        super().__init__(host, GUEST_PORT, "guest_message_queue")

    def serve(self, client: socket.socket) -> None:
        """Answer pulls until the client leaves."""
        reader = ConfigurationReader(client)
        while True:
            if reader.number("I") == RESERVED:
                client.sendall(struct.pack("<II", RESERVED, 0))
