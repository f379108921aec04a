"""A cloud store by URL (fsspec): files are written, read back and compared."""

from __future__ import annotations

import errno
import hashlib
import importlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from kitchensync.storage.copies.target import Copied
from kitchensync.storage.errors import (
    CloudRefused,
    CopyDiffers,
    PlaceTaken,
    SecretInAddress,
    SourceDiffers,
    StorageError,
)
from kitchensync.storage.manifest import MOST_BYTES
from kitchensync.storage.names import MANIFEST

STEP_BYTES = 8 << 20

WITH_FOLDERS = {"file", "local", "memory", "sftp", "ssh", "smb"}
"""Stores that need a folder before a file; in others creating a folder might create a bucket for a mistyped name."""

PASSWORD = re.compile(r"(\w+)://[^/@]*:[^/@]*@")
"""An address with a password; its group is the protocol."""


@contextmanager
def refusals(url: str, name: str = "") -> Iterator[None]:
    """Convert all errors of a store to CloudRefused; our own errors pass."""
    try:
        yield
    except StorageError:
        raise
    except Exception as error:
        raise CloudRefused(url, name, why(error)) from error


def check_address(url: str) -> None:
    """Refuse an address with a password, because addresses are stored. Raises SecretInAddress."""
    if match := PASSWORD.search(url):
        raise SecretInAddress(match[1])


