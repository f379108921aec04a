"""The secret of an installation: a file beside the database that only its owner reads, and that is in no backup."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from kitchensync.sensors.files_on_disk import open_plain
from kitchensync.storage.disk.durable import private
from kitchensync.storage.errors import BadInstallation

KEY_FILE = "app.key"
KEY_BYTES = 32


def kept_key(folder: Path) -> bytes:
    """Return the secret in an installation's folder, made at the first call. Raises BadInstallation."""
    path = folder / KEY_FILE
    try:
        if not path.exists():
            _make(path)
        with open_plain(path) as file:
            key = file.read(KEY_BYTES + 1)
    except OSError as error:
        why = f"cannot be used ({error.strerror or error}); check its owner and rights"
        raise BadInstallation(path, why) from error
    if len(key) != KEY_BYTES:
        raise BadInstallation(
            path, f"is no key of {KEY_BYTES} bytes; put the right one back, or move it away"
        )
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
