#!/usr/bin/env python3
"""Fetch a data set and prove every file of it. Needs Python 3.9 or later and nothing else.

    python download.py https://example.org/our-kitchens FOLDER
    python download.py https://example.org/our-kitchens FOLDER --only 'annotation_*/*' --only '*_360p.mp4'

Run it again to resume: complete files are not fetched twice, and partial files are fetched to their end. The server
must state the length of each file, and 1 GiB of the disk stays free. Redirects are followed from https to https only,
and from a public address to public addresses only. Exit code 0 when every wanted file matches SHA256SUMS, else 1.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import http.client
import io
import ipaddress
import re
import shutil
import socket
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

SUMS = "SHA256SUMS"
PART = ".part"
BLOCK = 1 << 20
TIMEOUT_S = 60
SLOWEST = 4096
"""Bytes a second, counted from a minute after the first."""
TRIES = 3
MOST_SUMS = 64 << 20
KEPT_FREE = 1 << 30


def read_sums(text: str) -> dict[str, str]:
    """Parse SHA256SUMS: path -> hash. Raises ValueError for a bad line, or a path outside of the folder."""
    found = {}
    for line in text.splitlines():
        match = re.fullmatch(r"([0-9a-f]{64})  (\S.*)", line)
        if not match or not line.isprintable() or leads_out(match[2]):
            raise ValueError(f"{SUMS}: not a line of it: {line[:80]!r}")
        found[match[2]] = match[1]
    return found


def leads_out(name: str) -> bool:
    """Return whether a path leads out of the folder."""
    path = PurePosixPath(name)
    is_elsewhere = path.is_absolute() or bool(PureWindowsPath(name).drive)
    return is_elsewhere or not path.parts or ".." in path.parts or "\\" in name


def sha256_of(path: Path) -> str:
    """Return the hash of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


class NoRoom(Exception):
    """A file that does not fit on the disk."""


