"""Rules for problems of a running recording: one table, with the messages for the cook and for the operator.

A rule tests the facts of one subject (a stream, a camera, a process, the computer, the disk, the queue, the
recording). The first rule that holds for a subject is reported. The names are stable: other tools rely on them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kitchensync.capture.produce.stream_watch import RATE_LOW
from kitchensync.storage.ledger import FAILED, LOST

Facts = dict[str, Any]

WARNING, ALARM = "warning", "alarm"
"""Severities: a warning does not endanger the recording; an alarm means that data is missing or soon will be."""

PERIODS, MIN_SILENT_S = 3.0, 1.0
"""Silence after which a stream counts as silent, in nominal periods, and at least, as a busy network may cause it."""
NO_NEWS_S = 3.0
"""Age from which on a report is outdated."""
RECENT_S = 10.0  # an event that is over already stays visible for this long
HEAD_LOST_S, STILL_S = 1.0, 5.0
"""Time without tracking, and time in which a gyroscope repeats one value, that are reported."""
BEHIND_S = 45.0
"""Backlog that is reported; packets are normally sealed about ten seconds after their arrival."""
CLOCK_SILENT_S = 15.0
"""Silence of a clock that is reported; clocks are probed once a second."""
LOW_BATTERY_PERCENT, LOW_CARD_MINUTES = 20, 10.0  # before the camera's own alarms at 10 % and 2 min

TELL_OPERATOR = "Please tell the operator."


@dataclass(frozen=True)
class LiveRule:
    """One kind of problem; `operator` is formatted with the facts, and only alarms have a message for the cook."""

    name: str
    of: str
    holds: Callable[[Facts], bool]
    operator: str
    do: str
    cook: str = ""
    is_of_network: bool = False
    """Whether `do` blames the network; another advice is given for a local device or a busy computer."""

    @property
    def severity(self) -> str:
        """ALARM if there is a message for the cook, else WARNING."""
        return ALARM if self.cook else WARNING


TOO_BUSY = (
    "this computer is too busy: programs waited for a processor {waits_percent:.0f} % of the time; "
    "end what else runs on it, or record fewer streams"
)
ON_THIS_COMPUTER = (
    "the device runs on this computer, so it is not the network: look at what else this computer does"
)


RULES: tuple[LiveRule, ...] = (
    LiveRule(
        "stream_refused",
        "stream",
        lambda f: f["state"] in ("refused", "unreachable") and not f.get("ended"),
        "{name}: {problem}",
        "look whether the headset is on and its app in front; if so, start the app again",
        f"The headset is not sending everything. {TELL_OPERATOR}",
    ),
    LiveRule(
        "stream_lost",
        "stream",
        lambda f: f.get("ended") in (LOST, FAILED),
        "{name}: it was lost and did not come back ({fault}{problem})",
        "start the headset's app again, then decide whether to begin anew",
        f"The headset is not sending everything. {TELL_OPERATOR}",
    ),
    LiveRule(
        "stream_reconnecting",
        "stream",
        lambda f: f["state"] == "reconnecting" and not f.get("ended"),
        "{name}: the connection was lost ({problem}); reconnecting",
        "look at the network; the gap is noted in the recording",
        f"The headset is not sending everything. {TELL_OPERATOR}",
        is_of_network=True,
    ),
    LiveRule(
        "stream_silent",
        "stream",
        lambda f: bool(f["first_host_ns"]) and not f.get("ended") and f["silent_s"] > f["silent_limit_s"],
        "{name}: nothing has come for {silent_s:.1f} s",
        "look at the network and the headset; packets that are only late will still arrive",
        f"The headset is not sending everything. {TELL_OPERATOR}",
        is_of_network=True,
    ),
    LiveRule(
        "packets_lost",
        "stream",
        lambda f: f.get("losses", 0) > 0,
        "{name}: {losses} packets found no room in the queue and are lost",
        "end the recording; look at the queue server, the disk and what else this computer does",
        f"The recording is losing data. {TELL_OPERATOR}",
    ),
    LiveRule(
        "stream_behind",
        "stream",
        lambda f: f["behind_s"] > BEHIND_S,
        "{name}: {behind_s:.0f} s of packets are not on disk yet",
        "look at the disk and at what else this computer does; nothing is lost so far",
        f"The computer cannot keep up. {TELL_OPERATOR}",
    ),
    LiveRule(
        "rate_low",
        "stream",
        lambda f: f["state"] == RATE_LOW,
        "{name}: {rate_hz:.1f} packets/s, nominal are {nominal_hz:g}",
        "look at the network: another channel, a cable, fewer streams",
        f"The headset is not sending everything. {TELL_OPERATOR}",
        is_of_network=True,
    ),
    LiveRule(
        "sensor_still",
        "stream",
        lambda f: f["still_s"] > STILL_S,
        "{name}: it has repeated one value for {still_s:.0f} s",
        "start the headset's app again: without its motion no camera can be aligned",
        f"The headset has a problem. {TELL_OPERATOR}",
    ),
    LiveRule(
        "head_lost",
        "stream",
        lambda f: f["lost_s"] > HEAD_LOST_S,
        "{name}: the headset has lost tracking for {lost_s:.0f} s",
        "let the cook look around slowly in good light; until then no position in the room is known",
    ),
    LiveRule(
        "stream_came_back",
        "stream",
        lambda f: bool(f.get("left_host_ns")) and f["left_s"] < RECENT_S,
        "{name}: the connection was lost {left_s:.0f} s ago and is back",
        "the gap is noted in the recording; look at the network if it happens again",
        is_of_network=True,
    ),
    LiveRule(
        "stamps_untrue",
        "stream",
        lambda f: bool(f.get("flagged_host_ns")) and f["flagged_s"] < RECENT_S,
        "{name}: timestamps that jump or go backwards: {flagged}",
        "nothing to do now: they are recorded unchanged, and `verify` counts them",
    ),
    LiveRule(
        "stream_problem",
        "stream",
        lambda f: bool(f["problem"]),
        "{name}: {problem}",
        "packets that arrive are still recorded",
    ),
    LiveRule(
        "camera_problem",
        "camera",
        lambda f: bool(f["problem"]),
        "{name}: {problem}",
        "look at the camera's screen: battery, card, heat",
        f"The camera on your head has a problem. {TELL_OPERATOR}",
    ),
    LiveRule(
        "camera_battery_low",
        "camera",
        lambda f: f["battery_percent"] is not None and 0 < f["battery_percent"] < LOW_BATTERY_PERCENT,
        "{name}: battery at {battery_percent} %",
        "plug in power, or change the battery before the next recording",
    ),
    LiveRule(
        "camera_card_low",
        "camera",
        lambda f: f["minutes_left"] is not None and 0 < f["minutes_left"] < LOW_CARD_MINUTES,
        "{name}: its card has room for {minutes_left:.0f} min",
        "change the card before the next recording",
    ),
    LiveRule(
        "process_silent",
        "process",
        lambda f: not f["done"] and f["silent_s"] > NO_NEWS_S,
        "{name} has not reported for {silent_s:.0f} s",
        "look at what else this computer does; a process that hangs is restarted at the end",
        f"The computer cannot keep up. {TELL_OPERATOR}",
    ),
    LiveRule(
        "process_restarted",
        "restart",
        lambda f: f["ago_s"] < RECENT_S,
        "{name} died and was restarted {ago_s:.0f} s ago",
        "look into the recording's folder `logs` if it happens again",
    ),
    LiveRule(
        "queue_refuses",
        "queue",
        lambda f: bool(f["queue_refuses"]),
        "the queue server refuses writes: {queue_refuses}; packets wait for it",
        "make the server write again (its disk, its memory, its settings); the recording goes on by itself",
        f"The recording may lose data. {TELL_OPERATOR}",
    ),
    LiveRule(
        "queue_silent",
        "queue",
        lambda f: f["queue_silent_s"] > 0,
        "the queue server has not answered for {queue_silent_s:.0f} s; packets wait for it",
        "look at the disk: the server syncs its file to it",
        f"The computer cannot keep up. {TELL_OPERATOR}",
    ),
    LiveRule(
        "queue_evicts",
        "queue",
        lambda f: bool(f["queue_evicts"]),
        "the queue server throws packets away when its memory is full (maxmemory-policy {queue_evicts})",
        "set it back: CONFIG SET maxmemory-policy noeviction; find out which program changed it",
        f"The recording may lose data. {TELL_OPERATOR}",
    ),
    LiveRule(
        "queue_vanished",
        "queue",
        lambda f: f["queue_vanished_ns"] > 0,
        "streams of the recording vanished from the queue server {vanished_s:.0f} s ago",
        "find out which program deletes keys there; the recording goes on, and `verify` names what is lost",
        f"The recording may have lost data. {TELL_OPERATOR}",
    ),
    LiveRule(
        "clock_unanswered",
        "clock",
        lambda f: f["silent_s"] > CLOCK_SILENT_S,
        "{name}: its clock has not answered for {silent_s:.0f} s",
        "look at the network and the headset; without answers this part is aligned less accurately",
        is_of_network=True,
    ),
    LiveRule(
        "clock_set",
        "computer",
        lambda f: True,
        "the computer's clock was set by {by_s:+.1f} s",
        "find out what sets it; UTC of each packet is from the nearest reading, and `verify` reports the time",
    ),
    LiveRule(
        "store_problem",
        "store",
        lambda f: bool(f["problem"]),
        "{name}: {problem}",
        "nothing is lost: it is copied as soon as the store takes it, or by `kitchensync move` later",
        f"The recording is not being copied. {TELL_OPERATOR}",
    ),
    LiveRule(
        "disk_full",
        "disk",
        lambda f: f.get("level") == "stop",
        "the disk is nearly full ({free_gb:.1f} GB free): the recording is being ended",
        "free some space before the next recording",
        f"The computer is full. {TELL_OPERATOR}",
    ),
    LiveRule(
        "disk_low",
        "disk",
        lambda f: f.get("level") == "warn",
        "the disk has {free_gb:.1f} GB free, room for {minutes_left:.0f} min",
        "free some space, or end in time",
    ),
    LiveRule(
        "recording_problem",
        "recording",
        lambda f: True,
        "{problem}",
        "see docs/how-to/when-something-breaks.md",
        f"The recording has a problem. {TELL_OPERATOR}",
    ),
)
"""Rules in the order in which they are tested."""
