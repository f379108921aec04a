"""A camera on the home network: HTTPS with a certificate of its own, and a name and password."""

from __future__ import annotations

import base64
import hmac
import ssl
from dataclasses import dataclass


@dataclass(frozen=True)
class HomeNetwork:
    """What a camera hands out when it joins: where its certificate is, and who may enter."""

    certificate: str
    "PEM."
    username: str
    password: str
    context: ssl.SSLContext

    def admits(self, authorization: str | None) -> bool:
        """Check a request's Authorization header."""
        token = base64.b64encode(f"{self.username}:{self.password}".encode()).decode()
        return hmac.compare_digest((authorization or "").encode(), f"Basic {token}".encode())
