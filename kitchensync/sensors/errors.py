"""Errors of sensors, with one base class; each makes its message from its arguments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


class SentError(Exception):
    """An error that can be sent to another process, whatever arguments its constructor has."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _without_init, (type(self), self.args, self.__dict__)


def _without_init(kind: type[SentError], args: tuple[Any, ...], attributes: dict[str, Any]) -> SentError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(attributes)
    return error


class WordedError(SentError):
    """Base of errors with the message in `text`: about a path, address or name `at`, and `why`."""

    text = ""

    def __init__(self, at: Path | str, why: str = "") -> None:
        self.why = why
        super().__init__(self.text.format(at=at, why=why))


class SensorError(SentError):
    """Base class of all sensor errors: one line that names the object and the remedy."""

    exit_code = 1


# --- a headset's stream -------------------------------------------------------------------------


class StreamError(SensorError):
    """An error on one port of a headset."""

    def __init__(self, host: str, port: int, stream: str, what: str) -> None:
        self.host, self.port, self.stream = host, port, stream
        super().__init__(f"{host}:{port} ({stream}): {what}")


class ConnectFailed(StreamError):
    """No connection could be made."""


class StreamRefused(ConnectFailed):
    """No program listens on the port."""

    def __init__(self, host: str, port: int, stream: str) -> None:
        super().__init__(
            host,
            port,
            stream,
            "connection refused; start the hl2ss app on the headset (3800-3808 also need Research Mode)",
        )


class StreamUnreachable(ConnectFailed):
    """The host does not answer."""

    def __init__(self, host: str, port: int, stream: str, why: str) -> None:
        super().__init__(
            host, port, stream, f"not reachable ({why}); check the address, the network and that it is awake"
        )


class StreamSilent(StreamError):
    """The connection was made, but no byte came."""

    def __init__(self, host: str, port: int, stream: str, limit_s: float) -> None:
        super().__init__(
            host,
            port,
            stream,
            f"connected but silent for {limit_s:g} s; another client may hold the port: "
            "close it or restart the hl2ss app",
        )


class StreamStalled(StreamError):
    """Packets came, then none for too long; the connection is still open."""

    def __init__(self, host: str, port: int, stream: str, limit_s: float) -> None:
        super().__init__(
            host, port, stream, f"stalled: no byte for {limit_s:g} s; check the Wi-Fi, or reconnect"
        )


class StreamClosed(StreamError):
    """The connection ended; `at_boundary` is True if it ended after a complete packet."""

    def __init__(
        self, host: str, port: int, stream: str, at_boundary: bool, lost_bytes: int = 0, why: str = "closed"
    ) -> None:
        self.at_boundary, self.lost_bytes = at_boundary, lost_bytes
        where = "after a complete packet" if at_boundary else f"inside a packet ({lost_bytes} bytes received)"
        super().__init__(host, port, stream, f"{why} by the headset {where}; reconnect")


class StreamStopped(StreamClosed):
    """The stream was ended by `stop()`."""

    def __init__(self, host: str, port: int, stream: str, at_boundary: bool, lost_bytes: int = 0) -> None:
        self.at_boundary, self.lost_bytes = at_boundary, lost_bytes
        StreamError.__init__(self, host, port, stream, "stopped by this recorder")


class PacketsEnded(WordedError, SensorError):
    """A plug-in has ended a stream."""

    at_boundary = True
    text = "{at}: the sensor ended the stream after a complete packet; reopening it"


class AbsurdSize(StreamError):
    """A packet header has an impossible size: the position in the stream is lost."""

    def __init__(self, host: str, port: int, stream: str, size: int, limit: int) -> None:
        self.size, self.limit = size, limit
        super().__init__(
            host, port, stream, f"a packet claims {size} bytes, the stream's limit is {limit}; reconnect"
        )


class BadPacket(SensorError):
    """A payload cannot be decoded."""

    def __init__(self, stream: str, why: str) -> None:
        self.stream = stream
        super().__init__(f"{stream}: unreadable packet: {why}; it is stored as received")


class NoConstants(SensorError):
    """The calibration of a stream could not be downloaded."""

    def __init__(self, stream: str, why: str) -> None:
        self.stream = stream
        super().__init__(f"{stream}: its calibration was not downloaded: {why}")


class UnknownSensorStream(SensorError):
    """No sensor has a stream with this name."""

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(f"no stream {name!r}; known: {', '.join(known)}")


class UnsupportedFormat(SensorError):
    """The device does not offer this video format or setting."""

    def __init__(self, what: str, offered: str) -> None:
        super().__init__(f"{what} is not offered by the headset; choose one of {offered}")


class UnsupportedServer(SensorError):
    """The version of the headset's app is not supported."""

    def __init__(self, version: str, why: str) -> None:
        self.version = version
        super().__init__(
            f"hl2ss server version {version} {why}; install 1.0.37, "
            f"or accept this one with --accept-version {version}"
        )


class PvNotStarted(SensorError):
    """The front camera did not switch on (or off) in time."""

    def __init__(self, host: str, wanted: str, limit_s: float) -> None:
        super().__init__(
            f"{host}: the front camera (pv) is not {wanted} after {limit_s:g} s; "
            "close other camera apps on the headset, allow the camera, or restart the hl2ss app"
        )


# --- a GoPro ------------------------------------------------------------------------------------


class CameraError(SensorError):
    """An error of a GoPro."""


class CameraLost(WordedError, CameraError):
    """The camera does not answer."""

    text = "{at}: the camera does not answer ({why}); check cable or network, and that it is on"


class CameraBusy(WordedError, CameraError):
    """The camera answers, but is not ready for the command."""

    text = "{at}: the camera is not ready: {why}"


class CameraRefused(CameraError):
    """The camera answered a command with an error."""

    def __init__(self, url: str, command: str, status: int, detail: str = "") -> None:
        self.status = status
        tail = f": {detail}" if detail else ""
        super().__init__(
            f"{url}: the camera refused {command} (HTTP {status}){tail}; look at its screen and try again"
        )


class CameraTalk(WordedError, CameraError):
    """The camera's answer does not follow the protocol."""

    text = "{at}: unexpected answer: {why}; is this a GoPro?"


class UnsafeName(WordedError, CameraError):
    """A folder or file name from the camera is not safe as a path."""

    text = "unsafe file name from the camera refused: {at!r}"


class DownloadFailed(WordedError, CameraError):
    """A file could not be downloaded completely; the received bytes are kept as `.part` for the next attempt."""

    text = "{at}: download failed: {why}; run it again, it continues where it stopped"


class CannotJoin(WordedError, SensorError):
    """The files are not chapters of one recording, or the result cannot be written."""

    text = "{at}: cannot be joined: {why}"


class NoCredentials(WordedError, CameraError):
    """Name and password of a camera on the home network are missing, or not stored safely."""

    text = "cohn:{at}: {why}"


class SdkMissing(WordedError, CameraError):
    """The camera maker's library is not installed."""

    text = (
        "{at}: cameras by usb:, cohn: or ble: need the extra `gopro`: run `make install`, "
        "or give the address as http://HOST:PORT"
    )


class UnreadableMedia(WordedError, SensorError):
    """A media file cannot be read."""

    text = "{at}: unreadable media file: {why}"


class BadGpmf(SensorError):
    """The bytes are not GPMF."""

    def __init__(self, why: str, offset: int) -> None:
        self.offset = offset
        super().__init__(f"not GPMF: {why} at byte {offset}")
