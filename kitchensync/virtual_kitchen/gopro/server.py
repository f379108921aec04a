"""The virtual GoPro: an HTTP server with a camera that records the kitchen."""

from __future__ import annotations

import errno
import socket
import socketserver
import ssl
import struct
import sys
import threading
import time
from http.server import ThreadingHTTPServer
from pathlib import Path

from kitchensync.virtual_kitchen.errors import KitchenError, PortBusy
from kitchensync.virtual_kitchen.gopro.api import CameraApi
from kitchensync.virtual_kitchen.gopro.camera import Phase, VirtualCamera
from kitchensync.virtual_kitchen.gopro.faults import CameraFaults
from kitchensync.virtual_kitchen.gopro.http import GoProRequestHandler, HomeNetwork
from kitchensync.virtual_kitchen.kitchen import Kitchen


class _Server(ThreadingHTTPServer):
    """A threaded server that closes its open connections when it stops."""

    daemon_threads = False
    request_queue_size = 32

    def __init__(
        self,
        address: tuple[str, int],
        handler: type[GoProRequestHandler],
        camera: VirtualCamera,
        context: ssl.SSLContext | None,
    ) -> None:
        self.camera = camera
        self._open: set[socket.socket] = set()
        self._open_lock = threading.Lock()
        self._left_ns = 0
        super().__init__(address, handler)
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that leave or reject the certificate; report all other errors."""
        if not isinstance(sys.exception(), (ConnectionError, ssl.SSLError, TimeoutError)):
            super().handle_error(request, client_address)  # type: ignore[arg-type]

    def server_bind(self) -> None:
        """Bind without asking the resolver for this computer's name, which can take seconds."""
        socketserver.TCPServer.server_bind(self)
        host, self.server_port = self.server_address[:2]
        self.server_name = str(host)

    def process_request(self, request: socket.socket, client_address: tuple[str, int]) -> None:  # type: ignore[override]
        """Serve a connection in a thread and remember its socket; reset it if the camera is gone."""
        if self.camera.is_gone:
            request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            request.close()
            return
        with self._open_lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: socket.socket) -> None:  # type: ignore[override]
        """Close a connection."""
        with self._open_lock:
            self._open.discard(request)
            self._left_ns = time.monotonic_ns()
        super().shutdown_request(request)

    @property
    def client_seen_ns(self) -> int:
        """When a client was last connected (host_ns): now while one is connected, 0 before the first."""
        with self._open_lock:
            return time.monotonic_ns() if self._open else self._left_ns

    def close_connections(self) -> None:
        """Wake every thread that is waiting for a request."""
        with self._open_lock:
            for request in self._open:
                try:
                    request.shutdown(socket.SHUT_RDWR)
                except OSError as error:
                    if error.errno != errno.ENOTCONN:
                        raise


class VirtualGoPro:
    """A GoPro on a loopback address, recording one kitchen.

    Without a replayed file it records the kitchen live; with one it hands out that file byte for byte.
    With a home network it serves HTTPS there and requires name and password.
    """

    def __init__(
        self,
        kitchen: Kitchen,
        host: str,
        port: int,
        model: str,
        replay_file: Path | None,
        *,
        faults: CameraFaults | None = None,
        chapter_s: float | None = None,
        home: HomeNetwork | None = None,
        name: str | int = "",
    ) -> None:
        """Prepare a camera; start() serves it. Raises KitchenError for an unknown model."""
        self.camera = VirtualCamera(kitchen, model, replay_file, faults, chapter_s, name)
        self.home = home
        self._host, self._port = host, port
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    def prepare(self, end_s: float) -> None:
        """Encode the frames until `end_s` (world time), if the camera has a grid of frame times."""
        if self.camera.grid is not None and not self.camera.kitchen.frame_counter:
            self.camera.grid.prepare(end_s)

    def start(self) -> int:
        """Listen and return the port (0 takes a free one). Raises PortBusy if it is in use."""
        if self.camera.replay is None:
            _ = self.camera.kitchen.scene  # paint it now, so that the first shutter is not late
        api = CameraApi(self.camera)
        parts = {"camera": self.camera, "api": api, "home": self.home}
        handler = type("Handler", (GoProRequestHandler,), parts)
        try:
            context = self.home.context if self.home is not None else None
            self._server = _Server((self._host, self._port), handler, self.camera, context)
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
        """Close the port and all connections, abandon a running recording and end all threads."""
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
        """Return whether the camera is idle and every file on the card was fetched to its end."""
        return self.camera.is_dead or (self.camera.phase is Phase.IDLE and self.camera.card.all_fetched())

    @property
    def client_seen_ns(self) -> int:
        """When a client was last connected (host_ns), 0 before the first."""
        return self._server.client_seen_ns if self._server is not None else 0
