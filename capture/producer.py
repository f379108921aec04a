"""The producer: one process a headset, one thread a stream, everything into the queue as it comes.

python -P -m capture.producer PLAN DEVICE [--spare]
"""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path

from capture import queue
from capture.clock_probe import ClockProbe, ask_headset
from capture.headset_setup import HeadsetSetup
from capture.health import HealthSender
from capture.ledger import Ledger
from capture.pause import PauseWatch
from capture.plan import HeadsetPlan, Plan, clock_stream, ledger_stream
from capture.stream_recorder import StreamRecorder
from capture.stream_watch import STREAMING, RateWatch
from capture.worker_process import run_process
from sensors.errors import SensorError
from sensors.hololens import remote
from sensors.hololens.catalogue import Profile, configuration, nominal_hz, stream_spec
from sensors.host_clock import host_ns

HEALTH_PERIOD_S = 0.25


class Producer:
    """All streams of one headset."""

    def __init__(self, plan: Plan, headset: HeadsetPlan) -> None:
        """Connect to the queue; nothing of the headset is touched yet."""
        self._plan = plan
        self._headset = headset
        self._epoch_ms = time.time_ns() // 1_000_000
        self._ending = threading.Event()
        self._health = HealthSender(plan.health, f"producer {headset.name}")
        self._ledger = Ledger(
            queue.connect(plan.queue_url), plan.uuid, ledger_stream(headset.name), self._epoch_ms
        )
        profile = Profile(**headset.profile)
        self._setup = HeadsetSetup(
            headset.name, headset.host, headset.streams, profile, Path(plan.path), self._ledger
        )
        self._recorders = [self._recorder(short) for short in headset.streams]
        writer = self._writer(clock_stream(headset.name))
        self._probe = ClockProbe(headset.host, ask_headset(headset.host, self._setup.lock), writer)
        self._rates = {
            recorder.name: RateWatch(nominal_hz(recorder.spec.name, profile), adaptive=recorder.spec.adaptive)
            for recorder in self._recorders
        }

    def _writer(self, stream: str) -> queue.QueueWriter:
        client = queue.connect(self._plan.queue_url)

        def on_loss(first_seq: int, last_seq: int) -> None:
            self._ledger.note("queue_loss", stream, first_seq=first_seq, last_seq=last_seq)

        return queue.QueueWriter(client, self._plan.uuid, stream, self._epoch_ms, on_loss)

    def _recorder(self, short: str) -> StreamRecorder:
        name = f"{self._headset.name}/{short}"
        return StreamRecorder(
            name,
            self._headset.host,
            stream_spec(short),
            configuration(short, self._setup.profile),
            self._writer(name),
            self._ledger,
            self._setup,
        )

    def end(self, *_: object) -> None:
        """Ask the end: what has been received goes into the queue first."""
        self._ending.set()

    def run(self) -> None:
        """Receive until every stream has ended or the end is asked."""
        for recorder in self._recorders:
            recorder.start()
        asked = False
        pauses = PauseWatch()
        while any(recorder.is_alive() for recorder in self._recorders):
            if self._ending.wait(HEALTH_PERIOD_S):
                if not asked:
                    self._stop_all()
                asked = True
                time.sleep(0.02)
            self._note_pause(pauses.look())
            self._begin_probes()
            self._tell(done=False)
        self._probe.stop()
        if self._probe.ident is not None:
            self._probe.join(timeout=10)
        self._close_camera()
        self._tell(done=True)
        self._health.close()

    def _begin_probes(self) -> None:
        """Ask for the time once packets come: before, the headset is busy with starting its sensors."""
        if self._probe.ident is None and any(recorder.state.first_host_ns for recorder in self._recorders):
            self._probe.start()

    def _note_pause(self, pause: tuple[int, int] | None) -> None:
        """Tell the ledger of a time in which this computer, or this process, did not run."""
        if pause is not None:
            for recorder in self._recorders:
                self._ledger.note("suspend", recorder.name, start_host_ns=pause[0], end_host_ns=pause[1])

    def _stop_all(self) -> None:
        self._probe.stop()
        for recorder in self._recorders:
            recorder.stop()

    def _tell(self, *, done: bool) -> None:
        streams = {recorder.name: self._shown(recorder) for recorder in self._recorders}
        self._health.send(streams=streams, probes=self._probe.probes, done=done)

    def _shown(self, recorder: StreamRecorder) -> dict[str, object]:
        """Return a stream's state; one that comes is looked at closer, and what changed is noted."""
        facts = asdict(recorder.state)
        if facts["state"] != STREAMING:
            return facts
        watch = self._rates[recorder.name]
        changed = watch.look(host_ns(), recorder.state.received, recorder.state.last_host_ns)
        if changed is not None:
            facts_seen = {"received": recorder.state.received, "last_host_ns": recorder.state.last_host_ns}
            self._ledger.note("condition", recorder.name, lambda: True, condition=changed, **facts_seen)
        return facts | {"state": watch.condition}

    def _close_camera(self) -> None:
        """Leave the front camera off, so that the headset does not run hot after the take."""
        if "pv" not in self._headset.streams:
            return
        try:
            with self._setup.lock:
                remote.stop_pv(self._headset.host, timeout_s=3)
        except SensorError as error:
            print(f"the front camera was left as it is: {error}", file=sys.stderr, flush=True)


def producer_of(plan: Plan, device: str) -> Producer:
    """Make the producer of one headset of a plan."""
    return Producer(plan, next(headset for headset in plan.headsets if headset.name == device))


if __name__ == "__main__":
    run_process(producer_of)
