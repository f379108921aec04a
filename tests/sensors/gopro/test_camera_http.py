"""Control of the camera of `conftest.py`."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from datetime import datetime
from typing import Any

import pytest

from kitchensync.sensors.errors import CameraBusy, CameraLost, CameraRefused, CameraTalk
from kitchensync.sensors.gopro.control import camera as camera_module
from kitchensync.sensors.gopro.control.camera import GoProHttp, MediaFile

Gopro = tuple[Any, str]
LOCAL = datetime(2026, 1, 5, 3, 4, 9)  # noqa: DTZ001 (a local time, as the camera gives it)


def test_questions(gopro: Gopro) -> None:
    with GoProHttp(gopro[1]) as camera:
        assert camera.info()[:3] == ("HERO12 Black", "H23.01", "C1")
        state = camera.state()
        assert (state.ready, state.battery_percent, state.complaints()) == (True, 90, [])
        clock = camera.get_clock()
        assert (clock.local, clock.zone_minutes, clock.summer_time) == (
            LOCAL,
            120,
            True,
        )
        camera.set_clock(LOCAL, -480)
    assert gopro[0].requests[-1].endswith("set_date_time?date=2026_1_5&time=3_4_9&tzone=-480&dst=0")


def test_media_list_by_recording_and_chapter(gopro: Gopro) -> None:
    with GoProHttp(gopro[1]) as camera:
        files = camera.media()
    assert [file.name for file in files] == ["GX010001.MP4", "GX020001.MP4", "GX010002.MP4"]
    assert [(file.recording_number, file.chapter) for file in files] == [
        ("0001", 1),
        ("0001", 2),
        ("0002", 1),
    ]
    assert files[0] == MediaFile("100GOPRO", "GX010001.MP4", len(gopro[0].file), 1768839442)


def test_shutter_times_include_request_and_observation(gopro: Gopro) -> None:
    with GoProHttp(gopro[1]) as camera:
        before = time.monotonic_ns()
        started = camera.shutter(True)
        assert before <= started.before_host_ns <= started.after_host_ns <= started.observed_host_ns
        assert started.observed_host_ns <= time.monotonic_ns()
        assert gopro[0].encoding
        camera.shutter(False)
        assert not gopro[0].encoding
        assert camera.wait_idle().ready
        camera.shutter(False)  # already idle: refused by the camera, harmless here
    assert sum(request.endswith("shutter/start") for request in gopro[0].requests) == 1


def test_a_recording_camera_is_stopped_first(gopro: Gopro) -> None:
    gopro[0].encoding = True
    with GoProHttp(gopro[1]) as camera:
        camera.shutter(True)
    shutters = [request.rpartition("/")[2] for request in gopro[0].requests if "shutter" in request]
    assert shutters == ["stop", "start"]


def test_a_camera_that_does_not_start_is_named_with_its_error(
    gopro: Gopro, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(camera_module, "START_TIMEOUT_S", 0.1)
    gopro[0].works, gopro[0].storage = False, 1
    with (
        GoProHttp(gopro[1]) as camera,
        pytest.raises(CameraBusy, match=r"did not begin to record.*card: full"),
    ):
        camera.shutter(True)


def test_a_camera_that_stays_busy(gopro: Gopro) -> None:
    gopro[0].busy_left = 10**9
    with GoProHttp(gopro[1]) as camera, pytest.raises(CameraBusy, match="still busy after 0.1 s"):
        camera.wait_idle(timeout_s=0.1)


def test_lost_requests_are_repeated_except_a_start(gopro: Gopro) -> None:
    camera_state = gopro[0]
    camera_state.fail_first["/gopro/camera/state"] = 2
    with GoProHttp(gopro[1]) as camera:
        assert camera.state().ready
        camera_state.fail_first["/gopro/camera/shutter/start"] = 1
        with pytest.raises(CameraLost):
            camera.shutter(True)
    assert sum(request.endswith("shutter/start") for request in camera_state.requests) == 1


def test_a_start_counts_if_only_its_answer_was_lost(gopro: Gopro, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(camera_module, "HEARD_S", 30.0)  # it ends as soon as the camera shows that it records
    gopro[0].lost_answers["/gopro/camera/shutter/start"] = 1
    with GoProHttp(gopro[1]) as camera:
        started = camera.shutter(True)
        assert started.before_host_ns < started.observed_host_ns
        assert camera.state().encoding
    assert sum(request.endswith("shutter/start") for request in gopro[0].requests) == 1


@pytest.mark.slow
def test_a_missing_and_a_silent_camera() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with (
            GoProHttp(f"http://127.0.0.1:{port}", timeout_s=0.1) as camera,
            pytest.raises(CameraLost, match="timed out"),
        ):
            camera.state()
    with GoProHttp(f"http://127.0.0.1:{port}") as camera, pytest.raises(CameraLost, match="check cable"):
        camera.state()


@pytest.mark.slow
def test_a_slow_answer_ends_in_time() -> None:
    stop = threading.Event()

    def drip(listener: socket.socket) -> None:
        sockets = []
        for _ in range(3):
            sock, _address = listener.accept()
            sockets.append(sock)
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
            with suppress(OSError):
                while not stop.wait(0.02):
                    sock.sendall(b" ")
        for sock in sockets:
            sock.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener,))
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with GoProHttp(url, timeout_s=0.2) as camera, pytest.raises(CameraLost, match="timed out"):
            camera.state()
        stop.set()
        thread.join(timeout=60)
        assert not thread.is_alive()


@pytest.mark.parametrize("body", [b"<html>", b"[1]", b'{"status": {}}', b'{"status": 5}', b""])
def test_answers_of_other_devices(gopro: Gopro, body: bytes) -> None:
    gopro[0].body_of["/gopro/camera/state"] = (200, body)
    with GoProHttp(gopro[1]) as camera, pytest.raises(CameraTalk):
        camera.state()


def test_strange_media_lists(gopro: Gopro) -> None:
    with GoProHttp(gopro[1]) as camera:
        for body in (
            b"{}",
            b'{"media": 5}',
            b'{"media": [{"d": "x", "fs": [{"n": "y"}]}]}',
            b'{"media": [4]}',
        ):
            gopro[0].body_of["/gopro/media/list"] = (200, body)
            with pytest.raises(CameraTalk):
                camera.media()


def test_a_refused_setting_names_the_available_ones(gopro: Gopro) -> None:
    with GoProHttp(gopro[1]) as camera, pytest.raises(CameraRefused, match="it offers 4K, 1080"):
        camera.set_setting(2, 100)
