"""Starting the devices from two places at once; ending what they record, whoever is signed in."""

from __future__ import annotations

import dataclasses
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from rigs import Rig

from kitchensync.operations.errors import NotNow
from kitchensync.recipe_app.cooking.steering import steer
from kitchensync.storage.errors import StorageError

pytestmark = pytest.mark.slow


class SlowRig(Rig):
    """Devices that need their time to start."""

    def __init__(self, kitchen: Any) -> None:
        super().__init__(kitchen)
        self.starting, self.ready = threading.Event(), threading.Event()

    def start(self, recording: str, **said: str) -> list[str]:
        self.starting.set()
        assert self.ready.wait(20)
        return super().start(recording, **said)


def test_devices_that_are_being_started_are_not_started_again(kitchen: Any) -> None:
    """The tablet was reloaded, or the desk was impatient: a second start must not undo the first."""
    recording, rig = kitchen.checked(), SlowRig(kitchen)
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
    assert [call for call, _ in rig.calls] == ["start"]
    assert kitchen.tools.records.state(recording)["capture"]["reasons"] == []


def test_a_withdrawn_recording_is_not_started(kitchen: Any) -> None:
    recording, rig = kitchen.checked(), Rig(kitchen)
    kitchen.post(kitchen.operation(recording, "withdraw", {}))
    with pytest.raises(NotNow, match="withdrawn"):
        steer(dataclasses.replace(kitchen.tools, capture=rig), recording, "start", actor="", reason="")
    assert rig.calls == []


def started(kitchen: Any, rig: Rig) -> tuple[str, httpx.Client]:
    """A recording that the devices make, and its tablet on which nobody is signed in any more."""
    kitchen.__dict__["tools"] = dataclasses.replace(kitchen.tools, capture=rig)
    recording = kitchen.checked()
    steer(kitchen.tools, recording, "start", actor=kitchen.basil, reason="")
    return recording, kitchen.client(authorization=kitchen.tablet.headers["authorization"])


def test_a_damaged_recording_is_a_refusal_in_words(kitchen: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(*_: Any, **__: Any) -> list[str]:
        raise StorageError("soup_1/recording.json is damaged")

    rig = Rig(kitchen)
    recording, tablet = started(kitchen, rig)
    monkeypatch.setattr(rig, "abort", damaged)
    answer = tablet.post(f"/api/v1/capture/{recording}", json={"action": "abort"})
    assert (answer.status_code, answer.json()) == (409, {"error": "soup_1/recording.json is damaged"})


@pytest.mark.slow
@pytest.mark.parametrize("action", ["stop", "abort"])
def test_an_expired_sign_in_never_keeps_a_recording_from_ending(kitchen: Any, action: str) -> None:
    rig = Rig(kitchen)
    recording, tablet = started(kitchen, rig)
    answer = tablet.post(f"/api/v1/capture/{recording}", json={"action": action})
    assert (answer.status_code, answer.json()["reasons"]) == (200, [])
    assert [call for call, _ in rig.calls] == ["start", action]


def test_nobody_starts_the_devices_without_a_sign_in(kitchen: Any) -> None:
    rig = Rig(kitchen)
    _, tablet = started(kitchen, rig)
    another = kitchen.checked()
    answer = tablet.post(f"/api/v1/capture/{another}", json={"action": "start"})
    assert (answer.status_code, answer.json()["error"]) == (401, "sign in first")
    browser = kitchen.client()  # it sends its cookies by itself: without the page's token it starts nothing
    _, token = kitchen.tablet.headers["authorization"].split()
    browser.cookies.update({"ks_device": token, "ks_login": kitchen.tablet.headers["x-kitchensync-login"]})
    assert browser.post(f"/api/v1/capture/{another}", json={"action": "start"}).status_code == 403
    assert [call for call, _ in rig.calls] == ["start"]
    headers = {"x-kitchensync-csrf": browser.get("/api/v1/me").json()["csrf"]}
    answer = browser.post(f"/api/v1/capture/{another}", json={"action": "start"}, headers=headers)
    assert (answer.status_code, answer.json()["reasons"]) == (200, [])


def test_a_tablet_of_another_kitchen_ends_nothing(kitchen: Any) -> None:
    rig = Rig(kitchen)
    recording, _ = started(kitchen, rig)
    kitchen.tools.records.note("kitchen", "k2", {"name": "Another kitchen"}, actor="")
    accounts = kitchen.tools.accounts
    _, token = accounts.pair(accounts.pairing_code("k2", actor=""), "Elsewhere", secure=True)
    other = kitchen.client(authorization=f"Bearer {token}")
    assert other.post(f"/api/v1/capture/{recording}", json={"action": "stop"}).status_code == 404
    assert [call for call, _ in rig.calls] == ["start"]


def test_a_refused_stop_counts_as_none_and_one_of_an_ended_recording_as_done(kitchen: Any) -> None:
    rig = Rig(kitchen)
    recording, tablet = started(kitchen, rig)
    rig.refuses = ["nobody answers"]
    address, stop = f"/api/v1/capture/{recording}", {"action": "stop"}
    assert tablet.post(address, json=stop).json()["reasons"] == ["nobody answers"]
    assert kitchen.tools.records.state(recording)["capture"]["action"] == "start"
    kitchen.record(rig.calls[0][1], "stopped")  # at its keyboard, say
    assert tablet.post(address, json=stop).json()["reasons"] == []
    assert kitchen.tools.records.state(recording)["capture"]["action"] == "stop"


def test_whoever_withdraws_while_the_devices_are_being_started_is_not_recorded(kitchen: Any) -> None:
    class WithdrawnMeanwhile(Rig):
        def start(self, recording: str, **said: str) -> list[str]:
            kitchen.post(kitchen.operation(wanted, "withdraw", {}))
            return super().start(recording, **said)

    wanted, rig = kitchen.checked(), WithdrawnMeanwhile(kitchen)
    tools = dataclasses.replace(kitchen.tools, capture=rig)
    with pytest.raises(NotNow, match="withdrawn"):
        steer(tools, wanted, "start", actor="", reason="")
    assert rig.calls == [("start", rig.calls[0][1]), ("abort", rig.calls[0][1])]
    assert kitchen.manifest(rig.calls[0][1])["state"] == "stopped"
