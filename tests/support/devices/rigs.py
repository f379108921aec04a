"""Devices of a test: they record into folders of its kitchen, and refuse what the test wants."""

from __future__ import annotations

from typing import Any


class Rig:
    """Keeps what it was asked; `refuses` are the reasons why nothing begins or ends, none when it does."""

    def __init__(self, kitchen: Any) -> None:
        self.kitchen = kitchen
        self.calls: list[tuple[str, str]] = []
        self.refuses: list[str] = []
        self.said: dict[str, Any] = {"health": "recording", "reasons": [], "alarm": ""}

    def devices(self, place: str = "") -> list[str]:
        return ["headset", "camera"]

    def start(self, recording: str, **_: str) -> list[str]:
        self.calls.append(("start", recording))
        if not self.refuses:
            self.kitchen.record(recording)
        return self.refuses

    def stop(self, recording: str, *, by: str = "") -> list[str]:
        return self._end("stop", recording)

    def abort(self, recording: str, *, reason: str, by: str = "") -> list[str]:
        assert reason is not None
        return self._end("abort", recording)

    def _end(self, how: str, recording: str) -> list[str]:
        self.calls.append((how, recording))
        if not self.refuses:
            self.kitchen.record(recording, "stopped")
        return self.refuses

    def report(self, recording: str) -> dict[str, Any]:
        return {**self.said, "host_ns": self.kitchen.tools.records.now_ns()}

    def tell(self, recording: str, what: str, text: str = "") -> list[str]:
        self.calls.append((what, recording))
        return self.refuses

    def room(self) -> list[dict[str, Any]]:
        return []

    def live(self, recording: str) -> dict[str, Any] | None:
        return None
