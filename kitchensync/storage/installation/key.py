"""The secret of an installation: a file beside the database that only its owner may read, without backups.

A data folder may come from elsewhere with its own key. So the keys of this user are stored outside all data folders.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from kitchensync.shell.files_on_disk import open_plain
from kitchensync.storage.disk.durable import private
from kitchensync.storage.errors import BadInstallation

KEY_FILE = "app.key"
KEY_BYTES = 32  # output size of SHA-256; a longer key adds no strength to HMAC-SHA-256
_taken: set[str] = set()
"""Hashes of keys that this process made or accepted, even if they cannot be stored."""


def kept_key(folder: Path) -> bytes:
    """Return the secret in an installation's folder, created at the first call. Raises BadInstallation."""
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


def check_own_folder(folder: Path) -> None:
    """Refuse an installation's folder that is a link. Raises BadInstallation, OSError."""
    if not stat.S_ISDIR(os.lstat(folder).st_mode):
        raise BadInstallation(folder, "is no folder, or a link to one; put the folder itself there")


def own_key(folder: Path) -> bytes:
    """Return the secret of an installation of this user. Raises BadInstallation, OSError."""
    check_own_folder(folder)
    key = kept_key(folder) if (folder / KEY_FILE).exists() else b""
    if not is_own(key):
        serve = f"kitchensync app --mine --data {folder.parent}"
        why = f"this user has not worked here yet; if these recordings are yours, run `{serve}` once"
        raise BadInstallation(folder, why)
    return key


def take_folder(folder: Path) -> None:
    """Register an installation's folder as this user's own, on request. Raises BadInstallation."""
    _take(kept_key(folder))


def is_own(key: bytes) -> bool:
    """Return whether a key was made, or its folder registered, by this user on this computer."""
    digest = hashlib.sha256(key).hexdigest()
    with suppress(OSError):
        return digest in _taken or digest in _known_keys().read_text().split()
    return False


def signed(text: bytes) -> str:
    """Return a code of a text that only this user on this computer can make; empty if no secret can be stored."""
    try:
        return hmac.new(kept_key(_known_keys().parent), text, hashlib.sha256).hexdigest()
    except BadInstallation:
        return ""


def is_signed(text: bytes, code: object) -> bool:
    """Return whether a code of a text was made by this user on this computer."""
    expected = signed(text)
    return bool(expected) and isinstance(code, str) and hmac.compare_digest(code.encode(), expected.encode())


def _take(key: bytes) -> None:
    """Store the hash of a key; if that fails, it is valid only in this process."""
    if is_own(key):
        return
    digest, path = hashlib.sha256(key).hexdigest(), _known_keys()
    _taken.add(digest)
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(path, "a", opener=private) as file:
            file.write(f"{digest}\n")


def _known_keys() -> Path:
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "kitchensync" / "installations"


def _make(path: Path) -> None:
    """Create a key atomically: of two concurrent processes, the first one's key counts."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part, key = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part"), secrets.token_bytes(KEY_BYTES)
    _take(key)  # before another process can read it
    try:
        with open(part, "xb", opener=private) as file:
            file.write(key)
            file.flush()
            os.fsync(file.fileno())
        os.link(part, path)
    except FileExistsError:
        pass  # another process was first
    finally:
        part.unlink(missing_ok=True)
