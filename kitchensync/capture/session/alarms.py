"""Alarms of the supervisor: a queue server that stalls, packets that cannot be stored, silent streams."""

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
from kitchensync.capture.process.log import log_warning
from kitchensync.capture.process.outcome import NO_SPACE
from kitchensync.capture.produce.stream_watch import RATE_LOW, SLOW_BY_ITSELF, STREAMING
from kitchensync.capture.queue.queue_connection import connected, evicting_policy, share_of_memory
from kitchensync.capture.queue.refusal import refusal
from kitchensync.storage.ledger import LOST
from kitchensync.storage.names import MANIFEST

QUIET_NS = 5_000_000_000
"""Silence of a process or stream that is reported."""

DELIVERING = (STREAMING, RATE_LOW, SLOW_BY_ITSELF, "starting")


def silent_processes(states: Mapping[str, Mapping[str, Any]], now_ns: int) -> dict[str, str]:
    """Return a message for each process that has not reported its state for a while, by its name."""
    return {
        name: f"{name} has not answered for {(now_ns - state['host_ns']) / 1e9:.0f} s"
        for name, state in states.items()
        if now_ns - state["host_ns"] > QUIET_NS and not state.get("done")
    }


def quiet_streams(
    streams: Mapping[str, Mapping[str, Any]], now_ns: int, silent: Mapping[str, str]
) -> list[str]:
    """Return messages about streams that stopped delivering.

    Streams of the `silent` processes are left out: their state is unknown.
    """
    quiet = {
        name: now_ns - facts.get("last_host_ns", now_ns)
        for name, facts in streams.items()
        if facts.get("state", "starting") not in DELIVERING and facts.get("first_host_ns")
        if not facts.get("ended") and f"producer {name.partition('/')[0]}" not in silent
    }
    quiet = {name: quiet_ns for name, quiet_ns in quiet.items() if quiet_ns > QUIET_NS}
    return _grouped_messages(streams, quiet, "nothing for {} s from {} ({}); retrying")


def lost_streams(streams: Mapping[str, Mapping[str, Any]], stopped_ns: int) -> list[str]:
    """Return messages about streams that did not come back before the end of the recording."""
    lost = {
        name: (facts["closed_host_ns"] or stopped_ns) - facts["last_host_ns"]
        for name, facts in streams.items()
        if facts.get("ended") == LOST and facts["last_host_ns"]
    }
    return _grouped_messages(streams, lost, "nothing came in the last {} s from {} ({})")


def queue_faults(evicts: str, vanished_ns: int, now_ns: int) -> list[str]:
    """Return messages about a queue server that another program changed: its eviction policy, or lost streams."""
    messages = []
    if evicts:
        messages.append(f"the queue server throws packets away when it is full (maxmemory-policy {evicts})")
    if vanished_ns:
        messages.append(f"streams vanished from the queue server {(now_ns - vanished_ns) / 1e9:.0f} s ago")
    return messages


