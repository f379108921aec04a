"""What can be wrong with a running recording: one table, with the words for the cook and for the operator.

A rule sees the facts of one subject (a stream, a camera, a process, the computer, the disk, the queue, the recording)
and holds or does not. Of a subject's rules the first that holds is said. The names are stable: other tools rely on
them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kitchensync.capture.produce.stream_watch import RATE_LOW
from kitchensync.storage.ledger import FAILED, LOST

Facts = dict[str, Any]

WARNING, ALARM = "warning", "alarm"
"""warning: the recording goes on, and somebody should look; alarm: data is missing or soon will be."""

PERIODS, LEAST_SILENT_S = 3.0, 1.0
"""A stream is silent after so many nominal periods; never before a second, which a busy network may take."""
NO_NEWS_S = 3.0
"""What has not been heard of for longer is unknown."""
LATELY_S = 10.0
HEAD_LOST_S, STILL_S = 1.0, 5.0
"""A headset may lose itself for a moment; a gyroscope that repeats one value for so long measures nothing."""
BEHIND_S = 45.0
"""Packets are sealed some ten seconds after they came; what has waited for longer is behind."""
CLOCK_SILENT_S = 15.0
"""A clock is asked once a second."""
LOW_BATTERY_PERCENT, LOW_CARD_MINUTES = 20, 10.0

TELL = "Please tell the operator."


@dataclass(frozen=True)
class LiveRule:
    """One thing that can be wrong. `operator` is filled with the facts, `cook` is told of alarms alone."""

    name: str
    of: str
    holds: Callable[[Facts], bool]
    operator: str
    do: str
    cook: str = ""
    is_of_network: bool = False
    "What to do is said of the network: of a device on this computer, or where that is too busy, it is another thing."

    @property
    def severity(self) -> str:
        """Return ALARM of what the cook is told, else WARNING."""
        return ALARM if self.cook else WARNING


TOO_BUSY = (
    "this computer is too busy: programs waited for a processor {waits_percent:.0f} % of the time; "
    "end what else runs on it, or record fewer streams"
)
ON_THIS_COMPUTER = (
    "the device runs on this computer, no network is between: look at what else this computer does"
)


RULES: tuple[LiveRule, ...] = (
    LiveRule(
        "stream_refused",
        "stream",
        lambda f: f["state"] in ("refused", "unreachable") and not f.get("ended"),
        "{name}: {problem}",
        "look whether the headset is on and its app in front; if so, start the app again",
        f"The headset is not sending everything. {TELL}",
    ),
    LiveRule(
        "stream_lost",
        "stream",
        lambda f: f.get("ended") in (LOST, FAILED),
        "{name}: it was lost and did not come back ({fault}{problem})",
        "start the headset's app again, then decide whether to begin anew",
        f"The headset is not sending everything. {TELL}",
    ),
    LiveRule(
        "stream_reconnecting",
        "stream",
        lambda f: f["state"] == "reconnecting" and not f.get("ended"),
        "{name}: the connection was lost ({problem}); it is opened again and again",
        "look at the network; the gap is named in the recording",
        f"The headset is not sending everything. {TELL}",
        is_of_network=True,
    ),
    LiveRule(
        "stream_silent",
        "stream",
        lambda f: bool(f["first_host_ns"]) and not f.get("ended") and f["silent_s"] > f["silent_limit_s"],
        "{name}: nothing has come for {silent_s:.1f} s",
        "look at the network and the headset; what was only late still comes",
        f"The headset is not sending everything. {TELL}",
        is_of_network=True,
    ),
    LiveRule(
        "packets_lost",
        "stream",
        lambda f: f.get("losses", 0) > 0,
        "{name}: {losses} packets found no room in the queue and are lost",
        "end the recording; look at the queue server, the disk and what else this computer does",
        f"The recording is losing data. {TELL}",
    ),
    LiveRule(
        "stream_behind",
        "stream",
        lambda f: f["behind_s"] > BEHIND_S,
        "{name}: {behind_s:.0f} s of packets are not on disk yet",
        "look at the disk and at what else this computer does; nothing is lost so far",
        f"The computer cannot keep up. {TELL}",
    ),
    LiveRule(
        "rate_low",
        "stream",
        lambda f: f["state"] == RATE_LOW,
        "{name}: {rate_hz:.1f} packets/s, nominal are {nominal_hz:g}",
        "look at the network: another channel, a cable, fewer streams",
        f"The headset is not sending everything. {TELL}",
        is_of_network=True,
    ),
    LiveRule(
        "sensor_still",
        "stream",
        lambda f: f["still_s"] > STILL_S,
        "{name}: it has repeated one value for {still_s:.0f} s",
        "start the headset's app again: without its motion no camera can be aligned",
        f"The headset has a problem. {TELL}",
    ),
    LiveRule(
        "head_lost",
        "stream",
        lambda f: f["lost_s"] > HEAD_LOST_S,
        "{name}: the headset has not known where it is for {lost_s:.0f} s",
        "let the cook look around slowly in good light; what happens meanwhile has no place in the room",
    ),
    LiveRule(
        "stream_came_back",
        "stream",
        lambda f: bool(f.get("left_host_ns")) and f["left_s"] < LATELY_S,
        "{name}: the connection was lost {left_s:.0f} s ago and is back",
        "the gap is named in the recording; look at the network if it comes again",
        is_of_network=True,
    ),
    LiveRule(
        "stamps_untrue",
        "stream",
        lambda f: bool(f.get("flagged_host_ns")) and f["flagged_s"] < LATELY_S,
        "{name}: stamps that do not go forward as time does: {flagged}",
        "nothing to do now: they are kept as sent, and `verify` counts them",
    ),
    LiveRule(
        "stream_problem",
        "stream",
        lambda f: bool(f["problem"]),
        "{name}: {problem}",
        "what comes is recorded all the same",
    ),
    LiveRule(
        "camera_problem",
        "camera",
        lambda f: bool(f["problem"]),
        "{name}: {problem}",
        "look at the camera's screen: battery, card, heat",
        f"The camera on your head has a problem. {TELL}",
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
        "{name} has not said how it is for {silent_s:.0f} s",
        "look at what else this computer does; a process that hangs is started again at the end",
        f"The computer cannot keep up. {TELL}",
    ),
    LiveRule(
        "process_restarted",
        "restart",
        lambda f: f["ago_s"] < LATELY_S,
        "{name} died and was started again {ago_s:.0f} s ago",
        "look into the recording's folder `logs` if it comes again",
    ),
    LiveRule(
        "queue_refuses",
        "queue",
        lambda f: bool(f["queue_refuses"]),
        "the queue server refuses writes: {queue_refuses}; packets wait for it",
        "make the server write again (its disk, its memory, its settings); the recording goes on by itself",
        f"The recording may lose data. {TELL}",
    ),
    LiveRule(
        "queue_silent",
        "queue",
        lambda f: f["queue_silent_s"] > 0,
        "the queue server has not answered for {queue_silent_s:.0f} s; packets wait for it",
        "look at the disk: the server syncs its file to it",
        f"The computer cannot keep up. {TELL}",
    ),
    LiveRule(
        "queue_evicts",
        "queue",
        lambda f: bool(f["queue_evicts"]),
        "the queue server throws packets away when its memory is full (maxmemory-policy {queue_evicts})",
        "set it back: CONFIG SET maxmemory-policy noeviction; find out which program changed it",
        f"The recording may lose data. {TELL}",
    ),
    LiveRule(
        "queue_vanished",
        "queue",
        lambda f: f["queue_vanished_ns"] > 0,
        "streams of the recording vanished from the queue server {vanished_s:.0f} s ago",
        "find out which program deletes keys there; the recording goes on, and `verify` names what is lost",
        f"The recording may have lost data. {TELL}",
    ),
    LiveRule(
        "clock_unanswered",
        "clock",
        lambda f: f["silent_s"] > CLOCK_SILENT_S,
        "{name}: its clock has not answered for {silent_s:.0f} s",
        "look at the network and the headset; without answers this stretch is aligned less exactly",
        is_of_network=True,
    ),
    LiveRule(
        "clock_set",
        "computer",
        lambda f: True,
        "the computer's clock was set by {by_s:+.1f} s",
        "find out what sets it; UTC of each packet is by the nearest reading, and `verify` says when it was",
    ),
    LiveRule(
        "store_problem",
        "store",
        lambda f: bool(f["problem"]),
        "{name}: {problem}",
        "nothing is lost: it is copied as soon as the store takes it, or by `kitchensync move` later",
        f"The recording is not being copied. {TELL}",
    ),
    LiveRule(
        "disk_full",
        "disk",
        lambda f: f.get("level") == "stop",
        "the disk is nearly full ({free_gb:.1f} GB free): the recording is being ended",
        "free some space before the next recording",
        f"The computer is full. {TELL}",
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
        f"The recording has a problem. {TELL}",
    ),
)
"""Of each subject in the order in which they are asked."""
