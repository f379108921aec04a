"""The time of a touch on the capture clock: the stated uncertainty must hold, whatever the network does."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kitchensync.recipe_app.exchange.touch_clock import (
    BLIND_NS,
    UNKNOWN_AGE_NS,
    Exchange,
    stamp_age,
    stamp_exchange,
    stamp_receipt,
)

SECOND = 1_000_000_000


@given(
    host_at_exchange=st.integers(3600 * SECOND, 10**16),
    client_zero_ms=st.floats(0, 1e6),
    drift_ppm=st.floats(-95, 95),
    way_there_ms=st.floats(0, 2000),
    way_back_ms=st.floats(0, 2000),
    touch_after_s=st.floats(-600, 600),
)
def test_the_uncertainty_covers_drift_and_unequal_ways(
    host_at_exchange: int,
    client_zero_ms: float,
    drift_ppm: float,
    way_there_ms: float,
    way_back_ms: float,
    touch_after_s: float,
) -> None:
    def client_ms(host_ns: float) -> float:
        return client_zero_ms + 1e6 + (host_ns - host_at_exchange) / 1e6 * (1 + drift_ppm * 1e-6)

    touch_host_ns = host_at_exchange + round(touch_after_s * SECOND)
    exchange = Exchange(
        touch_ms=client_ms(touch_host_ns),
        sent_ms=client_ms(host_at_exchange - way_there_ms * 1e6),
        received_ms=client_ms(host_at_exchange + way_back_ms * 1e6),
        host_ns=host_at_exchange,
    )
    now_ns = max(touch_host_ns, host_at_exchange) + 3 * SECOND
    stamp = stamp_exchange(exchange, now_ns=now_ns)
    assert stamp.basis == "page"
    assert abs(stamp.host_ns - touch_host_ns) <= stamp.uncertainty_ns


def test_equal_ways_give_the_touch_exactly() -> None:
    exchange = Exchange(touch_ms=1500, sent_ms=990, received_ms=1010, host_ns=7 * SECOND)
    stamp = stamp_exchange(exchange, now_ns=9 * SECOND)
    assert stamp.host_ns == 7_500_000_000
    assert stamp.uncertainty_ns == 10_000_000 + 50_000 + 1_000_000  # half the way, drift, timer steps


def test_a_wall_clock_is_trusted_a_second_less() -> None:
    page = Exchange(touch_ms=1500, sent_ms=990, received_ms=1010, host_ns=7 * SECOND)
    wall = Exchange(touch_ms=1500, sent_ms=990, received_ms=1010, host_ns=7 * SECOND, basis="wall")
    difference = (
        stamp_exchange(wall, now_ns=9 * SECOND).uncertainty_ns
        - stamp_exchange(page, now_ns=9 * SECOND).uncertainty_ns
    )
    assert difference == SECOND


def test_an_exchange_that_cannot_be_true_is_not_used() -> None:
    now_ns = 5 * SECOND
    from_before_a_restart = Exchange(touch_ms=0, sent_ms=0, received_ms=1, host_ns=9 * SECOND)
    backwards = Exchange(touch_ms=0, sent_ms=10, received_ms=1, host_ns=SECOND)
    in_the_future = Exchange(touch_ms=60_000, sent_ms=0, received_ms=1, host_ns=4 * SECOND)
    for exchange in (from_before_a_restart, backwards, in_the_future):
        stamp = stamp_exchange(exchange, now_ns=now_ns)
        assert (stamp.host_ns, stamp.uncertainty_ns, stamp.basis) == (now_ns, UNKNOWN_AGE_NS, "receipt")


@given(
    up_s=st.floats(1, 3600),
    before_s=st.floats(0, 30 * 86_400),
    drift_ppm=st.floats(-95, 95),
    trip_ms=st.floats(0, 2000),
    share=st.floats(0, 1),
    basis=st.sampled_from(["page", "wall"]),
)
def test_a_touch_from_before_the_computer_was_started_has_doubt_that_covers_it(
    up_s: float, before_s: float, drift_ppm: float, trip_ms: float, share: float, basis: Any
) -> None:
    """Made without network; then the capture computer was restarted, and the tablet asked its new clock."""
    up_ns = round(up_s * SECOND)
    sent_ms = 3e9 + (up_s + before_s) * 1e3 * (1 + drift_ppm * 1e-6) - share * trip_ms
    exchange = Exchange(
        touch_ms=3e9, sent_ms=sent_ms, received_ms=sent_ms + trip_ms, host_ns=up_ns, basis=basis
    )
    stamp = stamp_exchange(exchange, now_ns=up_ns + 3 * SECOND)
    assert (stamp.basis, stamp.host_ns >= 0) == (basis, True)
    assert abs(stamp.host_ns + round(before_s * SECOND)) <= stamp.uncertainty_ns
    assert stamp.uncertainty_ns < before_s * SECOND * 1.001 + 4 * SECOND  # and no more than it must


def test_a_stamp_is_never_later_than_the_receipt() -> None:
    exchange = Exchange(touch_ms=1005, sent_ms=990, received_ms=1010, host_ns=7 * SECOND)
    assert stamp_exchange(exchange, now_ns=7 * SECOND).host_ns == 7 * SECOND


def test_an_age_is_taken_from_the_receipt() -> None:
    stamp = stamp_age(age_ms=250, round_trip_ms=20, now_ns=SECOND)
    assert stamp.host_ns == SECOND - 250_000_000 - 10_000_000
    assert stamp.uncertainty_ns == 10_000_000 + 25_000 + 1_000_000
    assert stamp_age(age_ms=0, round_trip_ms=None, now_ns=SECOND).uncertainty_ns == BLIND_NS
    before = stamp_age(age_ms=5000, round_trip_ms=None, now_ns=SECOND)  # the computer was started since
    assert (before.host_ns, before.uncertainty_ns) == (0, 4 * SECOND + BLIND_NS + 500_000)


def test_nothing_known_is_said() -> None:
    assert stamp_receipt(now_ns=3).basis == "receipt"
