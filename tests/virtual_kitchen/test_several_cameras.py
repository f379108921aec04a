"""Several cameras on one head: one world, filmed by each with its own mount, clock and number."""

from __future__ import annotations

import hashlib
import http.client
import json
import socket
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from waiting import until

from kitchensync.sensors.gopro.files.clip import open_clip
from kitchensync.virtual_kitchen.errors import KitchenError, PortBusy
from kitchensync.virtual_kitchen.gopro.files.sensors import CameraMount
from kitchensync.virtual_kitchen.simulation import Options, run
from kitchensync.virtual_kitchen.world.clocks import camera_clock, headset_clock
from kitchensync.virtual_kitchen.world.motion import simulated_motion
from kitchensync.virtual_kitchen.world.seeds import camera_seed

SEED = 117
"""The crystals of its first two cameras lie 73 ppm apart: 0.2 ms in the middle of a film of five seconds."""
FILM, FILM_S = "/videos/DCIM/100GOPRO/GX010001.MP4", 5
ALONE_S = 0.2
HEAD_AXES = np.array([[-1, 0, 0], [0, 0, 1], [0, 1, 0]])
"""From a GoPro's X left, Y back, Z up to x right, y up, z back."""
SOUND_HZ = 48_000


@dataclass(frozen=True)
class Camera:
    """One camera of a kitchen, as a client sees it."""

    host: str
    port: int

    def get(self, path: str, **headers: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def ask(self, path: str) -> Any:
        status, body = self.get(path)
        assert status == 200, (path, status, body)
        return json.loads(body)

    def status(self, number: int) -> int:
        return int(self.ask("/gopro/camera/state")["status"][str(number)])

    def film(self) -> bytes:
        return self.get(FILM)[1]


@dataclass(frozen=True)
class Film:
    """The film of one camera, with what the truth says of it."""

    path: Path
    truth: dict[str, Any]

    def world_s(self, media_s: np.ndarray) -> np.ndarray:
        """Go by the truth's own map to the headset's ticks, and from there to the world's time."""
        clocks, headset = self.truth["clock_map"], headset_clock(SEED)
        since_epoch_s = media_s + clocks["tau0_s"] + clocks["drift_ppm"] * 1e-6 * media_s
        assert clocks["epoch_ticks"] == headset.epoch_ticks
        return since_epoch_s * 1e7 / headset.ticks_per_world_s

    def sound(self) -> np.ndarray:
        with av.open(str(self.path)) as container:
            return np.concatenate([block.to_ndarray()[0] for block in container.decode(audio=0)])


@dataclass(frozen=True)
class Filmed:
    """What two cameras of one kitchen said and filmed."""

    infos: list[dict[str, Any]]
    films: list[Film]
    range_statuses: list[int]


@pytest.fixture(scope="module")
def filmed(start_kitchen: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Filmed:
    """Film with two cameras at once; the kitchen ends by itself, once both films are fetched."""
    options = ("--gopro-port", "0", "--seed", str(SEED), "--seconds", "1", "--fault", "gopro_ignore_range")
    kitchen = start_kitchen(*options, alone_s=ALONE_S)
    ports = [int(port) for port in kitchen.ready.removeprefix("ready gopro=").split(",")]
    assert len(set(ports)) == 2
    cameras = [Camera(kitchen.host, port) for port in ports]
    infos = [camera.ask("/gopro/camera/info") for camera in cameras]
    for camera in cameras:
        camera.ask("/gopro/camera/shutter/start")
    until(lambda: all(camera.status(13) >= FILM_S for camera in cameras), "films of some seconds")
    for camera in cameras:
        camera.ask("/gopro/camera/shutter/stop")
    until(lambda: all(camera.ask("/gopro/media/list")["media"] for camera in cameras), "two closed files")
    statuses = [camera.get(FILM, Range="bytes=0-9")[0] for camera in cameras]
    folder = tmp_path_factory.mktemp("films")
    (folder / "0.MP4").write_bytes(cameras[0].film())
    with pytest.raises(subprocess.TimeoutExpired):
        kitchen.process.wait(10 * ALONE_S)  # the other one's film was not fetched
    (folder / "1.MP4").write_bytes(cameras[1].film())
    kitchen.process.communicate(timeout=120)
    assert kitchen.process.returncode == 0
    truths = sorted(kitchen.truth()["gopro"], key=lambda file: file["camera"])
    assert [(file["camera"], file["file"]) for file in truths] == [(0, "GX010001.MP4"), (1, "GX010001.MP4")]
    return Filmed(infos, [Film(folder / f"{file['camera']}.MP4", file) for file in truths], statuses)


@pytest.mark.slow
def test_each_camera_has_its_own_number_clock_and_card(filmed: Filmed) -> None:
    first, second = filmed.films
    assert len({info["serial_number"] for info in filmed.infos}) == 2
    for info, film in zip(filmed.infos, filmed.films, strict=True):
        data = film.path.read_bytes()
        assert film.truth["bytes"] == len(data)
        assert film.truth["sha256"] == hashlib.sha256(data).hexdigest()
        assert open_clip(film.path).chapters[0].serial == info["serial_number"]
    drifts = [film.truth["clock_map"]["drift_ppm"] for film in filmed.films]
    assert drifts[0] == pytest.approx(headset_clock(SEED).drift_ppm + camera_clock(SEED).drift_ppm, abs=0.01)
    assert abs(drifts[1] - drifts[0]) > 70
    assert first.truth["start_world_s"] != second.truth["start_world_s"]
    assert filmed.range_statuses == [200, 206], "faults hit the first camera"


@pytest.mark.slow
def test_both_gyroscopes_are_the_same_head_through_each_mount_and_clock(filmed: Filmed) -> None:
    motion, shifts_s = simulated_motion(SEED), np.linspace(-0.003, 0.003, 13)
    mounts = [CameraMount.of_seed(camera_seed(SEED, number)) for number in range(2)]
    head_from_camera = [Rotation.from_quat(np.roll(mount.wxyz, -1)) for mount in mounts]
    assert 1 < np.degrees((head_from_camera[0].inv() * head_from_camera[1]).magnitude()) < 18
    for film, mount, turn in zip(filmed.films, mounts, head_from_camera, strict=True):
        track = open_clip(film.path).gyroscope()
        head = turn.apply((track.xyz - mount.gyro_bias) @ HEAD_AXES.T)
        true = [motion.angular_velocity(film.world_s(track.t_s + shift_s)) for shift_s in shifts_s]
        costs = [np.square(head - rates).mean() for rates in true]
        assert costs[len(costs) // 2] < 0.003**2
        curve = np.polyfit(shifts_s, costs, 2)
        assert abs(-curve[1] / (2 * curve[0])) < 1e-4


@pytest.mark.slow
def test_both_hear_the_same_sound_at_the_same_time(filmed: Filmed) -> None:
    sounds = [film.sound() for film in filmed.films]
    times_s = [
        film.world_s(np.arange(len(sound)) / SOUND_HZ)
        for film, sound in zip(filmed.films, sounds, strict=True)
    ]
    both_s = np.arange(max(t[0] for t in times_s), min(t[-1] for t in times_s), 1 / SOUND_HZ)
    first, second = (np.interp(both_s, t, sound) for t, sound in zip(times_s, sounds, strict=True))
    assert len(both_s) > 3 * SOUND_HZ
    assert np.corrcoef(first, second)[0, 1] > 0.99, "a sample off gives 0.98"


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"gopro_ports": (0, 8081, 8081)}, "--gopro-port"),
        ({"gopro_ports": (0, 0), "scene": "board"}, "--scene board"),
        ({"gopro_ports": (0, 0), "replay": "GX010001.MP4"}, "replayed video"),
    ],
)
def test_what_several_cameras_cannot_do_is_one_line(tmp_path: Path, more: dict[str, Any], named: str) -> None:
    with pytest.raises(KitchenError, match=named) as refused:
        run(Options(1, tmp_path / "sim", **more))
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "sim").exists()


@pytest.mark.slow
def test_a_busy_port_of_the_second_camera_closes_the_first(
    tmp_path: Path, loopback_host: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts = {"hololens_host": loopback_host, "gopro_host": loopback_host}
    with socket.create_server((loopback_host, 0)) as taken, socket.create_server((loopback_host, 0)) as free:
        busy, first = taken.getsockname()[1], free.getsockname()[1]
        free.close()
        with pytest.raises(PortBusy, match=f"{loopback_host}:{busy} "):
            run(Options(1, tmp_path, gopro_ports=(first, busy), **hosts))
    assert capsys.readouterr().out == ""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((loopback_host, first), timeout=60)
