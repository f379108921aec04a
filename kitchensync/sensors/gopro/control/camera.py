"""Control a GoPro over plain HTTP (USB, or its own access point): state, shutter, clock, media list.

Every wait has a time limit. Only requests for state and the stop command are repeated after a lost answer; a start
command is never sent twice, since the camera may have received it.
"""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from kitchensync.sensors.errors import CameraBusy, CameraLost, CameraRefused, CameraTalk
from kitchensync.sensors.gopro.control.camera_types import (
    CameraClock,
    CameraInfo,
    CameraState,
    MediaFile,
    ShutterEvent,
)
from kitchensync.sensors.gopro.control.entry import CameraAddress, entry_of
from kitchensync.sensors.gopro.control.http_reader import TROUBLE, HttpAnswer, TimeLimit, reason
from kitchensync.shell.host_clock import host_ns
from kitchensync.shell.untrusted_json import BadJson, parse_object

__all__ = ["CameraClock", "CameraInfo", "CameraState", "GoProHttp", "MediaFile", "ShutterEvent"]

TRIES = 3
RETRY_S = 0.3
POLL_S = 0.2  # the start of a recording is noted late by up to this time
START_TIMEOUT_S = 10.0  # a camera with a full card accepts the command and never starts
HEARD_S = 1.5
"Time a camera may take to report that it records, after the answer to its start command was lost, seconds."
IDLE_TIMEOUT_S = 30.0  # a camera is also busy while it finalises a file or loads a preset


