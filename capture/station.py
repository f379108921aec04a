"""Start, stop and watch recordings for somebody else: each is a `kitchensync record` of its own.

The recorder outlives whoever started it: a recipe app that is restarted in the middle of a take finds it running.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from capture.errors import CaptureError
from capture.monitor.live_findings import findings_in, health_of
from capture.monitor.monitor import RecordingMonitor
from capture.monitor.rules import ALARM
from capture.plan import is_running, runtime_folder
from capture.rig.rig_file import read_rig
from capture.session.control import ask
from sensors.host_clock import host_ns
from storage.errors import StorageError
from storage.manifest import edit_manifest, read_manifest
from storage.names import MANIFEST, check_recording_id

START_MARGIN_S = 30.0
STOP_LIMIT_S = 30.0
LOOK_S = 0.1
HEALTH_MS = 500
BY_A_PERSON = ("requested", "aborted", "signal")
"""Why a recording ends that somebody wanted to end; every other end is a fault."""
ALARMS = {"camera_problem": "camera"} | dict.fromkeys(
    ("stream_refused", "stream_lost", "stream_reconnecting", "stream_silent"), "headset"
)
"""Rule -> what its alarm calls by name on the cook's screen; of every other it is the recording."""

_RECORD = [sys.executable, "-P", "-m", "kitchensync", "record"]


