"""Session seconds of everything in a recording: 0 at the main headset's first packet, on that headset's clock."""

from __future__ import annotations

from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from kitchensync.shell.array_types import Int64
from kitchensync.storage.errors import StorageError
from kitchensync.storage.recording import Recording
from kitchensync.storage.timeline.device_clock import HostClock, constant_clock
from kitchensync.storage.timeline.session_time import SessionTime
from kitchensync.storage.timeline.utc_times import UtcTimes, utc_times

Time = TypeVar("Time", int, Int64)


class NotKnown(StorageError):
    """A time or unit of a recording is unknown; the message has the remedy, if there is one."""


class ReadingClock:
    """`rec.clock`: session ns of device ticks and host times.

    Without a headset session time begins at the start of the recording.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self.main_headset = recording.main_headset
        self._started = recording.manifest.get("started") or {}
        self._session = recording.session_time or SessionTime(
            0, constant_clock(0, int(self._started.get("host_ns") or 0), 0)
        )
        self._clocks: dict[str, HostClock | None] = {}
        self.has_host = bool(self.main_headset or recording.streams or recording.events())
        "False if session time is only that of a video with unknown start."

    @property
    def bound_s(self) -> float:
        """Error bound of host times on this clock, seconds. Raises NotKnown."""
        return self._known(self._session.bound_ns) / 1e9

    def _known(self, time: Time | None) -> Time:
        """Return a time that the clock exchanges of the main headset give. Raises NotKnown without exchanges."""
        if time is None:
            raise NotKnown(f"{self._recording.id}: no clock exchanges of {self.main_headset} are stored")
        return time

    def host_clock(self, device: str) -> HostClock | None:
        """Return the map of a device's ticks to the capture clock; None without clock exchanges."""
        if device not in self._clocks:
            self._clocks[device] = self._recording.device_clock(device)
        return self._clocks[device]

    def _require_host(self) -> None:
        if not self.has_host:
            reason = "session time is that of its video, and the start of the video is unknown"
            raise NotKnown(f"{self._recording.id}: {reason}")

    def of_host(self, host_ns: npt.ArrayLike) -> Int64:
        """Return session ns (n,) of CLOCK_MONOTONIC ns (n,). Raises NotKnown."""
        self._require_host()
        return self._known(self._session.of_host(host_ns))

    def of_ticks(self, device: str, ticks: npt.ArrayLike, arrived_ns: npt.ArrayLike) -> Int64:
        """Return session ns (n,) of a device's ticks (n,) that arrived at host ns (n,). Raises NotKnown."""
        if device == self.main_headset:
            return self._session.of_ticks(ticks, near_host_ns=arrived_ns)
        clock = self.host_clock(device)
        if clock is None:
            raise NotKnown(f"{self._recording.id}: no clock exchanges of {device} are stored")
        near_ns = np.asarray(arrived_ns, np.int64)
        return self.of_host(clock.to_host_ns(np.asarray(ticks, np.int64), near_host_ns=near_ns))

    def bound_of_s(self, device: str, seconds: float) -> float:
        """Return the error bound of a device's packet times at an instant, seconds. Raises NotKnown.

        0 for the main headset, until its clock restarted.
        """
        clock = self.host_clock(device)
        if device == self.main_headset:
            breaks = clock.breaks_host_ns if clock is not None else []
            is_first = not breaks or seconds * 1e9 < int(self.of_host(breaks[:1])[0])
            return 0.0 if is_first else self.bound_s
        if clock is None:
            raise NotKnown(
                f"{self._recording.id}: {device} has no clock; its packets have their arrival times"
            )
        return self.bound_s + clock.bound_ns / 1e9

    def to_host(self, session_ns: npt.ArrayLike) -> Int64:
        """Return CLOCK_MONOTONIC ns (n,) of session ns (n,). Raises NotKnown."""
        self._require_host()
        return self._known(self._session.to_host(session_ns))

    def to_utc(self, session_ns: npt.ArrayLike) -> npt.NDArray[np.datetime64]:
        """Return UTC (n,) datetime64[ns], each by the trusted anchor of the capture computer nearest to it.

        Raises NotKnown.
        """
        return self.utc.to_utc(self.to_host(session_ns)).astype("datetime64[ns]")

    def utc_bound_ns(self, session_ns: npt.ArrayLike) -> Int64:
        """Return the error bound of `to_utc` on that computer's clock, ns (n,). Raises NotKnown."""
        return self.utc.bound_ns(self.to_host(session_ns))

    @cached_property
    def utc(self) -> UtcTimes:
        """UTC of host times. Raises NotKnown."""
        times = utc_times(self._recording.manifest)
        if times is None:
            raise NotKnown(f"{self._recording.id}: its start time is unknown")
        return times
