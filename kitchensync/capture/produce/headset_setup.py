"""Set up a headset for its streams: commands, camera settings, calibration, and restarts of its app."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kitchensync.capture.process.log import log_event
from kitchensync.capture.produce.ledger_writer import Ledger
from kitchensync.sensors.errors import SensorError, StreamRefused
from kitchensync.sensors.hololens import calibration, commands, remote
from kitchensync.sensors.hololens.catalogue import headset_stream
from kitchensync.sensors.hololens.headset_stream import HeadsetStream
from kitchensync.sensors.hololens.profile import Profile
from kitchensync.sensors.hololens.streams import pv
from kitchensync.shell.host_clock import host_ns
from kitchensync.storage.errors import StorageError
from kitchensync.storage.ledger import CalibrationMissingNote, NewWorldFrameNote, OrdersMissingNote
from kitchensync.storage.manifest import read_manifest
from kitchensync.storage.reading.device_constants import CALIBRATION, ConstantTable, write_calibration

DOWNLOAD_TIMEOUT_S = 6.0
ANSWER_TRIES = 3  # one lost answer must not count as a headset that is gone
ANSWER_TIMEOUT_S = 2.0
ANSWER_AGE_NS = 1_000_000_000
"""Time for which an answer of the headset is reused for its other streams."""
SETTLE_PACKETS = 45
"""Frames after which the camera's manual settings must appear in its packets."""
# White balance is set in steps of 25 K.
TOLERANCE = {"pv_focus_mm": 5.0, "pv_exposure_us": 50.0, "pv_white_balance_k": 13.0}


@dataclass
class HeadsetSetup:
    """Setup of one headset, shared by the threads of its streams.

    The remote configuration port serves one client at a time, hence the lock.
    """

    device: str
    host: str
    streams: list[str]
    profile: Profile
    recording: Path
    ledger: Ledger
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._configured_start: int | None = None  # the UTC offset identifies a start of the app
        self._utc_offset: int | None = None
        with suppress(StorageError, KeyError):  # unknown if the manifest lacks it
            self._utc_offset = read_manifest(self.recording)["devices"][self.device]["utc_offset_ticks"]
        self._starts = 0
        self._queried_ns, self._unreachable = -ANSWER_AGE_NS, ""

    def before_stream(self, stream: HeadsetStream) -> None:
        """Send the commands that precede all streams and download this stream's calibration, each once.

        A failure is noted and the stream is opened nevertheless.
        """
        try:
            with self.lock:
                if self._configured_start is None:
                    with remote.RemoteControl(self.host) as control:
                        self._utc_offset = control.utc_offset()
                        self._configure(control, self._utc_offset)
            if stream.is_front_camera:
                self.open_camera()
            self._download(stream)
        except SensorError as error:
            self.ledger.note(
                CalibrationMissingNote(why=str(error)), f"{self.device}/{stream.name}", _do_not_wait
            )

    def before_connect(self, stream: HeadsetStream, *, is_again: bool) -> None:
        """Prepare the headset for a connection. Raises SensorError if it is not ready."""
        if stream.is_front_camera:
            self.open_camera()
        elif is_again and stream.is_grey_camera:
            # A restarted app has lost its commands, and grey cameras need theirs before they are opened.
            try:
                with self.lock, remote.RemoteControl(self.host) as control:
                    utc_offset = control.utc_offset()
                    if utc_offset != self._configured_start:
                        self._configure(control, utc_offset)
            except StreamRefused:
                raise  # the app is still starting
            except SensorError as error:
                note = OrdersMissingNote(why=str(error))
                self.ledger.note(note, f"{self.device}/{stream.name}", _do_not_wait)

    def _configure(self, control: remote.RemoteControl, utc_offset: int) -> None:
        streams = [headset_stream(short) for short in self.streams]
        grey_ports = [stream.port for stream in streams if stream.is_grey_camera]
        control.give_orders(commands.before_streams(grey_ports))
        self._configured_start = utc_offset

    def _download(self, stream: HeadsetStream) -> None:
        path = self.recording / self.device / CALIBRATION / f"{stream.name}.h5"
        if not stream.has_constants or path.exists():
            return
        constants = calibration.download(stream, self.host, self.profile, DOWNLOAD_TIMEOUT_S)
        facts: dict[str, Any] = {
            "device": self.device,
            "stream": stream.name,
            "port": stream.port,
            "host_ns": host_ns(),
        }
        if stream.is_front_camera:
            facts |= {"width": self.profile.pv_width, "height": self.profile.pv_height}
        tables = [
            ConstantTable(table.name, table.values, table.unit, table.frame, table.meaning)
            for table in constants
        ]
        write_calibration(path, tables, facts)

    def open_camera(self) -> None:
        """Switch the front camera on with its settings, if it is off."""
        with self.lock:
            with remote.RemoteControl(self.host) as control:
                is_on = control.pv_is_on()
            if is_on:
                return
            remote.start_pv(self.host)
            if orders := commands.camera_orders(self.profile):
                with remote.RemoteControl(self.host) as control:
                    control.give_orders(orders)

    def note_app_start(self, stream: str, connection: int, next_seq: int) -> None:
        """Note after a reconnect if the app was restarted, which means a new world frame and UTC offset.

        `next_seq` is the number of the first packet in the new frame.
        """
        try:
            with self.lock, remote.RemoteControl(self.host) as control:
                utc_offset = control.utc_offset()
        except SensorError:
            return  # the streams report the lost network
        with self.lock:
            is_new = self._utc_offset not in (None, utc_offset)
            self._utc_offset = utc_offset
            self._starts += is_new
            starts = self._starts
        if starts:
            note = NewWorldFrameNote(
                connection=connection, next_seq=next_seq, app_start=starts, utc_offset_ticks=utc_offset
            )
            self.ledger.note(note, stream, _do_not_wait)

    def unreachable_reason(self) -> str:
        """Query the headset at its configuration port; return why its streams are gone, "" if the app still runs."""
        with self.lock:
            if host_ns() - self._queried_ns > ANSWER_AGE_NS:
                self._unreachable = self._query_app()
                self._queried_ns = host_ns()
            return self._unreachable

    def _query_app(self) -> str:
        for _ in range(ANSWER_TRIES):
            try:
                with remote.RemoteControl(self.host, ANSWER_TIMEOUT_S) as control:
                    is_same = self._utc_offset in (None, control.utc_offset())
            except SensorError as error:
                log_event("the headset does not answer", device=self.device, why=str(error))
            else:
                return "" if is_same else "the headset's app was started again"
        return "the headset does not answer at any port"

    def settings_that_differ(self, payload: bytes | memoryview) -> dict[str, list[float]]:
        """Return the settings of a front-camera packet that differ from the profile: {name: [profile, actual]}."""
        metadata = pv.decode(payload).metadata
        actual = {
            "pv_focus_mm": float(metadata["lens_position"]),
            "pv_exposure_us": float(metadata["exposure_time"]) / 10,
            "pv_white_balance_k": float(metadata["white_balance"]),
        }
        return {
            name: [float(value), actual[name]]
            for name, value in self.profile.camera_settings.items()
            if not np.isclose(actual[name], value, rtol=0, atol=TOLERANCE[name])
        }


def _do_not_wait() -> bool:
    """Do not wait for room in the queue: a note must not delay packets."""
    return True
