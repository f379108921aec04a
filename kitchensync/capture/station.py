"""Start, stop and watch recordings for another program; each is a separate `kitchensync record` process.

The recorder outlives the program that started it, so a recipe app may be restarted during a recording.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from kitchensync.capture.doctor.checks import BAD, RIG_MB_PER_S, DoctorAnswer, Report, examine_computer
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
"""Time for which `stop` waits until everything is stored; storing goes on afterwards."""
POLL_S = 0.1
SESSION_MINUTES = 60.0
HEALTH_MS = 500  # a recorder answers once a round, normally of 100 ms
MANUAL_REASONS = ("requested", "aborted", "signal")
"""Reasons of an end that a person requested; every other end is a fault."""
ALARMS = {"camera_problem": "camera"} | dict.fromkeys(
    ("stream_refused", "stream_lost", "stream_reconnecting", "stream_silent"), "headset"
)
"""Device named on the cook's screen for the alarm of a rule; for other rules it is the recording."""

_RECORD = [sys.executable, "-P", "-m", "kitchensync", "record"]


class Station:
    """Records into one data folder with the devices of rig files; without a rig it only watches recordings."""

    def __init__(self, data: Path, *rigs: str, start_timeout_s: float = 30.0) -> None:
        """Check the rigs: each is a path for all kitchens, or PLACE=path for one kitchen. Raises BadRig."""
        self.data, self.start_timeout_s = data, start_timeout_s
        self.rigs: dict[str, Path] = {}
        for rig in rigs:
            place, sign, path = rig.rpartition("=")
            if not sign or Path(rig).exists():  # a path may contain "="
                place, path = "", rig
            read_rig(Path(path))
            self.rigs[place] = Path(path)
        self._started: dict[str, subprocess.Popen[bytes]] = {}
        self._monitor = RecordingMonitor()

    def rig_of(self, place: str) -> Path | None:
        """Return the rig file of a kitchen, else the common one."""
        return self.rigs.get(place, self.rigs.get(""))

    def devices(self, place: str = "") -> list[str]:
        """Return the kinds of devices in a kitchen's rig file, none if it cannot be read."""
        path = self.rig_of(place)
        if path is None:
            return []
        try:
            rig = read_rig(path)
        except CaptureError:
            return []
        kinds = {"headset": rig.hololens, "camera": rig.gopro, "sensor": rig.sensor}
        return [kind for kind, named in kinds.items() if named]

    def check(self, place: str = "") -> DoctorAnswer:
        """Check this computer and the devices of a kitchen; return `doctor/1`."""
        path = self.rig_of(place)
        if path is None:
            return examine_computer(self.data, SESSION_MINUTES, RIG_MB_PER_S["wifi"]).answer()
        report = Report(path.name)
        try:
            report = examine_devices(order_of(path), self.data, SESSION_MINUTES, path.name)
        except (CaptureError, SensorError) as error:
            report.add("rig file", BAD, str(error), f"kitchensync rig check {path}")
        return report.answer()

    def start(
        self, recording: str, *, participant: str, consent: str, place: str, override: str = ""
    ) -> list[str]:
        """Start a recording; return once every armed stream delivers, or return the reasons why it failed.

        With an override (a reason, which is kept) it begins after the timeout even if streams are missing.
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
                return why or ["the recorder ended immediately"]
            state = self._state(recording)
            if state is not None and state["phase"] == "recording":
                self._started[recording] = process
                return []
            time.sleep(POLL_S)
        process.terminate()
        process.wait()
        return [f"not every stream delivered within {self.start_timeout_s:g} s"]

    def stop(self, recording: str, *, by: str = "") -> list[str]:
        """Stop a recording; return once its ledger is closed, or return the reasons why it failed.

        `by` is the pseudonym of the person who stops it, for the manifest.
        """
        return self._end(recording, "stop", by)

    def abort(self, recording: str, *, reason: str, by: str = "") -> list[str]:
        """Stop a recording that shall not be used; it is kept, with the reason in its manifest."""
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
            ended_by = {"person": by, "host_ns": host_ns(), "faults": _faults_in(state) if state else []}
            with edit_manifest(self.data / recording) as manifest:
                manifest["ended_by"] = ended_by
        wait_for_ledger(endpoint, limit_s=STOP_LIMIT_S)
        return []

    def tell(self, recording: str, command: str, text: str = "") -> list[str]:
        """Send `mark` or another command to a running recording; return the reasons if it failed."""
        if ask(self._endpoint(recording), command, text) is None:
            return [f"{recording} is not running"]
        return []

    def room(self) -> list[dict[str, Any]]:
        """Return the views of all recordings that run on this computer, in any folder."""
        return [{**view} for view in self._monitor.views()]

    def report(self, recording: str) -> dict[str, Any]:
        """Return the state of a recording: `health`, `reasons`, `cook`, `alarm`, and its time `host_ns`.

        `reasons` are messages for the operator, `cook` are messages of alarms for the cook. `alarm` names the subject
        of the first alarm: `camera`, `headset`, `recording`, or `stopped` if the recording ended by itself.
        """
        # `poll` reaps recorders that have ended; else they would stay zombies.
        self._started = {name: process for name, process in self._started.items() if process.poll() is None}
        state = self._state(recording)
        if state is None:
            report = self._report_without_answer(recording)
            return {"reasons": [], "cook": [], "alarm": "", **report, "host_ns": host_ns()}
        findings = findings_in(state)
        health = health_of(state, state["host_ns"], findings)
        alarms = [finding for finding in findings if finding.severity == ALARM]
        alarm = ALARMS.get(alarms[0].rule, "recording") if alarms else ""
        return {
            "health": "stopped" if health == "stopping" else health,
            "reasons": [finding.operator for finding in findings],
            "cook": list(dict.fromkeys(finding.cook for finding in alarms)),
            "alarm": _alarm_of_end(state["stop_asked"]) if health == "stopping" else alarm,
            "host_ns": state["host_ns"],
        }

    def _report_without_answer(self, recording: str) -> dict[str, Any]:
        """Return the report of a recorder that does not answer, from its manifest and lock."""
        manifest = self._manifest(recording)
        if manifest.get("state") == "recording":
            if is_running(runtime_folder(self.data / recording)):
                return {"health": "unknown"}
            gone = "the recorder is gone and has not ended the recording; run `kitchensync recover`"
            return {"health": "problem", "reasons": [gone], "alarm": "stopped"}
        why = str((manifest.get("stopped") or {}).get("reason") or "")
        alarm = _alarm_of_end(why)
        reasons = [f"the recording ended by itself: {why}"] if alarm else []
        return {"health": "stopped", "reasons": reasons, "alarm": alarm}

    def live(self, recording: str) -> dict[str, Any] | None:
        """Return the view of a recording as in `kitchensync top`, None if it does not run."""
        endpoint = self._endpoint(recording)
        view = self._monitor.view(endpoint) if endpoint.parent.exists() else None
        return None if view is None else {**view}

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
    """Return the alarms of a recording when a person ended it, with the time of the last packet."""
    return [
        {
            "name": alarm.subject,
            "said": alarm.operator,
            "since_host_ns": state["streams"].get(alarm.subject, {}).get("last_host_ns") or state["host_ns"],
        }
        for alarm in findings_in(state)
        if alarm.severity == ALARM
    ]


def _alarm_of_end(why: str) -> str:
    """Return `stopped` if a recording ended for a reason that no person requested, else ""."""
    return "stopped" if why and why not in MANUAL_REASONS else ""


def keep_reason(path: Path, reason: str) -> None:
    """Write the reason into a recording why it shall not be used."""
    with edit_manifest(path) as manifest:
        manifest["abandoned"] = {"reason": reason, "host_ns": host_ns()}
