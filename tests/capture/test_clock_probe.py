"""Clock exchanges are stored unchanged, one round per second even on a slow network."""

from __future__ import annotations

import numpy as np
import pytest

from kitchensync.capture.produce.probe_clock import MIN_PAUSE_S, PERIOD_S, ClockProbe, next_round_s
from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.hololens.remote import ClockExchange
from kitchensync.shell.host_clock import decode


class Written:
    """A queue that keeps its packets; the probe is stopped after `enough` of them."""

    def __init__(self, enough):
        self.packets, self.enough = [], enough

    def next_sequence(self):
        return 7

    def put(self, packets, is_ending):
        self.packets += packets
        if len(self.packets) >= self.enough:
            self.probe.stop()
        return len(packets)


def test_an_exchange_is_stored_in_both_directions_and_survives_a_network_failure(monkeypatch):
    monkeypatch.setattr("kitchensync.capture.produce.probe_clock.PERIOD_S", 0.01)
    exchanges = [ClockExchange(1000 + k, 9000 + k, 55_000 + k, 133_000_000_000_000_000 + k) for k in range(4)]
    rounds = iter([exchanges[:2], SensorError("nobody answers"), exchanges[2:]])

    def ask():
        answer = next(rounds, [])
        if isinstance(answer, SensorError):
            raise answer
        return answer

    written = Written(enough=4)
    written.probe = probe = ClockProbe("hololens", ask, written)
    probe.run()
    assert [packet.seq for packet in written.packets] == [7, 8, 9, 10]
    stored = np.concatenate([decode(bytes(packet.body)) for packet in written.packets])
    assert stored["host_send_ns"].tolist() == [1000, 1001, 1002, 1003]
    assert stored["host_receive_ns"].tolist() == [9000, 9001, 9002, 9003]
    assert stored["device_ticks"].tolist() == [55_000, 55_001, 55_002, 55_003]
    assert (probe.probes, probe.answered_host_ns) == (4, 9003)


@pytest.mark.parametrize("slowest_s", [0.0, 0.4, 0.85])
def test_slow_answers_do_not_delay_rounds(slowest_s):
    rng = np.random.default_rng(3)
    began = due = 100.0
    starts = []
    for _ in range(1000):
        starts.append(due)
        due = next_round_s(due, due + rng.uniform(0.0, slowest_s))
    assert np.diff(starts) == pytest.approx(np.full(999, PERIOD_S))
    assert starts[0] == began
    assert PERIOD_S == 1.0


def test_after_a_network_failure_there_is_no_burst_of_rounds():
    due = next_round_s(100.0, 109.0)
    assert due == pytest.approx(109.0 + MIN_PAUSE_S)
    assert next_round_s(due, due) == pytest.approx(due + PERIOD_S)
