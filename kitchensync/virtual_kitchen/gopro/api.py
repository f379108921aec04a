"""HTTP commands of the virtual GoPro by path, with the answers and refusals of a HERO12 over USB."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus
from typing import Any

from kitchensync.virtual_kitchen.gopro.camera import VirtualCamera, WrongState
from kitchensync.virtual_kitchen.gopro.card import FOLDER, CardFile

Query = dict[str, str]


class Reply(Exception):
    """End the handling of a request with a status and a JSON body."""

    def __init__(self, status: HTTPStatus, body: dict[str, Any] | None = None) -> None:
        super().__init__(status)
        self.status, self.body = status, body


class CameraApi:
    """Commands by path; each takes the query and returns the JSON body, or raises Reply."""

    def __init__(self, camera: VirtualCamera) -> None:
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
            "/gopro/media/info": lambda query: self.file_of(query).info(),
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
        """Return a file of the card. Raises Reply 404."""
        file = self._camera.card.find(path)
        if file is None:
            raise Reply(HTTPStatus.NOT_FOUND, {})
        return file

    def file_of(self, query: Query) -> CardFile:
        """Return the file that a query names. Raises Reply 404."""
        return self.file(query.get("path", ""))

    def _nothing(self, query: Query) -> dict[str, Any]:
        return {}

    def _info(self, query: Query) -> dict[str, Any]:
        model, serial = self._camera.model, self._camera.serial
        return {
            "model_number": model.number, "model_name": model.name, "firmware_version": model.firmware,
            "serial_number": serial, "ap_mac_addr": "02" + serial[-10:], "ap_ssid": f"GP{serial[-8:]}",
        } | ({} if self._camera.shows_people else {"virtual": True})  # fmt: skip

    def _require_ready(self) -> None:
        if not self._camera.is_ready:
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
        self._camera.settle()
        return {}

    def _preset(self, query: Query) -> dict[str, Any]:
        self._require_ready()
        if query.get("id") not in ("0", "1000"):
            raise Reply(HTTPStatus.INTERNAL_SERVER_ERROR, {})
        return {}

    def _media_list(self, query: Query) -> dict[str, Any]:
        files = [file.listed() for file in self._camera.card.files()]
        media = [{"d": FOLDER, "fs": files}] if files else []
        return {"id": f"{self._camera.seed:019d}", "media": media}

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
        file = self._camera.card.find(query.get("path", ""))
        if file is None:
            raise Reply(HTTPStatus.BAD_REQUEST, {})
        self._camera.card.delete(file)
        return {}

    def _hilight(self, query: Query) -> dict[str, Any]:
        try:
            self._camera.mark_hilight()
        except WrongState as refusal:
            raise Reply(HTTPStatus.INTERNAL_SERVER_ERROR, {}) from refusal
        return {}

    def _mark_file(self, query: Query) -> dict[str, Any]:
        self._camera.card.mark(self.file_of(query), _integer({"ms": "0", **query}, "ms"))
        return {}

    def _unmark_file(self, query: Query) -> dict[str, Any]:
        if not self._camera.card.unmark(self.file_of(query), _integer(query, "ms")):
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
