"""What the supervisor watches for: a queue held up, packets that cannot be stored, streams that do not come."""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from kitchensync.capture.errors import QueueUnavailable
from kitchensync.capture.plan import Plan
from kitchensync.capture.process.health import HealthBoard
from kitchensync.capture.process.log import warn
from kitchensync.capture.process.outcome import NO_SPACE
from kitchensync.capture.produce.stream_watch import RATE_LOW, SLOW_BY_ITSELF, STREAMING
from kitchensync.capture.queue.queue_connection import evicting_policy, reached, share_of_memory
from kitchensync.capture.queue.refusal import refusal
from kitchensync.storage.ledger import LOST
from kitchensync.storage.names import MANIFEST

QUIET_NS = 5_000_000_000
"""So long nothing may come before it is said."""

COMING = (STREAMING, RATE_LOW, SLOW_BY_ITSELF, "starting")


def mute_processes(states: Mapping[str, Mapping[str, Any]], now_ns: int) -> dict[str, str]:
    """Return what to say of each process that has not told how it is for a while, by its name."""
    mute = {
        name: now_ns - state["host_ns"]
        for name, state in states.items()
        if now_ns - state["host_ns"] > QUIET_NS and not state.get("done")
    }
    return {name: f"{name} has not answered for {quiet_ns / 1e9:.0f} s" for name, quiet_ns in mute.items()}


def quiet_streams(
    streams: Mapping[str, Mapping[str, Any]], now_ns: int, mute: Mapping[str, str]
) -> list[str]:
    """Return what to say of streams that came once and do not come; of a mute process nobody knows."""
    quiet = {
        name: now_ns - facts.get("last_host_ns", now_ns)
        for name, facts in streams.items()
        if facts.get("state", "starting") not in COMING and facts.get("first_host_ns")
        if not facts.get("ended") and f"producer {name.partition('/')[0]}" not in mute
    }
    quiet = {name: quiet_ns for name, quiet_ns in quiet.items() if quiet_ns > QUIET_NS}
    return _said(streams, quiet, "nothing for {} s from {} ({}); it is tried again and again")


def lost_streams(streams: Mapping[str, Mapping[str, Any]], stopped_ns: int) -> list[str]:
    """Return what to say of a recording's streams that did not come back before its end."""
    lost = {
        name: (facts["closed_host_ns"] or stopped_ns) - facts["last_host_ns"]
        for name, facts in streams.items()
        if facts.get("ended") == LOST and facts["last_host_ns"]
    }
    return _said(streams, lost, "nothing came in the last {} s from {} ({})")


def queue_faults(evicts: str, vanished_ns: int, now_ns: int) -> list[str]:
    """Return what to say of a queue server that somebody else changed: its policy, or streams that are gone."""
    evicting = [f"the queue server throws packets away when it is full (maxmemory-policy {evicts})"]
    vanished = [f"streams vanished from the queue server {(now_ns - vanished_ns) / 1e9:.0f} s ago"]
    return (evicting if evicts else []) + (vanished if vanished_ns else [])


