"""A small camera after the vendor's interface: control, media list, ranged files."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from kitchensync.sensors.gopro.control import camera as camera_module


def box(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data) + 8) + kind + data


class Camera:
    """State machine: a start takes `start_polls` state requests, finalising takes `busy_polls`."""

    def __init__(self) -> None:
        body = bytes((k * 7919 >> 4) & 0xFF for k in range(300_000))
        self.file = box(b"ftyp", b"mp41") + box(b"mdat", body) + box(b"moov", b"index")
        self.encoding = False
        self.busy_left = 0
        self.start_left = -1
        self.start_polls, self.busy_polls = 2, 2
        self.works = True
        self.storage = 0
        self.requests: list[str] = []
        self.ranges: list[str | None] = []
        self.cuts: list[int] = []
        "Bytes of body after which a download connection is cut, one for each request."
        self.ignore_range = False
        self.fail_first: dict[str, int] = {}
        "Path -> how many requests end without an answer."
        self.lost_answers: dict[str, int] = {}
        "Path -> how many requests are heard, and never answered."
        self.body_of: dict[str, tuple[int, bytes]] = {}

    def state(self) -> dict[str, object]:
        if self.start_left >= 0:
            self.start_left -= 1
            self.encoding = self.start_left < 0
        busy, self.busy_left = self.busy_left > 0, max(0, self.busy_left - 1)
        status = {"8": int(busy), "10": int(self.encoding), "33": self.storage, "70": 90, "13": 0, "35": 5000}
        return {"status": status, "settings": {"2": 1}}

    def answer(self, path: str, query: dict[str, list[str]]) -> tuple[int, object]:
        if path == "/gopro/camera/state":
            return 200, self.state()
        if path == "/gopro/camera/shutter/start":
            if self.encoding or self.busy_left:
                return 500, {}
            if self.works:
                self.start_left = self.start_polls
            return 200, {}
        if path == "/gopro/camera/shutter/stop":
            if not self.encoding:
                return 500, {}
            self.encoding, self.busy_left = False, self.busy_polls
            return 200, {}
        if path == "/gopro/camera/info":
            return 200, {"model_name": "HERO12 Black", "firmware_version": "H23.01", "serial_number": "C1"}
        if path == "/gopro/camera/get_date_time":
            return 200, {"date": "2026_1_5", "time": "3_4_9", "tzone": 120, "dst": 1}
        if path == "/gopro/camera/set_date_time":
            return 200, {}
        if path == "/gopro/camera/setting":
            offered = [{"display_name": "4K", "id": 1}, {"display_name": "1080", "id": 9}]
            return 403, {"error": 3, "supported_options": offered}
        if path == "/gopro/media/list":
            files = [
                {"n": name, "cre": "1768839442", "mod": "1768839442", "ls": "-1", "s": str(len(self.file))}
                for name in ("GX020001.MP4", "GX010002.MP4", "GX010001.MP4")
            ]
            return 200, {"id": "1", "media": [{"d": "100GOPRO", "fs": files}]}
        return 404, {"error": "unknown", "query": str(query)}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        camera: Camera = self.server.camera  # type: ignore[attr-defined]
        parts = urlsplit(self.path)
        camera.requests.append(self.path)
        if camera.fail_first.get(parts.path, 0) > 0:
            camera.fail_first[parts.path] -= 1
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        elif parts.path in camera.body_of:
            self.reply(*camera.body_of[parts.path])
        elif parts.path.startswith("/videos/DCIM/"):
            self.send_file(camera)
        else:
            status, answer = camera.answer(parts.path, parse_qs(parts.query))
            if camera.lost_answers.get(parts.path, 0) > 0:
                camera.lost_answers[parts.path] -= 1
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
            else:
                self.reply(status, json.dumps(answer).encode())

    def reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def send_file(self, camera: Camera) -> None:
        requested = self.headers.get("Range")
        camera.ranges.append(requested)
        start = 0
        if requested and not camera.ignore_range:
            start = int(requested.removeprefix("bytes=").removesuffix("-"))
            if start >= len(camera.file):
                self.reply(416, b"")
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(camera.file) - 1}/{len(camera.file)}")
        else:
            self.send_response(200)
        body = camera.file[start:]
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if camera.cuts:
            self.wfile.write(body[: camera.cuts.pop(0)])
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        else:
            self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Log nothing; tests check the recorded requests."""


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *args: object) -> None:
        """Ignore connections that were cut on purpose."""


@pytest.fixture
def gopro(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Camera, str]]:
    monkeypatch.setattr(camera_module, "POLL_S", 0.01)
    monkeypatch.setattr(camera_module, "RETRY_S", 0.01)
    monkeypatch.setattr(camera_module, "HEARD_S", 0.1)
    server = Server(("127.0.0.1", 0), Handler)
    server.camera = Camera()  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server.camera, f"http://127.0.0.1:{server.server_port}"  # type: ignore[attr-defined]
    server.shutdown()
    server.server_close()
    thread.join(timeout=60)
