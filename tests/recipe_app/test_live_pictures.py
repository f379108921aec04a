"""The newest pictures of what is recorded: true, small, none of a privacy pause, from a process that may fail."""

from __future__ import annotations

import base64
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numbered_pictures import number_in
from numbered_recording import PV_S, write_numbered
from waiting import until

from kitchensync.capture.monitor.picture_worker import NewestPictures
from kitchensync.recipe_app.live import live_pictures
from kitchensync.recipe_app.live.live_pictures import LivePictures
from kitchensync.storage.chunks.chunk_writer import Packet, seal
from kitchensync.storage.errors import Withdrawn
from kitchensync.storage.events import EventLog
from kitchensync.storage.manifest import edit_manifest
from kitchensync.storage.recording import open_recording

pytestmark = pytest.mark.slow

PV, DEPTH = "hololens/pv", "hololens/depth_ahat"
NAMES = {PV, DEPTH}


FLOODING = """
import json, sys
names = [*(f"invented/{number}" for number in range(99)), "hololens/pv"]
said = [{"stream": name, "host_ns": 1, "bytes": 4} for name in names]
sys.stdout.buffer.write(json.dumps({"pictures": said}).encode() + b"\\n" + 100 * b"\\xff\\xd8ab")
sys.stdout.buffer.flush()
sys.stdin.read()
"""
"""A process that sends pictures of streams that nobody knows."""


@pytest.fixture
def take(tmp_path: Path) -> Path:
    """A recording whose pictures say which one they are."""
    write_numbered(tmp_path)
    return tmp_path / "take1"


def shown(jpeg: bytes) -> np.ndarray:
    return np.asarray(cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR))


def test_the_picture_is_the_last_one_that_was_sealed(take: Path) -> None:
    pictures = NewestPictures(take)
    found = {name: (host_ns, shown(jpeg)) for name, host_ns, jpeg in pictures.new_frames(NAMES)}
    assert found.keys() == NAMES
    luma = cv2.resize(cv2.cvtColor(found[PV][1], cv2.COLOR_BGR2GRAY), (640, 360))
    assert number_in(luma) == len(PV_S) - 1
    with open_recording(take) as opened:
        assert found[PV][0] == opened[PV].index["host_ns"][-1]
    near = np.full(
        (1, 1), 255 - (100 + 11) * 255 // 1000, np.uint8
    )  # flat: depth is 100 more than its number
    colour = cv2.applyColorMap(near, cv2.COLORMAP_TURBO)[0, 0].astype(int)
    assert np.abs(found[DEPTH][1].reshape(-1, 3).astype(int) - colour).max() < 12
    assert all(max(picture.shape) <= 320 for _, picture in found.values())


def test_a_stream_is_decoded_again_when_it_has_something_new(take: Path) -> None:
    pictures = NewestPictures(take)
    assert {name for name, *_ in pictures.new_frames(NAMES)} == NAMES
    assert list(pictures.new_frames(NAMES)) == []
    with open_recording(take) as opened:
        stream = opened[DEPTH]
        last = stream.index[-1]
        more = Packet(int(last["seq"]) + 1, 1, int(last["device_ticks"]) + 10**6, int(last["host_ns"]) + 1, 1,
                      stream.payload(len(stream) - 1), b"\0" * 64)  # fmt: skip
    seal(take / DEPTH, 3, [more], {})
    assert {name for name, *_ in pictures.new_frames(NAMES)} == {DEPTH}


def test_a_damaged_stream_keeps_no_other_from_being_shown(take: Path) -> None:
    newest = sorted((take / PV).glob("*.h5"))[-1]
    newest.write_bytes(newest.read_bytes()[:300])
    assert {name for name, *_ in NewestPictures(take).new_frames(NAMES)} == {DEPTH}


