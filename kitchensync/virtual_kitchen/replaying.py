"""Serve a recording as a headset over the network: the same packets at the same pace, with the recorded clock."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from kitchensync.virtual_kitchen.headset.device import CommonStart, HeadsetState
from kitchensync.virtual_kitchen.headset.replayed_streams import ReplayedStream, Sent
from kitchensync.virtual_kitchen.headset.server import VirtualHeadset
from kitchensync.virtual_kitchen.headset.stream import Stream
from kitchensync.virtual_kitchen.kitchen import Kitchen
from kitchensync.virtual_kitchen.simulation import stop_on_signals, wait_for_end
from kitchensync.virtual_kitchen.truth import Truth
from kitchensync.virtual_kitchen.world.clocks import TickCounter
from kitchensync.virtual_kitchen.world.motion import simulated_motion

BEFORE_S, AFTER_S = 0.5, 0.1
"""Time that streams run before the first packet and after the last one, seconds."""


class SentAll(Protocol):
    """What a headset sent; `ticks_at_first` is its clock at `first_ns`, `drift_ppm` the drift since then."""

    first_ns: int
    last_ns: int
    ticks_at_first: int
    drift_ppm: float
    is_virtual: bool
    uuid: str

    @property
    def streams(self) -> Sequence[Sent]:
        """All streams."""


def serve(sent: SentAll, host: str) -> None:
    """Serve a headset until its streams end and clients have left, or until a signal. Raises KitchenError."""
    begin_ns = sent.first_ns - round(BEFORE_S * 1e9)
    end_s = (sent.last_ns - begin_ns) / 1e9 + AFTER_S
    by_name = {stream.name: stream for stream in sent.streams}
    with tempfile.TemporaryDirectory(prefix="kitchensync-replay-") as folder:
        kitchen = Kitchen(0, simulated_motion(0), Truth(Path(folder), 0))
        at_first = TickCounter(sent.ticks_at_first, sent.drift_ppm)
        kitchen.headset_clock = TickCounter(at_first.ticks_at(-BEFORE_S), sent.drift_ppm)
        headset = HeadsetState(kitchen, end_world_s=end_s, is_virtual=sent.is_virtual, replays=sent.uuid)
        headset.start = CommonStart(is_enabled=True)

        def replayed(made: Stream) -> Stream | None:
            recorded = by_name.get(made.name)
            return None if recorded is None else ReplayedStream(made, recorded, begin_ns, end_s)

        ports = VirtualHeadset(headset, host, replace=replayed)
        with stop_on_signals() as stop:
            try:
                ports.bind()
                ports.listen()
                print(f"ready hololens={host}", flush=True)
                wait_for_end(headset, ports, (), stop)
            finally:
                ports.stop()
