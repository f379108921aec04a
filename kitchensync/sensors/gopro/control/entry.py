"""Access to a camera's HTTP server: plain over USB and its own network, with password and TLS on the home network."""

from __future__ import annotations

import base64
import http.client
import json
import os
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kitchensync.sensors.errors import CameraLost, NoCredentials
from kitchensync.sensors.gopro.control.http_reader import HttpAnswer, TimeLimit, fetch, limited
from kitchensync.shell.files_on_disk import write_with_rights


@dataclass(frozen=True)
class CameraAddress:
    """Address and, for a camera on the home network, credentials and the camera's certificate (PEM)."""

    base_url: str
    username: str = ""
    password: str = field(default="", repr=False)
    certificate: str = field(default="", repr=False)

    def ask(self, path: str, *, timeout_s: float, method: str = "GET") -> HttpAnswer:
        """Send one request, for at most `timeout_s`. Raises the errors in `TROUBLE`, CameraLost, CameraTalk."""
        limit = TimeLimit()
        connection = self.connection(timeout_s, limit)
        try:
            limit.give(timeout_s)
            return fetch(connection, method, path, self.headers, limit=limit, address=self.base_url)
        finally:
            connection.close()

    def connection(self, timeout_s: float, limit: TimeLimit) -> http.client.HTTPConnection:
        """Return a connection whose reads end at `limit`, without a proxy. Raises `CameraLost` for a bad address."""
        try:
            parts = urlsplit(self.base_url)
            port, host = parts.port, parts.hostname
        except ValueError as error:
            raise CameraLost(self.base_url, f"invalid address: {error}") from error
        if not host:
            raise CameraLost(self.base_url, "invalid address")
        if parts.scheme == "https":
            context = self._context() if self.certificate else ssl.create_default_context()
            secure = http.client.HTTPSConnection(host, port, timeout=timeout_s, context=context)
            return limited(secure, limit)
        return limited(http.client.HTTPConnection(host, port, timeout=timeout_s), limit)

    @property
    def headers(self) -> dict[str, str]:
        """Headers of every request."""
        if not self.username:
            return {}
        token = base64.b64encode(f"{self.username}:{self.password}".encode()).decode()
        return {"Authorization": f"Basic {token}"}

    def _context(self) -> ssl.SSLContext:
        """Return a context that trusts only the camera's certificate, which Python 3.13's strict checks refuse."""
        try:
            context = ssl.create_default_context(cadata=self.certificate)
        except ssl.SSLError as error:
            raise CameraLost(self.base_url, "its certificate cannot be read; store it again") from error
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        return context


def entry_of(address: CameraAddress | str) -> CameraAddress:
    """Return an address object for one, or for a plain `http://host:port`."""
    return address if isinstance(address, CameraAddress) else CameraAddress(address.rstrip("/"))


VARIABLE = "KITCHENSYNC_CREDENTIALS"
FIELDS = ("address", "username", "password", "certificate")


def credentials_file() -> Path:
    """Return the file of credentials: $KITCHENSYNC_CREDENTIALS, else one in the user's configuration folder."""
    path = os.environ.get(VARIABLE)
    if path:
        return Path(path)
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "kitchensync" / "cameras.json"


def read_credentials(name: str) -> CameraAddress:
    """Read one camera's entry. Raises `NoCredentials` if it is missing or other users could read the file."""
    cameras = _read(name)
    if name not in cameras:
        raise NoCredentials(
            name, f"no such camera in {credentials_file()}; store it with `kitchensync gopro remember`"
        )
    values = cameras[name]
    if not isinstance(values, dict) or not all(isinstance(values.get(key), str) for key in FIELDS):
        raise NoCredentials(name, f"its entry in {credentials_file()} is incomplete; store it again")
    return CameraAddress(
        f"https://{values['address']}", values["username"], values["password"], values["certificate"]
    )


def write_credentials(name: str, *, address: str, username: str, password: str, certificate: str) -> Path:
    """Store one camera's entry in the file of credentials, which only the user can read; return its path."""
    path = credentials_file()
    cameras = _read(name) if path.exists() else {}
    cameras[name] = dict(zip(FIELDS, (address, username, password, certificate), strict=True))
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_with_rights(path, json.dumps(cameras, indent=1).encode())
    return path


def _read(name: str) -> dict[str, Any]:
    path = credentials_file()
    try:
        status = path.stat()
        if status.st_mode & 0o077 or status.st_uid != os.getuid():
            raise NoCredentials(name, f"{path} can be read by other users; run: chmod 600 {path}")
        cameras = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        why = f"{path} does not exist; store the camera with `kitchensync gopro remember`"
        raise NoCredentials(name, why) from error
    except (OSError, ValueError) as error:
        raise NoCredentials(name, f"{path} cannot be read ({type(error).__name__})") from error
    if not isinstance(cameras, dict):
        raise NoCredentials(name, f"{path} is not a file of credentials; move it away")
    return cameras
