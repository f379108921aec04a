"""Control and download against a small camera of our own, written from the vendor's interface."""

from __future__ import annotations

import hashlib
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from sensors.errors import (
    CameraBusy,
    CameraLost,
    CameraRefused,
    CameraTalk,
    DownloadFailed,
    UnsafeName,
)
from sensors.gopro import camera as camera_module
from sensors.gopro.camera import GoProHttp, MediaFile
from sensors.gopro.download import Downloaded, download


def box(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data) + 8) + kind + data


class Camera:
    """State machine: start takes `start_polls` state answers, finalising takes `busy_polls`."""

    def __init__(self) -> None:
        body = bytes((k * 7919 >> 4) & 0xFF for k in range(300_000))
        self.file = box(b"ftyp", b"mp41") + box(b"mdat", body) + box(b"moov", b"index")
        self.encoding = False
        self.busy_left = 0
        self.start_left = -1
        self.start_polls, self.busy_polls = 2, 2
        self.works = True
        self.storage = 0
        self.requests: list[str] = []
        self.ranges: list[str | None] = []
        self.cuts: list[int] = []
        "Bytes of body after which a download connection is cut, one for each request."
        self.ignore_range = False
        self.fail_first: dict[str, int] = {}
        "Path -> how many requests end without an answer."
        self.body_of: dict[str, tuple[int, bytes]] = {}

    def state(self) -> dict[str, object]:
        if self.start_left >= 0:
            self.start_left -= 1
            self.encoding = self.start_left < 0
        busy, self.busy_left = self.busy_left > 0, max(0, self.busy_left - 1)
        status = {"8": int(busy), "10": int(self.encoding), "33": self.storage, "70": 90, "13": 0, "35": 5000}
        return {"status": status, "settings": {"2": 1}}

    def answer(self, path: str, query: dict[str, list[str]]) -> tuple[int, object]:
        if path == "/gopro/camera/state":
            return 200, self.state()
        if path == "/gopro/camera/shutter/start":
            if self.encoding or self.busy_left:
                return 500, {}
            if self.works:
                self.start_left = self.start_polls
            return 200, {}
        if path == "/gopro/camera/shutter/stop":
            if not self.encoding:
                return 500, {}
            self.encoding, self.busy_left = False, self.busy_polls
            return 200, {}
        if path == "/gopro/camera/info":
            return 200, {"model_name": "HERO12 Black", "firmware_version": "H23.01", "serial_number": "C1"}
        if path == "/gopro/camera/get_date_time":
            return 200, {"date": "2026_1_5", "time": "3_4_9", "tzone": 120, "dst": 1}
        if path == "/gopro/camera/set_date_time":
            return 200, {}
        if path == "/gopro/camera/setting":
            offered = [{"display_name": "4K", "id": 1}, {"display_name": "1080", "id": 9}]
            return 403, {"error": 3, "supported_options": offered}
        if path == "/gopro/media/list":
            files = [
                {"n": name, "cre": "1768839442", "mod": "1768839442", "ls": "-1", "s": str(len(self.file))}
                for name in ("GX020001.MP4", "GX010002.MP4", "GX010001.MP4")
            ]
            return 200, {"id": "1", "media": [{"d": "100GOPRO", "fs": files}]}
        return 404, {"error": "unknown", "query": str(query)}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        camera: Camera = self.server.camera  # type: ignore[attr-defined]
        parts = urlsplit(self.path)
        camera.requests.append(self.path)
        if camera.fail_first.get(parts.path, 0) > 0:
            camera.fail_first[parts.path] -= 1
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        elif parts.path in camera.body_of:
            self.reply(*camera.body_of[parts.path])
        elif parts.path.startswith("/videos/DCIM/"):
            self.send_file(camera)
        else:
            status, answer = camera.answer(parts.path, parse_qs(parts.query))
            self.reply(status, json.dumps(answer).encode())

    def reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def send_file(self, camera: Camera) -> None:
        wanted = self.headers.get("Range")
        camera.ranges.append(wanted)
        start = 0
        if wanted and not camera.ignore_range:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if start >= len(camera.file):
                self.reply(416, b"")
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(camera.file) - 1}/{len(camera.file)}")
        else:
            self.send_response(200)
        body = camera.file[start:]
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if camera.cuts:
            self.wfile.write(body[: camera.cuts.pop(0)])
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        else:
            self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Stay quiet: the requests are kept for the tests."""


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *args: object) -> None:
        """A connection that was cut on purpose is no error."""


@pytest.fixture
def gopro(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Camera, str]]:
    monkeypatch.setattr(camera_module, "POLL_S", 0.01)
    monkeypatch.setattr(camera_module, "RETRY_S", 0.01)
    server = Server(("127.0.0.1", 0), Handler)
    server.camera = Camera()  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server.camera, f"http://127.0.0.1:{server.server_port}"  # type: ignore[attr-defined]
    server.shutdown()
    server.server_close()
    thread.join(timeout=10)


Gopro = tuple[Camera, str]
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


def test_shutter_is_stamped_around_and_when_seen(gopro: Gopro) -> None:
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


def test_a_recording_camera_is_stopped_first_or_refused(gopro: Gopro) -> None:
    gopro[0].encoding = True
    with GoProHttp(gopro[1]) as camera:
        with pytest.raises(CameraBusy, match="recording already"):
            camera.shutter(True, if_recording="refuse")
        camera.shutter(True)
    shutters = [request.rpartition("/")[2] for request in gopro[0].requests if "shutter" in request]
    assert shutters == ["stop", "start"]


def test_a_camera_that_does_not_begin_is_named_with_its_complaint(
    gopro: Gopro, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(camera_module, "START_TIMEOUT_S", 0.1)
    gopro[0].works, gopro[0].storage = False, 1
    with (
        GoProHttp(gopro[1]) as camera,
        pytest.raises(CameraBusy, match=r"did not begin to record.*card: full"),
    ):
        camera.shutter(True)


def test_busy_for_ever(gopro: Gopro) -> None:
    gopro[0].busy_left = 10**9
    with GoProHttp(gopro[1]) as camera, pytest.raises(CameraBusy, match="still busy after 0.1 s"):
        camera.wait_idle(timeout_s=0.1)


def test_a_lost_answer_is_asked_again_but_never_a_start(gopro: Gopro) -> None:
    camera_state = gopro[0]
    camera_state.fail_first["/gopro/camera/state"] = 2
    with GoProHttp(gopro[1]) as camera:
        assert camera.state().ready
        camera_state.fail_first["/gopro/camera/shutter/start"] = 1
        with pytest.raises(CameraLost):
            camera.shutter(True)
    assert sum(request.endswith("shutter/start") for request in camera_state.requests) == 1


def test_camera_gone_and_camera_silent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with (
            GoProHttp(f"http://127.0.0.1:{port}", timeout_s=0.1) as camera,
            pytest.raises(CameraLost, match="timed out"),
        ):
            camera.state()
    with GoProHttp(f"http://127.0.0.1:{port}") as camera, pytest.raises(CameraLost, match="check cable"):
        camera.state()


def test_a_dripping_answer_ends_in_time() -> None:
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
        thread.join(timeout=10)
        assert not thread.is_alive()


@pytest.mark.parametrize("body", [b"<html>", b"[1]", b'{"status": {}}', b'{"status": 5}', b""])
def test_answers_that_are_no_camera(gopro: Gopro, body: bytes) -> None:
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


def test_a_refused_setting_names_what_is_offered(gopro: Gopro) -> None:
    with GoProHttp(gopro[1]) as camera, pytest.raises(CameraRefused, match="it offers 4K, 1080"):
        camera.set_setting(2, 100)


# --- downloads -----------------------------------------------------------------------------------


def wanted(camera: Camera, name: str = "GX010001.MP4") -> MediaFile:
    return MediaFile("100GOPRO", name, len(camera.file), None)


def fetch(gopro: Gopro, target: Path, progress: Callable[[int, int], None] | None = None) -> Downloaded:
    return download(gopro[1], wanted(gopro[0]), target, progress, read_timeout_s=2, back_off_s=0.01)


def test_a_whole_file(gopro: Gopro, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    got = fetch(gopro, tmp_path, lambda here, total: seen.append((here, total)))
    assert got.path == tmp_path / "GX010001.MP4"
    assert got.path.read_bytes() == gopro[0].file
    assert got.sha256 == hashlib.sha256(gopro[0].file).hexdigest()
    assert seen[-1] == (len(gopro[0].file), len(gopro[0].file))
    assert sorted(seen) == seen
    assert [path.name for path in tmp_path.iterdir()] == ["GX010001.MP4"]
    again = fetch(gopro, tmp_path / "GX010001.MP4")
    assert again.sha256 == got.sha256
    assert len(gopro[0].ranges) == 1


@pytest.mark.parametrize("ignore_range", [False, True])
def test_cuts_are_continued(gopro: Gopro, tmp_path: Path, ignore_range: bool) -> None:
    gopro[0].cuts, gopro[0].ignore_range = [100_000, 0, 120_000], ignore_range
    got = fetch(gopro, tmp_path / "here.MP4")
    assert got.path.read_bytes() == gopro[0].file
    assert got.sha256 == hashlib.sha256(gopro[0].file).hexdigest()
    assert gopro[0].ranges[0] is None
    assert ignore_range or None not in gopro[0].ranges[1:]


def test_a_later_call_continues_a_part(gopro: Gopro, tmp_path: Path) -> None:
    gopro[0].cuts = [150_000] + [0] * 20
    with pytest.raises(DownloadFailed, match="150000 of .* bytes are here; run it again"):
        fetch(gopro, tmp_path)
    part = tmp_path / "GX010001.MP4.part"
    assert part.read_bytes() == gopro[0].file[:150_000]
    gopro[0].cuts, gopro[0].ranges = [], []
    assert fetch(gopro, tmp_path).path.read_bytes() == gopro[0].file
    assert gopro[0].ranges == [f"bytes={150_000 - 65_536}-"]
    assert not part.exists()


@pytest.mark.parametrize("left", [b"x" * 1000, b"x" * 500_000], ids=["another file", "too long"])
def test_a_part_of_another_file_is_thrown_away(gopro: Gopro, tmp_path: Path, left: bytes) -> None:
    (tmp_path / "GX010001.MP4.part").write_bytes(left)
    assert fetch(gopro, tmp_path).path.read_bytes() == gopro[0].file


def test_a_file_without_index_is_refused(gopro: Gopro, tmp_path: Path) -> None:
    gopro[0].file = gopro[0].file[:-13] + bytes(13)
    with pytest.raises(DownloadFailed, match="moov"):
        fetch(gopro, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_other_file_is_never_written_over(gopro: Gopro, tmp_path: Path) -> None:
    (tmp_path / "GX010001.MP4").write_bytes(b"precious")
    with pytest.raises(DownloadFailed, match="move it away"):
        fetch(gopro, tmp_path)
    assert (tmp_path / "GX010001.MP4").read_bytes() == b"precious"


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("100GOPRO", "../../etc/passwd"),
        ("..", "GX010001.MP4"),
        ("100GOPRO", "a/b.MP4"),
        ("100GOPRO", "..MP4"),
        ("100GOPRO", ""),
        ("100GOPRO", "GX01\n.MP4"),
        ("/etc", "GX010001.MP4"),
    ],
)
def test_unsafe_names_are_refused(gopro: Gopro, tmp_path: Path, folder: str, name: str) -> None:
    with pytest.raises(UnsafeName) as refused:
        download(gopro[1], MediaFile(folder, name, 10, None), tmp_path)
    assert "\n" not in str(refused.value)
    assert gopro[0].requests == []


def test_no_room_and_missing_file_are_words(gopro: Gopro, tmp_path: Path) -> None:
    with pytest.raises(DownloadFailed, match="no such file or directory"):
        fetch(gopro, tmp_path / "nowhere" / "x.MP4")
    gopro[0].body_of["/videos/DCIM/100GOPRO/GX010009.MP4"] = (404, b"")
    with pytest.raises(CameraRefused, match="HTTP 404"):
        download(gopro[1], wanted(gopro[0], "GX010009.MP4"), tmp_path)


def test_more_bytes_than_promised(gopro: Gopro, tmp_path: Path) -> None:
    short = MediaFile("100GOPRO", "GX010001.MP4", 1000, None)
    with pytest.raises(DownloadFailed, match="more than the 1000 bytes"):
        download(gopro[1], short, tmp_path)
