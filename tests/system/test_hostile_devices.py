"""Who means harm beside a recording: what is sent to the control socket, and what is said of it."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from attack import hostile

from kitchensync.capture.session.control import ControlServer, ask
from kitchensync.virtual_kitchen.faults import CUTS, parse_faults
from kitchensync.virtual_kitchen.headset import hostile as headset_hostile


def test_the_kinds_are_many_and_the_virtual_kitchen_knows_them() -> None:
    assert len(set(hostile.OF_HEADSETS)) == len(hostile.OF_HEADSETS) >= 12
    for kind in hostile.OF_HEADSETS:
        assert parse_faults([f"{kind}:pv@4" + ("" if kind in CUTS else "+2")]).faults[0].name == kind


@pytest.mark.slow
def test_no_frame_is_obeyed_and_the_next_request_is_answered(tmp_path: Path) -> None:
    endpoint, stop, obeyed = tmp_path / "control", threading.Event(), list[str]()
    server = ControlServer(f"ipc://{endpoint}")

    def serve() -> None:
        while not stop.wait(0.01):
            obeyed.extend(server.requests(lambda: {"recording": "r"}))

    thread = threading.Thread(target=serve)
    thread.start()
    seen = hostile.attack_control(endpoint)
    answer = ask(endpoint, "state", limit_ms=30_000)
    stop.set()
    thread.join()
    server.close()
    assert seen.keys() == hostile.FRAMES.keys()
    assert {facts["ended"] for facts in seen.values()} == {"refused", "silent"}
    assert (answer and answer["recording"], obeyed) == ("r", ["state"])


@pytest.mark.parametrize(
    ("facts", "wrong"),
    [
        ({"ended": "", "seconds": 1.0, "most_s": 2.0}, ["x: came to no right end"]),
        ({"ended": "WARN", "seconds": 3.0, "most_s": 2.0}, ["x: took 3 s"]),
        ({"ended": "a", "seconds": 1.0, "most_s": 2.0, "most_bytes": 3 << 30}, ["x: took 3072 MiB"]),
        ({"ended": "a", "seconds": 1.0, "most_s": 2.0, "most_bytes": 1 << 30}, []),
    ],
)
def test_what_does_not_hold_is_said(tmp_path: Path, facts: dict[str, Any], wrong: list[str]) -> None:
    (tmp_path / hostile.SEEN).write_text(json.dumps({"x": facts}))
    assert list(hostile.wrong_in(tmp_path)) == wrong


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_every_answer_of_a_hostile_headset_comes_to_an_end(tmp_path: Path) -> None:
    """On 3809 and for constants; one that sends a byte now and then would hold its client for an hour."""
    seen = hostile.attack_clients("headset", tmp_path)
    (tmp_path / hostile.SEEN).write_text(json.dumps(seen))
    assert seen.keys() == {*headset_hostile.ANSWERS, "all of them"}
    assert list(hostile.wrong_in(tmp_path)) == []
