"""Withhold video and sound that arrive during a privacy pause, if the lab drops pauses.

Packets that were sealed before the request for the pause arrived are destroyed when the recording is closed
(`kitchensync.storage.redact`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kitchensync.storage.chunks.chunk_writer import Packet
from kitchensync.storage.errors import BadEventLog
from kitchensync.storage.manifest import edit_manifest, read_manifest
from kitchensync.storage.privacy import OPERATOR, WRITERS, Pauses, overlaps, pauses_of
from kitchensync.storage.reading.decoded import is_seen
from kitchensync.storage.redact.redactions import withhold

if TYPE_CHECKING:
    from kitchensync.storage.manifest_form import RedactedChunkForm

BEFORE_NS, AFTER_NS = 250_000_000, 1_000_000_000
"""Margins of a pause. Packets that arrive up to AFTER_NS later may have been captured during it. A batch that arrives
up to BEFORE_NS earlier may reach into it; its whole chunk would be destroyed at the closing."""


class Withheld:
    """The privacy pauses of a running recording, read from its growing event logs."""

    def __init__(self, recording: Path, streams: Iterable[str]) -> None:
        """Select the streams with video or sound and read the pauses."""
        manifest = read_manifest(recording)
        self._recording = recording
        self.streams = {
            stream for stream in streams if stream in manifest["streams"] and is_seen(manifest, stream)
        }
        self._sizes: list[int] = []
        self._pauses: Pauses = ()
        self.refresh()

    def refresh(self) -> bool:
        """Read the logs again if they grew; return whether a pause began or ended."""
        sizes: list[int] = []
        for writer in (*WRITERS, OPERATOR):
            try:
                sizes.append((self._recording / "events" / f"{writer}.jsonl").stat().st_size)
            except OSError:
                sizes.append(0)
        if sizes == self._sizes:
            return False
        before = self._pauses
        with suppress(BadEventLog):  # reported at the closing
            self._pauses = pauses_of(self._recording)
        self._sizes = sizes
        return self._pauses != before

    def parts(self, stream: str, packets: list[Packet]) -> Iterator[tuple[bool, list[Packet]]]:
        """Divide packets where a pause begins or ends; yield (is withheld, packets)."""
        if not self._pauses or stream not in self.streams:
            yield False, packets
            return
        arrived_ns = np.array([packet.host_ns for packet in packets], np.int64)
        hidden = overlaps(arrived_ns - AFTER_NS, arrived_ns + BEFORE_NS, self._pauses).tolist()
        at = 0
        for is_hidden, run in groupby(hidden):
            count = len(list(run))
            yield is_hidden, packets[at : at + count]
            at += count

    def note(self, stream: str, packets: list[Packet]) -> None:
        """Note withheld packets in the manifest, before they are acknowledged. Raises OSError, NotARecording."""
        first, last = packets[0], packets[-1]
        facts: RedactedChunkForm = {
            "seq": [first.seq, last.seq],
            "ticks": [first.device_ticks, last.device_ticks],
            "packets": len(packets),
            "bytes": sum(len(packet.payload) for packet in packets),
        }
        with edit_manifest(self._recording) as manifest:
            withhold(manifest, stream, facts)
