"""A recording's streams read for a report: what is damaged is named, and all the rest is still there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from kitchensync.shell.array_types import Int64, Mask
from kitchensync.shell.host_clock import PROBE, decode
from kitchensync.storage.chunks.chunk_reader import Chunk, chunk_paths
from kitchensync.storage.chunks.stored_packets import StoredPackets
from kitchensync.storage.errors import BadChunk
from kitchensync.storage.names import stream_folder
from kitchensync.storage.timeline.device_clock import HostClock, constant_clock, host_clock
from kitchensync.storage.timeline.session_time import SessionTime

if TYPE_CHECKING:
    from kitchensync.storage.manifest_form import StreamForm

UNREADABLE_CHUNK = (BadChunk, OSError, RuntimeError, KeyError, ValueError)
FEW_PROBES = 3

Hides = Callable[[npt.NDArray[np.void]], Mask]


@dataclass(frozen=True)
class Damage:
    """A chunk that does not open, and the stamps of the packets around it (None at an end)."""

    file: str
    why: str
    before_ticks: int | None
    after_ticks: int | None


class ReadStream(StoredPackets):
    """One stream: the packets of all chunks that open, and what does not open."""

    def __init__(
        self, recording: Path, name: str, description: StreamForm, hides: Hides | None = None
    ) -> None:
        """`description` is the stream's entry in the manifest; `hides` says which packets of an index are hidden."""
        super().__init__(name, stream_folder(recording, name), description)
        self.device = str(description.get("device", name.partition("/")[0]))
        self.nominal_hz: float | None = description.get("nominal_hz")
        self.damage: list[Damage] = []
        self._hides = hides
        self._parts = []
        broken: list[tuple[int, str, str]] = []
        for path in chunk_paths(self.folder):
            try:
                with Chunk(path) as chunk:
                    self._parts.append((path, chunk.index))
            except UNREADABLE_CHUNK as error:
                row = sum(len(index) for _, index in self._parts)
                broken.append((row, path.relative_to(recording).as_posix(), _why(error)))
        for row, file, why in broken:
            before = int(self.ticks[row - 1]) if row > 0 else None
            after = int(self.ticks[row]) if row < len(self) else None
            self.damage.append(Damage(file, why, before, after))

    @cached_property
    def hidden(self) -> Mask:
        """Which packets may show a privacy pause, (n,)."""
        return super().hidden if self._hides is None else self._hides(self.index)

    @property
    def ticks(self) -> Int64:
        """Device stamps of the packets, 100 ns."""
        return cast(Int64, self.index["device_ticks"])


def _why(error: Exception) -> str:
    """Return what is wrong, without the path that stands beside it anyway."""
    text = " ".join(str(error).split())
    return text.partition("damaged chunk: ")[2].partition("; run")[0] or text or type(error).__name__


@dataclass(frozen=True)
class TicksToHost:
    """Device ticks to host ns: from clock probes, or, without any, from the arrival of packets."""

    device: str
    to_host: HostClock
    probes: npt.NDArray[np.void]
    damage: list[Damage]

    def host_ns(self, ticks: int | np.integer[Any]) -> int:
        """Host ns of one tick."""
        return int(self.to_host.to_host_ns(int(ticks)))

    @property
    def from_probes(self) -> bool:
        """Return which of the two it is."""
        return len(self.probes) >= FEW_PROBES


def read_clock(recording: Path, device: str, streams: list[ReadStream]) -> TicksToHost | None:
    """Fit a device's clock to the host's; None when nothing was received from it."""
    known: list[npt.NDArray[np.void]] = []
    damage = []
    for path in chunk_paths(stream_folder(recording, f"clock/{device}")):
        try:
            with Chunk(path) as chunk:
                known += [decode(payload) for _, payload in chunk.sound()]
        except UNREADABLE_CHUNK as error:
            damage.append(Damage(path.relative_to(recording).as_posix(), _why(error), None, None))
    probes = np.concatenate(known) if known else np.empty(0, PROBE)
    fitted = host_clock(probes["host_send_ns"], probes["host_receive_ns"], probes["device_ticks"])
    own = [s for s in streams if s.device == device and len(s.index)]
    if own and (fitted is None or len(probes) < FEW_PROBES):
        # the least delay between stamp and arrival: delay only adds
        ticks0 = int(own[0].ticks[0])
        late = [s.index["host_ns"].astype(np.int64) - 100 * (s.ticks - ticks0) for s in own]
        least = min(int(part.min()) for part in late)
        fitted = constant_clock(ticks0, least, max(int(np.median(part)) - least for part in late))
    elif len(probes) < FEW_PROBES:
        fitted = None
    return TicksToHost(device, fitted, probes, damage) if fitted else None


@dataclass(frozen=True, slots=True)
class ShownTime:
    """The seconds that are shown of host times: session time, or since `zero_host_ns` without a headset."""

    session: SessionTime | None
    zero_host_ns: int

    def seconds(self, host_ns: int) -> float:
        """Seconds after zero."""
        session_ns = self.session.of_host([host_ns]) if self.session is not None else None
        if session_ns is None:
            return (int(host_ns) - self.zero_host_ns) / 1e9
        return float(session_ns[0]) / 1e9
