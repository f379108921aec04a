"""Asks the queue server once a second whether it is there: a server that is held up is no fault of a device."""

from __future__ import annotations

import threading
import time

import redis

PERIOD_S = 1.0
ANSWER_S = 2.0
LATE_S = 3.0
"""A server that has not answered for so long is held up, whatever by."""


class QueueWatch(threading.Thread):
    """Watches one queue server until `stop`."""

    def __init__(self, url: str) -> None:
        """Ask nothing yet."""
        super().__init__(name="queue watch", daemon=True)
        self._client = redis.Redis.from_url(url, socket_timeout=ANSWER_S)
        self._ending = threading.Event()
        self._heard_s = time.monotonic()
        self._held_s = 0.0

    @property
    def silent_s(self) -> float:
        """For how many seconds it has not answered, 0 while that is no delay."""
        late_s = time.monotonic() - self._heard_s
        return late_s if late_s > LATE_S and self.is_alive() else 0.0

    @property
    def held_s(self) -> float:
        """How many seconds it has been held up so far, all in all."""
        return self._held_s + self.silent_s

    def run(self) -> None:
        """Ask until stopped."""
        while not self._ending.wait(PERIOD_S):
            try:
                self._client.ping()
            except redis.RedisError:
                continue  # a server that refuses to write still answers; this one does not
            self._held_s += self.silent_s
            self._heard_s = time.monotonic()
        self._client.close()

    def stop(self) -> None:
        """End; a question on its way is waited for by nobody."""
        self._ending.set()
