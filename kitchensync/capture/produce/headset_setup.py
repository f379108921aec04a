"""What is done to a headset around its streams: orders, camera settings, calibration, and its app's start."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kitchensync.capture.process.log import tell
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
ANSWER_TRIES = 3
ANSWER_TIMEOUT_S = 2.0
ANSWER_AGE_NS = 1_000_000_000
"""What the headset answered to one stream's question holds for another's this long."""
SETTLE_PACKETS = 45
"""Pictures after which the camera's manual settings must be seen in its packets."""
TOLERANCE = {"pv_focus_mm": 5.0, "pv_exposure_us": 50.0, "pv_white_balance_k": 13.0}


@dataclass
class HeadsetSetup:
    """One headset's; its streams' threads share it. Its remote configuration serves one client at a time."""

    device: str
    host: str
    streams: list[str]
    profile: Profile
    recording: Path
    ledger: Ledger
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        """Know of the headset what was known when the recording began."""
        self._ordered_for: int | None = None  # the UTC offset tells one start of the app from another
        self._utc_offset = _offset_at_start(self.recording, self.device)
        self._starts = 0
        self._asked_ns, self._gone = -ANSWER_AGE_NS, ""

    def before_stream(self, stream: HeadsetStream) -> None:
        """Give the orders that come before all streams, once, and download this stream's constants, once.

        Nothing here is worth a recording: what fails is noted and the stream is opened all the same.
        """
        try:
            self._give_orders()
            if stream.is_front_camera:
                self.open_camera()
            self._download(stream)
        except SensorError as error:
            self.ledger.note(CalibrationMissingNote(why=str(error)), f"{self.device}/{stream.name}", _at_once)

    def _give_orders(self) -> None:
        with self.lock:
            if self._ordered_for is not None:
                return
            with remote.RemoteControl(self.host) as control:
                self._utc_offset = control.utc_offset()
                self._order(control, self._utc_offset)

    def before_connect(self, stream: HeadsetStream, *, is_again: bool) -> None:
        """Do what a connection wants done before it, each time: the front camera is to be on.

        A start of the app that is new has not heard the orders; grey cameras want theirs before they are opened.
        Raises SensorError when the front camera does not start, or nobody takes orders yet.
        """
        if stream.is_front_camera:
            self.open_camera()
        elif is_again and stream.is_grey_camera:
            self._renew_orders(stream.name)

    def _renew_orders(self, short: str) -> None:
        try:
            with self.lock, remote.RemoteControl(self.host) as control:
                utc_offset = control.utc_offset()
                if utc_offset != self._ordered_for:
                    self._order(control, utc_offset)
        except StreamRefused:
            raise  # the app is still coming up: try again soon
        except SensorError as error:
            self.ledger.note(OrdersMissingNote(why=str(error)), f"{self.device}/{short}", _at_once)

    def _order(self, control: remote.RemoteControl, utc_offset: int) -> None:
        streams = [headset_stream(short) for short in self.streams]
        grey_ports = [stream.port for stream in streams if stream.is_grey_camera]
        control.give_orders(commands.before_streams(grey_ports))
        self._ordered_for = utc_offset

    def _download(self, stream: HeadsetStream) -> None:
        path = self.recording / self.device / CALIBRATION / f"{stream.name}.h5"
        if not stream.has_constants or path.exists():
            return
        found = calibration.download(stream, self.host, self.profile, DOWNLOAD_TIMEOUT_S)
        facts: dict[str, Any] = {
            "device": self.device,
            "stream": stream.name,
            "port": stream.port,
            "host_ns": host_ns(),
        }
        if stream.is_front_camera:
            facts |= {"width": self.profile.pv_width, "height": self.profile.pv_height}
        tables = [ConstantTable(one.name, one.values, one.unit, one.frame, one.meaning) for one in found]
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
        """After a reconnect: note when the app was started anew, which means another world frame and UTC offset.

        `next_seq` is the number of the first packet in the new frame.
        """
        try:
            with self.lock, remote.RemoteControl(self.host) as control:
                utc_offset = control.utc_offset()
        except SensorError:
            return  # the streams tell of the lost network
        with self.lock:
            is_new = self._utc_offset not in (None, utc_offset)
            self._utc_offset = utc_offset
            self._starts += is_new
            starts = self._starts
        if starts:
            note = NewWorldFrameNote(
                connection=connection, next_seq=next_seq, app_start=starts, utc_offset_ticks=utc_offset
            )
            self.ledger.note(note, stream, _at_once)

    def why_gone(self) -> str:
        """Ask the headset elsewhere than at its streams; say why it is not the one that opened them, "" if it is."""
        with self.lock:
            if host_ns() - self._asked_ns > ANSWER_AGE_NS:
                self._gone = self._ask_whether_gone()
                self._asked_ns = host_ns()
            return self._gone

    def _ask_whether_gone(self) -> str:
        for _ in range(ANSWER_TRIES):
            try:
                with remote.RemoteControl(self.host, ANSWER_TIMEOUT_S) as control:
                    is_same = self._utc_offset in (None, control.utc_offset())
            except SensorError as error:
                tell("the headset does not answer", device=self.device, why=str(error))
            else:
                return "" if is_same else "the headset's app was started again"
        return "the headset does not answer at any port"

    def settings_seen(self, payload: bytes | memoryview) -> dict[str, list[float]]:
        """Compare a front-camera packet with the settings asked for: {name: [asked, seen]} of those that differ."""
        metadata = pv.decode(payload).metadata
        seen = {
            "pv_focus_mm": float(metadata["lens_position"]),
            "pv_exposure_us": float(metadata["exposure_time"]) / 10,
            "pv_white_balance_k": float(metadata["white_balance"]),
        }
        asked = self.profile.camera_settings
        return {
            name: [float(value), seen[name]]
            for name, value in asked.items()
            if not np.isclose(seen[name], value, rtol=0, atol=TOLERANCE[name])
        }


def _offset_at_start(recording: Path, device: str) -> int | None:
    """Return the UTC offset of the app's start that the recording began with, None where it is not told."""
    try:
        offset = read_manifest(recording)["devices"][device]["utc_offset_ticks"]
    except (StorageError, KeyError):
        return None
    return offset


def _at_once() -> bool:
    """Do not wait for room in the queue: a note is no packet."""
    return True