class CloudStore:
    """A place in a store; names of files are relative to it."""

    def __init__(self, url: str) -> None:
        """Open it with the store's own settings (environment, profile files). Raises CloudRefused."""
        self.url = self.identity = url
        try:
            core = importlib.import_module("fsspec.core")
            self._store, root = core.url_to_fs(url)
        except ImportError as error:
            raise CloudRefused(url, "", f"{error}; pip install 'kitchensync[cloud]'") from error
        except Exception as error:
            raise CloudRefused(url, "", why(error)) from error
        self._root = str(root).rstrip("/")

    @property
    def _has_folders(self) -> bool:
        protocols = self._store.protocol
        return not WITH_FOLDERS.isdisjoint([protocols] if isinstance(protocols, str) else protocols)

    def size_of(self, name: str) -> int | None:
        """Return the size of a file in the store, None if missing."""
        self._store.invalidate_cache()
        place = f"{self._root}/{name}"
        return int(self._store.info(place)["size"]) if self._store.exists(place) else None

    def sha256_of(self, name: str, tell: Callable[[int], None] = lambda _: None) -> str:
        """Read a file back and return its hash; `tell` gets the number of bytes read."""
        digest = hashlib.sha256()
        place = f"{self._root}/{name}"
        file: Any
        with self._store.open(place, "rb", block_size=STEP_BYTES, cache_type="readahead") as file:
            while piece := file.read(STEP_BYTES):
                digest.update(piece)
                tell(file.tell())
        return digest.hexdigest()

    def send(self, source: Path, name: str, expected: str | None, tell: Callable[[int], None]) -> Copied:
        """Write a file, read it back and compare; writing and reading each count half its bytes for `tell`.

        Raises SourceDiffers if the source has another hash, CopyDiffers; neither leaves a file in the store.
        """
        place = f"{self._root}/{name}"
        if self._has_folders:
            self._store.makedirs(place.rpartition("/")[0], exist_ok=True)
        size, digest = source.stat().st_size, hashlib.sha256()
        target: Any
        with source.open("rb") as file, self._store.open(place, "wb", block_size=STEP_BYTES) as target:
            while piece := file.read(STEP_BYTES):
                digest.update(piece)
                target.write(piece)
                tell(file.tell() // 2)
        if expected is not None and digest.hexdigest() != expected:
            self._store.rm_file(place)
            raise SourceDiffers(source)
        if self.sha256_of(name, lambda back: tell((size + back) // 2)) != digest.hexdigest():
            self._store.rm_file(place)
            raise CopyDiffers(Path(f"{self.url}/{name}"))
        return Copied(size, digest.hexdigest(), "downloaded")

    def names_below(self, name: str) -> list[str]:
        """Return the files below a name, by relative path. Raises CloudRefused."""
        place = f"{self._root}/{name}".rstrip("/")
        with refusals(self.url, name):
            # If the store's own folder is gone, the store is absent, not empty.
            self._store.invalidate_cache()
            if self._has_folders and not self._store.isdir(self._root):
                raise FileNotFoundError(errno.ENOENT, "it is away", self._root)
            paths = list(self._store.find(place)) if self._store.exists(place) else []
        return [str(path).partition(f"{place}/")[2] for path in paths]

    def remove(self, name: str) -> None:
        """Destroy a file, and its old versions in a bucket with versions. Raises CloudRefused."""
        place = f"{self._root}/{name}"
        with refusals(self.url, name):
            self._store.rm_file(place)
            self._remove_versions(place, {place})

    def has(self, name: str) -> bool:
        """Return whether a file or folder exists. Raises CloudRefused."""
        with refusals(self.url, name):
            self._store.invalidate_cache()
            return bool(self._store.exists(f"{self._root}/{name}"))

    def manifest_of(self, name: str) -> bytes | None:
        """Return the `recording.json` of a copy, None if missing. Raises CloudRefused."""
        place, file = f"{self._root}/{name}/{MANIFEST}", cast(Any, None)
        with refusals(self.url, name):
            self._store.invalidate_cache()
            if not self._store.exists(place):
                return None
            with self._store.open(place, "rb") as file:
                return bytes(file.read(MOST_BYTES))

    def announce(self, name: str, content: bytes, *, is_new: bool) -> None:
        """Write the `recording.json` at the start of a copy; with `is_new` only if there is none.

        Raises PlaceTaken if another copy has begun meanwhile, CloudRefused.
        """
        place = f"{self._root}/{name}/{MANIFEST}"
        with refusals(self.url, name):
            if self._has_folders:
                self._store.makedirs(place.rpartition("/")[0], exist_ok=True)
            try:
                self._store.pipe_file(place, content, mode="create" if is_new else "overwrite")
            except FileExistsError as error:
                raise PlaceTaken(f"{self.url}/{name}", "another copy, which has just begun") from error
            except OSError as error:
                if error.errno != errno.ENOSYS:
                    raise
                self._store.pipe_file(place, content)  # the caller just checked that there is none

    def tidy(self, name: str, files: set[str]) -> None:
        """Remove empty folders below a name, and old versions of files. Raises CloudRefused."""
        place = f"{self._root}/{name}"
        with refusals(self.url, name):
            self._remove_versions(place, {f"{place}/{file}" for file in files})
        if self._has_folders and self._store.isdir(place):
            for folder, _, _ in sorted(self._store.walk(place), reverse=True):
                with suppress(Exception):  # not empty
                    self._store.rmdir(folder)

    def _remove_versions(self, below: str, places: set[str]) -> None:
        """Destroy the old versions of removed objects in a bucket with versions."""
        if not hasattr(self._store, "call_s3"):
            return
        bucket, _, prefix = below.partition("/")
        query = {"Bucket": bucket, "Prefix": prefix}
        while True:
            listed = self._store.call_s3("list_object_versions", **query)
            for version in (*listed.get("Versions", ()), *listed.get("DeleteMarkers", ())):
                if f"{bucket}/{version['Key']}" in places:
                    self._store.call_s3(
                        "delete_object", Bucket=bucket, Key=version["Key"], VersionId=version["VersionId"]
                    )
            if not listed.get("IsTruncated"):
                return
            query |= {"KeyMarker": listed["NextKeyMarker"], "VersionIdMarker": listed["NextVersionIdMarker"]}


def why(error: Exception) -> str:
    """Return the message of a store's error; for errors of the computer the plain text."""
    text = error.strerror.lower() if isinstance(error, OSError) and error.strerror else str(error)
    return text or type(error).__name__
