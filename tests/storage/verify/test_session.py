"""When a recording ended: by the stop, or where its devices ended it, by the last thing that they sent."""

from __future__ import annotations

import numpy as np
import pytest

from kitchensync.storage.chunks.layout import INDEX
from kitchensync.storage.ledger import EndNote
from kitchensync.storage.verify.session_span import session_of

S = 10**9


def arrived(late_s: np.ndarray, count: int = 300) -> np.ndarray:
    """Return a stream of 30 packets a second from second 1 on, each so late."""
    index = np.zeros(count, INDEX)
    index["device_ticks"] = 77 + np.arange(count) * 333_333
    index["host_ns"] = S + np.arange(count) * 33_333_300 + (late_s[:count] * S).astype("i8")
    return index


def end(reason: str, at_s: float = 20.0) -> list[EndNote]:
    return [EndNote(reason=reason, host_ns=int(at_s * S))]


PROMPT, LATER_AND_LATER = np.zeros(300), np.linspace(0, 8, 300)


@pytest.mark.parametrize("reason", ["recovered", "time"])
def test_what_waited_on_its_way_does_not_make_the_session_of_other_streams_longer(reason):
    indexes = {"hololens/pv": arrived(LATER_AND_LATER), "hololens/gyroscope": arrived(PROMPT)}
    notes = {name: end("ended_by_device") for name in indexes}
    stopped = {"stopped": {"reason": reason, "host_ns": 25 * S}}
    found = session_of(indexes, notes, stopped)
    assert (found.start_s, found.stop_s) == (0.0, pytest.approx(299 / 30, abs=1e-3))


@pytest.mark.parametrize("other", ["stopped", "lost"])
def test_a_stop_ends_the_session_when_it_was_asked(other):
    indexes = {"hololens/pv": arrived(LATER_AND_LATER), "hololens/gyroscope": arrived(PROMPT)}
    notes = {"hololens/pv": end("ended_by_device"), "hololens/gyroscope": end(other, 16.0)}
    assert session_of(indexes, notes, {}).stop_s == 15.0


def test_a_stream_whose_recorder_was_killed_has_no_end_of_its_own():
    indexes = {"hololens/pv": arrived(LATER_AND_LATER), "hololens/gyroscope": arrived(PROMPT)}
    notes = {"hololens/pv": end("ended_by_device")}
    stopped = {"stopped": {"reason": "recovered", "host_ns": 25 * S}}
    assert session_of(indexes, notes, stopped).stop_s == 24.0


def test_a_stream_that_was_looked_for_after_the_end_does_not_make_the_session_longer():
    """Its recorder tries for some seconds more until it knows that the device has ended all else."""
    indexes = {"hololens/pv": arrived(PROMPT, 30), "hololens/gyroscope": arrived(PROMPT)}
    missed = EndNote(reason="lost", cause="network", closed_host_ns=11 * S, host_ns=15 * S)
    notes = {"hololens/pv": [missed], "hololens/gyroscope": end("ended_by_device", 11.0)}
    stopped = {"stopped": {"reason": "ended_by_device", "host_ns": 15 * S}}
    assert session_of(indexes, notes, stopped).stop_s == 10.0


@pytest.mark.parametrize(("is_cut_off", "start_s"), [(True, 3.0), (False, 5.0)])
def test_a_part_begins_where_it_was_cut_however_late_its_packets_came(is_cut_off, start_s):
    late = arrived(np.where(np.arange(300) / 30 < 4.0, 4.0 - np.arange(300) / 30, 0.0))
    late["seq"], late["host_ns"] = np.arange(300), np.maximum(late["host_ns"], 5 * S)
    prompt = arrived(PROMPT)
    prompt["seq"] = np.arange(300)
    rows = slice(60, 210)
    late["seq"] -= 0 if is_cut_off else 60
    indexes = {"hololens/pv": late[rows], "hololens/gyroscope": prompt[rows]}
    part = {"part_of": {"first_host_ns": 0, "host_ns": [3 * S, 8 * S]}}
    found = session_of(indexes, {}, part)
    assert (found.start_s, found.stop_s) == (start_s, pytest.approx(8.0, abs=0.05))
