"""What is sent to services of others: noted before it leaves; their keys lie in files that nobody else may read."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path

from storage.shell.loopback import is_loopback_address

LOG = Path("kitchensync") / "sent-to-others.jsonl"


def note_sent(
    host: str, content: bytes, what: str, environment: Mapping[str, str] = os.environ
) -> Path | None:
    """Note host, bytes and hash of what is about to be sent; return the log, None where it stays here.

    The log is private, in the user's folder for states. Raises OSError: then nothing may be sent.
    """
    if not host or is_loopback_address(host):
        return None
    said = {"utc_ns": time.time_ns(), "host": host, "what": what, "bytes": len(content)}
    line = json.dumps(said | {"sha256": hashlib.sha256(content).hexdigest()}) + "\n"
    log = Path(environment.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / LOG
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab") as file:
        file.write(line.encode())
        os.fsync(file.fileno())
    return log


def read_key(path: Path) -> str:
    """Read the one word in a file that only its owner may read. Raises PermissionError, OSError, ValueError."""
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_mode & 0o077:
            raise PermissionError(f"{path} may be read by others; run: chmod 600 {path}")
        words = file.read(4096).decode("ascii").split()
    if len(words) != 1:
        raise ValueError(f"{path} holds no key; save the key alone in it")
    return words[0]
