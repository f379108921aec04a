"""The connections of the app: how many one visitor may have, and how long half of a request may take.

Uvicorn bounds neither; of other servers see decision 0020. Bodies have a pace of their own (`request_bodies`).
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
"""From the connection, or the end of the last answer, to the end of a request's head; a TLS handshake too."""
REST_S = 10.0
"""For how long what comes of a body after its answer is thrown away, so that the answer can be read."""
UNREAD_S = 30.0
"""How long an answer waits for somebody who reads nothing of it."""
MOST_HEAD = 1 << 15
MOST_OF_ONE = 128
"""Connections of one visitor: a browser has six, and tablets may stand behind one address."""
MOST = 512
AT_A_TIME = 128
"""Connections that are taken before the app turns to something else."""
BACKLOG = 4096
"""Connections that the kernel keeps until then: one more is tried again by its sender, a second later."""


class Connection(Protocol):
    """What can be ended to make room."""

    @property
    def network(self) -> str:
        """Whose it is."""

    @property
    def idle(self) -> bool:
        """Return whether nothing is being answered on it."""

    def end(self) -> None:
        """Close it at once."""


class Connections:
    """All of a server. Where there are too many, the oldest idle one of whoever has the most makes room."""

    def __init__(self, most: int, most_of_one: int) -> None:
        self.most, self.most_of_one = most, most_of_one
        self._of: dict[str, dict[Connection, None]] = {}
        self._count = 0

    def add(self, one: Connection) -> None:
        """Count a new connection; end another where there are too many, or this one where none is idle."""
        mine = self._of.setdefault(one.network, {})
        mine[one] = None
        self._count += 1
        if len(mine) > self.most_of_one or self._count > self.most:
            many = mine if len(mine) > self.most_of_one else max(self._of.values(), key=len)
            next((one for one in many if one.idle), list(many)[-1]).end()

    def remove(self, one: Connection) -> None:
        """Forget a connection that has ended; nothing happens a second time."""
        mine = self._of.get(one.network, {})
        if one not in mine:
            return
        del mine[one]
        self._count -= 1
        if not mine:
            del self._of[one.network]


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 in which no part of a request or of an answer takes for ever."""

    def __init__(self, *, connections: Connections, **uvicorns: Any) -> None:
        super().__init__(**uvicorns)
        self.network = ""
        self._connections = connections
        self._phase = ""
        self._deadline: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    @property
    def idle(self) -> bool:
        """Return whether nothing is being answered."""
        return self._phase != ""

    def end(self) -> None:
        """Close at once, unsent bytes or not."""
        self._connections.remove(self)
        self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count it; the time for the first head begins."""
        super().connection_made(transport)
        self.network = network_of(self.client[0] if self.client else "")
        self._watch()
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._connections.remove(self)
        for timer in (self._deadline, self._unread):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Look after what came where the request now stands."""
        super().handle_events()
        self._watch()

    def on_response_complete(self) -> None:
        """Look after an answer where the request now stands."""
        super().on_response_complete()
        self._watch()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection; what is unsent by then is not waited for without end."""
        super().timeout_keep_alive_handler()
        self._watch()

    def pause_writing(self) -> None:
        """Wait for whoever reads nothing of an answer, for a while."""
        super().pause_writing()
        self._unread = self.loop.call_later(UNREAD_S, self.end)

    def resume_writing(self) -> None:
        """They read again."""
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()

    def _watch(self) -> None:
        """Set the deadline of a new phase; within one, a byte more makes it no longer."""
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
    """A connection that is counted before its TLS handshake, and handed on after it."""

    def __init__(
        self, make: Callable[[], BoundedProtocol], context: ssl.SSLContext, connections: Connections
    ) -> None:
        self._make, self._context, self._connections = make, context, connections
        self.network = ""
        self.idle = True

    def end(self) -> None:
        """Close at once."""
        self._connections.remove(self)
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the handshake."""
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()
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
            self._connections.remove(self)
        if secure is None or early.lost:
            self._transport.abort()
            return
        protocol = self._make()
        protocol.connection_made(secure)
        secure.set_protocol(protocol)
        if early.content:
            protocol.data_received(bytes(early.content))


class _Early(asyncio.Protocol):
    """What comes between the handshake and the protocol that is to read it."""

    def __init__(self) -> None:
        self.content = bytearray()
        self.lost = False

    def data_received(self, data: bytes) -> None:
        self.content += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True


class BoundedServer(uvicorn.Server):
    """Uvicorn with bounded connections, on sockets that listen already."""

    async def startup(self, sockets: Any = None) -> None:
        """Serve on the sockets."""
        await self.lifespan.startup()
        # At most half of the files that this process may have open are connections.
        loop, context, connections = (
            asyncio.get_running_loop(),
            self.config.ssl,
            Connections(min(MOST, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2), MOST_OF_ONE),
        )

        def protocol() -> BoundedProtocol:
            given = {
                "config": self.config,
                "server_state": self.server_state,
                "app_state": self.lifespan.state,
            }
            return BoundedProtocol(connections=connections, **given)

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
