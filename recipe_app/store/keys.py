"""The secret of an installation: a file beside the database that only its owner reads, and that is in no backup."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from kitchensync.recipe_app.errors import BadSetup
from kitchensync.storage.disk.durable import private

KEY_FILE = "app.key"
KEY_BYTES = 32


def kept_key(folder: Path) -> bytes:
    """Return the secret of the app in this folder, made at the first call. Raises BadSetup."""
    path = folder / KEY_FILE
    try:
        if not path.exists():
            _make(path)
        key = path.read_bytes()
    except OSError as error:
        raise BadSetup(f"{path}: cannot be used ({error.strerror or error})") from error
    if len(key) != KEY_BYTES:
        raise BadSetup(f"{path}: is no key of {KEY_BYTES} bytes; put the right one back, or move it away")
    return key


def _make(path: Path) -> None:
    """Write it whole under another name first: of two processes that begin together, the first one's counts."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    try:
        with open(part, "xb", opener=private) as file:
            file.write(secrets.token_bytes(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        os.link(part, path)
    except FileExistsError:
        pass  # another process was first
    finally:
        part.unlink(missing_ok=True)
