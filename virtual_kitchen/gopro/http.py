"""The HTTP interface of the virtual GoPro: paths, replies and byte ranges as on a HERO12 over USB."""

from __future__ import annotations

import json
import re
import socket
import struct
import time
from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import parse_qsl, urlsplit

from virtual_kitchen.gopro.camera import Camera, Phase, WrongState
from virtual_kitchen.gopro.card import FOLDER, SCREENNAIL_WIDTH, THUMBNAIL_WIDTH, CardFile
from virtual_kitchen.gopro.faults import CameraFault
from virtual_kitchen.gopro.tls import HomeNetwork

STEP_BYTES = 16 << 20
SLOW_STEP_BYTES = 64 << 10
ONE_RANGE = re.compile(r"bytes=(\d*)-(\d*)")
Query = dict[str, str]


class Reply(Exception):
    """End the handling of a request with a status and a JSON body."""

    def __init__(self, status: HTTPStatus, body: dict[str, Any] | None = None) -> None:
        super().__init__(status)
        self.status, self.body = status, body


class CameraApi:
    """Commands by path; each takes the query and returns the JSON body, or raises Reply."""

    def __init__(self, camera: Camera) -> None:
        """Serve one camera."""
        self._camera = camera
        self.commands: dict[str, Callable[[Query], dict[str, Any]]] = {
            "/gopro/version": lambda _: {"version": "2.0"},
            "/gopro/camera/state": lambda _: {
                "status": camera.status(),
                "settings": camera.settings.as_status(),
            },
            "/gopro/camera/info": self._info,
            "/gopro/camera/shutter/start": self._start,
            "/gopro/camera/shutter/stop": self._stop,
            "/gopro/camera/control/wired_usb": self._wired_usb,
            "/gopro/camera/control/set_ui_controller": self._set_ui_controller,
            "/gopro/camera/analytics/set_client_info": self._nothing,
            "/gopro/camera/keep_alive": self._nothing,
            "/gopro/camera/set_date_time": self._set_date_time,
            "/gopro/camera/get_date_time": self._get_date_time,
            "/gopro/camera/setting": self._setting,
            "/gopro/camera/presets/get": lambda _: camera.settings.presets(),
            "/gopro/camera/presets/set_group": self._preset,
            "/gopro/camera/presets/load": self._preset,
            "/gopro/camera/name": lambda _: {"value": camera.model.name},
            "/gopro/media/list": self._media_list,
            "/gopro/media/last_captured": self._last_captured,
            "/gopro/media/info": lambda query: self.file(query.get("path", "")).info(),
            "/gopro/media/turbo_transfer": self._turbo,
            "/gopro/media/delete/file": self._delete,
            "/gopro/media/hilight/moment": self._hilight,
            "/gopro/media/hilight/file": self._mark_file,
            "/gopro/media/hilight/remove": self._unmark_file,
            "/gopro/webcam/status": lambda _: {"status": 0, "error": 0},
            "/gopro/webcam/exit": lambda _: {"status": 0, "error": 0},
            "/gopro/camera/stream/stop": self._nothing,
            "/gp/gpControl/command/storage/delete/all": self._delete_all,
            "/gp/gpControl/command/storage/delete/group": self._delete_group,
        }

    def file(self, path: str) -> CardFile:
        """Return a file of the card or end with 404."""
        found = self._camera.card.find(path)
        if found is None:
            raise Reply(HTTPStatus.NOT_FOUND, {})
        return found

    def telemetry(self, query: Query) -> bytes:
        """Return the telemetry track of a file."""
        return self.file(query.get("path", "")).telemetry

    def header(self, query: Query) -> bytes:
        """Return the header of a file."""
        return self.file(query.get("path", "")).header()

    def still(self, query: Query, width: int) -> bytes:
        """Return the JPEG of a file."""
        return self.file(query.get("path", "")).still(width)

    def _nothing(self, query: Query) -> dict[str, Any]:
        return {}

    def _info(self, query: Query) -> dict[str, Any]:
        model, serial = self._camera.model, self._camera.serial
        return {
            "model_number": model.number, "model_name": model.name, "firmware_version": model.firmware,
            "serial_number": serial, "ap_mac_addr": "02" + serial[-10:], "ap_ssid": f"GP{serial[-8:]}",
        }  # fmt: skip

    def _require_ready(self) -> None:
        if self._camera.phase is not Phase.IDLE:
            raise Reply(HTTPStatus.INTERNAL_SERVER_ERROR, {})

    def _start(self, query: Query) -> dict[str, Any]:
        try:
            self._camera.start_recording()
        except WrongState as refusal:
            raise Reply(HTTPStatus.INTERNAL_SERVER_ERROR, {}) from refusal
        return {}

    def _stop(self, query: Query) -> dict[str, Any]:
        self._camera.stop_recording()
        return {}

    def _wired_usb(self, query: Query) -> dict[str, Any]:
        self._camera.is_usb_controlled = query.get("p") == "1"
        return {}

    def _set_ui_controller(self, query: Query) -> dict[str, Any]:
        self._camera.control_owner = _integer(query, "p")
        return {}

    def _set_date_time(self, query: Query) -> dict[str, Any]:
        self._require_ready()
        try:
            local = datetime.strptime(f"{query['date']} {query['time']}", "%Y_%m_%d %H_%M_%S")  # noqa: DTZ007
        except (KeyError, ValueError) as error:
            raise Reply(HTTPStatus.BAD_REQUEST, {}) from error
        zone_minutes = _integer(query, "tzone") if "tzone" in query else 0
        self._camera.clock.set_local(local, zone_minutes, query.get("dst") == "1")
        return {}

    def _get_date_time(self, query: Query) -> dict[str, Any]:
        clock = self._camera.clock
        now = clock.local_now()
        date, clock_time = f"{now:%Y_%m_%d}", f"{now:%H_%M_%S}"
        return {
            "date": date,
            "time": clock_time,
            "tzone": clock.zone_minutes,
            "dst": int(clock.is_summer_time),
        }

    def _setting(self, query: Query) -> dict[str, Any]:
        settings, number = self._camera.settings, _integer(query, "setting")
        if "option" not in query:
            if number not in settings.values:
                raise Reply(HTTPStatus.FORBIDDEN, settings.refusal(number, 0))
            return {"option": settings.values[number]}
        self._require_ready()
        option = _integer(query, "option")
        refusal = settings.refusal(number, option)
        if refusal is not None:
            raise Reply(HTTPStatus.FORBIDDEN, refusal)
        settings.values[number] = option
        return {}

    def _preset(self, query: Query) -> dict[str, Any]:
        self._require_ready()
        if query.get("id") not in ("0", "1000"):
            raise Reply(HTTPStatus.INTERNAL_SERVER_ERROR, {})
        return {}

    def _media_list(self, query: Query) -> dict[str, Any]:
        files = [file.listed() for file in self._camera.card.files()]
        media = [{"d": FOLDER, "fs": files}] if files else []
        return {"id": f"{self._camera.kitchen.seed:019d}", "media": media}

    def _last_captured(self, query: Query) -> dict[str, Any]:
        files = self._camera.card.files()
        if not files:
            raise Reply(HTTPStatus.NO_CONTENT)
        return {"folder": FOLDER, "file": files[-1].name}

    def _turbo(self, query: Query) -> dict[str, Any]:
        self._require_ready()
        self._camera.is_turbo = query.get("p") == "1"
        return {}

    def _delete(self, query: Query) -> dict[str, Any]:
        self._require_ready()
        found = self._camera.card.find(query.get("path", ""))
        if found is None:
            raise Reply(HTTPStatus.BAD_REQUEST, {})
        self._camera.card.delete(found)
        return {}

    def _hilight(self, query: Query) -> dict[str, Any]:
        try:
            self._camera.mark_hilight()
        except WrongState as refusal:
            raise Reply(HTTPStatus.INTERNAL_SERVER_ERROR, {}) from refusal
        return {}

    def _mark_file(self, query: Query) -> dict[str, Any]:
        self._camera.card.mark(self.file(query.get("path", "")), _integer({"ms": "0", **query}, "ms"))
        return {}

    def _unmark_file(self, query: Query) -> dict[str, Any]:
        if not self._camera.card.unmark(self.file(query.get("path", "")), _integer(query, "ms")):
            raise Reply(HTTPStatus.INTERNAL_SERVER_ERROR, {})
        return {}

    def _delete_group(self, query: Query) -> dict[str, Any]:
        """Delete all chapters of the recording that a file belongs to."""
        self._require_ready()
        number = query.get("p", "").rpartition("/")[2][4:8]
        chapters = [file for file in self._camera.card.files() if file.name[4:8] == number]
        if not chapters:
            raise Reply(HTTPStatus.BAD_REQUEST, {})
        for file in chapters:
            self._camera.card.delete(file)
        return {}

    def _delete_all(self, query: Query) -> dict[str, Any]:
        self._require_ready()
        for file in self._camera.card.files():
            self._camera.card.delete(file)
        return {}