class Visit(urllib.request.HTTPHandler, urllib.request.HTTPSHandler, urllib.request.HTTPRedirectHandler):
    """Requests to one server; redirects from https to http, or from a public to a private address, are refused."""

    def __init__(self) -> None:
        super().__init__()
        self.began_public: bool | None = None
        self.sockets: list[socket.socket] = []

    def http_open(self, req: Any) -> Any:
        """Open an http request."""
        return self.do_open(self._seen(http.client.HTTPConnection), req)

    def https_open(self, req: Any) -> Any:
        """Open an https request."""
        return self.do_open(self._seen(http.client.HTTPSConnection), req)

    def _seen(self, kind: Any) -> Any:
        """Return a connection class that checks the address of the server before it sends a request."""

        def connect(connection: Any) -> None:
            kind.connect(connection)
            self.connected(connection.sock)

        return type("Seen", (kind,), {"connect": connect})

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        """Follow a redirect to http or https. Raises OSError for another scheme, or from https to http."""
        scheme = urllib.parse.urlsplit(newurl).scheme
        if scheme != "https" and (req.type, scheme) != ("http", "http"):
            raise OSError(f"the server sends us on from {req.type} to {scheme}, which is not followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)

    def connected(self, to: socket.socket) -> None:
        """Check the address of a new connection. Raises OSError for a private one after a public one."""
        address = ipaddress.ip_address(to.getpeername()[0].partition("%")[0])
        is_public = (getattr(address, "ipv4_mapped", None) or address).is_global
        if self.began_public is None:
            self.began_public = is_public
        if self.began_public and not is_public:
            raise OSError(f"the server sends us on to {address}, which is not public")
        self.sockets.append(to)

    def hang_up(self) -> None:
        """Shut down all connections, which ends a blocked read."""
        for one in self.sockets:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(one, socket.SHUT_RDWR)

    @contextlib.contextmanager
    def answer(self, url: str, headers: dict[str, str] | None = None) -> Iterator[http.client.HTTPResponse]:
        """Open a URL; its headers must arrive within `TIMEOUT_S`. Raises OSError, HTTPException."""
        opener = urllib.request.build_opener(self)
        timer = threading.Timer(TIMEOUT_S, self.hang_up)
        self.sockets.clear()
        timer.start()
        try:
            answer = opener.open(urllib.request.Request(url, headers=headers or {}), timeout=TIMEOUT_S)
        finally:
            timer.cancel()
        with answer:
            yield answer


def blocks_of(answer: http.client.HTTPResponse, most_bytes: int) -> Iterator[bytes]:
    """Yield the body in blocks, at most `most_bytes`. Raises OSError if it is slower than `SLOWEST`."""
    began_s, came = time.monotonic(), 0
    while came < most_bytes and (block := answer.read1(min(BLOCK, most_bytes - came))):
        yield block
        came += len(block)
        if time.monotonic() - began_s > TIMEOUT_S + came / SLOWEST:
            raise OSError(f"slower than {SLOWEST} bytes a second")


def stated_length(answer: http.client.HTTPResponse) -> int:
    """Return the content length. Raises OSError if the server does not state it: the body might never end."""
    length = answer.headers.get("content-length") or ""
    if not re.fullmatch(r"[0-9]{1,15}", length):
        raise OSError("the server does not state its length")
    return int(length)


def fetch(visit: Visit, url: str, part: Path) -> None:
    """Fetch the missing rest of a file, or all of it from a server without range requests."""
    have = part.stat().st_size if part.exists() else 0
    try:
        with visit.answer(url, {"Range": f"bytes={have}-"} if have else None) as answer:
            goes_on = answer.status == 206
            missing = stated_length(answer)
            if missing > shutil.disk_usage(part.parent).free - KEPT_FREE:
                raise NoRoom(f"{missing} more bytes would leave less than {KEPT_FREE} free on the disk")
            with part.open("ab" if goes_on else "wb") as file:
                for block in blocks_of(answer, missing):
                    file.write(block)
                    missing -= len(block)
        if missing > 0:
            raise OSError("the connection ended early")
    except urllib.error.HTTPError as error:
        if error.code != 416:  # 416: there is nothing beyond what we have
            raise


def get(visit: Visit, base: str, name: str, digest: str, folder: Path) -> str:
    """Fetch one file until its hash is right; return `here`, `fetched`, or the problem."""
    try:
        return _get(visit, base, name, digest, folder)
    except (OSError, RuntimeError, NoRoom) as error:  # RuntimeError: a link to itself
        return str(error)


def _get(visit: Visit, base: str, name: str, digest: str, folder: Path) -> str:
    path = folder / name
    part = path.with_name(path.name + PART)
    if path.resolve() != folder.resolve() / name or part.is_symlink():
        return "is reached by a link, which leads out of the folder; remove it"
    if path.is_file() and sha256_of(path) == digest:
        return "here"
    path.parent.mkdir(parents=True, exist_ok=True)
    trouble = ""
    for _ in range(TRIES):
        try:
            fetch(visit, base + urllib.parse.quote(name), part)
        except (OSError, ValueError, http.client.HTTPException) as error:
            trouble = str(error)
            continue
        if part.exists() and sha256_of(part) == digest:
            part.replace(path)
            return "fetched"
        trouble = "is not what SHA256SUMS says"
        part.unlink(missing_ok=True)
    return trouble


def shown(text: str) -> str:
    """Return a text with control characters and the like as escapes."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def main() -> int:
    """Fetch what is asked for; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("address", help="address of the data set, http or https")
    parser.add_argument("folder", type=Path, help="folder to write")
    parser.add_argument(
        "--only", action="append", metavar="PATTERN", help="files to fetch, such as '*_360p.mp4'"
    )
    asked = parser.parse_args()
    if not re.match(r"https?://", asked.address):
        parser.error("the address begins with http:// or https://")
    base, visit = asked.address.rstrip("/") + "/", Visit()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with visit.answer(base + SUMS) as answer:
            content = b"".join(blocks_of(answer, MOST_SUMS + 1))
        if len(content) > MOST_SUMS:
            raise ValueError(f"more than {MOST_SUMS} bytes")
        text = content.decode()
        sums = read_sums(text)
    except (OSError, http.client.HTTPException, ValueError) as error:
        print(f"{base}{SUMS}: {shown(str(error))}", file=sys.stderr)
        return 1
    wanted = {n: h for n, h in sums.items() if not asked.only or any(fnmatch(n, one) for one in asked.only)}
    failed = 0
    for number, (name, digest) in enumerate(wanted.items(), start=1):
        outcome = get(visit, base, name, digest, asked.folder)
        print(f"[{number}/{len(wanted)}] {name}: {shown(outcome)}", flush=True)
        failed += outcome not in ("here", "fetched")
    try:
        if not failed:
            asked.folder.mkdir(parents=True, exist_ok=True)
            (asked.folder / SUMS).write_text(text)
    except OSError as error:
        print(f"{asked.folder / SUMS}: {error}", file=sys.stderr)
        return 1
    print(f"{len(wanted) - failed} of {len(wanted)} files are whole")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
