"""The producer of a headset: a thread keeps each stream connected, one thread receives them all.

python -P -m capture.produce.producer PLAN DEVICE [--spare]
"""

from __future__ import annotations

import sys
from pathlib import Path

from capture.plan import HeadsetPlan, Plan, clock_stream
from capture.process.worker_process import run_process
from capture.produce.device_producer import DeviceProducer
from capture.produce.headset_setup import HeadsetSetup
from capture.produce.probe_clock import ClockProbe, ask_headset
from capture.produce.receiver import Receiver
from capture.produce.stream_end import Streams
from capture.produce.stream_recorder import StreamRecorder
from capture.produce.stream_watch import RateWatch
from capture.queue import stream_queue as queue
from sensors.errors import SensorError
from sensors.hololens import remote
from sensors.hololens.catalogue import headset_stream
from sensors.hololens.profile import Profile


class Producer(DeviceProducer):
    """All streams of one headset."""

    def __init__(self, plan: Plan, headset: HeadsetPlan) -> None:
        """Connect to the queue; nothing of the headset is touched yet."""
        super().__init__(plan, headset.name)
        self._headset = headset
        profile = Profile(**headset.profile)
        self._setup = HeadsetSetup(
            headset.name, headset.host, headset.streams, profile, Path(plan.path), self.ledger
        )
        self._pipe = queue.QueuePipe(queue.connect(plan.queue_url))
        self._streams = Streams()
        self._receiver = Receiver(self._pipe, plan.linger_ms / 1e3)
        recorders = [self._recorder(short) for short in headset.streams]
        self.recorders = recorders
        self.rates = {
            recorder.name: RateWatch(recorder.stream.rate_hz(profile), adaptive=recorder.stream.adaptive)
            for recorder in recorders
        }
        ask = ask_headset(headset.host, self._setup.lock)
        self.probe = ClockProbe(headset.host, ask, self.writer(clock_stream(headset.name)))

    def _recorder(self, short: str) -> StreamRecorder:
        name, stream = f"{self._headset.name}/{short}", headset_stream(short)
        return StreamRecorder(
            name,
            self._headset.host,
            stream,
            stream.configure(self._setup.profile),
            self.writer(name, self._pipe),
            self.ledger,
            self._setup,
            self._receiver,
            self._streams,
        )

    def run(self) -> None:
        """Receive until every stream has ended or the end is asked."""
        self._receiver.start()
        super().run()

    def held_by_queue(self) -> list[tuple[int, int]]:
        """Return times in which the receiving thread waited for the queue."""
        held = self._receiver.held_by_queue
        return [held.popleft() for _ in range(len(held))]

    def rest(self) -> None:
        """End the thread that receives all streams."""
        self._receiver.stop()
        self._receiver.join()

    def leave(self) -> None:
        """Leave the front camera off, so that the headset does not run hot after the take."""
        if not any(headset_stream(short).is_front_camera for short in self._headset.streams):
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
