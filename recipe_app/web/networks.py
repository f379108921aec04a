"""Who asks, before anybody has signed in: the network address, as far as one visitor has only one of them."""

from __future__ import annotations

import asyncio
import ipaddress
from collections import Counter

from recipe_app.errors import TooOften

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
    """At most so many requests of one network at the same time; the others of it wait, those of others do not."""

    def __init__(self, at_once: int) -> None:
        self.at_once = at_once
        self._lanes: dict[str, asyncio.Semaphore] = {}
        self._inside: Counter[str] = Counter()

    async def enter(self, network: str) -> None:
        """Wait for a place among the network's own requests, not for long. Raises TooOften."""
        lane = self._lanes.setdefault(network, asyncio.Semaphore(self.at_once))
        self._inside[network] += 1
        try:
            async with asyncio.timeout(TURN_S):
                await lane.acquire()
        except BaseException as error:
            self._forget(network)
            if isinstance(error, TimeoutError):
                raise TooOften(int(TURN_S)) from error
            raise

    def leave(self, network: str) -> None:
        """Give the place to the next one."""
        self._lanes[network].release()
        self._forget(network)

    def _forget(self, network: str) -> None:
        self._inside[network] -= 1
        if not self._inside[network]:
            del self._lanes[network], self._inside[network]
