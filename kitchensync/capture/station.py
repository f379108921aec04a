"""Start, stop and watch recordings for somebody else: each is a `kitchensync record` of its own.

The recorder outlives whoever started it: a recipe app that is restarted in the middle of a take finds it running.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from kitchensync.capture.doctor.checks import BAD, RIG_MB_PER_S, Report, examine_computer
from kitchensync.capture.doctor.devices import examine_devices
from kitchensync.capture.errors import CaptureError
from kitchensync.capture.monitor.live_findings import findings_in, health_of
from kitchensync.capture.monitor.monitor import RecordingMonitor
from kitchensync.capture.monitor.rules import ALARM
from kitchensync.capture.plan import is_running, runtime_folder
from kitchensync.capture.rig.rig_file import order_of, read_rig
from kitchensync.capture.session.control import ask, wait_for_ledger
from kitchensync.sensors.errors import SensorError
from kitchensync.shell.host_clock import host_ns
from kitchensync.storage.errors import StorageError
from kitchensync.storage.manifest import Manifest, edit_manifest, read_manifest
from kitchensync.storage.names import MANIFEST, check_recording_id

START_MARGIN_S = 30.0
STOP_LIMIT_S = 75.0
"""So long a stop waits for what is stored; a queue that drains slowly goes on after it."""
LOOK_S = 0.1
SESSION_MINUTES = 60.0
HEALTH_MS = 500
BY_A_PERSON = ("requested", "aborted", "signal")
"""Why a recording ends that somebody wanted to end; every other end is a fault."""
ALARMS = {"camera_problem": "camera"} | dict.fromkeys(
    ("stream_refused", "stream_lost", "stream_reconnecting", "stream_silent"), "headset"
)
"""Rule -> what its alarm calls by name on the cook's screen; of every other it is the recording."""

_RECORD = [sys.executable, "-P", "-m", "kitchensync", "record"]


