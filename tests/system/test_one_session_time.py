"""Session time of the same host times, asked of sync, view, overlay, report and Python: one answer in its bound."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st
from property_runs import examples

import kitchensync as ks
from kitchensync.reader.reading_clock import ReadingClock
from kitchensync.shell.host_clock import encode as encode_probe
from kitchensync.storage.chunks.chunk_writer import Packet, seal
from kitchensync.storage.events import EventLog
from kitchensync.storage.manifest import write_json
from kitchensync.storage.recording import open_recording
from kitchensync.storage.verify import verify
from kitchensync.sync.report.page import gather

HOST0_NS, TICKS0 = 8_000_000_000_000, 612_345_678_901
S, MS = 1_000_000_000, 1_000_000
SECONDS, HZ = 90, 5
REBOOT, STEP = 1000 - TICKS0, 3_600 * 10_000_000
"""What is added to the ticks at the break: they begin near zero again, or the clock is set an hour on."""
BREAKS = {
    "unbroken": [],
    "clock set": [(41.0, STEP)],
    "started anew": [(52.3, REBOOT)],
    "clock set, then started anew": [(30.7, STEP), (61.9, REBOOT)],
}
"""When the headset's clock breaks, s, and by how many ticks it is then away from an unbroken one."""


class Made:
    """A recording of a headset whose clock drifts and breaks, over a network that takes up to 35 ms a way."""

    def __init__(self, path: Path, seed: int, skew_ppm: float, broken: str, moments_s: list[float]) -> None:
        self.path, self.rng = path / "take", np.random.default_rng(seed)
        self.skew, self.breaks = skew_ppm * 1e-6, BREAKS[broken]
        self.host_ns = [HOST0_NS + round(s * S) for s in sorted(moments_s)]
        self._write()

    def ticks(self, host_ns: np.ndarray) -> np.ndarray:
        since = host_ns - HOST0_NS
        ticks = TICKS0 + np.rint(since * (1 + self.skew) / 100).astype(np.int64)
        for break_s, step in self.breaks:
            ticks = np.where(since >= break_s * S, TICKS0 + step + since * (1 + self.skew) / 100, ticks)
        return ticks.astype(np.int64)

    def truth_ns(self) -> np.ndarray:
        """Ns on the headset's clock since its first packet; after a break the capture clock goes on."""
        since = np.array(self.host_ns) - HOST0_NS
        at = min([break_s * S for break_s, _ in self.breaks], default=1e18)
        return np.where(since < at, since * (1 + self.skew), at * (1 + self.skew) + since - at)

    def _arrivals(self, sent_ns: np.ndarray) -> np.ndarray:
        return sent_ns + self.rng.integers(MS // 5, 35 * MS, len(sent_ns))

    def _write(self) -> None:
        send = HOST0_NS + np.arange(0, SECONDS * S, S // HZ, dtype=np.int64)
        read = self._arrivals(send)
        answers = zip(send, self._arrivals(read), self.ticks(read), strict=True)
        probes = [encode_probe(int(a), int(b), int(t)) for a, b, t in answers]
        taken = HOST0_NS + np.arange(0, SECONDS * S, S // 20, dtype=np.int64)
        rows = zip(self.ticks(taken), self._arrivals(taken), strict=True)
        self._store(
            "clock/hololens", [(int(t), int(h)) for t, h in zip(self.ticks(read), send, strict=True)], probes
        )
        self._store("hololens/gyroscope", [(int(t), int(h)) for t, h in rows], [])
        manifest = {
            "schema": "recording/1", "recording": "take", "uuid": "u", "state": "complete",
            "started": {"host_ns": HOST0_NS, "utc_ns": 1_750_000_000 * S},
            "stopped": {"host_ns": HOST0_NS + SECONDS * S, "utc_ns": 1_750_000_090 * S, "reason": "time"},
            "devices": {"hololens": {"kind": "hololens"}}, "streams": {"hololens/gyroscope": {"nominal_hz": 20}},
            "files": {}, "consent": "none",
        }  # fmt: skip
        write_json(self.path / "recording.json", manifest)
        log = EventLog(self.path, "tablet")
        for number, host_ns in enumerate(self.host_ns):
            log.append("mark", host_ns=host_ns, uncertainty_ns=0, body={"text": "m"}, op_id=f"op{number}")

    def _store(self, stream: str, times: list[tuple[int, int]], payloads: list[bytes]) -> None:
        folder = self.path / stream
        folder.mkdir(parents=True)
        bodies = payloads or [b"x" * 40] * len(times)
        made = [
            Packet(n, 1, t, h, 1, body, b"")
            for n, ((t, h), body) in enumerate(zip(times, bodies, strict=True))
        ]
        seal(folder, 1, made, {})


moments = st.lists(st.floats(0.1, SECONDS - 0.5), min_size=3, max_size=12, unique=True)


@pytest.mark.parametrize("broken", BREAKS)
@examples(4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 1000), skew_ppm=st.floats(-60, 60), moments_s=moments)
@example(seed=214, skew_ppm=0.0, moments_s=[1.0, 2.0, 84.0])  # both clocks are off to the same side
def test_everybody_says_the_same_session_time(
    tmp_path_factory: pytest.TempPathFactory, broken: str, seed: int, skew_ppm: float, moments_s: list[float]
) -> None:
    away = [s for s in moments_s if all(abs(s - at) > 0.5 for at, _ in BREAKS[broken])] or [1.0]
    made = Made(tmp_path_factory.mktemp("made"), seed, skew_ppm, broken, away)
    with open_recording(made.path) as recording:
        time = recording.session_time
        assert time is not None
        assert time.bound_ns is not None
        answers = {
            "python": time.of_host(made.host_ns),
            "view": ReadingClock(recording).of_host(made.host_ns),
        }
        drawn = ReadingClock(recording).of_ticks(
            recording.main_headset, made.ticks(np.array(made.host_ns)), np.array(made.host_ns) + 20 * MS
        )
        marks = gather(recording, verify(made.path))["story"].marks
    answers["report"] = np.array([round(mark.at_s * 1e9) for mark in marks])
    ks.synchronize(made.path)
    placed = json.loads((made.path / "sync" / "events.json").read_text())["events"]
    answers["sync"] = np.array([event["session_ns"] for event in placed])
    for name, found in answers.items():
        assert np.array_equal(found, answers["python"]), name
    assert (np.abs(answers["python"] - made.truth_ns()) <= time.bound_ns).all()
    assert (np.abs(drawn - made.truth_ns()) <= time.bound_ns).all(), "overlay: pictures by their stamps"
    assert time.bound_ns < 36 * MS
