"""Record with one GoPro: prepare, start, watch, stop, fetch; in its own thread, so that it blocks nothing else.

A camera that is lost is reported and goes on recording by itself. Its video is fetched from the card at the next
contact, here or later by `kitchensync gopro fetch`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kitchensync.capture.camera.files import fetch_files, fetch_proxies, new_files, write_media
from kitchensync.capture.camera.watch import CameraHealth, CameraWatch, concerns, media_state
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

if TYPE_CHECKING:
    from kitchensync.storage.manifest_form import FilmForm

WATCH_S = 1.0  # below AWAY_S of the watch, which counts on an answer a second
KEEP_ALIVE_S = 3.0  # Open GoPro asks for one every 3 s
IDLE_LIMIT_S = 60.0  # after a stop the camera still finalises its file
RETRY_LIMIT_S = 20.0
"""Time for which the end of a recording waits for a lost camera; then its files are left for later."""
RETRY_S = 1.0
NO_FILE = "no file of this clip is on its card; look again with `kitchensync gopro fetch`"

STAYS_ON_CARD = "; its video stays on the card of {}: `kitchensync gopro fetch`, or `gopro import`"
CARD_TAKEN = "{} of its {} clips: not on the card that is in it now; get them with `kitchensync gopro import`"


class CameraRecorder(threading.Thread):
    """Records one clip on one camera and fetches its files."""

    def __init__(self, name: str, url: str, folder: Path, settings: dict[str, Any] | None = None) -> None:
        """Originals and `media.json` are written to `folder`; `settings` are those of rig.toml."""
        super().__init__(name=f"camera {name}", daemon=True)
        self.device = name
        self.state = CameraHealth()
        self._url = url
        self._folder = folder
        self._options = wanted_options(settings)
        self._camera = open_camera(url)
        self._ending = threading.Event()
        self._before: set[tuple[str, str]] = set()
        self._files: list[FilmForm] = []
        self._media: dict[str, Any] = {
            "schema": "media/1",
            "device": name,
            "state": "prepared",
            "address": url,
        }

    def prepare(self) -> dict[str, Any]:
        """Connect to the camera, set it up and list its card; return its manifest entry. Raises CameraError."""
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
        """Take control, set clock and settings; return notes about steps that failed."""
        notes: list[str] = []
        self._note(notes, self._camera.external_control)
        zone = local_zone(utc_anchor().utc_ns)
        self._note(notes, lambda: set_clock_now(self._camera, int(zone["utc_offset_s"]) // 60))
        applied = self._note(notes, lambda: apply_settings(self._camera, self._options))
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
        """Stop recording, then fetch the files."""
        self._ending.set()

    def run(self) -> None:
        """Start recording, wait for the end, stop, and fetch; errors are reported in `state`."""
        watch = CameraWatch(self.state)
        try:
            self._open_shutter()
            self._watch(watch)
            self._close_shutter()
            self._fetch_proxies()
            self._fetch()
            self.state.state = self._media["state"] = "done" if self._files else "pending"
            self.state.problem = "; ".join(filter(None, (watch.verdict(), self.state.problem)))
        except (CameraLost, TimeoutError) as error:
            self.state.state = self._media["state"] = "pending"
            self.state.problem = f"{error}; its files stay on the card: `kitchensync gopro fetch`"
        except (SensorError, OSError) as error:
            is_recorded = "shutter_off" in self._media  # only fetching failed
            self.state.state = "pending" if is_recorded else "failed"
            self._media["state"] = "pending" if "shutter_on" in self._media else "failed"
            advice = STAYS_ON_CARD.format(self._media["serial"]) if is_recorded else ""
            self.state.problem = f"{error}{advice}"
        finally:
            self._save()
            self._camera.close()

    def _open_shutter(self) -> None:
        self.state.state = "starting"
        # Written before the command, so that the clip can be found on the card if this computer fails now.
        self._media |= {"state": "pending", "state_at_start": media_state(self._camera.state())}
        self._save()
        recording = self._folder.parent
        facts = {key: self._media[key] for key in ("device", "address", "serial")}
        self._add_to_own_list(
            lambda: own_list(recording).add(
                LineKind.CAMERA, uuid_of(recording), recording=recording.name, **facts
            )
        )
        started = self._camera.shutter(True)
        self._media["shutter_on"] = started._asdict()
        self.state.state = "recording"
        self._save()

    def _watch(self, watch: CameraWatch) -> None:
        """Query the camera every second and keep it awake."""
        woken_s = time.monotonic()
        while not self._ending.wait(WATCH_S):
            try:
                watch.answered(self._camera.state())
                if watch.is_swapped:
                    self._restart_clip(watch)
                if time.monotonic() - woken_s >= KEEP_ALIVE_S:
                    woken_s = time.monotonic()
                    self._camera.keep_alive()
            except SensorError as error:
                watch.lost(str(error), host_ns())
        self._media["ended_host_ns"] = host_ns()
        watch.ended(self._media["ended_host_ns"])

    def _restart_clip(self, watch: CameraWatch) -> None:
        """Start another clip of the same recording after a change of battery, card or camera."""
        serial = self._camera.info().serial
        new_camera = {"serial": serial} if serial != self._media["serial"] else {}
        if new_camera:
            self._set_up()
        self._note([], self._camera.external_control)
        listed = self._camera.media()  # after a swap it may be another card
        made = new_files(listed, self._before, self._media | {"ended_host_ns": host_ns()})
        self._before = {(file.folder, file.name) for file in listed if file not in made}
        self._media["before"] = sorted(map(list, self._before))
        opened = self._camera.shutter(True)
        watch.resumed(opened.observed_host_ns, serial if new_camera else "")
        self._media.setdefault("shutters_on_again", []).append(opened._asdict() | new_camera)
        self._save()

    def _close_shutter(self) -> None:
        self.state.state = "stopping"
        stopped = self._retry(lambda: self._camera.shutter(False))
        self._media["shutter_off"] = stopped._asdict()
        self._media["state_at_stop"] = media_state(self._retry(lambda: self._camera.wait_idle(IDLE_LIMIT_S)))
        self._media["clock"]["stop"] = _as_dict(measure_clock(self._camera))
        self._save()

    def _retry(self, step: Callable[[], Any]) -> Any:
        """Repeat a step for a while if the camera does not answer."""
        deadline_s = time.monotonic() + RETRY_LIMIT_S
        while True:
            try:
                return step()
            except CameraLost as error:
                self.state.problem = str(error)
                if time.monotonic() > deadline_s:
                    raise
                time.sleep(RETRY_S)

    def _fetch_proxies(self) -> None:
        """Fetch the camera's low-resolution copies, by which a recording can be judged before its videos arrive."""
        self.state.state = "fetching small copies"
        new = new_files(self._retry(self._camera.media), self._before, self._media)
        fetched = fetch_proxies(self._camera, self._folder, new)
        self._media["small"] = [file.name for file in new if proxy_name(file.name) in fetched]
        self._save()

    def _fetch(self) -> None:
        self.state.state = "fetching"
        new = new_files(self._retry(self._camera.media), self._before, self._media)
        clips = 1 + len(self._media.get("shutters_on_again", []))
        missing = clips - len({(file.folder, file.recording_number) for file in new})
        self.state.problem = "" if new else NO_FILE
        if new and missing > 0:
            self.state.problem = CARD_TAKEN.format(missing, clips)
        self.state.promised_bytes = sum(file.bytes for file in new)
        self.state.fetching_since_ns = host_ns()
        fetch_files(self._camera, self._folder, new, self._files, self._show_fetched)
        self._add_to_own_list(lambda: note_films(self._folder.parent, self.device, self._files))
        self.state.fetched_bytes = self.state.promised_bytes
        for name in self._media.pop("small"):  # the low-resolution copies; the thumbnails stay
            (self._folder / "proxies" / str(proxy_name(name))).unlink(missing_ok=True)

    def _show_fetched(self, fetched_bytes: int) -> None:
        self.state.fetched_bytes = fetched_bytes

    def _save(self) -> None:
        shutters = {key: self._media.get(key) for key in ("shutter_on", "shutter_off")}
        self._media |= {"problem": self.state.problem, "gaps": self.state.gaps, "files": self._files}
        write_media(self._folder, self._media | shutters)

    def _add_to_own_list(self, enter: Callable[[], None]) -> None:
        """Add the camera or its videos to the installation's list; an error becomes a note."""
        try:
            enter()
        except (OSError, StorageError) as error:
            problem = f"a withdrawal will not erase its card: {words_of(error)}"
            self._media["notes"] = [*self._media.get("notes", []), problem]


def _as_dict(offset: ClockOffset | None) -> dict[str, Any] | None:
    return offset.as_dict() if offset is not None else None