def _said(streams: Mapping[str, Mapping[str, Any]], quiet: Mapping[str, int], words: str) -> list[str]:
    """Say it once for all streams of a device that are quiet for the same reason."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name in quiet:
        facts = streams[name]
        groups[name.partition("/")[0], facts.get("fault") or str(facts["state"])].append(name)
    said = []
    for (device, why), names in groups.items():
        longest_s = max(quiet[name] for name in names) / 1e9
        shorts = ", ".join(name.partition("/")[2] for name in names)
        said.append(f"{device}: " + words.format(f"{longest_s:.0f}", shorts, why))
    return said


PERIOD_S = 1.0
ANSWER_S = 2.0
LATE_S = 3.0
"""A server that has not answered for so long is held up, whatever by."""
NOTHING = "ks:watch"
"""A key that nobody makes: XADD NOMKSTREAM to it stores nothing, and is refused like a packet."""


class QueueWatch(threading.Thread):
    """Watches one queue server until `stop`."""

    def __init__(self, url: str, now_s: Callable[[], float] = time.monotonic) -> None:
        """Ask nothing yet; how late an answer is, is told by the clock `now_s`."""
        super().__init__(name="queue watch", daemon=True)
        self._client = redis.Redis.from_url(url, socket_timeout=ANSWER_S, retry=Retry(NoBackoff(), 0))
        self._ending = threading.Event()
        self._now_s = now_s
        self._took_s = now_s()
        self._held_s = 0.0
        self.refusal = ""
        """The server's own words while it refuses to write, "" while it writes or does not answer."""
        self.evicts = ""
        """The policy by which it throws packets away when its memory is full, "" where it keeps them."""

    @property
    def silent_s(self) -> float:
        """For how many seconds it has not answered, 0 while that is no delay."""
        return 0.0 if self.refusal else self.waits_s

    @property
    def waits_s(self) -> float:
        """For how many seconds it has taken nothing, refusing or not answering, 0 while that is no delay."""
        late_s = self._now_s() - self._took_s
        return late_s if (self.refusal or late_s > LATE_S) and self.is_alive() else 0.0

    @property
    def held_s(self) -> float:
        """How many seconds it has taken nothing so far, all in all."""
        return self._held_s + self.waits_s

    def run(self) -> None:
        """Ask until stopped."""
        while not self._ending.wait(PERIOD_S):
            try:
                self._ask()
            except redis.RedisError as error:
                before, self.refusal = self.refusal, refusal(error)
                if self.refusal and self.refusal != before:
                    warn("the queue server refuses writes", words=self.refusal)
            else:
                self._held_s += self.waits_s
                self._took_s, self.refusal = self._now_s(), ""
        self._client.close()

    def _ask(self) -> None:
        """Ask for the policy, and to write nothing. Raises redis.RedisError where it is refused or not answered."""
        try:
            self.evicts = evicting_policy(self._client.info("memory"))
        except redis.ResponseError:
            self.evicts = ""  # it answers, and does not tell
        try:
            self._client.execute_command("XADD", NOTHING, "NOMKSTREAM", "*", "n", "")
        except redis.ResponseError as error:
            if refusal(error):
                raise  # any other answer is of a server too old for the command

    def stop(self) -> None:
        """End; a question on its way is waited for by nobody."""
        self._ending.set()


FULL = 0.8
"""Share of the queue's memory at which a recording ends whose packets cannot be stored."""
LOOK_S = 1.0


class StorageTrouble:
    """Looks at what the drainers say, and whether the recording's folder is there."""

    def __init__(self, plan: Plan, board: HealthBoard) -> None:
        """Look at nothing yet."""
        self._plan, self._board = plan, board
        self._manifest = Path(plan.path) / MANIFEST
        self._asked_s = 0.0
        self.is_gone = self._was_there = False
        self._hopeless_since_s: float | None = None

    def look(self) -> None:
        """Look again: has somebody renamed, moved or unmounted the recording under our hands?"""
        is_there = os.path.exists(self._manifest)
        self._was_there = self._was_there or is_there
        is_gone = self._was_there and not is_there
        if is_gone and not self.is_gone:
            warn("the recording's folder is gone", path=self._plan.path)
        self.is_gone = is_gone
        is_hopeless = is_gone or self.lacks_space()
        self._hopeless_since_s = (self._hopeless_since_s or time.monotonic()) if is_hopeless else None

    def hopeless_s(self) -> float:
        """Return for how many seconds no stream at all could be stored, by the last looks."""
        return 0.0 if self._hopeless_since_s is None else time.monotonic() - self._hopeless_since_s

    def lacks_space(self) -> bool:
        """Return whether a drainer or the queue finds no room on its disk."""
        return any(state.get("problem") == NO_SPACE for state in self._board.states.values())

    def aside(self) -> dict[str, str]:
        """Return the streams that drainers have set aside, and why."""
        said = [state.get("aside", {}) for state in self._board.states.values()]
        return {stream: str(why) for aside in said for stream, why in aside.items()}

    def words(self) -> list[str]:
        """Say all of it in words, but for the full disk, which is shown otherwise."""
        words = [f"{self._plan.path} is gone: put it back; until then all packets stay in the queue"]
        words = words if self.is_gone else []
        words += [
            f"{stream} cannot be stored ({why}); its packets stay in the queue, the other streams go on"
            for stream, why in sorted(self.aside().items())
        ]
        told = {str(state.get("problem") or "") for state in self._board.states.values()} - {"", NO_SPACE}
        return words + [
            f"a drainer cannot go on: {why}; its packets stay in the queue" for why in sorted(told)
        ]

    def fills_queue(self) -> bool:
        """Return whether packets that cannot be stored nearly fill the queue: then those of all would be lost."""
        now_s = time.monotonic()
        if not (self.is_gone or self.aside()) or now_s - self._asked_s < LOOK_S:
            return False
        self._asked_s = now_s
        try:
            with reached(self._plan.queue_url) as client:
                return share_of_memory(client) > FULL
        except QueueUnavailable:
            return False  # it is being started again