def _integer(query: Query, key: str) -> int:
    try:
        return int(query[key])
    except (KeyError, ValueError) as error:
        raise Reply(HTTPStatus.BAD_REQUEST, {}) from error


def requested_range(header: str | None, size: int) -> tuple[int, int] | None:
    """Return the half-open byte range of a Range header; None for the whole, ValueError past the end.

    A header in another unit or with several ranges asks for the whole (RFC 9110, 14.2).
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
    """One connection to the camera; the server object carries camera and api."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server_version = "GoPro Web Server v1.0"
    sys_version = ""
    camera: Camera
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
                self._send(HTTPStatus.OK, self.api.still(query, width), "image/jpeg")
            elif path == "/gopro/media/telemetry":
                self._send(HTTPStatus.OK, self.api.telemetry(query), "application/octet-stream")
            elif path == "/gopro/media/gpmf":
                self._send(HTTPStatus.OK, self.api.header(query), "application/octet-stream")
            elif path in self.api.commands:
                self._send_json(HTTPStatus.OK, self.api.commands[path](query))
            else:
                raise Reply(HTTPStatus.NOT_FOUND, {})
        except Reply as reply:
            self._send_json(reply.status, reply.body)
        except ConnectionError:
            self.close_connection = True  # the client went away; nobody is left to tell

    do_HEAD = do_GET

    def _check_entry(self) -> None:
        """Refuse strangers on the home network, everybody while the firmware is at fault, and all once it is gone."""
        if self.camera.is_gone:
            raise ConnectionResetError
        if self.home is not None and not self.home.admits(self.headers.get("Authorization")):
            raise Reply(HTTPStatus.UNAUTHORIZED, {})
        kitchen = self.camera.kitchen
        if self.camera.faults.active("gopro_500", kitchen.world_time_s(time.monotonic_ns())):
            raise Reply(HTTPStatus.INTERNAL_SERVER_ERROR)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: a simulator's stdout belongs to its user."""

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
            self._send_path(self.api.file(_video_of(name)).proxy)
            return
        file = self.api.file(name)
        self._send_path(file.path, file)

    def _send_path(self, path: Path, file: CardFile | None = None) -> None:
        """Send a file of the card, or the range of it that was asked for."""
        size = path.stat().st_size
        try:
            header = None if self.camera.faults.find("gopro_ignore_range") else self.headers.get("Range")
            wanted = requested_range(header, size)
        except ValueError:
            self.send_response(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE)
            self.send_header("Content-Range", f"bytes */{size}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self._send_bytes(path, size, wanted, file)

    def _send_bytes(
        self, path: Path, size: int, wanted: tuple[int, int] | None, file: CardFile | None
    ) -> None:
        """Stream a range of a file from the disk."""
        begin, end = wanted or (0, size)
        self.send_response(HTTPStatus.PARTIAL_CONTENT if wanted else HTTPStatus.OK)
        self.send_header("Content-Type", "video/mp4")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(end - begin))
        if wanted:
            self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{size}")
        self.end_headers()
        if self.command == "HEAD":
            return
        with path.open("rb") as source:
            sent = self._pour(source, begin, end - begin)
        if file is not None and sent == end - begin and end == size:
            self.camera.card.mark_fetched(file)

    def _pour(self, source: BinaryIO, begin: int, count: int) -> int:
        """Send bytes, at the card's speed and with what its faults do; return how many went."""
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
        sent = 0
        while sent < count and not self.camera.is_gone:
            step = min(count - sent, SLOW_STEP_BYTES if slow else STEP_BYTES)
            if self.home is not None:
                source.seek(begin + sent)
                self.connection.sendall(source.read(step))  # TLS cannot send from the disk
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


def _video_of(proxy: str) -> str:
    """Name of the video on this card that a small copy belongs to."""
    folder, slash, name = proxy.rpartition("/")
    return f"{folder}{slash}GX{name[2:-4]}.MP4"
