"""Talk HTTP to the virtual GoPro as a camera client does."""

from __future__ import annotations

import hashlib
import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from cameras import painted
from kitchen_clock import MovedClock
from waiting import until

from kitchensync.virtual_kitchen.errors import BadReplay, KitchenError, PortBusy
from kitchensync.virtual_kitchen.gopro.http import requested_range
from kitchensync.virtual_kitchen.gopro.server import VirtualGoPro
from kitchensync.virtual_kitchen.kitchen import Kitchen
from kitchensync.virtual_kitchen.truth import Truth
from kitchensync.virtual_kitchen.world.motion import replayed_motion, simulated_motion
from kitchensync.virtual_kitchen.world.replay import ReplayFromShutter, read_gyro

pytestmark = pytest.mark.slow

SEED = 12
START_S = 0.5
"""A camera films half a second after the command at the latest."""
LOOK_S = 0.1


class Client:
    """One request a connection, as the vendor's library makes them."""

    def __init__(self, port: int, clock: MovedClock) -> None:
        self.port, self.clock = port, clock

    def request(self, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, headers=headers)
            reply = connection.getresponse()
            return reply.status, dict(reply.getheaders()), reply.read()
        finally:
            connection.close()

    def json(self, path: str, status: int = 200) -> Any:
        got, _, body = self.request(path)
        assert got == status, (path, got, body)
        return json.loads(body)

    def status(self, number: int) -> int:
        return int(self.json("/gopro/camera/state")["status"][str(number)])

    def states_until(self, last: tuple[int, int]) -> set[tuple[int, int]]:
        """Poll (busy, encoding) until it is `last`; return what came before."""
        before = set()

        def is_last() -> bool:
            status = self.json("/gopro/camera/state")["status"]
            state = (status["8"], status["10"])
            before.add(state)
            return state == last

        until(is_last, f"(busy, encoding) {last}")
        return before - {last}

    def wait_status(self, number: int, value: int) -> None:
        until(lambda: self.status(number) == value, f"status {number} = {value}")

    def open_shutter(self) -> None:
        """Film from this moment on."""
        self.json("/gopro/camera/shutter/start")
        self.clock.move(START_S)
        assert self.status(10) == 1

    def finish(self) -> None:
        """Let the time pass in which the camera closes its file, once it has written it."""

        def is_idle() -> bool:
            self.clock.move(LOOK_S)
            return self.status(8) == 0

        until(is_idle, "a closed file")

    def record(self, seconds: float) -> None:
        self.open_shutter()
        self.clock.move(seconds)
        self.json("/gopro/camera/shutter/stop")
        self.finish()


def wait_fetched(gopro: VirtualGoPro) -> None:
    """The camera learns that its last byte is out a moment after the client has it."""
    until(gopro.idle_and_fetched, "the last byte out")


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., tuple[VirtualGoPro, Client]]]:
    running: list[VirtualGoPro] = []

    def start(kitchen: Kitchen | None = None, replay: Path | None = None) -> tuple[VirtualGoPro, Client]:
        world = kitchen or Kitchen(SEED, simulated_motion(SEED), Truth(tmp_path / "sim", SEED))
        world.clock = clock = MovedClock()
        world.__dict__.setdefault("scene", painted(world.seed))
        gopro = VirtualGoPro(world, "127.0.0.1", 0, "hero12", replay)
        port = gopro.start()
        running.append(gopro)
        return gopro, Client(port, clock)

    yield start
    for gopro in running:
        gopro.stop()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("gopro")]


Serve = Callable[..., tuple[VirtualGoPro, Client]]


def test_opening_sequence_of_the_vendor_library(serve: Serve) -> None:
    _, client = serve()
    assert client.json("/gopro/camera/control/wired_usb?p=1") == {}
    assert client.json("/gopro/camera/analytics/set_client_info") == {}
    assert client.json("/gopro/version") == {"version": "2.0"}
    state = client.json("/gopro/camera/state")
    assert set(state) == {"status", "settings"}
    expected = {"8": 0, "10": 0, "13": 0, "33": 0, "82": 1, "116": 1}
    assert {key: state["status"][key] for key in expected} == expected
    assert (state["settings"]["2"], state["settings"]["3"], "83" in state["settings"]) == (1, 8, False)
    info = client.json("/gopro/camera/info")
    assert (info["model_number"], info["model_name"], info["serial_number"][-3:]) == (
        62,
        "HERO12 Black",
        "012",
    )
    assert info["firmware_version"].startswith("H23.01.")
    assert client.json("/gopro/camera/presets/get?include-hidden=0")["presetGroupArray"]
    for path in ("camera/presets/set_group?id=1000", "media/turbo_transfer?p=0", "camera/keep_alive"):
        assert client.json(f"/gopro/{path}") == {}
    assert client.json("/gopro/media/list")["media"] == []
    assert client.request("/gopro/media/last_captured")[0] == 204


