"""A radio for the camera maker's library: bytes of its Bluetooth protocol, answered by a virtual camera.

Written from the public protocol: packets of 20 bytes, commands `id, (length, value)...`, answers `id, status, ...`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from open_gopro.models.constants import GoProUUID
from open_gopro.network.ble.controller import BLEController

from kitchensync.virtual_kitchen.gopro.camera import VirtualCamera, WrongState

ANSWERS = {
    GoProUUID.CQ_COMMAND: GoProUUID.CQ_COMMAND_RESP,
    GoProUUID.CQ_SETTINGS: GoProUUID.CQ_SETTINGS_RESP,
    GoProUUID.CQ_QUERY: GoProUUID.CQ_QUERY_RESP,
    GoProUUID.CM_NET_MGMT_COMM: GoProUUID.CN_NET_MGMT_RESP,
}
OK, ERROR, INVALID = 0, 1, 2
SHUTTER, GET_TIME, SET_TIME, INFO, CLIENT, VERSION = 0x01, 0x0E, 0x0F, 0x3C, 0x50, 0x51
SETTINGS, STATUSES = 0x12, 0x13
STATUS_BYTES = {13: 4, 35: 4, 54: 8}


def radio_of(camera: VirtualCamera) -> type[BLEController]:
    """Make the controller class that finds this one camera."""

    class Radio(BLEController):
        async def scan(self, token: Any, timeout: int = 5, service_uuids: Any = None) -> str:
            return f"GoPro {camera.serial[-4:]}"

        async def connect(self, disconnect_cb: Any, device: str, timeout: int = 15) -> str:
            return device

        async def pair(self, handle: str) -> None: ...

        async def discover_chars(self, handle: str, uuids: Any = None) -> Any:
            return SimpleNamespace(handle2uuid=list(ANSWERS.values()).__getitem__)

        async def enable_notifications(self, handle: str, handler: Callable[[int, bytearray], None]) -> None:
            self._tell = handler
            self._waiting = b""

        async def disconnect(self, handle: str) -> None: ...

        async def read(self, handle: str, uuid: Any) -> bytes:
            raise NotImplementedError

        async def write(self, handle: str, uuid: Any, data: bytes) -> None:
            self._waiting += data[1:] if self._waiting else data
            kind = self._waiting[0] >> 5
            head = 1 if kind == 0 else 2
            length = self._waiting[0] & 31 if kind == 0 else (self._waiting[0] & 31) << 8 | self._waiting[1]
            if len(self._waiting) - head < length:
                return
            message, self._waiting = self._waiting[head:], b""
            answer = _answer(camera, uuid, message)
            number = list(ANSWERS.values()).index(ANSWERS[uuid])
            for packet in _packets(answer):
                await asyncio.sleep(0)
                self._tell(number, bytearray(packet))

    return Radio


def _packets(message: bytes) -> Iterator[bytes]:
    yield bytes([0x20 | len(message) >> 8, len(message) & 255]) + message[:18]
    for number, at in enumerate(range(18, len(message), 19)):
        yield bytes([0x80 | number & 15]) + message[at : at + 19]


def _answer(camera: VirtualCamera, uuid: Any, message: bytes) -> bytes:
    number, values = message[0], message[1:]
    if uuid == GoProUUID.CM_NET_MGMT_COMM:
        return bytes([0x03, 0x81, 0x08, 0x01])  # pairing is finished: result 1 = success
    if number == 0xF5:
        return bytes(
            [0xF5, 0xEF, 0x08, 0, 0x10, 0, 0x30, 0]
        )  # never on a home network: not provisioned, not enabled
    if uuid == GoProUUID.CQ_SETTINGS:
        if number == 91 and values[1] == 66:
            return bytes([number, OK])  # keep-alive
        if camera.settings.refusal(number, values[1]) is not None:
            return bytes([number, INVALID])
        camera.settings.values[number] = values[1]
        return bytes([number, OK])
    if uuid == GoProUUID.CQ_QUERY:
        shown = camera.settings.values if number == SETTINGS else _statuses(camera)
        sizes = STATUS_BYTES if number == STATUSES else {}
        body = b"".join(
            bytes([key, sizes.get(key, 1)]) + value.to_bytes(sizes.get(key, 1), "big")
            for key, value in shown.items()
        )
        return bytes([number, OK]) + body
    return bytes([number]) + _command(camera, number, values)


def _statuses(camera: VirtualCamera) -> dict[int, int]:
    wanted = (6, 8, 10, 13, 33, 35, 54, 70, 85, 111)
    return {key: int(camera.status()[str(key)]) for key in wanted}


def _command(camera: VirtualCamera, number: int, values: bytes) -> bytes:
    if number == SHUTTER:
        try:
            camera.start_recording() if values[1] else camera.stop_recording()
        except WrongState:
            return bytes([ERROR])
    elif number == SET_TIME:
        year, month, day, hour, minute, second = int.from_bytes(values[1:3], "big"), *values[3:8]
        zone = int.from_bytes(values[8:10], "big", signed=True)
        local = datetime(year, month, day, hour, minute, second)  # noqa: DTZ001
        camera.clock.set_local(local, zone, bool(values[10]))
    elif number == GET_TIME:
        now = camera.clock.local_now()
        body = now.year.to_bytes(2, "big") + bytes([now.month, now.day, now.hour, now.minute, now.second])
        return bytes([OK, len(body) + 1]) + body + bytes([now.isoweekday() % 7])
    elif number == INFO:
        texts = (camera.model.name, "0x05", camera.model.firmware, camera.serial, "GP1", "02aabbccddee")
        model = bytes([4]) + camera.model.number.to_bytes(4, "big")
        return bytes([OK]) + model + b"".join(bytes([len(text)]) + text.encode() for text in texts)
    elif number == VERSION:
        return bytes([OK, 1, 2, 1, 0])
    elif number != CLIENT:
        return bytes([INVALID])
    return bytes([OK])
