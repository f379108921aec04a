"""What every sensor of the virtual headset is: a stream that reads a client's wishes, and a feed of its packets."""

from abc import ABC, abstractmethod

from virtual_kitchen.headset.client_configuration import ConfigurationReader
from virtual_kitchen.headset.device import HeadsetState
from virtual_kitchen.headset.packets import Schedule, SentPacket


class Feed(ABC):
    """One client's packets on a schedule. Asked for rising k; a k depends on nothing that was sent before it."""

    _schedule: Schedule

    def first_k(self, world_s: float) -> int:
        """Return the first packet a client gets who is ready at `world_s`; of a video the next key frame."""
        return self._schedule.first_k(world_s)

    def due_s(self, k: int) -> float:
        """Return the world time at which packet k leaves the device."""
        return self._schedule.due_s(k)

    @abstractmethod
    def packet(self, k: int) -> SentPacket:
        """Return packet k."""


class Stream(ABC):
    """The port's side of one sensor."""

    name: str
    port: int

    def __init__(self, headset: HeadsetState) -> None:
        self._headset = headset

    @abstractmethod
    def configure(self, reader: ConfigurationReader) -> Feed | None:
        """Read a client's wishes; None when nothing is to be streamed; raise `Rejected` to close."""

    def release(self) -> None:  # noqa: B027 (most streams hold nothing)
        """Do what is to be done when the client has gone."""