class Station:
    """The devices of rig files, recording into one data folder; without a rig it watches what others record."""

    def __init__(self, data: Path, *rigs: str, start_timeout_s: float = 30.0) -> None:
        """A rig is a path, for every place, or PLACE=path for that kitchen. Raises BadRig when it cannot be used."""
        self.data, self.start_timeout_s = data, start_timeout_s
        self.rigs = {place: Path(path) for place, path in map(_of_place, rigs)}
        for path in self.rigs.values():
            read_rig(path)
        self._started: dict[str, subprocess.Popen[bytes]] = {}
        self._monitor = RecordingMonitor()

    def rig_of(self, place: str) -> Path | None:
        """Return the rig file of a kitchen, or the one for all of them."""
        return self.rigs.get(place, self.rigs.get(""))

    def devices(self, place: str = "") -> list[str]:
        """Name the kinds of devices of a kitchen's rig file, as it is now; none where it cannot be read."""
        path = self.rig_of(place)
        if path is None:
            return []
        try:
            rig = read_rig(path)
        except CaptureError:
            return []
        kinds = {"headset": rig.hololens, "camera": rig.gopro, "sensor": rig.sensor}
        return [kind for kind, named in kinds.items() if named]

    def check(self, place: str = "") -> dict[str, Any]:
        """Look over this computer and the devices of a kitchen before a session; return `doctor/1`."""
        path = self.rig_of(place)
        if path is None:
            return examine_computer(self.data, SESSION_MINUTES, RIG_MB_PER_S["wifi"]).as_dict()
        report = Report(path.name)
        try:
            report = examine_devices(order_of(path), self.data, SESSION_MINUTES, path.name)
        except (CaptureError, SensorError) as error:
            report.add("rig file", BAD, str(error), f"kitchensync rig check {path}")
        return report.as_dict()

    def start(
        self, recording: str, *, participant: str, consent: str, place: str, override: str = ""
    ) -> list[str]:
        """Begin a recording; return the reasons why not, or nothing once every armed stream delivers.

        With an override, a reason that is kept, it begins though streams are missing when the time is over.
        """
        rig = self.rig_of(place)
        if rig is None:
            return [f"no rig is named for {place or 'any kitchen'}, with which devices are recorded"]
        try:
            check_recording_id(recording)
        except StorageError as error:
            return [str(error)]
        options = ["--data", str(self.data), "--rig", str(rig), "--consent", consent]
        options += ["--participant", participant, "--place", place]
        options += ["--override", override, "--start-timeout", f"{self.start_timeout_s:g}", "--json"]
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
                why = [line.removeprefix("kitchensync: ") for line in lines[-3:]]
                return why or ["the recorder ended at once"]
            state = self._state(recording)
            if state is not None and state["phase"] == "recording":
                self._started[recording] = process
                return []
            time.sleep(LOOK_S)
        process.terminate()
        process.wait()
        return [f"not every stream delivered within {self.start_timeout_s:g} s"]

    def stop(self, recording: str, *, by: str = "") -> list[str]:
        """End a recording in order; return why that was not possible, or nothing once its ledger is closed.

        `by` is the pseudonym of who ends it, for the manifest.
        """
        return self._end(recording, "stop", by)

    def abort(self, recording: str, *, reason: str, by: str = "") -> list[str]:
        """End a recording that shall not be used: it is kept, and its manifest says why."""
        refused = self._end(recording, "abort", by)
        if not refused:
            keep_reason(self.data / recording, reason)
        return refused

    def _end(self, recording: str, request: str, by: str) -> list[str]:
        endpoint = self._endpoint(recording)
        state = self._state(recording) if by else None
        if ask(endpoint, request) is None:
            return [f"{recording} is not running"]
        if by and self._manifest(recording):
            said = {"person": by, "host_ns": host_ns(), "faults": _faults_in(state) if state else []}
            with edit_manifest(self.data / recording) as manifest:
                manifest["ended_by"] = said
        wait_for_ledger(endpoint, limit_s=STOP_LIMIT_S)
        return []

    def tell(self, recording: str, what: str, text: str = "") -> list[str]:
        """Tell a running recording to `mark` this moment, or another request that it keeps; return why not."""
        if ask(self._endpoint(recording), what, text) is None:
            return [f"{recording} is not running"]
        return []

    def room(self) -> list[dict[str, Any]]:
        """Report how every recording is that this computer makes, into whatever folder."""
        return self._monitor.look()

    def report(self, recording: str) -> dict[str, Any]:
        """Report how a recording is: `health`, `reasons` and `cook` in words, and `host_ns`, when that was known.

        `reasons` are for who runs it, `cook` for who cooks: of alarms alone, each once. `alarm` is what the first is
        about: `camera`, `headset`, `recording`, or `stopped` where it ended alone.
        """
        # Take note of recorders that have ended, so that none stays behind as a zombie.
        self._started = {name: process for name, process in self._started.items() if process.poll() is None}
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
        """Report what the folder and the lock of its recorder tell, where nobody answers."""
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

    def _state(self, recording: str) -> dict[str, Any] | None:
        endpoint = self._endpoint(recording)
        return ask(endpoint, "state", limit_ms=HEALTH_MS) if endpoint.exists() else None

    def _endpoint(self, recording: str) -> Path:
        return runtime_folder(self.data / recording) / "control"

    def _manifest(self, recording: str) -> Manifest:
        if not (self.data / recording / MANIFEST).exists():
            return {}
        try:
            return read_manifest(self.data / recording)
        except StorageError:
            return {}


def _faults_in(state: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what was wrong when somebody ended a recording: each alarm, and when its device was last heard."""
    return [
        {
            "name": one.subject,
            "said": one.operator,
            "since_host_ns": state["streams"].get(one.subject, {}).get("last_host_ns") or state["host_ns"],
        }
        for one in findings_in(state)
        if one.severity == ALARM
    ]


def _ended_alone(why: str) -> str:
    """Return the alarm of an end that nobody asked for; none of one that somebody did, or of none."""
    return "stopped" if why and why not in BY_A_PERSON else ""


def _of_place(rig: str) -> tuple[str, str]:
    place, sign, path = rig.rpartition("=")
    return (place, path) if sign and not Path(rig).exists() else ("", rig)


def keep_reason(path: Path, reason: str) -> None:
    """Write into a recording why it shall not be used."""
    with edit_manifest(path) as manifest:
        manifest["abandoned"] = {"reason": reason, "host_ns": host_ns()}
