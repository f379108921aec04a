"""Who asks, before anybody has signed in: the network address, as far as one visitor has only one of them."""

from __future__ import annotations

import asyncio
import ipaddress
import sys
from collections import Counter, OrderedDict, deque

from starlette.types import Message, Receive, Send

from kitchensync.recipe_app.errors import TooOften

IPV6_PREFIX = 64
TURN_S = 10.0


def network_of(address: str) -> str:
    """Return an IPv4 address as it is, of an IPv6 address the network: a visitor has all that is below it."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, IPV6_PREFIX), strict=False))


class Lanes:
    """At most so many requests of one network at the same time, and of all together; the networks take turns.

    Whoever comes anew waits for one request of each network that waits already, however many those have sent.
    """

    def __init__(self, of_one: int, of_all: int = sys.maxsize) -> None:
        self._of_one, self._of_all = of_one, of_all
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._inside: Counter[str] = Counter()

    async def enter(self, network: str) -> None:
        """Wait for a place, not for long. Raises TooOften."""
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
                place.cancel()  # it is passed over when its turn comes
                self._give()
            if isinstance(error, TimeoutError):
                raise TooOften(int(TURN_S)) from error
            raise

    def leave(self, network: str) -> None:
        """Give the place to the next one."""
        self._inside -= Counter([network])
        self._give()

    def _give(self) -> None:
        """Hand out the places that are free, one to each network in turn."""
        while self._inside.total() < self._of_all:
            network = next((one for one in self._waiting if self._inside[one] < self._of_one), None)
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
    """A request's place in the lanes: held while we work on it, not while we wait for what its sender does."""

    def __init__(self, lanes: Lanes, network: str) -> None:
        self._lanes, self._network = lanes, network
        self._is_held = self._is_over = False

    async def take(self) -> None:
        """Wait for it. Raises TooOften."""
        if not self._is_held and not self._is_over:
            await self._lanes.enter(self._network)
            self._is_held = True

    def give_back(self) -> None:
        """Let others work."""
        if self._is_held:
            self._is_held = False
            self._lanes.leave(self._network)

    def end(self) -> None:
        """Give it back for good."""
        self._is_over = True
        self.give_back()

    def receiving(self, receive: Receive) -> Receive:
        """Return the request's body, for which nobody else has to wait."""

        async def received() -> Message:
            self.give_back()
            message = await receive()
            await self.take()
            return message

        return received

    def sending(self, send: Send) -> Send:
        """Return the way of the answer: what is being sent is made already."""

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.body":
                self.end()
            await send(message)

        return sent