def test_a_clip_from_shutter_to_download(serve: Serve) -> None:
    gopro, client = serve()
    client.json("/gopro/camera/shutter/start")
    assert client.json("/gopro/camera/state")["status"]["10"] == 0
    client.clock.move(START_S)
    assert client.states_until((0, 1)) <= {(1, 0)}
    assert client.json("/gopro/media/list")["media"] == []
    for refused in (
        "camera/shutter/start",
        "camera/setting?setting=121&option=4",
        "media/turbo_transfer?p=1",
    ):
        client.json(f"/gopro/{refused}", status=500)
    assert not gopro.idle_and_fetched()
    client.clock.move(0.4)
    client.json("/gopro/camera/shutter/stop")
    assert (client.status(8), client.status(10)) == (1, 0)
    client.finish()

    (entry,) = client.json("/gopro/media/list")["media"]
    (file,) = entry["fs"]
    assert (entry["d"], file["n"]) == ("100GOPRO", "GX010001.MP4")
    assert all(isinstance(value, str) for value in file.values())
    assert client.json("/gopro/media/last_captured") == {"folder": "100GOPRO", "file": "GX010001.MP4"}
    info = client.json("/gopro/media/info?path=100GOPRO/GX010001.MP4")
    assert (info["s"], info["ct"], info["dur"]) == (file["s"], "0", "0")
    client.json("/gopro/media/info?path=100GOPRO/GX010009.MP4", status=404)

    size = int(file["s"])
    assert not gopro.idle_and_fetched()
    status, headers, head = client.request("/videos/DCIM/100GOPRO/GX010001.MP4", Range="bytes=0-999")
    assert (status, headers["Content-Range"], len(head)) == (206, f"bytes 0-999/{size}", 1000)
    assert not gopro.idle_and_fetched()
    status, headers, rest = client.request("//videos/DCIM/100GOPRO/GX010001.MP4", Range="bytes=1000-")
    assert (status, headers["Content-Range"]) == (206, f"bytes 1000-{size - 1}/{size}")
    wait_fetched(gopro)

    (truth,) = gopro.camera.kitchen.truth.as_dict()["gopro"]
    assert (truth["file"], truth["bytes"]) == ("GX010001.MP4", size)
    assert truth["sha256"] == hashlib.sha256(head + rest).hexdigest()
    status, headers, whole = client.request("/videos/DCIM/100GOPRO/GX010001.MP4")
    assert (status, headers["Content-Length"], whole) == (200, str(size), head + rest)


def test_ranges_outside_the_file_and_files_that_are_not_there(serve: Serve) -> None:
    _, client = serve()
    client.record(0.05)
    size = int(client.json("/gopro/media/list")["media"][0]["fs"][0]["s"])
    path = "/videos/DCIM/100GOPRO/GX010001.MP4"
    status, headers, body = client.request(path, Range=f"bytes={size}-")
    assert (status, headers["Content-Range"], body) == (416, f"bytes */{size}", b"")
    status, headers, body = client.request(path, Range="bytes=-100")
    assert (status, headers["Content-Range"], len(body)) == (
        206,
        f"bytes {size - 100}-{size - 1}/{size}",
        100,
    )
    status, headers, body = client.request(path, method="HEAD")
    assert (status, headers["Content-Length"], body) == (200, str(size), b"")
    for missing in (
        "100GOPRO/GX010002.MP4",
        "101GOPRO/GX010001.MP4",
        "../truth.json",
        "100GOPRO/../../truth.json",
    ):
        assert client.request(f"/videos/DCIM/{missing}")[0] == 404
    for still in ("/gopro/media/thumbnail?path=100GOPRO/GX010001.MP4", "/videos/DCIM/100GOPRO/GX010001.THM"):
        assert client.request(still)[2][:3] == b"\xff\xd8\xff"
    client.json("/gopro/media/delete/file?path=100GOPRO/GX010009.MP4", status=400)
    assert client.json("//gopro/media/delete/file?path=100GOPRO/GX010001.MP4") == {}
    assert client.request(path)[0] == 404


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, None),
        ("bytes=0-", (0, 10)),
        ("bytes=3-4", (3, 5)),
        ("bytes=3-99", (3, 10)),
        ("bytes=-4", (6, 10)),
        ("bytes=-40", (0, 10)),
        ("bytes=1-2,4-5", None),
        ("lines=1-2", None),
        ("bytes=-", None),
    ],
)
def test_range_headers(header: str | None, expected: tuple[int, int] | None) -> None:
    assert requested_range(header, 10) == expected