def _grouped_messages(
    streams: Mapping[str, Mapping[str, Any]], quiet: Mapping[str, int], text: str
) -> list[str]:
    """Return one message for all streams of a device that are quiet for the same reason."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name in quiet:
        facts = streams[name]
        groups[name.partition("/")[0], facts.get("fault") or str(facts["state"])].append(name)
    messages = []
    for (device, why), names in groups.items():
        longest_s = max(quiet[name] for name in names) / 1e9
        shorts = ", ".join(name.partition("/")[2] for name in names)
        messages.append(f"{device}: " + text.format(f"{longest_s:.0f}", shorts, why))
    return messages


PERIOD_S = 1.0  # with ANSWER_S this makes LATE_S: one unanswered probe is a stall
ANSWER_S = 2.0
LATE_S = 3.0
"""Time after which a server that has not answered counts as stalled."""
PROBE_KEY = "ks:watch"
"""A key that does not exist: XADD NOMKSTREAM to it stores nothing, and is refused whenever a packet is."""


class QueueWatch(threading.Thread):
    """Watches one queue server until `stop`."""

    def __init__(self, url: str, now_s: Callable[[], float] = time.monotonic) -> None:
        """Store the settings; `now_s` is the clock that measures how late an answer is."""
        super().__init__(name="queue watch", daemon=True)
        self._client = redis.Redis.from_url(url, socket_timeout=ANSWER_S, retry=Retry(NoBackoff(), 0))
        self._ending = threading.Event()
        self._now_s = now_s
        self._accepted_s = now_s()
        self._held_s = 0.0
        self.refusal = ""
        """Error message of the server while it refuses writes, "" while it accepts them or does not answer."""
        self.evicts = ""
        """Policy by which it throws packets away when its memory is full, "" if it keeps them."""

    @property
    def silent_s(self) -> float:
        """Seconds since its last answer, 0 while it is not late."""
        return 0.0 if self.refusal else self.waits_s

    @property
    def waits_s(self) -> float:
        """Seconds since it last accepted a write, 0 while it is not late."""
        late_s = self._now_s() - self._accepted_s
        return late_s if (self.refusal or late_s > LATE_S) and self.is_alive() else 0.0

    @property
    def held_s(self) -> float:
        """Total seconds in which it accepted no write."""
        return self._held_s + self.waits_s

    def run(self) -> None:
        """Probe the server until stopped."""
        while not self._ending.wait(PERIOD_S):
            try:
                self._probe()
            except redis.RedisError as error:
                before, self.refusal = self.refusal, refusal(error)
                if self.refusal and self.refusal != before:
                    log_warning("the queue server refuses writes", words=self.refusal)
            else:
                self._held_s += self.waits_s
                self._accepted_s, self.refusal = self._now_s(), ""
        self._client.close()

    def _probe(self) -> None:
        """Read the eviction policy, then try an empty write. Raises redis.RedisError on refusal or no answer."""
        try:
            self.evicts = evicting_policy(self._client.info("memory"))
        except redis.ResponseError:
            self.evicts = ""  # the server hides its settings
        try:
            self._client.execute_command("XADD", PROBE_KEY, "NOMKSTREAM", "*", "n", "")
        except redis.ResponseError as error:
            if refusal(error):
                raise  # any other error comes from a server too old for NOMKSTREAM

    def stop(self) -> None:
        """End the thread; a pending answer is not waited for."""
        self._ending.set()


FULL = 0.8
"""Share of the queue's memory at which a recording ends because its packets cannot be stored."""
CHECK_PERIOD_S = 1.0  # every check opens a connection to the queue


class StorageTrouble:
    """Detects packets that cannot be stored, from the drainers' states and the recording's folder."""

    def __init__(self, plan: Plan, board: HealthBoard) -> None:
        self._plan, self._board = plan, board
        self._manifest = Path(plan.path) / MANIFEST
        self._checked_s = 0.0
        self.is_gone = self._existed = False
        self._hopeless_since_s: float | None = None

    def update(self) -> None:
        """Check whether the folder was renamed, moved or unmounted, and whether the disk is full."""
        exists = os.path.exists(self._manifest)
        self._existed = self._existed or exists
        is_gone = self._existed and not exists
        if is_gone and not self.is_gone:
            log_warning("the recording's folder is gone", path=self._plan.path)
        self.is_gone = is_gone
        is_hopeless = is_gone or self.lacks_space()
        self._hopeless_since_s = (self._hopeless_since_s or time.monotonic()) if is_hopeless else None

    def hopeless_s(self) -> float:
        """Return for how many seconds no stream could be stored."""
        return 0.0 if self._hopeless_since_s is None else time.monotonic() - self._hopeless_since_s

    def lacks_space(self) -> bool:
        """Return whether a drainer or the queue reports a full disk."""
        return any(state.get("problem") == NO_SPACE for state in self._board.states.values())

    def aside(self) -> dict[str, str]:
        """Return the streams that drainers have set aside, with the reasons."""
        return {
            stream: str(why)
            for state in self._board.states.values()
            for stream, why in state.get("aside", {}).items()
        }

    def problems(self) -> list[str]:
        """Return a message for each problem, except a full disk, which is shown elsewhere."""
        messages = []
        if self.is_gone:
            messages.append(
                f"{self._plan.path} is gone: put it back; until then all packets stay in the queue"
            )
        for stream, why in sorted(self.aside().items()):
            messages.append(
                f"{stream} cannot be stored ({why}); its packets stay in the queue, the other streams go on"
            )
        reasons = {str(state.get("problem") or "") for state in self._board.states.values()}
        for why in sorted(reasons - {"", NO_SPACE}):
            messages.append(f"a drainer cannot go on: {why}; its packets stay in the queue")
        return messages

    def fills_queue(self) -> bool:
        """Return whether packets that cannot be stored nearly fill the queue, which endangers all streams."""
        now_s = time.monotonic()
        if not (self.is_gone or self.aside()) or now_s - self._checked_s < CHECK_PERIOD_S:
            return False
        self._checked_s = now_s
        try:
            with connected(self._plan.queue_url) as client:
                return share_of_memory(client) > FULL
        except QueueUnavailable:
            return False  # the server is being restarted
