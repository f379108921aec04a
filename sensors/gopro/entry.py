"""How a camera's HTTP server is reached: plain over USB and its own network, with a password and TLS at home."""

from __future__ import annotations

import base64
import http.client
import ssl
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpx

from sensors.errors import CameraLost


@dataclass(frozen=True)
class CameraAddress:
    """Address and, for a camera on the home network, credentials and its own certificate (PEM)."""

    base_url: str
    username: str = ""
    password: str = field(default="", repr=False)
    certificate: str = field(default="", repr=False)

    def client(self, timeout_s: float) -> httpx.Client:
        """Open a client; raises `CameraLost` when the address is none.

        trust_env=False: a proxy of the office must not swallow a request to the camera.
        """
        auth = (self.username, self.password) if self.username else None
        verify: ssl.SSLContext | bool = self._context() if self.certificate else True
        try:
            return httpx.Client(
                base_url=self.base_url, timeout=timeout_s, trust_env=False, auth=auth, verify=verify
            )
        except httpx.InvalidURL as error:
            raise CameraLost(self.base_url, f"no address: {error}") from error

    def connection(self, timeout_s: float) -> http.client.HTTPConnection:
        """Make a plain connection, for bodies of gigabytes; raises `CameraLost` when the address is none."""
        try:
            parts = urlsplit(self.base_url)
            port, host = parts.port, parts.hostname
        except ValueError as error:
            raise CameraLost(self.base_url, f"no address: {error}") from error
        if not host:
            raise CameraLost(self.base_url, "no address")
        if parts.scheme == "https":
            context = self._context() if self.certificate else ssl.create_default_context()
            return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=context)
        return http.client.HTTPConnection(host, port, timeout=timeout_s)

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
