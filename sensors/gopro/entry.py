"""How a camera's HTTP server is reached: plain over USB and its own network, with a password and TLS at home."""

from __future__ import annotations

import base64
import http.client
import ssl
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from sensors.errors import CameraLost
from sensors.gopro.http_reader import HttpAnswer, TimeLimit, fetch, limited


@dataclass(frozen=True)
class CameraAddress:
    """Address and, for a camera on the home network, credentials and its own certificate (PEM)."""

    base_url: str
    username: str = ""
    password: str = field(default="", repr=False)
    certificate: str = field(default="", repr=False)

    def ask(self, path: str, *, timeout_s: float, method: str = "GET") -> HttpAnswer:
        """Ask once, for `timeout_s` in all. Raises what `TROUBLE` names, CameraLost for no address, CameraTalk."""
        limit = TimeLimit()
        connection = self.connection(timeout_s, limit)
        try:
            limit.give(timeout_s)
            return fetch(connection, method, path, self.headers, limit=limit, address=self.base_url)
        finally:
            connection.close()

    def connection(self, timeout_s: float, limit: TimeLimit) -> http.client.HTTPConnection:
        """Make a connection whose reads end with `limit`; raises `CameraLost` when the address is none.

        No proxy of the office swallows what is meant for the camera.
        """
        try:
            parts = urlsplit(self.base_url)
            port, host = parts.port, parts.hostname
        except ValueError as error:
            raise CameraLost(self.base_url, f"no address: {error}") from error
        if not host:
            raise CameraLost(self.base_url, "no address")
        if parts.scheme == "https":
            context = self._context() if self.certificate else ssl.create_default_context()
            secure = http.client.HTTPSConnection(host, port, timeout=timeout_s, context=context)
            return limited(secure, limit)
        return limited(http.client.HTTPConnection(host, port, timeout=timeout_s), limit)

    @property
    def headers(self) -> dict[str, str]:
        """What every request on such a connection carries."""
        if not self.username:
            return {}
        token = base64.b64encode(f"{self.username}:{self.password}".encode()).decode()
        return {"Authorization": f"Basic {token}"}

    def _context(self) -> ssl.SSLContext:
        """Trust the camera's own certificate and nothing else; Python 3.13's strictness would refuse it."""
        try:
            context = ssl.create_default_context(cadata=self.certificate)
        except ssl.SSLError as error:
            raise CameraLost(self.base_url, "its certificate cannot be read; store it again") from error
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        return context


def entry_of(address: CameraAddress | str) -> CameraAddress:
    """Take an entry, or a plain `http://host:port`."""
    return address if isinstance(address, CameraAddress) else CameraAddress(address.rstrip("/"))
