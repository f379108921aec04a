"""Chapters, hilights, proxies, GPS and faults of the virtual camera, read back by other means than its own."""

from __future__ import annotations

import http.client
import json
import math
import struct
from pathlib import Path
from typing import Any

import av
import pytest
from cameras import virtual_camera
from films import film
from kitchen_clock import MovedClock
from waiting import until

from kitchensync.virtual_kitchen.errors import KitchenError
from kitchensync.virtual_kitchen.faults import parse_faults
from kitchensync.virtual_kitchen.gopro.faults import KINDS, parse_camera_fault

pytestmark = pytest.mark.slow


def get(url: str, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def ask(url: str, path: str) -> Any:
    status, body = get(url, path)
    assert status == 200, (path, status, body)
    return json.loads(body)


def wait_status(url: str, number: str, value: int) -> None:
    until(lambda: ask(url, "/gopro/camera/state")["status"][number] == value, f"status {number} = {value}")


def timecode(path: Path) -> int:
    """The sample of the tmcd track, found by its place in the tables."""
    data = path.read_bytes()
    entry = data.index(b"tmcd\x00\x00\x00\x00\x00\x00\x00\x01")
    at = data.index(b"stco", entry) + 12
    offset = struct.unpack_from(">I", data, at)[0]
    return int.from_bytes(data[offset : offset + 4], "big")


def test_a_long_clip_is_several_files_of_one_recording(tmp_path: Path) -> None:
    clock = MovedClock()
    with virtual_camera(tmp_path, chapter_s=1.0, clock=clock) as (gopro, url):
        ask(url, "/gopro/camera/shutter/start")
        clock.move(0.5)  # by then it films
        ask(url, "/gopro/media/hilight/moment")
        clock.move(2.6)
        listed_while_recording = until(lambda: ask(url, "/gopro/media/list")["media"], "a full chapter")
        assert ask(url, "/gopro/camera/state")["status"]["10"] == 1
        ask(url, "/gopro/camera/shutter/stop")
        clock.run()
        wait_status(url, "8", 0)
        files = ask(url, "/gopro/media/list")["media"][0]["fs"]
        info = ask(url, f"/gopro/media/info?path=100GOPRO/{files[-1]['n']}")
        assert get(url, "/videos/DCIM/100GOPRO/GL010001.LRV")[0] == 200
        telemetry = get(url, "/gopro/media/telemetry?path=100GOPRO/GX010001.MP4")[1]
        header = get(url, "/gopro/media/gpmf?path=100GOPRO/GX010001.MP4")[1]
    assert listed_while_recording[0]["fs"][0]["n"] == "GX010001.MP4"
    names = [file["n"] for file in files]
    assert names == [f"GX{chapter:02d}0001.MP4" for chapter in range(1, len(names) + 1)]
    assert len(names) in (3, 4)  # 2.6 to 3.1 s
    paths = [gopro.camera.card.path / name for name in names]
    counts = []
    for path in paths:
        with av.open(str(path)) as container:
            assert container.metadata["creation_time"] == av_creation(paths[0])
            counts.append(sum(1 for _ in container.decode(video=0)))
    assert counts[:-1] == [30] * (len(counts) - 1)
    codes = [timecode(path) for path in paths]
    assert [code - codes[0] for code in codes] == [sum(counts[:k]) for k in range(len(counts))]
    assert len(info["hi"]) == 1
    assert telemetry[:4] == header[:4] == b"DEVC"
    truth = gopro.camera.kitchen.truth.as_dict()["gopro"]
    starts = [file["clock_map"]["tau0_s"] for file in truth]
    assert starts[1] - starts[0] == pytest.approx(1.001, abs=1e-3)


def av_creation(path: Path) -> str:
    with av.open(str(path)) as container:
        return str(container.metadata["creation_time"])


@pytest.mark.parametrize(("model", "has_gps"), [("hero11", True), ("hero12", False), ("hero13", True)])
def test_only_models_with_gps_tell_places_and_only_when_it_is_on(
    tmp_path: Path, model: str, has_gps: bool
) -> None:
    with virtual_camera(tmp_path, model=model) as (gopro, url):
        settings = ask(url, "/gopro/camera/state")["settings"]
        assert ("83" in settings) == has_gps
        for number, option in enumerate((1, 0), 1):
            if has_gps:
                ask(url, f"/gopro/camera/setting?setting=83&option={option}")
                wait_status(url, "8", 0)
            ask(url, "/gopro/camera/shutter/start")
            wait_status(url, "10", 1)
            ask(url, "/gopro/camera/shutter/stop")
            wait_status(url, "8", 0)
            data = (gopro.camera.card.path / f"GX01{number:04d}.MP4").read_bytes()
            assert (b"GPS9" in data) == (has_gps and option == 1)


@pytest.mark.parametrize("frames", range(31, 40))
def test_a_last_payload_without_a_place_leaves_it_out(tmp_path: Path, frames: int) -> None:
    """Places come ten times a second: a payload of a frame or two may have none."""
    made = film(tmp_path, frames)
    first, last = made.payloads
    written = made.chapters[0].path.read_bytes()
    for payload, count in ((first, 11), (last, math.ceil(frames * 1.001 / 3) - 11)):
        assert payload in written
        assert payload.count(b"GPS9") == min(count, 1)
        assert payload.count(b"ACCL") == payload.count(b"GYRO") == 1


def test_a_dead_battery_leaves_a_file_without_index(tmp_path: Path) -> None:
    clock = MovedClock()
    with virtual_camera(tmp_path, "gopro_battery_dead", clock=clock) as (gopro, url):
        path = gopro.camera.card.path / "GX010001.MP4"
        ask(url, "/gopro/camera/shutter/start")
        clock.move(1.5)
        until(lambda: path.exists() and b"mdat" in path.read_bytes(), "the file that is being filmed")
        gopro.camera.begin_fault("gopro_battery_dead")
        assert gopro.camera.is_gone
        with pytest.raises(ConnectionError):
            get(url, "/gopro/camera/state")
    left = path.read_bytes()
    assert b"mdat" in left
    assert b"moov" not in left


def test_faults_are_understood_or_refused_in_words() -> None:
    fault = parse_camera_fault("gopro_cut:1000x20")
    assert (fault.after_bytes, fault.times) == (1000, 20)
    assert parse_camera_fault("gopro_vanish@2+3").end_s == 5.0
    assert parse_faults(["gopro_overheat@3", "stall:pv@1+1"]).camera.faults[0].name == "gopro_overheat"
    for bad in (
        "gopro_cut",
        "gopro_vanish@2",
        "gopro_overheat:3",
        "gopro_overheat@3+1@",
        "gopro_dance@1",
        "gopro_",
    ):
        with pytest.raises(KitchenError):
            parse_faults([bad])
    assert all(text.startswith(name) for name, text in KINDS.items())
