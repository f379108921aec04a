"""Anonymous visitors by network, and fair limits on their concurrent requests."""

from __future__ import annotations

import asyncio
import ipaddress
import sys
from collections import Counter, OrderedDict, deque

from starlette.types import Message, Receive, Send

from kitchensync.recipe_app.errors import TooOften

IPV6_PREFIX = 64  # one visitor may use every address of such a network
TURN_S = 10.0


def network_of(address: str) -> str:
    """Return an IPv4 address unchanged, the /64 network of an IPv6 address: a visitor controls all of it."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.ip_network((ip, IPV6_PREFIX), strict=False))


class Lanes:
    """Limits concurrent requests per network and in total; networks take turns.

    A new network waits for at most one request of each waiting network, however many those have sent.
    """

    def __init__(self, per_network: int, in_total: int = sys.maxsize) -> None:
        self._per_network, self._in_total = per_network, in_total
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._inside: Counter[str] = Counter()

    async def enter(self, network: str) -> None:
        """Wait up to `TURN_S` for a place. Raises TooOften."""
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(network, deque()).append(place)
        self._give()
        try:
            async with asyncio.timeout(TURN_S):
                await place
        except BaseException as error:
            if place.done() and not place.cancelled():
                self.leave(network)
            else:
                place.cancel()  # skipped when its turn comes
                self._give()
            if isinstance(error, TimeoutError):
                raise TooOften(int(TURN_S)) from error
            raise

    def leave(self, network: str) -> None:
        """Free a place for the next request."""
        self._inside -= Counter([network])
        self._give()

    def _give(self) -> None:
        """Assign free places, one to each network in turn."""
        while self._inside.total() < self._in_total:
            network = next((name for name in self._waiting if self._inside[name] < self._per_network), None)
            if network is None:
                return
            mine = self._waiting.pop(network)
            place = mine.popleft()
            if mine:
                self._waiting[network] = mine
            if not place.done():
                self._inside[network] += 1
                place.set_result(None)


class LanePlace:
    """A request's place in the lanes: held while the app works on it, not while it waits for the client."""

    def __init__(self, lanes: Lanes, network: str) -> None:
        self._lanes, self._network = lanes, network
        self._is_held = self._is_over = False

    async def take(self) -> None:
        """Wait for the place. Raises TooOften."""
        if not self._is_held and not self._is_over:
            await self._lanes.enter(self._network)
            self._is_held = True

    def give_back(self) -> None:
        """Free the place for now."""
        if self._is_held:
            self._is_held = False
            self._lanes.leave(self._network)

    def end(self) -> None:
        """Free the place for good."""
        self._is_over = True
        self.give_back()

    def receiving(self, receive: Receive) -> Receive:
        """Wrap `receive`, freeing the place while the body arrives."""

        async def received() -> Message:
            self.give_back()
            message = await receive()
            await self.take()
            return message

        return received

    def sending(self, send: Send) -> Send:
        """Wrap `send`, freeing the place once the body of the answer is sent."""

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.body":
                self.end()
            await send(message)

        return sent
