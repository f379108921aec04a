"""The HTTP interface of the virtual GoPro: paths, replies and byte ranges as on a HERO12 over USB."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from virtual_kitchen.gopro.camera import Camera, Phase, WrongState
from virtual_kitchen.gopro.card import FOLDER, SCREENNAIL_WIDTH, THUMBNAIL_WIDTH, CardFile

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
            "/gp/gpControl/command/storage/delete/all": self._delete_all,
        }

    def file(self, path: str) -> CardFile:
        """Return a file of the card or end with 404."""
        found = self._camera.card.find(path)
        if found is None:
            raise Reply(HTTPStatus.NOT_FOUND, {})
        return found

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
        date, time = f"{now:%Y_%m_%d}", f"{now:%H_%M_%S}"
        return {"date": date, "time": time, "tzone": clock.zone_minutes, "dst": int(clock.is_summer_time)}

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

    def do_GET(self) -> None:
        """Answer a GET."""
        parts = urlsplit(re.sub(r"^/+", "/", self.path))
        path, query = re.sub(r"/{2,}", "/", parts.path), dict(parse_qsl(parts.query, keep_blank_values=True))
        try:
            if path.startswith("/videos/DCIM/"):
                self._send_video(path.removeprefix("/videos/DCIM/"))
            elif path in ("/gopro/media/thumbnail", "/gopro/media/screennail"):
                width = THUMBNAIL_WIDTH if path.endswith("thumbnail") else SCREENNAIL_WIDTH
                self._send(HTTPStatus.OK, self.api.still(query, width), "image/jpeg")
            elif path in self.api.commands:
                self._send_json(HTTPStatus.OK, self.api.commands[path](query))
            else:
                raise Reply(HTTPStatus.NOT_FOUND, {})
        except Reply as reply:
            self._send_json(reply.status, reply.body)
        except ConnectionError:
            self.close_connection = True  # the client went away; nobody is left to tell

    do_HEAD = do_GET

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
        file = self.api.file(name)
        try:
            wanted = requested_range(self.headers.get("Range"), file.size)
        except ValueError:
            self.send_response(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE)
            self.send_header("Content-Range", f"bytes */{file.size}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self._send_bytes(file, wanted)

    def _send_bytes(self, file: CardFile, wanted: tuple[int, int] | None) -> None:
        """Stream a range of a file from the disk."""
        begin, end = wanted or (0, file.size)
        self.send_response(HTTPStatus.PARTIAL_CONTENT if wanted else HTTPStatus.OK)
        self.send_header("Content-Type", "video/mp4")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(end - begin))
        if wanted:
            self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{file.size}")
        self.end_headers()
        if self.command == "HEAD":
            return
        with file.path.open("rb") as source:
            sent = self.connection.sendfile(source, begin, end - begin)
        if sent == end - begin and end == file.size:
            self.camera.card.mark_fetched(file)
