"""Starting the devices from two places at once."""

from __future__ import annotations

import dataclasses
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from recipe_app.checklist import CONSENT_VERSION, items_for
from recipe_app.errors import NotNow
from recipe_app.steering import steer


class SlowRig:
    """Devices that need their time to start."""

    def __init__(self, kitchen: Any) -> None:
        self.kitchen = kitchen
        self.asked: list[str] = []
        self.starting, self.ready = threading.Event(), threading.Event()

    def start(self, recording: str, *, participant: str, consent: str, place: str) -> list[str]:
        self.asked.append(recording)
        self.starting.set()
        assert self.ready.wait(20)
        self.kitchen.record(recording)
        return []


def chosen(kitchen: Any) -> str:
    """A recording whose checklist is through."""
    recording = str(kitchen.choose()["recording"])
    kitchen.post(
        kitchen.operation(recording, "consent", {"version": CONSENT_VERSION, "accepted": True}),
        *(
            kitchen.operation(recording, "check", {"item": item.name, "checked": True})
            for item in items_for(devices=True)
        ),
        kitchen.operation(recording, "checked", {"version": "1", "confirmed_by": "Clove"}),
    )
    return recording


def test_devices_that_are_being_started_are_not_started_again(kitchen: Any) -> None:
    """The tablet was reloaded, or the desk was impatient: a second start must not undo the first."""
    recording, rig = chosen(kitchen), SlowRig(kitchen)
    tools = dataclasses.replace(kitchen.tools, capture=rig)
    with ThreadPoolExecutor() as pool:
        first = pool.submit(steer, tools, recording, "start", actor="", reason="")
        assert rig.starting.wait(20)
        with pytest.raises(NotNow, match="being started already"):
            steer(tools, recording, "start", actor="", reason="")
        rig.ready.set()
        assert first.result(20)["reasons"] == []
    with pytest.raises(NotNow, match="has its folder"):
        steer(tools, recording, "start", actor="", reason="")
    assert len(rig.asked) == 1
    assert kitchen.tools.records.state(recording)["capture"]["reasons"] == []


def test_a_withdrawn_recording_is_not_started(kitchen: Any) -> None:
    recording, rig = chosen(kitchen), SlowRig(kitchen)
    kitchen.post(kitchen.operation(recording, "withdraw", {}))
    with pytest.raises(NotNow, match="withdrawn"):
        steer(dataclasses.replace(kitchen.tools, capture=rig), recording, "start", actor="", reason="")
    assert rig.asked == []
