"""The HTTP interface of the virtual GoPro: replies, files and byte ranges, with the card's speed and faults."""

from __future__ import annotations

import base64
import hmac
import json
import re
import socket
import ssl
import struct
import time
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import parse_qsl, urlsplit

from kitchensync.virtual_kitchen.gopro.api import CameraApi, Reply
from kitchensync.virtual_kitchen.gopro.camera import VirtualCamera
from kitchensync.virtual_kitchen.gopro.card import SCREENNAIL_WIDTH, THUMBNAIL_WIDTH, CardFile
from kitchensync.virtual_kitchen.gopro.faults import CameraFault


@dataclass(frozen=True)
class HomeNetwork:
    """Certificate and credentials of a camera that has joined a home network."""

    certificate: str
    "PEM."
    username: str
    password: str
    context: ssl.SSLContext

    def admits(self, authorization: str | None) -> bool:
        """Check a request's Authorization header."""
        token = base64.b64encode(f"{self.username}:{self.password}".encode()).decode()
        return hmac.compare_digest((authorization or "").encode(), f"Basic {token}".encode())


STEP_BYTES = 16 << 20
SLOW_STEP_BYTES = 64 << 10
SLOW_STEPS_PER_S = 4
ONE_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


def requested_range(header: str | None, size: int) -> tuple[int, int] | None:
    """Return the half-open byte range of a Range header; None means the whole file. Raises ValueError past the end.

    A header in another unit or with several ranges is ignored (RFC 9110, 14.2).
    """
    match = ONE_RANGE.fullmatch(header.strip()) if header else None
    if match is None or match.groups() == ("", ""):
        return None
    first, last = match.groups()
    begin, end = (int(first), int(last) + 1 if last else size) if first else (max(0, size - int(last)), size)
    if begin >= size or end <= begin:
        raise ValueError(header)
    return begin, min(end, size)


class GoProRequestHandler(BaseHTTPRequestHandler):
    """One connection to the camera; camera and API are attributes of the server."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server_version = "GoPro Web Server v1.0"
    sys_version = ""
    camera: VirtualCamera
    api: CameraApi
    home: HomeNetwork | None = None

    def do_GET(self) -> None:
        """Answer a GET."""
        parts = urlsplit(re.sub(r"^/+", "/", self.path))
        path, query = re.sub(r"/{2,}", "/", parts.path), dict(parse_qsl(parts.query, keep_blank_values=True))
        try:
            self._check_entry()
            if path.startswith("/videos/DCIM/"):
                self._send_video(path.removeprefix("/videos/DCIM/"))
            elif path in ("/gopro/media/thumbnail", "/gopro/media/screennail"):
                width = THUMBNAIL_WIDTH if path.endswith("thumbnail") else SCREENNAIL_WIDTH
                self._send(HTTPStatus.OK, self.api.file_of(query).still(width), "image/jpeg")
            elif path == "/gopro/media/telemetry":
                self._send(HTTPStatus.OK, self.api.file_of(query).telemetry, "application/octet-stream")
            elif path == "/gopro/media/gpmf":
                self._send(HTTPStatus.OK, self.api.file_of(query).header(), "application/octet-stream")
            elif path in self.api.commands:
                self._send_json(HTTPStatus.OK, self.api.commands[path](query))
            else:
                raise Reply(HTTPStatus.NOT_FOUND, {})
        except Reply as reply:
            self._send_json(reply.status, reply.body)
        except ConnectionError:
            self.close_connection = True  # the client has left, so there is no answer

    do_HEAD = do_GET

    def _check_entry(self) -> None:
        """Refuse requests without credentials on the home network, during a firmware fault, or to a gone camera."""
        if self.camera.is_gone:
            raise ConnectionResetError
        if self.home is not None and not self.home.admits(self.headers.get("Authorization")):
            raise Reply(HTTPStatus.UNAUTHORIZED, {})
        kitchen = self.camera.kitchen
        if self.camera.faults.active("gopro_500", kitchen.now_s()):
            raise Reply(HTTPStatus.INTERNAL_SERVER_ERROR)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: standard output of the simulator belongs to its user."""

    def _send_json(self, status: HTTPStatus, body: dict[str, Any] | None) -> None:
        self._send(status, b"" if body is None else json.dumps(body).encode(), "application/json")

    def _send(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        if status is not HTTPStatus.NO_CONTENT:
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _send_video(self, name: str) -> None:
        if name.upper().endswith(".THM"):
            still = self.api.file(name[:-4] + ".MP4").still(THUMBNAIL_WIDTH)
            self._send(HTTPStatus.OK, still, "image/jpeg")
            return
        if name.upper().endswith(".LRV"):
            folder, slash, proxy = name.rpartition("/")
            self._send_path(self.api.file(f"{folder}{slash}GX{proxy[2:-4]}.MP4").proxy)
            return
        file = self.api.file(name)
        self._send_path(file.path, file)

    def _send_path(self, path: Path, file: CardFile | None = None) -> None:
        """Send a file of the card, or the requested range of it."""
        size = path.stat().st_size
        try:
            header = None if self.camera.faults.find("gopro_ignore_range") else self.headers.get("Range")
            requested = requested_range(header, size)
        except ValueError:
            self.send_response(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE)
            self.send_header("Content-Range", f"bytes */{size}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self._send_bytes(path, size, requested, file)

    def _send_bytes(
        self, path: Path, size: int, requested: tuple[int, int] | None, file: CardFile | None
    ) -> None:
        """Stream a range of a file from the disk."""
        begin, end = requested or (0, size)
        self.send_response(HTTPStatus.PARTIAL_CONTENT if requested else HTTPStatus.OK)
        self.send_header("Content-Type", "video/mp4")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(end - begin))
        if requested:
            self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{size}")
        self.end_headers()
        if self.command == "HEAD":
            return
        with path.open("rb") as source:
            sent = self._pour(source, begin, end - begin)
        if file is not None and sent == end - begin and end == size:
            self.camera.card.mark_fetched(file)

    def _pour(self, source: BinaryIO, begin: int, count: int) -> int:
        """Send bytes at the card's speed and with its faults; return how many were sent."""
        faults = self.camera.faults
        hit = faults.spend("gopro_cut", "gopro_truncate", "gopro_stall")
        slow = faults.find("gopro_slow")
        if hit is not None:
            first = min(hit.after_bytes, count)
            self._paced(source, begin, first, slow)
            if hit.name != "gopro_stall":
                self._end_early(is_reset=hit.name == "gopro_cut")
                return first
            time.sleep(hit.seconds)
            return first + self._paced(source, begin + first, count - first, slow)
        return self._paced(source, begin, count, slow)

    def _paced(self, source: BinaryIO, begin: int, count: int, slow: CameraFault | None) -> int:
        sent, longest = 0, STEP_BYTES
        if slow is not None:  # few bytes between two pauses, so that small files are slow too
            longest = max(1, min(SLOW_STEP_BYTES, slow.after_bytes // SLOW_STEPS_PER_S))
        while sent < count and not self.camera.is_gone:
            step = min(count - sent, longest)
            if self.home is not None:
                source.seek(begin + sent)
                self.connection.sendall(source.read(step))  # TLS has no sendfile
            else:
                step = self.connection.sendfile(source, begin + sent, step)
            sent += step
            if slow:
                time.sleep(step / slow.after_bytes)
        if sent < count:
            self._end_early(is_reset=True)
        return sent

    def _end_early(self, *, is_reset: bool) -> None:
        self.wfile.flush()
        if is_reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        self.close_connection = True
