"""When was the screen touched, on the capture clock? Offset of a client's clock from one request and its answer.

The client asks for the capture clock, and notes its own clock before (`sent`) and after (`received`). The answer was
made somewhere between, so its middle is right within half the round trip, whatever the two ways took.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, replace
from typing import Literal

DRIFT_PPM = 100
"""Two quartz clocks differ by less."""

RESOLUTION_NS = 1_000_000
"""Browsers round their timers, at worst to 1 ms."""

WALL_CLOCK_STEP_NS = 1_000_000_000
"""A wall clock may be set between a touch and the exchange; allowed for when only it can be used."""

BLIND_NS = 500_000_000
"""Uncertainty of an age without a measured round trip."""

UNKNOWN_AGE_NS = 3_600_000_000_000
"""Uncertainty when nothing about the touch's time can be used: it was before the receipt."""

Basis = Literal["page", "wall", "age", "receipt", "clock_face"]


def signature(key: bytes, clock_id: str, host_ns: int) -> str:
    """Sign an answer to who asked for the clock; browsers keep the number as a float64, so that is signed."""
    return hmac.new(key, f"clock {clock_id} {float(host_ns)!r}".encode(), hashlib.sha256).hexdigest()


def was_answered(key: bytes, clock_id: str, host_ns: int, signed: str) -> bool:
    """Return whether this installation gave that answer in that run of the computer."""
    return hmac.compare_digest(signature(key, clock_id, host_ns).encode(), signed.encode())


@dataclass(frozen=True, slots=True)
class Exchange:
    """A touch on the client's clock, and one exchange of that clock with the capture clock."""

    touch_ms: float
    sent_ms: float
    received_ms: float
    host_ns: int
    basis: Literal["page", "wall"] = "page"


@dataclass(frozen=True, slots=True)
class Stamp:
    """A time on the capture clock (CLOCK_MONOTONIC), right within `uncertainty_ns` either way."""

    host_ns: int
    uncertainty_ns: int
    basis: Basis


def stamp_exchange(exchange: Exchange, *, now_ns: int) -> Stamp:
    """Map a touch to the capture clock; when the exchange cannot be true, say `receipt` with an hour's doubt."""
    round_trip_ms = exchange.received_ms - exchange.sent_ms
    since_ms = exchange.touch_ms - (exchange.sent_ms + exchange.received_ms) / 2
    uncertainty = round(abs(round_trip_ms) * 5e5 + abs(since_ms) * DRIFT_PPM) + RESOLUTION_NS
    if exchange.basis == "wall":
        uncertainty += WALL_CLOCK_STEP_NS
    host_ns = exchange.host_ns + round(since_ms * 1e6)
    if round_trip_ms < 0 or exchange.host_ns > now_ns or host_ns > now_ns + uncertainty:
        return stamp_receipt(
            now_ns=now_ns
        )  # for example a clock value from before the computer was restarted
    return _since_the_start(min(host_ns, now_ns), uncertainty, exchange.basis)


def stamp_age(*, age_ms: float, round_trip_ms: float | None, now_ns: int) -> Stamp:
    """Map "tapped so long ago" to the capture clock: less the age, and half the round trip for the way here."""
    drift = round(age_ms * DRIFT_PPM)
    if round_trip_ms is None:
        return _since_the_start(now_ns - round(age_ms * 1e6), BLIND_NS + drift, "age")
    half = round(round_trip_ms * 5e5)
    return _since_the_start(now_ns - round(age_ms * 1e6) - half, half + drift + RESOLUTION_NS, "age")


def stamp_wall(*, age_ms: float, now_ns: int) -> Stamp:
    """Map a touch by the client's wall clock alone: it may be wrong, and this computer may have been off since."""
    return _since_the_start(now_ns - max(round(age_ms * 1e6), 0), UNKNOWN_AGE_NS, "clock_face")


def inside(stamp: Stamp, *, begun_ns: int, now_ns: int) -> Stamp:
    """Keep a stamp that may lie after the recording was begun, not before that; of any other say `receipt`."""
    if stamp.host_ns + stamp.uncertainty_ns < begun_ns:
        return stamp_receipt(now_ns=now_ns)
    return replace(stamp, host_ns=max(stamp.host_ns, begun_ns))


def _since_the_start(host_ns: int, uncertainty_ns: int, basis: Basis) -> Stamp:
    """A touch from before this computer was started gets its earliest time, and as much more doubt."""
    return Stamp(max(host_ns, 0), uncertainty_ns + max(-host_ns, 0), basis)


def stamp_receipt(*, now_ns: int) -> Stamp:
    """Use the time of receipt, and say that it may be far off."""
    return Stamp(now_ns, UNKNOWN_AGE_NS, "receipt")
