"""Compare the sealed files of a recording with their hashes, and read their contents.

A file with a matching hash is read in this process. A file with another hash or none (a recording that was never
closed) is first opened in a separate process: damage may hang or crash HDF5.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.hololens.streams.inertial_samples import RepeatedSamples
from kitchensync.sensors.stream import Format, accept
from kitchensync.shell.files_on_disk import check_plain, file_sha256
from kitchensync.storage.chunks.apart import ReaderApart
from kitchensync.storage.chunks.chunk_reader import Chunk, chunk_paths, is_archive
from kitchensync.storage.chunks.layout import INDEX
from kitchensync.storage.errors import BadChunk
from kitchensync.storage.manifest import Manifest
from kitchensync.storage.names import chunk_name, stream_folder
from kitchensync.storage.reading.decoded import headset_sensor
from kitchensync.storage.verify.findings import FAIL, Findings
from kitchensync.storage.verify.tracking import Tracking

if TYPE_CHECKING:
    from kitchensync.storage.manifest_form import FileFactsForm


@dataclass
class Contents:
    """Contents of the sealed files of one stream."""

    index: npt.NDArray[np.void]
    "(n,) of INDEX, without files with a damaged index."
    sha256: str
    "Over the payloads in order, without damaged files."
    bytes: int
    sound: list[Path] = field(default_factory=list)
    damaged: list[int] = field(default_factory=list)
    "Sequence numbers of packets in `index` with damaged bytes."
    undecodable: list[int] = field(default_factory=list)
    "Sequence numbers of malformed packets, which cannot be decoded."
    why: str = ""
    "Fault of the first of them."
    tracked: dict[str, float] = field(default_factory=dict)
    "Share of packets with this part tracked: head, gaze, hands, pose."
    tracking: Tracking | None = None


Check = Callable[[bytes, Format], None]
"""Checks a payload, given its stream's description. Raises SensorError if it cannot be decoded."""


class _Reader:
    """Hashes the payloads of a stream in order, and runs its sensor's check on each."""

    def __init__(self, check: Check, form: Format, tracking: Tracking) -> None:
        self.tracking = tracking
        self.digest = hashlib.sha256()
        self.odd_rows: list[int] = []
        self.why = ""
        self._check, self._form, self._still = check, form, RepeatedSamples()
        self._row = 0

    def begin(self) -> None:
        """Begin another file: reset the row count."""
        self.odd_rows, self._row = [], 0
        self.tracking.begin()

    def take(self, payload: bytes) -> None:
        """Process the next payload."""
        self.digest.update(payload)
        if self.tracking.is_inertial:
            self.tracking.take_still(self._still.repeats(payload))
        elif self.tracking.parts:
            self.tracking.take(payload)
        try:
            self._check(payload, self._form)
        except SensorError as error:
            self.odd_rows.append(self._row)
            self.why = self.why or str(error)
        self._row += 1


def differs(path: Path, facts: FileFactsForm) -> bool:
    """Return whether a file differs from its sealed hash; a file of another size is not read."""
    size = path.stat().st_size
    return size != facts.get("bytes", size) or file_sha256(path) != facts["sha256"]


class SealedFiles:
    """Reads the sealed files of one recording for `verify`."""

    def __init__(self, recording: Path, manifest: Manifest, findings: Findings, apart: ReaderApart) -> None:
        self._recording = recording
        self._manifest = manifest
        self._facts = manifest["files"]
        self._findings = findings
        self._apart = apart

    def read(self, stream: str, check: Check = accept, form: Format | None = None) -> Contents:
        """Read every sealed file of a stream once: checksums, hash over the payloads, index, a check of each."""
        reader = _Reader(check, form or {}, Tracking(headset_sensor(self._manifest, stream)))
        parts, sound, undecodable, damaged = [np.empty(0, INDEX)], [], [], list[int]()
        folder = stream_folder(self._recording, stream)
        paths = chunk_paths(folder)
        for path in paths:
            reader.begin()
            index, damage = self._check(path, reader)
            for block in damage:
                self._findings.damage(self._relative(path), stream, block)
            if index is not None:
                parts.append(index)
                packets = [
                    int(block.removeprefix("packet ")) for block in damage if block.startswith("packet ")
                ]
                if any(not block.startswith(("packet ", "pose")) for block in damage):
                    packets = index["seq"].tolist()
                damaged += packets
            if not damage:
                sound.append(path)
            if index is not None and not damage:  # else odd_rows has unknown offsets
                undecodable += index["seq"][reader.odd_rows].tolist()
        self._name_missing(folder, paths, sound)
        index = np.concatenate(parts)
        size = int(index["size"].sum(dtype=np.uint64))
        tracking = reader.tracking
        return Contents(
            index,
            reader.digest.hexdigest(),
            size,
            sound,
            damaged,
            undecodable,
            reader.why,
            tracking.shares(),
            tracking,
        )

    def _relative(self, path: Path) -> str:
        return path.relative_to(self._recording).as_posix()

    def _check(self, path: Path, reader: _Reader) -> tuple[npt.NDArray[np.void] | None, list[str]]:
        """Return the index of a file, or None, and its damaged blocks; pass undamaged payloads to `reader`."""
        facts = self._facts.get(self._relative(path))
        try:
            check_plain(path)
            doubtful = facts is None or differs(path, facts)
        except OSError as error:
            return None, [f"file: {error.strerror}"]
        if doubtful:
            look = self._apart.look(path)
            if look.damage or facts is not None:
                reader.tracking.finish(len(look.index) if look.index is not None else 0, None, is_sound=False)
                return look.index, look.damage or ["structure: its hash is not the one it was sealed with"]
        try:
            with Chunk(path) as chunk:
                damage = chunk.damage(reader.take)
                index = None if "index" in damage else chunk.index
                rows = 0 if index is None else len(index)
                reader.tracking.finish(rows, None if damage else chunk.poses, is_sound=not damage)
                return index, damage
        except BadChunk as error:  # its hash matches: it was written like this
            return None, [f"structure: {error.why}"]

    def _name_missing(self, folder: Path, paths: list[Path], sound: list[Path]) -> None:
        prefix = folder.relative_to(self._recording).as_posix() + "/"
        promised = {
            file.removeprefix(prefix) for file in self._facts if file.rpartition("/")[0] + "/" == prefix
        }
        archives = (path for path in sound if is_archive(path))
        # Promised chunks that are in an archive, with the hashes of their seals.
        packed = set()
        for path in archives:
            with Chunk(path) as chunk:
                blocks = chunk.blocks
            for block in blocks:
                name = chunk_name(int(block["number"]))
                facts = self._facts.get(self._relative(path.with_name(name)))
                if facts is not None and facts["sha256"] == block["file_sha256"].decode():
                    packed.add(name)
        for name in sorted(promised - {path.name for path in paths} - packed):
            self._findings.add(FAIL, f"{prefix}{name} is missing: restore it from a copy")
