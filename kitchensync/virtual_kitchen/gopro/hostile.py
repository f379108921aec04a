"""Hostile cameras: each has its own port and answers every request with one kind of harmful data.

python -m kitchensync.virtual_kitchen.gopro.hostile HOST      prints {NAME: URL} as JSON; ends with its input
"""

import gzip
import itertools
import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
PAUSE_S = 0.05
Answering = Callable[[], Iterator[bytes]]


def _whole(body: bytes, head: bytes = OK) -> Answering:
    return lambda: iter([head + b"Content-Length: %d\r\n\r\n" % len(body) + body])


def _drip(start: bytes, piece: bytes) -> Answering:
    def send() -> Iterator[bytes]:
        yield start
        while True:
            time.sleep(PAUSE_S)
            yield piece

    return send


def _for_ever(start: bytes, piece: bytes) -> Answering:
    return lambda: itertools.chain([start], itertools.repeat(piece))


HOSTILE: dict[str, Answering] = {
    "says nothing": lambda: iter([b""]),
    "drips its status": _drip(b"H", b"T"),
    "drips headers": _drip(OK, b"x"),
    "drips header after header": _drip(OK, b"X-A: 1\r\n"),
    "drips its body": _drip(OK + b"Content-Length: 100000\r\n\r\n{", b" "),
    "sends headers for ever": _for_ever(OK, b"X-A: 1\r\n" * 1000),
    "sends one header for ever": _for_ever(OK + b"X-A: ", b"a" * 65536),
    "sends 100 Continue for ever": _for_ever(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    "sends 100 Continue slowly": _drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "sends 103 and nothing else": lambda: iter([b"HTTP/1.1 103 Early Hints\r\n\r\n"]),
    "sends a body for ever": _for_ever(OK + b"Connection: close\r\n\r\n", b" " * 65536),
    "sends chunks for ever": _for_ever(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"4\r\n    \r\n" * 1000),
    "sends a chunk of odd length": lambda: iter([OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n"]),
    "sends a chunk of negative length": lambda: iter(
        [OK + b"Transfer-Encoding: chunked\r\n\r\n-5\r\n{}\r\n"]
    ),
    "promises more than it sends": lambda: iter([OK + b"Content-Length: 1000000000000\r\n\r\n{}"]),
    "promises a negative length": lambda: iter([OK + b"Content-Length: -1\r\n\r\n[]"]),
    "packs a bomb": _whole(gzip.compress(b" " * 10_000_000), OK + b"Content-Encoding: gzip\r\n"),
    "speaks no HTTP": lambda: iter([b"\x16\x03\x01\x00\x00" * 10]),
    "has an odd status": lambda: iter([b"HTTP/1.1 99999 what\r\n\r\n"]),
    "sends another place": lambda: iter([b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n"]),
    "nests without end": _whole(b"[" * 1_000_000),
    "nests objects": _whole(b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    "sends a list": _whole(b"[1]"),
    "sends infinity": _whole(b'{"status": {"8": Infinity, "10": 0}, "settings": {}}'),
    "sends a number beyond all": _whole(b'{"status": {"8": 1e999, "10": 0}}'),
    "sends a number of a million digits": _whole(b'{"status": {"8": ' + b"9" * 1_000_000 + b"}}"),
    "sends no text": _whole(b"\xff\xfe\x00"),
    "sends a state of other types": _whole(b'{"status": [8, 10]}'),
    "sends a state of endless keys": lambda: iter(
        [OK + b"\r\n" + json.dumps({str(n): 0 for n in range(200_000)}).encode()]
    ),
    "sends two lengths": lambda: iter([OK + b"Content-Length: 2\r\nContent-Length: 200\r\n\r\n{}"]),
}
"""Name -> the answer to every request."""


class HostileCamera:
    """A hostile camera on a free port."""

    def __init__(self, name: str, host: str = "127.0.0.1") -> None:
        self._answer, self._stop = HOSTILE[name], threading.Event()
        self._listener = socket.create_server((host, 0))
        self.url = f"http://{host}:{self._listener.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._listen)]
        self._threads[0].start()

    def _listen(self) -> None:
        self._listener.settimeout(0.1)
        while not self._stop.is_set():
            with suppress(OSError):
                client = self._listener.accept()[0]
                self._threads.append(threading.Thread(target=self._serve, args=(client,)))
                self._threads[-1].start()

    def _serve(self, client: socket.socket) -> None:
        client.settimeout(1)
        with closing(client), suppress(OSError):  # the client closed
            client.recv(65536)
            for part in self._answer():
                if self._stop.is_set():
                    return
                client.sendall(part)

    def close(self) -> None:
        """Close the port."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._listener.close()


def main() -> None:
    """Serve all kinds until the input ends."""
    cameras = {name: HostileCamera(name, sys.argv[1]) for name in HOSTILE}
    print(json.dumps({name: camera.url for name, camera in cameras.items()}), flush=True)
    sys.stdin.read()
    for camera in cameras.values():
        camera.close()


if __name__ == "__main__":
    main()
