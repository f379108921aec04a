"""Map touches to the capture clock, by the offset of a client's clock from one request and its answer.

The client requests the capture clock and notes its own clock before (`sent`) and after (`received`). The answer was
made between the two, so their midpoint is right within half the round trip, however asymmetric the delays are.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, replace
from typing import Literal

DRIFT_PPM = 100
"""Upper bound of the relative drift of two quartz clocks."""

RESOLUTION_NS = 1_000_000
"""Rounding of browser timers, at worst 1 ms."""

WALL_CLOCK_STEP_NS = 1_000_000_000
"""Allowance for setting the wall clock between a touch and the exchange, if only the wall clock can be used."""

BLIND_NS = 500_000_000
"""Uncertainty of an age without a measured round trip."""

UNKNOWN_AGE_NS = 3_600_000_000_000
"""Uncertainty if the touch's time is unknown except that it was before the receipt."""

Basis = Literal["page", "wall", "age", "receipt", "clock_face"]


def signature(key: bytes, clock_id: str, host_ns: int) -> str:
    """Sign an answer with the capture clock, as float64, since browsers keep the number in that form."""
    return hmac.new(key, f"clock {clock_id} {float(host_ns)!r}".encode(), hashlib.sha256).hexdigest()


def was_answered(key: bytes, clock_id: str, host_ns: int, signed: str) -> bool:
    """Return whether this installation gave that answer in that boot of the computer."""
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
    """Map a touch to the capture clock; if the exchange is impossible, use the receipt with an hour's uncertainty."""
    round_trip_ms = exchange.received_ms - exchange.sent_ms
    since_ms = exchange.touch_ms - (exchange.sent_ms + exchange.received_ms) / 2
    uncertainty = round(abs(round_trip_ms) * 5e5 + abs(since_ms) * DRIFT_PPM) + RESOLUTION_NS
    if exchange.basis == "wall":
        uncertainty += WALL_CLOCK_STEP_NS
    host_ns = exchange.host_ns + round(since_ms * 1e6)
    if round_trip_ms < 0 or exchange.host_ns > now_ns or host_ns > now_ns + uncertainty:
        return stamp_receipt(now_ns=now_ns)  # for example a clock value from before a restart of the computer
    return _since_the_start(min(host_ns, now_ns), uncertainty, exchange.basis)


def stamp_age(*, age_ms: float, round_trip_ms: float | None, now_ns: int) -> Stamp:
    """Map an age to the capture clock: now less the age, and half the round trip for the transfer."""
    drift = round(age_ms * DRIFT_PPM)
    if round_trip_ms is None:
        return _since_the_start(now_ns - round(age_ms * 1e6), BLIND_NS + drift, "age")
    half = round(round_trip_ms * 5e5)
    return _since_the_start(now_ns - round(age_ms * 1e6) - half, half + drift + RESOLUTION_NS, "age")


def stamp_wall(*, age_ms: float, now_ns: int) -> Stamp:
    """Map a touch by the client's wall clock only, which may be wrong; this computer may have been off since."""
    return _since_the_start(now_ns - max(round(age_ms * 1e6), 0), UNKNOWN_AGE_NS, "clock_face")


def inside(stamp: Stamp, *, begun_ns: int, now_ns: int) -> Stamp:
    """Limit a timestamp to after the start of the recording; if it is certainly earlier, use the receipt."""
    if stamp.host_ns + stamp.uncertainty_ns < begun_ns:
        return stamp_receipt(now_ns=now_ns)
    return replace(stamp, host_ns=max(stamp.host_ns, begun_ns))


def _since_the_start(host_ns: int, uncertainty_ns: int, basis: Basis) -> Stamp:
    """Return a timestamp; one from before this computer's boot is clamped, with as much more uncertainty."""
    return Stamp(max(host_ns, 0), uncertainty_ns + max(-host_ns, 0), basis)


def stamp_receipt(*, now_ns: int) -> Stamp:
    """Return the time of receipt with an hour's uncertainty."""
    return Stamp(now_ns, UNKNOWN_AGE_NS, "receipt")
