"""Read the configuration blocks that a client sends after it connects (hl2ss protocol, section 1.5)."""

import socket
import struct
from dataclasses import dataclass
from enum import IntEnum

from kitchensync.virtual_kitchen.errors import KitchenError

GOP_OPTION = 10  # key of hl2ss for the frames of a group of pictures


class Rejected(KitchenError):
    """A configuration is refused; the server closes without an answer."""


class ClientGone(KitchenError):
    """The client closed before it had sent everything."""


class RequestedEncoding(IntEnum):
    """Encodings that a client may request for video."""

    H264_BASELINE = 0
    H264_MAIN = 1
    H264_HIGH = 2
    H265_MAIN = 3
    RAW = 255


@dataclass(frozen=True, slots=True)
class VideoEncoding:
    """A requested encoding; the bit rate only sets the quality."""

    profile: RequestedEncoding
    bits_per_s: int


@dataclass(frozen=True, slots=True)
class VideoFormat:
    """A requested frame size in pixels and rate in frames per second."""

    width: int
    height: int
    hz: int


class ConfigurationReader:
    """Blocking reads of little-endian fields from a connected socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.taken = b""
        "All bytes read so far."
        self.constants: bytes | None = None
        "Constants to send instead of the virtual sensor's."

    def take(self, count: int) -> bytes:
        """Return exactly `count` bytes."""
        got = bytearray()
        while len(got) < count:
            more = self._connection.recv(count - len(got))
            if not more:
                raise ClientGone(f"the client closed {count - len(got)} bytes early")
            got += more
        self.taken += got
        return bytes(got)

    def answer(self, constants: bytes) -> None:
        """Send constants (mode 2): bare bytes, after which the server closes."""
        self._connection.sendall(constants if self.constants is None else self.constants)

    def number(self, kind: str) -> int:
        """Return one integer of a `struct` kind: B, H, I, Q, i or q."""
        return int(struct.unpack("<" + kind, self.take(struct.calcsize("<" + kind)))[0])

    def video_format(self) -> VideoFormat:
        """Read VIDEO_FORMAT."""
        return VideoFormat(*struct.unpack("<HHB", self.take(5)))

    def divisor(self) -> int:
        """Read DIVISOR; 0 is refused."""
        divisor = self.number("B")
        if divisor == 0:
            raise Rejected("divisor 0")
        return divisor

    def video_encoding(self) -> VideoEncoding:
        """Read VIDEO_ENCODING; an unknown profile or bit rate 0 is refused, even for raw."""
        profile, _level, bits_per_s = struct.unpack("<BBI", self.take(6))
        if profile not in set(RequestedEncoding) or bits_per_s == 0:
            raise Rejected(f"video profile {profile}, {bits_per_s} bit/s")
        return VideoEncoding(RequestedEncoding(profile), bits_per_s)

    def encoder_options(self) -> dict[int, int]:
        """Read ENCODER_OPTIONS; unknown keys are kept and ignored."""
        count = self.number("B")
        return dict(struct.iter_unpack("<QQ", self.take(16 * count)))
