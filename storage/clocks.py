"""The clocks of a recording's headsets, from the exchanges that were stored."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sensors.clock_probe import PROBE
from storage.names import CLOCK_STREAMS, stream_folder
from storage.recording import Recording, StoredStream
from storage.timeline.device_clock import HostClock, host_clock
from storage.timeline.session_time import SessionTime


def exchanges(recording: Recording, device: str) -> npt.NDArray[np.void]:
    """Return a headset's clock exchanges, (n,) of `sensors.clock_probe.PROBE`, without unreadable ones."""
    name = f"{CLOCK_STREAMS}/{device}"
    stream = StoredStream(name, stream_folder(recording.readable, name), {})
    if not stream.folder.is_dir() or len(stream) == 0:
        return np.empty(0, PROBE)
    rows = [
        np.frombuffer(payload, PROBE) for payload in stream.payloads() if len(payload) % PROBE.itemsize == 0
    ]
    return np.concatenate(rows) if rows else np.empty(0, PROBE)


def device_clock(recording: Recording, device: str) -> HostClock | None:
    """Return a headset's ticks on the capture clock by its clock exchanges; None without any."""
    found = exchanges(recording, device)
    return host_clock(found["host_send_ns"], found["host_receive_ns"], found["device_ticks"])


def session_time(recording: Recording, headset: str) -> SessionTime | None:
    """Return the session time by one headset; None where it sent no packet."""
    firsts = [
        int(recording[name].index["device_ticks"][0])
        for name in recording.streams
        if name.startswith(f"{headset}/") and len(recording[name])
    ]
    return SessionTime(min(firsts), device_clock(recording, headset)) if firsts else None


def main_session(recording: Recording) -> tuple[str, SessionTime] | None:
    """Return the first headset that sent anything, and session time by it; None without one."""
    for name, device in recording.manifest["devices"].items():
        if device["kind"] == "hololens" and (session := session_time(recording, name)) is not None:
            return name, session
    return None
