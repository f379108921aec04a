"""A tablet starts and stops real recordings of the virtual kitchen through the app, and hears why when it cannot."""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from processes import COMMAND, kitchensync, running

from virtual_kitchen.tablet import Desk, Tablet

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]


@contextmanager
def app_with_rig(tmp_path: Path, host: str) -> Iterator[tuple[str, str]]:
    """The app with a rig of one headset; its address and the invite of its first start."""
    rig = tmp_path / "rig.toml"
    rig.write_text(f'streams = ["gyroscope", "accelerometer"]\n[hololens]\nhololens = "{host}"\n')
    command = [COMMAND, "app", "--data", str(tmp_path / "data"), "--port", "0", "--rig", str(rig)]
    with running(command, stdout=subprocess.PIPE) as server:
        lines: list[str] = []
        for line in server.stdout:
            lines.append(line)
            if line.startswith("ready app="):
                break
        invite = next(line.partition("#")[2].strip() for line in lines if line.startswith("invite="))
        yield lines[-1].partition("=")[2].strip(), invite


def wait_for(tablet: Tablet, health: str) -> dict:
    """Ask until the devices are in a state."""
    end_s = time.monotonic() + 90
    while time.monotonic() < end_s:
        answer = tablet.ask("GET", f"/api/v1/health/{tablet.recording}")
        if answer["health"] == health:
            return answer
        time.sleep(0.2)
    raise AssertionError(answer)


def test_a_session_is_started_followed_and_stopped_from_the_tablet(kitchen, runtime, tmp_path):
    place = kitchen(seconds=60)
    with (
        app_with_rig(tmp_path, place.host) as (url, invite),
        httpx.Client(base_url=url, timeout=90) as client,
    ):
        keys = Desk(client).set_up(invite, pseudonym="Basil")
        tablet = Tablet(client, keys, time.monotonic_ns, random.Random(1))
        order = tablet.choose("tea_and_toast", None, 1)["order"]
        address = f"/api/v1/capture/{tablet.recording}"
        with pytest.raises(RuntimeError, match="409.*checklist is not through"):
            tablet.ask("POST", address, {"action": "start"})
        tablet.prepare()
        started = tablet.ask("POST", address, {"action": "start"})
        assert started["reasons"] == []
        assert wait_for(tablet, "recording")["folder"] == started["folder"]
        with pytest.raises(RuntimeError, match="409.*folder"):
            tablet.ask("POST", address, {"action": "start"})
        tablet.exchange_clocks()
        for kind in ("start", "done"):
            tablet.send(kind, {"node": order[0]})
        for category in (1, 3):
            fields = {"node": order[0], "categories": [category]}
            tablet.send("error", {"error_id": tablet.new_id(), "fields": fields})
        assert tablet.ask("POST", address, {"action": "stop"}) == started
        wait_for(tablet, "stopped")
        folder = tmp_path / "data" / started["folder"]
        while (manifest := json.loads((folder / "recording.json").read_text()))["state"] == "recording":
            time.sleep(0.2)
    assert (manifest["pseudonym"], manifest["place"]) == ("Basil", "virtual kitchen")
    assert manifest["consent"].startswith(tablet.recording)
    assert manifest["recipe"]["order"] == order
    events = [json.loads(line) for line in (folder / "events" / "tablet.jsonl").read_text().splitlines()]
    kinds = [event["kind"] for event in events]
    assert kinds[:2] == ["recipe", "prepared"]
    assert kinds.count("error") == 2
    assert kinds.index("capture") < kinds.index("start") < kinds.index("done") < kinds.index("error")
    assert kitchensync("verify", folder).returncode == 0
    assert kitchensync("report", folder).returncode == 0
    report = (folder / "sync" / "report.html").read_text()
    assert "Measurement" in report
    assert "Timing" in report


def test_a_headset_that_is_not_there_is_a_refusal_in_words_and_leaves_nothing(
    runtime, tmp_path, loopback_host
):
    with (
        app_with_rig(tmp_path, loopback_host) as (url, invite),
        httpx.Client(base_url=url, timeout=90) as client,
    ):
        tablet = Tablet(
            client, Desk(client).set_up(invite, pseudonym="B"), time.monotonic_ns, random.Random(1)
        )
        tablet.choose("tea_and_toast", None, 1)
        tablet.prepare()
        refused = tablet.ask("POST", f"/api/v1/capture/{tablet.recording}", {"action": "start"})
        assert refused["folder"] is None
        assert loopback_host in " ".join(refused["reasons"])
        assert tablet.ask("GET", f"/api/v1/health/{tablet.recording}")["health"] == "standalone"
    assert {path.name for path in (tmp_path / "data").iterdir()} == {"_app"}
