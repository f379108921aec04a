"""Names and passwords of cameras on the home network: one private file, outside data and repository."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from sensors.errors import NoCredentials
from sensors.files_on_disk import write_with_rights
from sensors.gopro.entry import CameraAddress

VARIABLE = "KITCHENSYNC_CREDENTIALS"
FIELDS = ("address", "username", "password", "certificate")


def credentials_file() -> Path:
    """Where they are: $KITCHENSYNC_CREDENTIALS, else the user's configuration folder."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "kitchensync" / "cameras.json"


def read_credentials(name: str) -> CameraAddress:
    """Read one camera's entry; raises `NoCredentials` when it is not there or others could read it."""
    known = _read(name)
    if name not in known:
        raise NoCredentials(
            name, f"no such camera in {credentials_file()}; store it with `kitchensync gopro remember`"
        )
    values = known[name]
    if not isinstance(values, dict) or not all(isinstance(values.get(key), str) for key in FIELDS):
        raise NoCredentials(name, f"its entry in {credentials_file()} is not whole; store it again")
    return CameraAddress(
        f"https://{values['address']}", values["username"], values["password"], values["certificate"]
    )


def write_credentials(name: str, *, address: str, username: str, password: str, certificate: str) -> Path:
    """Store one camera's entry in the 0600 file; return where."""
    path = credentials_file()
    known = _read(name) if path.exists() else {}
    known[name] = dict(zip(FIELDS, (address, username, password, certificate), strict=True))
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_with_rights(path, json.dumps(known, indent=1).encode())
    return path


def _read(name: str) -> dict[str, Any]:
    path = credentials_file()
    try:
        status = path.stat()
        if status.st_mode & 0o077 or status.st_uid != os.getuid():
            raise NoCredentials(name, f"{path} may be read by others; run: chmod 600 {path}")
        known = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise NoCredentials(
            name, f"{path} is not there; store the camera with `kitchensync gopro remember`"
        ) from error
    except (OSError, ValueError) as error:
        raise NoCredentials(name, f"{path} cannot be read ({type(error).__name__})") from error
    if not isinstance(known, dict):
        raise NoCredentials(name, f"{path} is not what we write; move it away")
    return known