@pytest.mark.parametrize("header", ["bytes=10-", "bytes=5-4", "bytes=-0"])
def test_range_headers_that_cannot_be_served(header: str) -> None:
    with pytest.raises(ValueError, match="bytes"):
        requested_range(header, 10)


def test_settings_answer_as_the_camera_does(serve: Serve) -> None:
    _, client = serve()
    assert client.json("/gopro/camera/setting?setting=121&option=4") == {}
    assert client.json("/gopro/camera/state")["status"]["8"] == 1
    client.json("/gopro/camera/setting?setting=121&option=0", status=500)  # busy with the change before
    client.clock.move(LOOK_S)
    client.wait_status(8, 0)
    assert client.json("/gopro/camera/setting?setting=121") == {"option": 4}
    assert client.json("/gopro/camera/state")["settings"]["121"] == 4
    refused = client.json("/gopro/camera/setting?setting=3&option=5", status=403)
    assert (refused["error"], refused["setting_id"], refused["option_id"]) == (3, 3, 5)
    assert refused["supported_options"] == [{"display_name": "30", "id": 8}]
    assert client.json("/gopro/camera/setting?setting=83&option=1", status=403)["error"] == 2
    client.json("/gopro/camera/setting?setting=x", status=400)
    client.json("/gopro/nowhere", status=404)


def test_the_clock_is_set_to_the_second_and_carries_its_zone(serve: Serve) -> None:
    _, client = serve()
    client.json("/gopro/camera/set_date_time?date=2026_1_5&time=3_4_9&tzone=60&dst=1")
    now = client.json("/gopro/camera/get_date_time")
    assert now["date"] == "2026_01_05"
    assert now["time"] == "03_04_09"
    client.clock.move(2.0)
    assert client.json("/gopro/camera/get_date_time")["time"] == "03_04_11"
    assert (now["tzone"], now["dst"]) == (120, 1)
    client.json("/gopro/camera/set_date_time?date=2026_13_5&time=3_4_9", status=400)
    client.record(0.05)
    body = client.request("/videos/DCIM/100GOPRO/GX010001.MP4")[2]
    created_1904 = int.from_bytes(body[body.index(b"mvhd") + 8 :][:4], "big")
    assert 1767575051 <= created_1904 - 2082844800 <= 1767575051 + 1  # 2026-01-05 01:04:11 UTC


def test_several_clips_get_their_own_names_and_times(serve: Serve) -> None:
    gopro, client = serve()
    client.record(0.05)
    client.record(0.05)
    names = [entry["n"] for entry in client.json("/gopro/media/list")["media"][0]["fs"]]
    assert names == ["GX010001.MP4", "GX010002.MP4"]
    kitchen = gopro.camera.kitchen
    for file in kitchen.truth.as_dict()["gopro"]:
        clocks, start_s = file["clock_map"], file["start_world_s"]
        assert "camera" not in file, "the only one needs no number"
        for media_s in (0.0, 100.0):
            world_s = start_s + media_s * (1 + kitchen.camera_clock.drift_ppm * 1e-6)
            ticks = clocks["epoch_ticks"] + 1e7 * (
                media_s + clocks["tau0_s"] + clocks["drift_ppm"] * 1e-6 * media_s
            )
            assert ticks == pytest.approx(kitchen.headset_clock.ticks_at(world_s), abs=1.0)
    client.json("/gp/gpControl/command/storage/delete/all")
    assert client.json("/gopro/media/list")["media"] == []


def test_a_stop_before_the_first_frame_still_gives_a_whole_file(serve: Serve, tmp_path: Path) -> None:
    _, client = serve()
    client.json("/gopro/camera/shutter/start")
    client.json("/gopro/camera/shutter/stop")
    client.finish()
    target = tmp_path / "short.MP4"
    target.write_bytes(client.request("/videos/DCIM/100GOPRO/GX010001.MP4")[2])
    with av.open(str(target)) as container:
        assert len(list(container.decode(video=0))) == 1


