"""Voice input (3815), Unity message queue (3816) and guest message queue (3820)."""

import socket
import struct

from virtual_kitchen.headset.client_configuration import ConfigurationReader, Rejected
from virtual_kitchen.headset.stream_port import ListeningPort

VOICE_PORT, UNITY_PORT, GUEST_PORT = 3815, 3816, 3820
RESERVED = 0xFFFFFFFF
_MOST_BYTES = 64 << 20
_POLL, _STOP = 1, 0


class VoicePort(ListeningPort):
    """Takes lists of phrases and polls; nobody ever says one."""

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
    """Answers every message with one number: the bytes it held."""

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
    """Has no message for anybody who pulls; takes results in silence."""

    def __init__(self, host: str) -> None:
        super().__init__(host, GUEST_PORT, "guest_message_queue")

    def serve(self, client: socket.socket) -> None:
        """Answer pulls until the client leaves."""
        reader = ConfigurationReader(client)
        while True:
            if reader.number("I") == RESERVED:
                client.sendall(struct.pack("<II", RESERVED, 0))