class GoProHttp:
    """One camera at `http://host:port` or a `CameraAddress`; a context manager. Calls block; use one thread."""

    def __init__(self, address: CameraAddress | str, timeout_s: float = 5.0) -> None:
        self.entry = entry_of(address)
        self.base_url = self.entry.base_url
        self._timeout_s = timeout_s
        self.entry.connection(timeout_s, TimeLimit())  # raises CameraLost for an invalid address

    def __enter__(self) -> GoProHttp:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Do nothing: each request has its own connection."""

    def open(self) -> None:
        """Open a session, if the connection needs one; plain HTTP does not."""

    # --- requests ---------------------------------------------------------------------------------

    def info(self) -> CameraInfo:
        """Request model, firmware and serial number."""
        raw = self._ask("/gopro/camera/info")
        nested = raw.get("info")
        info = nested if isinstance(nested, dict) else raw
        model, firmware, serial = (
            str(info.get(key, "")) for key in ("model_name", "firmware_version", "serial_number")
        )
        return CameraInfo(model, firmware, serial, raw, info.get("virtual") is True)

    def state(self) -> CameraState:
        """Request all statuses and settings."""
        raw = self._ask("/gopro/camera/state")
        received_ns = host_ns()
        status, settings = raw.get("status"), raw.get("settings")
        if not isinstance(status, dict) or not {"8", "10"} <= status.keys():
            raise CameraTalk(self.base_url, "a state without statuses 8 and 10")
        return CameraState(status, settings if isinstance(settings, dict) else {}, received_ns)

    def media(self) -> list[MediaFile]:
        """List the files on the card, by recording and chapter."""
        raw = self._ask("/gopro/media/list")
        files = []
        try:
            for folder in raw["media"]:
                for entry in folder["fs"]:
                    created = entry.get("cre")
                    files.append(
                        MediaFile(
                            str(folder["d"]),
                            str(entry["n"]),
                            int(entry["s"]),
                            int(created) if created is not None else None,
                        )
                    )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CameraTalk(self.base_url, f"a media list with {type(error).__name__} {error}") from error
        return sorted(
            files, key=lambda file: (file.folder, file.recording_number or "", file.chapter or 0, file.name)
        )

    def get_clock(self) -> CameraClock:
        """Request the camera's clock (whole seconds)."""
        raw = self._ask("/gopro/camera/get_date_time")
        received_ns = host_ns()
        try:
            numbers = [int(part) for key in ("date", "time") for part in str(raw[key]).split("_")]
            local = datetime(*numbers)  # type: ignore[arg-type]  # noqa: DTZ001 (local, without a zone)
            zone = raw.get("tzone")
            return CameraClock(
                local, None if zone is None else int(zone), bool(int(raw.get("dst") or 0)), received_ns
            )
        except (KeyError, TypeError, ValueError) as error:
            raise CameraTalk(self.base_url, f"a clock with {error}") from error

    # --- commands ---------------------------------------------------------------------------------

    def set_clock(self, local: datetime, zone_minutes: int, summer_time: bool = False) -> None:
        """Set the camera's clock to a local time in whole seconds; send it when a second begins."""
        self._ask(
            "/gopro/camera/set_date_time",
            {
                "date": f"{local.year}_{local.month}_{local.day}",
                "time": f"{local.hour}_{local.minute}_{local.second}",
                "tzone": str(zone_minutes),
                "dst": str(int(summer_time)),
            },
        )

    def set_setting(self, setting: int, option: int) -> None:
        """Set one setting. Raises `CameraRefused` with the options that the camera offers."""
        self._ask("/gopro/camera/setting", {"setting": str(setting), "option": str(option)})

    def keep_alive(self) -> None:
        """Keep the camera from falling asleep; send every 3 s."""
        self._ask("/gopro/camera/keep_alive")

    def shutter(self, on: bool) -> ShutterEvent:
        """Start or stop recording, note the host times around it, and wait until the camera reports it.

        A camera that already records is stopped first. If the answer to a start is lost, the camera's state decides.
        Raises `CameraBusy` with the camera's complaints if it does not start in time.
        """
        if on:
            state = self.state()
            if state.encoding:
                self.shutter(False)
            if not state.ready:
                self.wait_idle()
        before_ns = host_ns()
        try:
            self._press(on)
        except CameraRefused as error:
            state = self.state()
            if on and not state.encoding:
                raise CameraBusy(self.base_url, f"{error} ({_text_of(state)})") from error
            if not on and state.encoding:
                raise
        except CameraLost:
            if not on or not self._has_started():
                raise
        after_ns = host_ns()
        return ShutterEvent(before_ns, after_ns, self._wait_for_encoding(on))

    def _has_started(self) -> bool:
        """Return whether the camera records although its answer to the start command was lost."""
        deadline_ns = host_ns() + int(HEARD_S * 1e9)
        while not (is_recording := self.state().encoding) and host_ns() < deadline_ns:
            time.sleep(POLL_S)
        return is_recording

    def _press(self, on: bool) -> None:
        """Send the shutter command; a start is never sent twice."""
        self._ask(f"/gopro/camera/shutter/{'start' if on else 'stop'}", tries=1 if on else TRIES)

    def delete(self, file: MediaFile) -> None:
        """Delete one file from the card; only `kitchensync.sync.memory_cards.free` may call this."""
        self._ask("/gopro/media/delete/file", {"path": f"{file.folder}/{file.name}"}, tries=1)

    def external_control(self) -> None:
        """Announce external control to the camera, and switch off its fast transfer mode."""
        self._ask("/gopro/media/turbo_transfer", {"p": "0"})
        self._ask("/gopro/camera/control/set_ui_controller", {"p": "2"})

    def _wait_for_encoding(self, on: bool) -> int:
        deadline_ns = host_ns() + int(START_TIMEOUT_S * 1e9)
        while True:
            state = self.state()
            if state.encoding == on:
                return state.host_ns
            if host_ns() > deadline_ns:
                action = "begin to record" if on else "stop recording"
                why = f"it did not {action} within {START_TIMEOUT_S:g} s ({_text_of(state)})"
                raise CameraBusy(self.base_url, why)
            time.sleep(POLL_S)

    def wait_idle(self, timeout_s: float = IDLE_TIMEOUT_S) -> CameraState:
        """Wait until it neither records nor finalises a file. Raises `CameraBusy` after `timeout_s`."""
        deadline_ns = host_ns() + int(timeout_s * 1e9)
        while True:
            state = self.state()
            if state.ready:
                return state
            if host_ns() > deadline_ns:
                why = f"still {_text_of(state)} after {timeout_s:g} s; wait, or restart it"
                raise CameraBusy(self.base_url, why)
            time.sleep(POLL_S)

    # --- transport --------------------------------------------------------------------------------

    def _ask(self, path: str, params: dict[str, str] | None = None, tries: int = TRIES) -> dict[str, Any]:
        """GET a JSON object, with at most `tries` attempts."""
        answer = self._answer(f"{path}?{urlencode(params)}" if params else path, tries)
        command = path.removeprefix("/gopro/")
        if answer.status == 204:
            return {}
        if answer.status != 200:
            raise CameraRefused(self.base_url, command, answer.status, _refusal(answer.body))
        try:
            return parse_object(answer.body)
        except BadJson as error:
            raise CameraTalk(self.base_url, f"{command} answered {error}") from error

    def _answer(self, path: str, tries: int) -> HttpAnswer:
        for attempt in range(1, tries):
            try:
                return self.entry.ask(path, timeout_s=self._timeout_s)
            except TROUBLE:
                time.sleep(RETRY_S * attempt)
        try:
            return self.entry.ask(path, timeout_s=self._timeout_s)
        except TROUBLE as error:
            raise CameraLost(self.base_url, reason(error)) from error


def _text_of(state: CameraState) -> str:
    activity = "recording" if state.encoding else "busy" if state.busy else "idle"
    return ", ".join([activity, *state.complaints()])


def _refusal(body: bytes) -> str:
    """Return the text of a refusal."""
    try:
        answer = parse_object(body)
    except BadJson:
        return ""
    offered = answer.get("supported_options")
    if isinstance(offered, list):
        return "it offers " + ", ".join(str(o.get("display_name", o)) for o in offered if isinstance(o, dict))
    return str(answer["error"]) if "error" in answer else ""
