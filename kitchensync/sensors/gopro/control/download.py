"""Download a file from the camera: resumed by ranges, hashed, checked, and renamed when it is complete."""

from __future__ import annotations

import errno
import http.client
import os
import socket
import ssl
import time
from collections.abc import Callable
from functools import partial
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from kitchensync.sensors.errors import CameraLost, CameraRefused, DownloadFailed
from kitchensync.sensors.gopro.control.camera_types import MediaFile
from kitchensync.sensors.gopro.control.entry import CameraAddress, entry_of
from kitchensync.sensors.gopro.control.http_reader import TROUBLE, TimeLimit, reason
from kitchensync.sensors.gopro.control.sink import Observer, Sink
from kitchensync.sensors.gopro.files.card_names import check_safe, proxy_name, thumbnail_name
from kitchensync.sensors.gopro.mp4.boxes import has_moov
from kitchensync.shell.files_on_disk import sync_path
from kitchensync.shell.host_clock import host_ns

Progress = Callable[[int, int], None]
"Called with (received bytes, total bytes)."

CHUNK_BYTES = 1024 * 1024
OVERLAP_BYTES = 64 * 1024
"Bytes that are downloaded again when resuming, to check that it is still the same file."
TRIES_WITHOUT_PROGRESS = 5  # by the last one the overlap has shrunk to 16 bytes
PROGRESS_BYTES = 4096  # a camera that sends some bytes per connection would never be given up
BACK_OFF_S = 0.5  # times the number of failures in a row
READ_TIMEOUT_S = 10.0  # for silence; LEAST_IN_S limits an answer that only trickles
LEAST_BYTES, LEAST_IN_S = 64 << 10, 60.0
"Slowest rate of a download: so many bytes in that time, else the request is abandoned."
UNREACHABLE = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN)


class Downloaded(NamedTuple):
    """A file that is complete and synced to the disk."""

    path: Path
    bytes: int
    sha256: str
    seconds: float


class _Changed(Exception):
    """The received bytes are not the beginning of the file on the camera."""


def download(
    address: CameraAddress | str,
    media_file: MediaFile,
    target: Path,
    progress: Progress | None = None,
    *,
    observer: Observer | None = None,
    read_timeout_s: float = READ_TIMEOUT_S,
    back_off_s: float = BACK_OFF_S,
) -> Downloaded:
    """Download one file to `target`, a file name or an existing folder.

    The bytes first go to a `.part` file next to it, which a later call resumes. An existing file of the right size is
    only hashed. `observer` receives every byte of the file once, in order. Raises `UnsafeName`, `DownloadFailed`,
    `CameraRefused` (HTTP error).
    """
    begun_ns = host_ns()
    check_safe(media_file.folder, media_file.name)
    path = target / media_file.name if target.is_dir() else target
    try:
        if path.exists():
            sha256 = _hash_existing(path, media_file, observer)
        else:
            fetch = _Fetch(entry_of(address), media_file, path.with_name(path.name + ".part"), progress)
            sha256 = fetch.run(observer, read_timeout_s, back_off_s)
            _seal(fetch.part, path, media_file)
    except OSError as error:
        raise DownloadFailed(media_file.name, (error.strerror or str(error)).lower()) from error
    return Downloaded(path, media_file.bytes, sha256, (host_ns() - begun_ns) / 1e9)


def _hash_existing(path: Path, media_file: MediaFile, observer: Observer | None) -> str:
    if path.stat().st_size != media_file.bytes:
        why = f"{path} exists with another size and is never overwritten: move it away"
        raise DownloadFailed(media_file.name, why)
    _check_whole(path, media_file)
    with path.open("rb", buffering=0) as file:
        sink = Sink(file, observer)
        _observe(file, sink)
        return sink.hash.hexdigest()


def _observe(file: FileIO, sink: Sink) -> int:
    """Hash a file from its beginning; return its size."""
    block, have = memoryview(bytearray(CHUNK_BYTES)), 0
    file.seek(0)
    while count := file.readinto(block):
        sink.observe(block[:count])
        have += count
    return have


def _check_whole(path: Path, media_file: MediaFile) -> None:
    if media_file.name.upper().endswith((".MP4", ".LRV", ".360")) and not has_moov(path):
        why = "all bytes were received, but it has no index (moov): the camera did not finish it"
        raise DownloadFailed(media_file.name, why)


def _seal(part: Path, path: Path, media_file: MediaFile) -> None:
    """Check and rename a part; one that fails the check is removed, as the camera still has the file."""
    try:
        _check_whole(part, media_file)
    except DownloadFailed:
        part.unlink()
        raise
    os.replace(part, path)
    sync_path(path.parent)


