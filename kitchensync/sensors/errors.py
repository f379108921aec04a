"""Every error of the sensor side, one base; each makes its own sentence from facts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


class SentError(Exception):
    """An error that another process gets as it was, whatever facts it was made of."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _as_it_was, (type(self), self.args, self.__dict__)


def _as_it_was(kind: type[SentError], args: tuple[Any, ...], facts: dict[str, Any]) -> SentError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(facts)
    return error


class SensorError(SentError):
    """Base of all sensor errors: one line that names the thing and what to do."""

    exit_code = 1


# --- a headset's stream -------------------------------------------------------------------------


class StreamError(SensorError):
    """Something went wrong on one port of a headset."""

    def __init__(self, host: str, port: int, stream: str, what: str) -> None:
        self.host, self.port, self.stream = host, port, stream
        super().__init__(f"{host}:{port} ({stream}): {what}")


class ConnectFailed(StreamError):
    """No connection could be made."""


class StreamRefused(ConnectFailed):
    """Nobody listens on the port."""

    def __init__(self, host: str, port: int, stream: str) -> None:
        super().__init__(
            host,
            port,
            stream,
            "connection refused; start the hl2ss app on the headset (3800-3808 also want Research Mode)",
        )


class StreamUnreachable(ConnectFailed):
    """The host does not answer at all."""

    def __init__(self, host: str, port: int, stream: str, why: str) -> None:
        super().__init__(
            host, port, stream, f"not reachable ({why}); check the address, the network and that it is awake"
        )


class StreamSilent(StreamError):
    """Connected, but the first byte never came."""

    def __init__(self, host: str, port: int, stream: str, limit_s: float) -> None:
        super().__init__(
            host,
            port,
            stream,
            f"connected but silent for {limit_s:g} s; another client may hold the port: "
            "close it or restart the hl2ss app",
        )


class StreamStalled(StreamError):
    """Packets came, then nothing for too long; the connection is still open."""

    def __init__(self, host: str, port: int, stream: str, limit_s: float) -> None:
        super().__init__(
            host, port, stream, f"stalled: no byte for {limit_s:g} s; check the Wi-Fi, or reconnect"
        )


class StreamClosed(StreamError):
    """The connection ended; `at_boundary` tells whether a whole packet was the last thing received."""

    def __init__(
        self, host: str, port: int, stream: str, at_boundary: bool, lost_bytes: int = 0, why: str = "closed"
    ) -> None:
        self.at_boundary, self.lost_bytes = at_boundary, lost_bytes
        where = "after a whole packet" if at_boundary else f"inside a packet ({lost_bytes} bytes of it came)"
        super().__init__(host, port, stream, f"{why} by the headset {where}; reconnect")


class StreamStopped(StreamClosed):
    """We ended the stream ourselves by `stop()`."""

    def __init__(self, host: str, port: int, stream: str, at_boundary: bool, lost_bytes: int = 0) -> None:
        self.at_boundary, self.lost_bytes = at_boundary, lost_bytes
        StreamError.__init__(self, host, port, stream, "stopped by this recorder")


class PacketsEnded(SensorError):
    """A plug-in yields no more packets of a stream."""

    at_boundary = True

    def __init__(self, stream: str) -> None:
        super().__init__(f"{stream}: the sensor ended it after a whole packet; it is opened again")


class AbsurdSize(StreamError):
    """A packet header promises more than its kind can hold: the place in the stream is lost."""

    def __init__(self, host: str, port: int, stream: str, size: int, limit: int) -> None:
        self.size, self.limit = size, limit
        super().__init__(
            host, port, stream, f"a packet claims {size} bytes, the kind's limit is {limit}; reconnect"
        )


class BadPacket(SensorError):
    """A payload that its stream's decoder cannot read."""

    def __init__(self, stream: str, why: str) -> None:
        self.stream = stream
        super().__init__(f"{stream}: unreadable packet: {why}; it is kept as received")


class NoConstants(SensorError):
    """A stream did not give its calibration."""

    def __init__(self, stream: str, why: str) -> None:
        self.stream = stream
        super().__init__(f"{stream}: its calibration was not downloaded: {why}")


class UnknownSensorStream(SensorError):
    """A stream name that no sensor has."""

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(f"no stream {name!r}; known: {', '.join(known)}")


class UnsupportedFormat(SensorError):
    """A picture format or setting that the device does not offer."""

    def __init__(self, what: str, offered: str) -> None:
        super().__init__(f"{what} is not offered by the headset; choose one of {offered}")


class UnsupportedServer(SensorError):
    """The headset's app is not a version that we may trust."""

    def __init__(self, version: str, why: str) -> None:
        self.version = version
        super().__init__(
            f"hl2ss server version {version} {why}; install 1.0.37, "
            f"or accept this one with --accept-version {version}"
        )


class PvNotStarted(SensorError):
    """The front camera did not come on (or go off) in time."""

    def __init__(self, host: str, wanted: str, limit_s: float) -> None:
        super().__init__(
            f"{host}: the front camera (pv) is not {wanted} after {limit_s:g} s; "
            "close other camera apps on the headset, allow the camera, or restart the hl2ss app"
        )


# --- a GoPro ------------------------------------------------------------------------------------


class CameraError(SensorError):
    """Something went wrong with a GoPro."""


class CameraLost(CameraError):
    """The camera does not answer."""

    def __init__(self, url: str, why: str) -> None:
        super().__init__(
            f"{url}: the camera does not answer ({why}); check cable or network, and that it is on"
        )


class CameraBusy(CameraError):
    """The camera answers, but is not ready for the command."""

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"{url}: the camera is not ready: {why}")


class CameraRefused(CameraError):
    """The camera answered a command with an error."""

    def __init__(self, url: str, command: str, status: int, said: str = "") -> None:
        self.status = status
        tail = f": {said}" if said else ""
        super().__init__(
            f"{url}: the camera refused {command} (HTTP {status}){tail}; look at its screen and try again"
        )


class CameraTalk(CameraError):
    """The camera answered something that is not its language."""

    def __init__(self, url: str, what: str) -> None:
        super().__init__(f"{url}: unexpected answer: {what}; is this a GoPro?")


class UnsafeName(CameraError):
    """A folder or file name from the camera that must not become a path."""

    def __init__(self, name: str) -> None:
        super().__init__(f"unsafe file name from the camera refused: {name!r}")


class DownloadFailed(CameraError):
    """A file could not be fetched whole; what came is kept as `.part` and continued next time."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name}: download failed: {why}; run it again, it continues where it stopped")


class CannotJoin(SensorError):
    """Files that do not make one recording, or a place where they cannot be written."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name}: cannot be joined: {why}")


class NoCredentials(CameraError):
    """A camera on the home network whose name and password are not known here, or not kept safely."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"cohn:{name}: {why}")


class SdkMissing(CameraError):
    """The camera maker's library is not installed."""

    def __init__(self, url: str) -> None:
        super().__init__(
            f"{url}: cameras by usb:, cohn: or ble: need the extra `gopro`: run `make install`, "
            "or give the address as http://HOST:PORT"
        )


class UnreadableMedia(SensorError):
    """A media file that cannot be opened as what it should be."""

    def __init__(self, path: Path | str, why: str) -> None:
        super().__init__(f"{path}: unreadable media file: {why}")


class BadGpmf(SensorError):
    """Bytes that are not GPMF."""

    def __init__(self, why: str, offset: int) -> None:
        self.offset = offset
        super().__init__(f"not GPMF: {why} at byte {offset}")