def test_frames_of_a_live_clip_fill_the_time_from_start_to_stop(serve: Serve, tmp_path: Path) -> None:
    gopro, client = serve()
    client.open_shutter()
    client.clock.move(0.5)
    stopped_s = gopro.camera.kitchen.now_s()
    client.json("/gopro/camera/shutter/stop")
    client.finish()
    target = tmp_path / "live.MP4"
    target.write_bytes(client.request("/videos/DCIM/100GOPRO/GX010001.MP4")[2])
    with av.open(str(target)) as container:
        frames = len(list(container.decode(video=0)))
    start_s = gopro.camera.kitchen.truth.as_dict()["gopro"][0]["start_world_s"]
    film_s = stopped_s - start_s
    assert film_s * 29.97 - 0.1 <= frames <= film_s * 29.97 + 1.1


def test_a_busy_port_and_an_unknown_model_are_named(serve: Serve, tmp_path: Path) -> None:
    kitchen = Kitchen(SEED, simulated_motion(SEED), Truth(tmp_path, SEED))
    kitchen.__dict__["scene"] = painted(SEED)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(PortBusy, match=f"127.0.0.1:{port}"):
            VirtualGoPro(kitchen, "127.0.0.1", port, "hero12", None).start()
    with pytest.raises(KitchenError, match="hero12"):
        VirtualGoPro(kitchen, "127.0.0.1", 0, "hero3", None)


def test_stopping_in_the_middle_of_a_clip_leaves_no_thread(serve: Serve) -> None:
    gopro, client = serve()
    client.json("/gopro/camera/shutter/start")
    with socket.create_connection(("127.0.0.1", client.port)) as waiting:
        waiting.sendall(b"GET /gopro/version HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = b""
        while not answer.endswith(b'{"version": "2.0"}'):
            answer += waiting.recv(4096)
        gopro.stop()
        assert waiting.recv(4096) == b""
    assert gopro.camera.kitchen.truth.as_dict()["gopro"] == []


def test_the_gyro_of_a_real_file(shared_data: Callable[[str], Path]) -> None:
    t_s, rad_per_s = read_gyro(shared_data("gopro/max-heromode.mp4"))
    everything = json.loads(shared_data("gopro/ground_truth.json").read_text())["max-heromode.mp4"]
    truth = everything["streams"]["GYRO"]
    assert len(t_s) == truth["samples"]
    assert t_s[0] == pytest.approx(everything["gyro_first_minus_shut_first_us"] / 1e6)
    assert 1 / np.diff(t_s) == pytest.approx(truth["rate_hz_from_stmp"], abs=1e-4)
    # ORIN XzY: X, -Z, Y are stored; the head has x right = -X, y up = Z, z back = Y.
    for row, stored in ((0, truth["first_scaled_stored_order"]), (-1, truth["last_scaled_stored_order"])):
        assert rad_per_s[row] == pytest.approx([-stored[0], -stored[1], stored[2]], abs=1e-6)


def test_a_replay_hands_out_the_real_file(
    serve: Serve, shared_data: Callable[[str], Path], tmp_path: Path
) -> None:
    path = shared_data("gopro/max-heromode.mp4")
    t_s, rad_per_s = read_gyro(path)
    motion = ReplayFromShutter(replayed_motion(t_s, rad_per_s, SEED), t_s[0])
    gopro, client = serve(Kitchen(SEED, motion, Truth(tmp_path / "sim", SEED)), path)
    assert np.corrcoef(motion.angular_velocity(t_s[1:]).ravel(), rad_per_s[1:].ravel())[0, 1] > 0.999
    client.record(0.2)
    assert client.request("/videos/DCIM/100GOPRO/GX010001.MP4")[2] == path.read_bytes()
    wait_fetched(gopro)
    (truth,) = gopro.camera.kitchen.truth.as_dict()["gopro"]
    assert "STMP_gyro,first" in truth["gyro_times"]
    assert truth["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    # The head turns at the headset's tick of media time t as the file says for t.
    clocks, headset = truth["clock_map"], gopro.camera.kitchen.headset_clock
    ticks = clocks["epoch_ticks"] + 1e7 * (t_s + clocks["tau0_s"] + clocks["drift_ppm"] * 1e-6 * t_s)
    world_s = (ticks - headset.epoch_ticks) / headset.ticks_per_world_s
    seen = motion.angular_velocity(world_s)
    assert np.corrcoef(seen.ravel(), rad_per_s.ravel())[0, 1] > 0.999
    client.json("/gopro/camera/shutter/start", status=500)


def test_a_file_without_stamps_is_named(tmp_path: Path, shared_data: Callable[[str], Path]) -> None:
    garbage = tmp_path / "garbage.MP4"
    garbage.write_bytes(b"not a film")
    with pytest.raises(BadReplay, match=r"garbage\.MP4"):
        read_gyro(garbage)
    with pytest.raises(BadReplay, match=r"hero5\.raw"):
        read_gyro(shared_data("gopro/hero5.raw"))
