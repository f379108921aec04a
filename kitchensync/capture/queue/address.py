"""Check the address of an external queue server: on this computer, or over TLS with its own user."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from kitchensync.capture.errors import BadQueueAddress
from kitchensync.shell.loopback import is_loopback_address


def check_address(url: str) -> str:
    """Return the address. Raises BadQueueAddress if packets would travel without encryption or authentication."""
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("redis", "rediss") and parts.hostname and parts.port != 0
    except ValueError as error:
        raise BadQueueAddress(url, f"is no address ({error})") from error
    if parts.scheme == "unix" and parts.path:
        return url
    if not is_address:
        raise BadQueueAddress(
            url, "is no address; write redis://HOST:PORT, rediss://HOST:PORT or unix:///PATH"
        )
    options = parse_qs(parts.query)
    has_user = (parts.username or "username" in options) and (parts.password or "password" in options)
    if not is_loopback_address(str(parts.hostname)) and not (parts.scheme == "rediss" and has_user):
        why = "over a network a queue needs TLS and a user; write rediss://USER:PASSWORD@HOST:PORT"
        raise BadQueueAddress(url, why)
    return url
