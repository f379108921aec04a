"""One GoPro during a recording: prepare, start, watch, stop, fetch; on a thread of its own, so that it stops nobody.

A camera that vanishes is a red light. Its recording goes on without us; at the next contact, here or later by
`kitchensync gopro fetch --pending`, it is found on the card and fetched.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kitchensync.capture.camera.files import fetch_files, fetch_proxies, new_files, write_media
from kitchensync.capture.camera.watch import CameraHealth, CameraWatch, concerns, kept
from kitchensync.capture.zone import local_zone
from kitchensync.sensors.errors import CameraError, CameraLost, SensorError
from kitchensync.sensors.gopro.control.open_camera import open_camera
from kitchensync.sensors.gopro.control.settings import (
    ClockOffset,
    apply_settings,
    measure_clock,
    set_clock_now,
    wanted_options,
)
from kitchensync.sensors.gopro.files.card_names import proxy_name
from kitchensync.shell.host_clock import host_ns, utc_anchor
from kitchensync.storage.errors import StorageError, words_of
from kitchensync.storage.installation.own_list import LineKind, note_films, own_list, uuid_of

WATCH_S = 1.0
KEEP_ALIVE_S = 3.0
IDLE_LIMIT_S = 60.0
LOST_LIMIT_S = 20.0
"""So long the end waits for a camera that is gone; then its files are left for later."""
RETRY_S = 1.0
NO_FILE = "no file of this clip is on its card; look again with `kitchensync gopro fetch --pending`"

STAYS = (
    "; its film stays on the card of {}: `kitchensync gopro fetch --pending`, or `gopro import` from the card"
)
CARD_TAKEN = "{} of its {} clips: not on the card that is in it now; `kitchensync gopro import` brings them"


class CameraRecorder(threading.Thread):
    """Records one clip on one camera and brings its files home."""

    def __init__(self, name: str, url: str, folder: Path, settings: dict[str, Any] | None = None) -> None:
        """`folder` takes the untouched originals and `media.json`; `settings` are words of rig.toml."""
        super().__init__(name=f"camera {name}", daemon=True)
        self.device = name
        self.state = CameraHealth()
        self._url = url
        self._folder = folder
        self._wanted = wanted_options(settings)
        self._camera = open_camera(url)
        self._ending = threading.Event()
        self._before: set[tuple[str, str]] = set()
        self._files: list[dict[str, Any]] = []
        self._media: dict[str, Any] = {
            "schema": "media/1",
            "device": name,
            "state": "prepared",
            "address": url,
        }

    def prepare(self) -> dict[str, Any]:
        """Reach the camera, set it up, see what is on its card; return what it says it is. Raises CameraError."""
        try:
            self._camera.open()
            info = self._camera.info()
            notes = self._set_up()
            self._before = {(file.folder, file.name) for file in self._camera.media()}
        except SensorError:
            self._camera.close()
            raise
        anchor = utc_anchor()
        facts = {"serial": info.serial, "model": info.model_name, "firmware": info.firmware, "notes": notes}
        self._media |= facts | {
            "anchor": {"host_ns": anchor.host_ns, "utc_ns": anchor.utc_ns},
            "before": sorted(map(list, self._before)),
        }
        virtual = {"virtual": True} if info.is_virtual else {}
        return {"kind": "gopro", "address": self._url, **facts, **virtual}

    def _set_up(self) -> list[str]:
        """Hand over control, set clock and settings; what does not work is a note, not a refusal."""
        notes: list[str] = []
        self._note(notes, self._camera.external_control)
        zone = local_zone(utc_anchor().utc_ns)
        self._note(notes, lambda: set_clock_now(self._camera, int(zone["utc_offset_s"]) // 60))
        applied = self._note(notes, lambda: apply_settings(self._camera, self._wanted))
        if applied is not None:
            notes += applied.problems
            self._media |= {"settings": applied.settings, "settings_absent": applied.absent}
        notes += concerns(self._camera.state())
        if "clock" not in self._media:
            self._media["clock"] = {"start": _as_dict(measure_clock(self._camera)), "stop": None}
        return notes

    def _note(self, notes: list[str], step: Callable[[], Any]) -> Any:
        try:
            return step()
        except CameraLost:
            raise
        except CameraError as error:
            notes.append(str(error))
            return None

    def end(self) -> None:
        """Ask the end: the shutter is closed and the files are fetched."""
        self._ending.set()

    def run(self) -> None:
        """Shutter, wait for the end, shutter, fetch. A camera that fails is a red light, not a stopped session."""
        watch = CameraWatch(self.state)
        try:
            self._open_shutter()
            self._watch(watch)
            self._close_shutter()
            self._fetch_small()
            self._fetch()
            self._forget_small()
            self.state.state = self._media["state"] = "done" if self._files else "pending"
            self.state.problem = "; ".join(filter(None, (watch.verdict(), self.state.problem)))
        except (CameraLost, TimeoutError) as error:
            self.state.state = self._media["state"] = "pending"
            self.state.problem = f"{error}; its files stay on the card: `kitchensync gopro fetch --pending`"
        except (SensorError, OSError) as error:
            is_filmed = "shutter_off" in self._media  # only the way home went wrong
            self.state.state = "pending" if is_filmed else "failed"
            self._media["state"] = "pending" if "shutter_on" in self._media else "failed"
            stays = STAYS.format(self._media["serial"]) if is_filmed else ""
            self.state.problem = f"{error}{stays}"
        finally:
            self._save()
            self._camera.close()

    def _open_shutter(self) -> None:
        self.state.state = "starting"
        # Written before the command: a computer that dies now leaves a trace of what is on the card.
        self._media |= {"state": "pending", "state_at_start": kept(self._camera.state())}
        self._save()
        self._list(self._list_camera)
        started = self._camera.shutter(True)
        self._media["shutter_on"] = started._asdict()
        self.state.state = "recording"
        self._save()

    def _watch(self, watch: CameraWatch) -> None:
        """Look at the camera every second; keep it awake."""
        woken_s = time.monotonic()
        while not self._ending.wait(WATCH_S):
            try:
                watch.answered(self._camera.state())
                if watch.is_swapped:
                    self._go_on(watch)
                if time.monotonic() - woken_s >= KEEP_ALIVE_S:
                    woken_s = time.monotonic()
                    self._camera.keep_alive()
            except SensorError as error:
                watch.lost(str(error), host_ns())
        self._media["ended_host_ns"] = host_ns()
        watch.ended(self._media["ended_host_ns"])

    def _go_on(self, watch: CameraWatch) -> None:
        """Film again with another battery or card: one more clip of the same recording."""
        serial = self._camera.info().serial
        other = {"serial": serial} if serial != self._media["serial"] else {}
        if other:
            self._set_up()
        self._note([], self._camera.external_control)
        self._look_at_card()
        opened = self._camera.shutter(True)
        watch.went_on(opened.observed_host_ns, serial if other else "")
        self._media.setdefault("shutters_on_again", []).append(opened._asdict() | other)
        self._save()

    def _look_at_card(self) -> None:
        """Note what is on the card now: on another one nothing but what is filmed from now on is of this clip."""
        listed = self._camera.media()
        made = new_files(listed, self._before, self._media | {"ended_host_ns": host_ns()})
        self._before = {(file.folder, file.name) for file in listed if file not in made}
        self._media["before"] = sorted(map(list, self._before))

    def _close_shutter(self) -> None:
        self.state.state = "stopping"
        stopped = self._patiently(lambda: self._camera.shutter(False))
        self._media["shutter_off"] = stopped._asdict()
        self._media["state_at_stop"] = kept(self._patiently(lambda: self._camera.wait_idle(IDLE_LIMIT_S)))
        self._media["clock"]["stop"] = _as_dict(measure_clock(self._camera))
        self._save()

    def _patiently(self, step: Callable[[], Any]) -> Any:
        """Try again for a while when the camera does not answer."""
        deadline_s = time.monotonic() + LOST_LIMIT_S
        while True:
            try:
                return step()
            except CameraLost as error:
                self.state.problem = str(error)
                if time.monotonic() > deadline_s:
                    raise
                time.sleep(RETRY_S)

    def _fetch_small(self) -> None:
        """Fetch the camera's own small copies first: by them a recording is judged before its films are here."""
        self.state.state = "fetching small copies"
        new = new_files(self._patiently(self._camera.media), self._before, self._media)
        got = fetch_proxies(self._camera, self._folder, new)
        self._media["small"] = [file.name for file in new if proxy_name(file.name) in got]
        self._save()

    def _forget_small(self) -> None:
        """Remove the small copies whose films are here; the pictures beside them stay."""
        for name in self._media.pop("small"):
            (self._folder / "proxies" / str(proxy_name(name))).unlink(missing_ok=True)

    def _fetch(self) -> None:
        self.state.state = "fetching"
        new = new_files(self._patiently(self._camera.media), self._before, self._media)
        begun = 1 + len(self._media.get("shutters_on_again", []))
        away = begun - len({(file.folder, file.recording_number) for file in new})
        self.state.problem = CARD_TAKEN.format(away, begun) if new and away > 0 else "" if new else NO_FILE
        self.state.promised_bytes = sum(file.bytes for file in new)
        self.state.fetching_since_ns = host_ns()
        fetch_files(self._camera, self._folder, new, self._files, self._show_fetched)
        self._list(lambda: note_films(self._folder.parent, self.device, self._files))
        self.state.fetched_bytes = self.state.promised_bytes

    def _show_fetched(self, here: int) -> None:
        self.state.fetched_bytes = here

    def _save(self) -> None:
        shutters = {key: self._media.get(key) for key in ("shutter_on", "shutter_off")}
        self._media |= {"problem": self.state.problem, "gaps": self.state.gaps, "files": self._files}
        write_media(self._folder, self._media | shutters)

    def _list_camera(self) -> None:
        recording = self._folder.parent
        facts = {key: self._media[key] for key in ("device", "address", "serial")}
        own_list(recording).add(LineKind.CAMERA, uuid_of(recording), recording=recording.name, **facts)

    def _list(self, enter: Callable[[], None]) -> None:
        """Enter camera or films into the installation's list; a recording never fails for that."""
        try:
            enter()
        except (OSError, StorageError) as error:
            problem = f"a withdrawal will not erase its card: {words_of(error)}"
            self._media["notes"] = [*self._media.get("notes", []), problem]


def _as_dict(offset: ClockOffset | None) -> dict[str, Any] | None:
    return offset.as_dict() if offset is not None else None
