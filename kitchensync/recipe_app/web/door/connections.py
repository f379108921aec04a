"""Limits on the app's connections: their number per visitor, and the time for an incomplete request.

Uvicorn limits neither; for other servers see decision 0020. Bodies have their own time limits (`request_bodies`).
"""

from __future__ import annotations

import asyncio
import resource
import ssl
from collections.abc import Callable
from typing import Any, Protocol

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from kitchensync.recipe_app.web.door.networks import network_of

HEAD_S = 15.0
"""Time from the connection, or the last answer, to the end of a request's head; also for a TLS handshake, seconds."""
REST_S = 10.0
"""Time in which the rest of a body is discarded after its answer, so that the client can read the answer, seconds."""
UNREAD_S = 30.0
"""Time that an answer waits for a client that reads nothing, seconds."""
MOST_HEAD = 1 << 15
MOST_PER_NETWORK = 128
"""Connections per visitor: a browser has six, and several tablets may share an address."""
MOST = 512  # lowered to half of the open files that the system allows
AT_A_TIME = 128
"""Connections accepted in one turn of the event loop."""
BACKLOG = 4096
"""Connections that wait in the kernel; beyond it a client retries after a second."""


class Connection(Protocol):
    """A connection that can be closed to make room."""

    @property
    def network(self) -> str:
        """The network of the client."""

    @property
    def idle(self) -> bool:
        """Return whether no request is being answered."""

    def end(self) -> None:
        """Close it immediately."""


class Connections:
    """All connections of a server. If there are too many, the oldest idle one of the busiest network is closed."""

    def __init__(self, most: int, most_per_network: int) -> None:
        self.most, self.most_per_network = most, most_per_network
        self._of: dict[str, dict[Connection, None]] = {}
        self._count = 0

    def add(self, connection: Connection) -> None:
        """Add a connection; if there are too many, close another, or this one if none is idle."""
        mine = self._of.setdefault(connection.network, {})
        mine[connection] = None
        self._count += 1
        if len(mine) > self.most_per_network or self._count > self.most:
            many = mine if len(mine) > self.most_per_network else max(self._of.values(), key=len)
            next((connection for connection in many if connection.idle), list(many)[-1]).end()

    def remove(self, connection: Connection) -> None:
        """Remove a closed connection; removing it twice changes nothing."""
        mine = self._of.get(connection.network, {})
        if connection not in mine:
            return
        del mine[connection]
        self._count -= 1
        if not mine:
            del self._of[connection.network]


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 with a time limit for every part of a request and of an answer."""

    def __init__(self, *, connections: Connections, **uvicorns: Any) -> None:
        super().__init__(**uvicorns)
        self.network = ""
        self._connections = connections
        self._phase = ""
        self._deadline: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    @property
    def idle(self) -> bool:
        """Return whether no request is being answered."""
        return self._phase != ""

    def end(self) -> None:
        """Close immediately, even with unsent bytes."""
        self._connections.remove(self)
        self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection and start the time for the first head."""
        super().connection_made(transport)
        self.network = network_of(self.client[0] if self.client else "")
        self._watch()
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection and cancel its timers."""
        self._connections.remove(self)
        for timer in (self._deadline, self._unread):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Update the deadline after received data."""
        super().handle_events()
        self._watch()

    def on_response_complete(self) -> None:
        """Update the deadline after an answer."""
        super().on_response_complete()
        self._watch()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, with a time limit for unsent data."""
        super().timeout_keep_alive_handler()
        self._watch()

    def pause_writing(self) -> None:
        """Start the time limit for a client that does not read."""
        super().pause_writing()
        self._unread = self.loop.call_later(UNREAD_S, self.end)

    def resume_writing(self) -> None:
        """Stop the time limit: the client reads again."""
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()

    def _watch(self) -> None:
        """Set the deadline of a new phase; more bytes within a phase do not extend it."""
        phase, seconds = "", 0.0
        if self.transport.is_closing():
            phase, seconds = "closing", REST_S
        elif self.conn.their_state is h11.IDLE:
            phase, seconds = "head", HEAD_S
        elif self.cycle is not None and self.cycle.response_complete:
            phase, seconds = "rest", REST_S
        if phase == self._phase:
            return
        self._phase = phase
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(seconds, self.end) if phase else None


class Handshake(asyncio.Protocol):
    """A connection that is counted before its TLS handshake, and passed to the HTTP protocol after it."""

    def __init__(
        self, make: Callable[[], BoundedProtocol], context: ssl.SSLContext, connections: Connections
    ) -> None:
        self._make, self._context, self._connections = make, context, connections
        self.network = ""
        self.idle = True

    def end(self) -> None:
        """Close immediately."""
        self._connections.remove(self)
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the handshake."""
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()  # bytes before `start_tls` would be lost: this protocol keeps none
        self._transport = transport
        self.network = network_of((transport.get_extra_info("peername") or ("",))[0])
        self._connections.add(self)
        self._task = asyncio.get_running_loop().create_task(self._shake_hands())

    async def _shake_hands(self) -> None:
        early = _Early()
        loop = asyncio.get_running_loop()
        try:
            secure = await loop.start_tls(
                self._transport,
                early,
                self._context,
                server_side=True,
                ssl_handshake_timeout=HEAD_S,
                ssl_shutdown_timeout=REST_S,
            )
        except OSError:  # not TLS, gone, or too slow
            secure = None
        finally:
            self._connections.remove(self)  # the HTTP protocol counts itself
        if secure is None or early.lost:
            self._transport.abort()
            return
        protocol = self._make()
        protocol.connection_made(secure)
        secure.set_protocol(protocol)
        if early.content:
            protocol.data_received(bytes(early.content))


class _Early(asyncio.Protocol):
    """Buffer for data that arrives before the HTTP protocol takes over."""

    def __init__(self) -> None:
        self.content = bytearray()
        self.lost = False

    def data_received(self, data: bytes) -> None:
        self.content += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True


class BoundedServer(uvicorn.Server):
    """Uvicorn with limited connections, on sockets that are already listening."""

    async def startup(self, sockets: Any = None) -> None:
        """Serve on the sockets."""
        await self.lifespan.startup()
        # Connections use at most half of the file descriptors of this process.
        loop, context, connections = (
            asyncio.get_running_loop(),
            self.config.ssl,
            Connections(min(MOST, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2), MOST_PER_NETWORK),
        )

        def protocol() -> BoundedProtocol:
            return BoundedProtocol(
                connections=connections,
                config=self.config,
                server_state=self.server_state,
                app_state=self.lifespan.state,
            )

        def handshake() -> Handshake:
            assert context is not None
            return Handshake(protocol, context, connections)

        make = protocol if context is None else handshake
        self.servers = [
            await loop.create_server(make, sock=sock, backlog=AT_A_TIME) for sock in sockets or []
        ]
        for sock in sockets or []:
            sock.listen(BACKLOG)
        self.started = True
