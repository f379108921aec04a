"""What a camera writes and says: telemetry, boxes of films, answers over HTTP."""

from __future__ import annotations

import functools
import socket
import tempfile
import threading
from pathlib import Path
from typing import Any

from films import film
from registry import parser

from kitchensync.sensors.errors import BadGpmf, CameraError, UnreadableMedia
from kitchensync.sensors.gopro.control import camera
from kitchensync.sensors.gopro.control.camera import GoProHttp
from kitchensync.sensors.gopro.files.inspect import describe_payloads, inspect
from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.sensors.gopro.mp4 import boxes, gpmf
from kitchensync.sensors.gopro.mp4.sample_tables import read_chapter


@functools.cache
def small_film() -> bytes:
    """Return a short film of the virtual camera."""
    with tempfile.TemporaryDirectory() as folder:
        film(Path(folder), frames=6, chapter_frames=None, width=64, height=48)
        return next(Path(folder).rglob("*.MP4")).read_bytes()


def written(content: bytes, name: str) -> Path:
    """Write an input where its parser wants a file."""
    path = Path(tempfile.gettempdir()) / name
    path.write_bytes(content)
    return path


def _moov() -> list[bytes]:
    path = written(small_film(), "seed.MP4")
    return [bytes(boxes.read_moov(path))]


def _telemetry() -> list[bytes]:
    path = written(small_film(), "seed.MP4")
    return [payload.data for payload in open_media(path).payloads]


@parser("telemetry (GPMF)", BadGpmf, seeds=_telemetry)
def gpmf_payloads(content: bytes) -> None:
    blocks = gpmf.split_payloads(content, [])
    gpmf.header_texts(content)
    for block in blocks:
        gpmf.check_nesting(block)
        for part in gpmf.read_streams(block):
            part.samples  # noqa: B018 (made when it is asked for)
            part.tick_ms  # noqa: B018
    describe_payloads([len(block) for block in blocks], [gpmf.read_streams(block) for block in blocks], [])


@parser("boxes of a film's index", UnreadableMedia, seeds=_moov)
def film_index(content: bytes) -> None:
    boxes.tracks(memoryview(content))
    boxes.find(memoryview(content), "mvhd")
    for track in boxes.tracks(memoryview(content)):
        boxes.timecode_format(track.description)


def _film() -> list[bytes]:
    content = small_film()
    at = content.rindex(b"moov") - 4
    return [content, content[:32] + content[at:]]


@parser("a film's tables, file in hand", UnreadableMedia, seeds=_film)
def film_tables(content: bytes) -> None:
    path = written(content, "in.MP4")
    if boxes.looks_like_mp4(path) and boxes.has_moov(path):
        read_chapter(path)


@parser("`gopro inspect` of a film, by libav", UnreadableMedia, seeds=_film, apart=True)
def inspected_film(content: bytes) -> None:
    inspect(written(content, "in.MP4"))


OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
BODIES = (
    b'{"status": {"8": 0, "10": 0, "33": 0, "35": 100}, "settings": {"2": 1, "3": 8}}',
    b'{"media": [{"d": "100GOPRO", "fs": [{"n": "GX010001.MP4", "s": "100", "cre": "1700000000"}]}]}',
    b'{"date": "2026_11_24", "time": "12_30_00", "tzone": 60, "dst": 0}',
    b'{"model_name": "HERO11 Black", "firmware_version": "H22.01", "serial_number": "C1", "info": {}}',
)


def _answers() -> list[bytes]:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n"
    whole = [OK % (len(body), body) for body in BODIES]
    return [
        *whole,
        *(chunked % (len(body), body) for body in BODIES),
        b"HTTP/1.1 100 Continue\r\n\r\n" + whole[0],
    ]


class _Camera(threading.Thread):
    """Answers every request with what it is told to, then closes."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.content = b""
        self.start()

    def run(self) -> None:
        while True:
            client = self._listener.accept()[0]
            with client:
                try:
                    client.recv(65536)
                    client.sendall(self.content)
                except OSError:
                    continue  # the client saw enough


@functools.cache
def _camera() -> _Camera:
    return _Camera()


def _is_asked(ask: Any) -> bool:
    try:
        ask()
    except CameraError:
        return False
    return True


@parser("answers of a camera over HTTP", CameraError, seeds=_answers, apart=True)
def camera_answers(content: bytes) -> None:
    camera.RETRY_S = 0.0
    served = _camera()
    served.content = content
    with GoProHttp(served.url, timeout_s=2.0) as asked_camera:
        asked = (asked_camera.info, asked_camera.media, asked_camera.get_clock)
        heard = [_is_asked(ask) for ask in asked]
        asked_camera.state()
        assert len(heard) == len(asked)
