"""A camera that means harm: each of its answers ends within the time and the bytes that a camera may take."""

from __future__ import annotations

import gzip
import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from sensors.errors import CameraError, DownloadFailed
from sensors.gopro import download as download_module
from sensors.gopro.camera import GoProHttp
from sensors.gopro.camera_types import MediaFile
from sensors.gopro.download import download
from sensors.untrusted_json import BadJson, parse_json, parse_object

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
LIMIT_S = 0.6
Answering = Callable[[], Iterator[bytes]]


def whole(body: bytes, head: bytes = OK) -> Answering:
    return lambda: iter([head + b"Content-Length: %d\r\n\r\n" % len(body) + body])


def drip(start: bytes, piece: bytes) -> Answering:
    def send() -> Iterator[bytes]:
        yield start
        while True:
            time.sleep(0.05)
            yield piece

    return send


def for_ever(start: bytes, piece: bytes) -> Answering:
    return lambda: itertools.chain([start], itertools.repeat(piece))


HOSTILE: dict[str, Answering] = {
    "says nothing": lambda: iter([b""]),
    "drips its status": drip(b"H", b"T"),
    "drips headers": drip(OK, b"x"),
    "drips header after header": drip(OK, b"X-A: 1\r\n"),
    "drips its body": drip(OK + b"Content-Length: 100000\r\n\r\n{", b" "),
    "sends headers for ever": for_ever(OK, b"X-A: 1\r\n" * 1000),
    "sends one header for ever": for_ever(OK + b"X-A: ", b"a" * 65536),
    "sends 100 Continue for ever": for_ever(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    "sends 100 Continue slowly": drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "sends 103 and nothing else": lambda: iter([b"HTTP/1.1 103 Early Hints\r\n\r\n"]),
    "sends a body for ever": for_ever(OK + b"Connection: close\r\n\r\n", b" " * 65536),
    "sends chunks for ever": for_ever(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"4\r\n    \r\n" * 1000),
    "sends a chunk of odd length": lambda: iter([OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n"]),
    "sends a chunk of negative length": lambda: iter(
        [OK + b"Transfer-Encoding: chunked\r\n\r\n-5\r\n{}\r\n"]
    ),
    "promises more than it sends": lambda: iter([OK + b"Content-Length: 1000000000000\r\n\r\n{}"]),
    "promises a negative length": lambda: iter([OK + b"Content-Length: -1\r\n\r\n[]"]),
    "packs a bomb": whole(gzip.compress(b" " * 10_000_000), OK + b"Content-Encoding: gzip\r\n"),
    "speaks no HTTP": lambda: iter([b"\x16\x03\x01\x00\x00" * 10]),
    "has an odd status": lambda: iter([b"HTTP/1.1 99999 what\r\n\r\n"]),
    "sends another place": lambda: iter([b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n"]),
    "nests without end": whole(b"[" * 1_000_000),
    "nests objects": whole(b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    "sends a list": whole(b"[1]"),
    "sends infinity": whole(b'{"status": {"8": Infinity, "10": 0}, "settings": {}}'),
    "sends a number beyond all": whole(b'{"status": {"8": 1e999, "10": 0}}'),
    "sends a number of a million digits": whole(b'{"status": {"8": ' + b"9" * 1_000_000 + b"}}"),
    "sends no text": whole(b"\xff\xfe\x00"),
    "sends a state of other types": whole(b'{"status": [8, 10]}'),
}


@pytest.fixture
def camera(request: pytest.FixtureRequest) -> Iterator[str]:
    answer, stop = HOSTILE[request.param], threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.1)

        def serve(client: socket.socket) -> None:
            client.settimeout(1)
            with closing(client), suppress(OSError):
                client.recv(65536)
                for part in answer():
                    if stop.is_set():
                        return
                    client.sendall(part)

        def listen() -> None:
            while not stop.is_set():
                with suppress(OSError):
                    threads.append(threading.Thread(target=serve, args=(listener.accept()[0],)))
                    threads[-1].start()

        threads: list[threading.Thread] = []
        listening = threading.Thread(target=listen)
        listening.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        stop.set()
        listening.join()
        for thread in threads:
            thread.join()


@pytest.mark.slow
@pytest.mark.timeout(30)
@pytest.mark.parametrize("camera", HOSTILE, indirect=True, ids=str)
def test_an_answer_that_means_harm_ends_in_one_line(
    camera: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download_module, "LEAST_IN_S", LIMIT_S)
    with GoProHttp(camera, timeout_s=LIMIT_S) as gopro, pytest.raises(CameraError) as refused:
        gopro.state()
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 400
    file = MediaFile("100GOPRO", "GX010001.MP4", 1_000_000, None)
    with pytest.raises((DownloadFailed, CameraError)):
        download(camera, file, tmp_path / "film.MP4", read_timeout_s=LIMIT_S, back_off_s=0.0)
    assert not (tmp_path / "film.MP4").exists()


@pytest.mark.parametrize(
    "text", ["NaN", "-Infinity", "1e400", "1" * 30, "[" * 65, '{"a":' * 70, "\ud800", b"\xff", ""]
)
def test_json_beyond_its_bounds_is_refused(text: str | bytes) -> None:
    with pytest.raises(BadJson):
        parse_json(text)


def test_json_within_its_bounds_is_what_it_says() -> None:
    deep = "[" * 64 + '"[[[{{{"' + "]" * 64
    assert parse_json(deep) is not None
    assert parse_object('{"a": [1, 2.5, "\\u00e4[", null, true], "ns": 1795427049084053123}') == {
        "a": [1, 2.5, "ä[", None, True],
        "ns": 1795427049084053123,
    }
    with pytest.raises(BadJson, match="no JSON object"):
        parse_object("[]")
    with pytest.raises(BadJson, match="at most 10"):
        parse_json(" " * 11, most_bytes=10)