def test_nothing_of_a_privacy_pause_is_shown_and_nothing_after_a_withdrawal(take: Path) -> None:
    with open_recording(take) as opened:
        first_ns = int(opened[PV].index["host_ns"][0])
    EventLog(take, "tablet").append("pause", host_ns=first_ns, uncertainty_ns=0, body={})
    assert list(NewestPictures(take).new_frames(NAMES)) == []
    with edit_manifest(take) as manifest:
        manifest["withdrawn"] = {"host_ns": 1}
    with pytest.raises(Withdrawn):
        list(NewestPictures(take).new_frames(NAMES))


@pytest.fixture
def pictures() -> Iterator[LivePictures]:
    pictures = LivePictures()
    yield pictures
    pictures.close()


@pytest.mark.slow
def test_a_process_that_stops_or_dies_holds_up_nobody(take: Path, pictures: LivePictures) -> None:
    first = pictures.newest(take, [PV], wait_s=60)
    assert first.keys() == {PV}
    assert pictures.newest(take, [PV], after_ms=first[PV].came_ms) == {}, "nothing newer"
    of_another_start = first[PV].came_ms + 10**9
    assert pictures.newest(take, [PV], after_ms=of_another_start) == first
    process = pictures._of[take].process
    os.kill(process.pid, signal.SIGSTOP)
    for _ in range(100):  # far more than a pipe holds
        assert pictures.newest(take, [PV, *(f"{number:01000}" for number in range(10))]) == first
    os.kill(process.pid, signal.SIGKILL)
    until(lambda: pictures.newest(take, [PV]) == {}, "the end of what it sent")  # till it is started again
    pictures.forget(take)
    assert pictures.newest(take, [PV]) == {}
    again = pictures._of[take].process
    pictures.close()
    until(lambda: again.poll() is not None, "the end of the next process")


@pytest.mark.slow
@pytest.mark.parametrize("program", ["this", "recipe_app.no_such_program"])
def test_what_is_no_picture_is_never_shown(
    take: Path, pictures: LivePictures, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_pictures, "PROGRAM", program)  # `this` prints a poem
    assert pictures.newest(take, [PV]) == {}
    process = pictures._of[take].process
    until(lambda: process.poll() is not None, "the end of the process")
    assert pictures._of[take].newest == {}


@pytest.mark.slow
def test_only_what_was_asked_for_is_kept(
    take: Path, pictures: LivePictures, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "flooding.py").write_text(FLOODING)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setattr(live_pictures, "PROGRAM", "flooding")
    assert pictures.newest(take, [PV], wait_s=60).keys() == {PV}
    assert pictures._of[take].newest.keys() == {PV}


@pytest.mark.slow
def test_the_desk_shows_them_and_is_blank_in_a_pause(kitchen: Any) -> None:
    write_numbered(kitchen.data, "take1")
    with edit_manifest(kitchen.data / "take1") as manifest:
        manifest["state"] = "recording"
    recording = str(kitchen.choose(folder="take1")["recording"])
    operator, address = kitchen.desk("operator"), f"/api/v1/desk/recordings/{recording}/pictures"

    def asked(**more: int) -> dict[str, Any]:
        answer = operator.get(address, params={"stream": [PV, "hololens/gyroscope"], **more})
        assert answer.status_code == 200
        return dict(answer.json())

    said = until(lambda: (got := asked(wait_ms=1000))["pictures"] and got, "a picture at the desk")
    assert said["pictures"].keys() == {PV}
    assert shown(base64.b64decode(said["pictures"][PV]["jpeg"])).shape == (180, 320, 3)
    assert asked(after_ms=said["until_ms"]) == said | {"pictures": {}}
    kitchen.post(kitchen.operation(recording, "claim", {}), kitchen.operation(recording, "pause", {}))
    assert asked() == {"paused": True, "until_ms": 0, "pictures": {}}
    assert operator.get(f"/api/v1/desk/recordings/{recording}/live").json()["paused"]
    assert kitchen.tools.pictures._of == {}
    kitchen.post(kitchen.operation(recording, "resume", {}), kitchen.operation(recording, "withdraw", {}))
    assert operator.get(address, params={"stream": PV}).status_code == 409
