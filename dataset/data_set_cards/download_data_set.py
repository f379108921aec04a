#!/usr/bin/env python3
"""Fetch a data set and prove every file of it. Needs Python 3.9 or later and nothing else.

    python download.py https://example.org/our-kitchens FOLDER
    python download.py https://example.org/our-kitchens FOLDER --only 'annotation_*/*' --only '*_360p.mp4'

Run again, it goes on where it was interrupted: what is whole is not fetched twice, half a file is fetched to its end.
No file is taken whose length the server does not state, or that would leave less than 1 GiB free on the disk.
Exit code 0 when every wanted file is there as SHA256SUMS says, else 1.
"""

from __future__ import annotations

import argparse
import hashlib
import http.client
import re
import shutil
import sys
import urllib.error
import urllib.parse
import urllib.request
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

SUMS = "SHA256SUMS"
PART = ".part"
BLOCK = 1 << 20
TIMEOUT_S = 60
TRIES = 3
MOST_SUMS = 64 << 20
KEPT_FREE = 1 << 30


def read_sums(text: str) -> dict[str, str]:
    """Return path -> hash. Raises ValueError for a line that is none, or a path that leads out of the folder."""
    found = {}
    for line in text.splitlines():
        match = re.fullmatch(r"([0-9a-f]{64})  (\S.*)", line)
        path = PurePosixPath(match[2]) if match else PurePosixPath("..")
        if (
            not match
            or not line.isprintable()
            or path.is_absolute()
            or ".." in path.parts
            or "\\" in match[2]
        ):
            raise ValueError(f"{SUMS}: not a line of it: {line[:80]!r}")
        found[match[2]] = match[1]
    return found


def sha256_of(path: Path) -> str:
    """Return the hash of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


class NoRoom(Exception):
    """A file that does not fit on the disk."""


def stated_length(answer: http.client.HTTPResponse) -> int:
    """Return how many bytes an answer has. Raises OSError where the server does not say it: it might never end."""
    length = answer.headers.get("content-length") or ""
    if not re.fullmatch(r"[0-9]{1,15}", length):
        raise OSError("the server does not state its length")
    return int(length)


def fetch(url: str, part: Path) -> None:
    """Fetch what is missing of a file; a server that gives no ranges gives it all again."""
    have = part.stat().st_size if part.exists() else 0
    asked = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        with urllib.request.urlopen(asked, timeout=TIMEOUT_S) as answer:
            goes_on = answer.status == 206
            missing = stated_length(answer)
            if missing > shutil.disk_usage(part.parent).free - KEPT_FREE:
                raise NoRoom(f"{missing} more bytes would leave less than {KEPT_FREE} free on the disk")
            with part.open("ab" if goes_on else "wb") as file:
                while missing > 0 and (block := answer.read(min(BLOCK, missing))):
                    file.write(block)
                    missing -= len(block)
        if missing > 0:
            raise OSError("the connection ended early")
    except urllib.error.HTTPError as error:
        if error.code != 416:  # 416: there is nothing beyond what we have
            raise


def get(base: str, name: str, digest: str, folder: Path) -> str:
    """Fetch one file until it is what SHA256SUMS says; return `here`, `fetched` or what went wrong."""
    path = folder / name
    part = path.with_name(path.name + PART)
    if path.resolve() != folder.resolve() / name or part.is_symlink():
        return "is reached by a link, which leads out of the folder; remove it"
    if path.is_file() and sha256_of(path) == digest:
        return "here"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return str(error)
    trouble = ""
    for _ in range(TRIES):
        try:
            fetch(base + urllib.parse.quote(name), part)
        except (OSError, http.client.HTTPException) as error:
            trouble = str(error)
            continue
        except NoRoom as error:
            return str(error)
        if part.exists() and sha256_of(part) == digest:
            part.replace(path)
            return "fetched"
        trouble = "is not what SHA256SUMS says"
        part.unlink(missing_ok=True)
    return trouble


def main() -> int:
    """Fetch what is asked for; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("address", help="where the data set lies, http or https")
    parser.add_argument("folder", type=Path, help="where it goes")
    parser.add_argument(
        "--only", action="append", metavar="PATTERN", help="files to fetch, such as '*_360p.mp4'"
    )
    asked = parser.parse_args()
    if not re.match(r"https?://", asked.address):
        parser.error("the address begins with http:// or https://")
    base = asked.address.rstrip("/") + "/"
    try:
        with urllib.request.urlopen(base + SUMS, timeout=TIMEOUT_S) as answer:
            content = answer.read(MOST_SUMS + 1)
        if len(content) > MOST_SUMS:
            raise ValueError(f"more than {MOST_SUMS} bytes")
        text = content.decode()
        sums = read_sums(text)
    except (OSError, http.client.HTTPException, ValueError) as error:
        print(f"{base}{SUMS}: {error}", file=sys.stderr)
        return 1
    wanted = {n: h for n, h in sums.items() if not asked.only or any(fnmatch(n, one) for one in asked.only)}
    failed = 0
    for number, (name, digest) in enumerate(wanted.items(), start=1):
        outcome = get(base, name, digest, asked.folder)
        print(f"[{number}/{len(wanted)}] {name}: {outcome}", flush=True)
        failed += outcome not in ("here", "fetched")
    if not failed:
        asked.folder.mkdir(parents=True, exist_ok=True)
        (asked.folder / SUMS).write_text(text)
    print(f"{len(wanted) - failed} of {len(wanted)} files are whole")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
