"""The virtual GoPro: an HTTP server with a camera behind it that records the kitchen."""

from __future__ import annotations

import errno
import socket
import socketserver
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path

from virtual_kitchen.errors import KitchenError, PortBusy
from virtual_kitchen.gopro.camera import Camera, Phase
from virtual_kitchen.gopro.http import CameraApi, GoProRequestHandler
from virtual_kitchen.kitchen import Kitchen


class _Server(ThreadingHTTPServer):
    """A threaded server that ends its open connections with itself."""

    daemon_threads = False
    request_queue_size = 32

    def __init__(self, address: tuple[str, int], handler: type[GoProRequestHandler]) -> None:
        self._open: set[socket.socket] = set()
        self._open_lock = threading.Lock()
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Bind without asking the resolver for this computer's name, which can take seconds."""
        socketserver.TCPServer.server_bind(self)
        host, self.server_port = self.server_address[:2]
        self.server_name = str(host)

    def process_request(self, request: socket.socket, client_address: tuple[str, int]) -> None:  # type: ignore[override]
        """Serve a connection in a thread, remembering its socket."""
        with self._open_lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: socket.socket) -> None:  # type: ignore[override]
        """Close a connection."""
        with self._open_lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def close_connections(self) -> None:
        """Wake every thread that waits for a next request."""
        with self._open_lock:
            for request in self._open:
                try:
                    request.shutdown(socket.SHUT_RDWR)
                except OSError as error:
                    if error.errno != errno.ENOTCONN:
                        raise


class VirtualGoPro:
    """A GoPro on a loopback address, recording one kitchen.

    Without a replayed file it films the kitchen live; with one it hands out that very file, byte for byte.
    """

    def __init__(self, kitchen: Kitchen, host: str, port: int, model: str, replay_file: Path | None) -> None:
        """Prepare a camera; start() serves it. Raise KitchenError for an unknown model."""
        self.camera = Camera(kitchen, model, replay_file)
        self._host, self._port = host, port
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> int:
        """Listen and return the port (a free one when asked for 0); raise PortBusy when it is taken."""
        if self.camera.replay is None:
            _ = self.camera.kitchen.scene  # painted now, so that the first shutter is not late
        api = CameraApi(self.camera)
        handler = type("Handler", (GoProRequestHandler,), {"camera": self.camera, "api": api})
        try:
            self._server = _Server((self._host, self._port), handler)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise PortBusy(self._host, self._port, "GoPro") from error
            raise KitchenError(f"{self._host}:{self._port} (GoPro): {error.strerror}") from error
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="gopro http", daemon=True
        )
        self._thread.start()
        return int(self._server.server_address[1])

    def stop(self) -> None:
        """Close the port and every connection, give up a running recording, and end all threads."""
        if self._server is not None:
            self._server.shutdown()
            self._server.close_connections()
            self._server.server_close()
            self._server = None
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.camera.close()

    def idle_and_fetched(self) -> bool:
        """Return whether nothing is being recorded and every file on the card was fetched to its end."""
        return self.camera.phase is Phase.IDLE and self.camera.card.all_fetched()