class Station:
    """The devices of one rig file, recording into one data folder; without a rig it watches what others record."""

    def __init__(self, data: Path, rig: Path | None, *, start_timeout_s: float = 30.0) -> None:
        self.data, self.rig, self.start_timeout_s = data, rig, start_timeout_s
        self._started: dict[str, subprocess.Popen[bytes]] = {}
        self._monitor = RecordingMonitor()

    def devices(self) -> list[str]:
        """Name the kinds of devices of the rig file, as it is now; none where it cannot be read."""
        if self.rig is None:
            return []
        try:
            rig = read_rig(self.rig)
        except CaptureError:
            return []
        kinds = {"headset": rig.hololens, "camera": rig.gopro, "sensor": rig.sensor}
        return [kind for kind, named in kinds.items() if named]

    def start(self, recording: str, *, participant: str, consent: str, place: str) -> list[str]:
        """Begin a recording; return the reasons why not, or nothing once every armed stream delivers."""
        if self.rig is None:
            return ["no rig is named, with which devices are recorded"]
        try:
            check_recording_id(recording)
        except StorageError as error:
            return [str(error)]
        options = ["--data", str(self.data), "--rig", str(self.rig), "--consent", consent]
        options += ["--participant", participant, "--place", place]
        options += ["--start-timeout", f"{self.start_timeout_s:g}", "--json"]
        log = self.data / f".{recording}.refused"
        with log.open("wb") as errors:
            process = subprocess.Popen(
                [*_RECORD, recording, *options],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
        try:
            return self._wait_until_it_records(recording, process, log)
        finally:
            log.unlink(missing_ok=True)

    def _wait_until_it_records(
        self, recording: str, process: subprocess.Popen[bytes], log: Path
    ) -> list[str]:
        end_s = time.monotonic() + self.start_timeout_s + START_MARGIN_S
        while time.monotonic() < end_s:
            if process.poll() is not None:
                lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
                return [line.removeprefix("kitchensync: ") for line in lines[-3:]] or [
                    "the recorder ended at once"
                ]
            state = self._state(recording)
            if state is not None and state["phase"] == "recording":
                self._started[recording] = process
                return []
            time.sleep(LOOK_S)
        process.terminate()
        process.wait()
        return [f"not every stream delivered within {self.start_timeout_s:g} s"]

    def stop(self, recording: str) -> list[str]:
        """End a recording in order; return why that was not possible, or nothing once it is asked."""
        return self._end(recording, "stop")

    def abort(self, recording: str, *, reason: str) -> list[str]:
        """End a recording that shall not be used: it is kept, and its manifest says why."""
        refused = self._end(recording, "abort")
        if not refused:
            self._wait_until_it_ended(recording)
            with edit_manifest(self.data / recording) as manifest:
                manifest["abandoned"] = {"reason": reason, "host_ns": host_ns()}
        return refused

    def _end(self, recording: str, request: str) -> list[str]:
        return [] if ask(self._endpoint(recording), request) is not None else [f"{recording} is not running"]

    def _wait_until_it_ended(self, recording: str) -> None:
        end_s = time.monotonic() + STOP_LIMIT_S
        while self._manifest(recording).get("state") == "recording" and time.monotonic() < end_s:
            time.sleep(LOOK_S)

    def report(self, recording: str) -> dict[str, Any]:
        """Say how a recording is: `health`, `reasons` and `cook` in words, and `host_ns`, when that was known.

        `reasons` are for who runs it, `cook` for who cooks: of alarms alone, each once. `alarm` is what the first is
        about: `camera`, `headset`, `recording`, or `stopped` where it ended alone.
        """
        self._reap()
        state = self._state(recording)
        if state is None:
            said = self._without_answer(recording)
            return {"reasons": [], "cook": [], "alarm": "", **said, "host_ns": host_ns()}
        found = findings_in(state)
        health = health_of(state, state["host_ns"], found)
        alarm = next((ALARMS.get(one.rule, "recording") for one in found if one.severity == ALARM), "")
        return {
            "health": "stopped" if health == "stopping" else health,
            "reasons": [one.operator for one in found],
            "cook": list(dict.fromkeys(one.cook for one in found if one.cook)),
            "alarm": _ended_alone(state["stop_asked"]) if health == "stopping" else alarm,
            "host_ns": state["host_ns"],
        }

    def _without_answer(self, recording: str) -> dict[str, Any]:
        """Say what the folder and the lock of its recorder tell, where nobody answers."""
        manifest = self._manifest(recording)
        if manifest.get("state") == "recording":
            if is_running(runtime_folder(self.data / recording)):
                return {"health": "unknown"}
            gone = "the recorder is gone and has not ended the recording; run `kitchensync recover`"
            return {"health": "problem", "reasons": [gone], "alarm": "stopped"}
        why = str((manifest.get("stopped") or {}).get("reason") or "")
        said = [f"the recording ended by itself: {why}"] if _ended_alone(why) else []
        return {"health": "stopped", "reasons": said, "alarm": _ended_alone(why)}

    def live(self, recording: str) -> dict[str, Any] | None:
        """Say everything that is known of a running recording, as `kitchensync top` does; None when none runs."""
        endpoint = self._endpoint(recording)
        return self._monitor.look_at(endpoint) if endpoint.parent.exists() else None

    def _reap(self) -> None:
        """Take note of recorders that have ended, so that none stays behind as a zombie."""
        self._started = {name: process for name, process in self._started.items() if process.poll() is None}

    def _state(self, recording: str) -> dict[str, Any] | None:
        endpoint = self._endpoint(recording)
        return ask(endpoint, "state", limit_ms=HEALTH_MS) if endpoint.exists() else None

    def _endpoint(self, recording: str) -> Path:
        return runtime_folder(self.data / recording) / "control"

    def _manifest(self, recording: str) -> dict[str, Any]:
        if not (self.data / recording / MANIFEST).exists():
            return {}
        try:
            return read_manifest(self.data / recording)
        except StorageError:
            return {}


def _ended_alone(why: str) -> str:
    """Return the alarm of an end that nobody asked for; none of one that somebody did, or of none."""
    return "stopped" if why and why not in BY_A_PERSON else ""


def station(data: Path, rig: Path | None) -> Station:
    """Make the station of a rig file, or one that only watches. Raises BadRig when the file cannot be used."""
    from capture.rig.rig_file import read_rig

    if rig is not None:
        read_rig(rig)
    return Station(data, rig)