class _Fetch:
    """One download: its `.part` on disk and the hash of these bytes."""

    def __init__(
        self, entry: CameraAddress, media_file: MediaFile, part: Path, progress: Progress | None
    ) -> None:
        self.entry, self.base_url = entry, entry.base_url
        self.url = f"/videos/DCIM/{media_file.folder}/{media_file.name}"
        self.name, self.size, self.part = media_file.name, media_file.bytes, part
        self.progress = progress
        self.have = 0
        self._allow: Callable[[], None] = lambda: None
        self._recent, self._overlap = 0, OVERLAP_BYTES

    def run(self, observer: Observer | None, read_timeout_s: float, back_off_s: float) -> str:
        """Download until the file is complete and synced; return the SHA-256."""
        with self.part.open("a+b", buffering=0) as file, Sink(file, observer) as sink:
            self.have = _observe(file, sink)
            if self.have > self.size:  # a part of another file
                self._restart(sink)
            failures = 0
            while self.have < self.size:
                before = self.have
                why = self._try(file, sink, read_timeout_s)
                failures = 0 if self.have >= before + PROGRESS_BYTES else failures + 1
                # A connection that breaks early must still make progress, so each failure shortens the overlap.
                self._overlap = OVERLAP_BYTES >> 3 * failures
                if failures == TRIES_WITHOUT_PROGRESS:
                    raise DownloadFailed(self.name, f"{why}, {self.have} of {self.size} bytes were received")
                if self.have < self.size:
                    time.sleep(back_off_s * failures)
            sink.drain()
            os.fsync(file.fileno())
            return sink.hash.hexdigest()

    def _try(self, file: FileIO, sink: Sink, read_timeout_s: float) -> str:
        """Send one request for the remaining bytes; return why it ended."""
        limit = TimeLimit()
        connection = self.entry.connection(read_timeout_s, limit)
        limit.give(read_timeout_s)
        self._allow = partial(limit.give, LEAST_IN_S, silence_s=read_timeout_s)
        try:
            self._continue(connection, file, sink)
        except _Changed:
            self._restart(sink)
            return "the file changed on the camera"
        except TimeoutError:
            return "timed out"
        except (
            http.client.HTTPException,
            ConnectionError,
            ssl.SSLError,
            socket.gaierror,
            ValueError,
        ) as error:
            return reason(error)
        except OSError as error:
            if error.errno not in UNREACHABLE:
                raise  # an error of the disk
            return reason(error)
        finally:
            connection.close()
            sink.drain()
        return "the answer ended early"

    def _restart(self, sink: Sink) -> None:
        sink.restart()
        self.have = 0

    def _continue(self, connection: http.client.HTTPConnection, file: FileIO, sink: Sink) -> None:
        """Send one request; write and hash the answer."""
        start = max(0, self.have - self._overlap)
        file.seek(start)
        overlap = file.read(self.have - start)
        headers = self.entry.headers | {"Accept-Encoding": "identity"}
        if overlap:
            headers["Range"] = f"bytes={start}-"
        connection.request("GET", self.url, headers=headers)
        with connection.getresponse() as response:
            self._allow()
            self._receive(response, start, overlap, sink)

    def _receive(self, response: http.client.HTTPResponse, start: int, overlap: bytes, sink: Sink) -> None:
        if response.status == 416:
            raise _Changed
        if response.status == 200 and overlap:  # the camera ignored Range and sends the whole file
            self._restart(sink)
            overlap = b""
        elif response.status not in (200, 206):
            raise CameraRefused(self.base_url, f"to send {self.name}", response.status)
        elif response.status == 206:
            content_range = response.getheader("Content-Range") or ""
            if not content_range.startswith(f"bytes {start}-"):
                raise _Changed
        if response.length is not None and self.have - len(overlap) + response.length > self.size:
            raise self._too_much()
        self._compare(response, overlap)
        self._store(response, sink)

    def _compare(self, response: http.client.HTTPResponse, overlap: bytes) -> None:
        """Compare the repeated bytes with the stored ones. Raises `_Changed` if they differ."""
        view = memoryview(bytearray(len(overlap)))
        at = 0
        while at < len(overlap):
            count = _read_into(response, view[at:])
            if view[at : at + count] != overlap[at : at + count]:
                raise _Changed
            if not count:
                return
            at += count

    def _store(self, response: http.client.HTTPResponse, sink: Sink) -> None:
        """Store all received bytes, also if the connection breaks."""
        has_length = response.length is not None
        more = 1
        while more and self.have < self.size:
            buffer, count = sink.buffer(), 0
            room = min(len(buffer), self.size - self.have)
            try:
                while more and count < room:
                    more = _read_into(response, buffer[count:room])
                    count += more
                    self._extend_limit(more)
            finally:
                sink.put(buffer, count)
                self.have += count
            if self.progress is not None:
                self.progress(self.have, self.size)
        if more and not has_length and _read_into(response, memoryview(bytearray(1))):
            raise self._too_much()

    def _extend_limit(self, received: int) -> None:
        """Restart the time limit after `LEAST_BYTES`."""
        self._recent += received
        if self._recent >= LEAST_BYTES:
            self._recent = 0
            self._allow()

    def _too_much(self) -> DownloadFailed:
        return DownloadFailed(self.name, f"the camera sends more than the {self.size} bytes that it listed")


def _read_into(response: http.client.HTTPResponse, view: memoryview) -> int:
    """Read the available bytes, at least one, directly into a buffer; return 0 at the end."""
    if not response.chunked and response.fp is not None:
        return int(response.fp.readinto1(view))
    block = response.read1(len(view))
    view[: len(block)] = block
    return len(block)


def fetch_small(entry: CameraAddress, file: MediaFile, folder: Path) -> list[Path]:
    """Download the low-resolution copy and the thumbnail of a video into a folder, if the camera has them."""
    check_safe(file.folder, file.name)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in (proxy_name(file.name), thumbnail_name(file.name)):
        size = _size(entry, file.folder, name) if name is not None else None
        if name is not None and size:
            paths.append(download(entry, MediaFile(file.folder, name, size, file.created), folder).path)
    return paths


def _size(entry: CameraAddress, folder: str, name: str) -> int | None:
    """Return the size of a file that the media list does not contain; None if it does not exist."""
    try:
        answer = entry.ask(f"/videos/DCIM/{folder}/{name}", method="HEAD", timeout_s=60.0)
    except TROUBLE as error:
        raise CameraLost(entry.base_url, reason(error)) from error
    if answer.status == 404:
        return None
    if answer.status != 200:
        raise CameraRefused(entry.base_url, f"to send {name}", answer.status)
    return int(answer.stated_length) if answer.stated_length.isdecimal() else None
