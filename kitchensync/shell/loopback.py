"""Loopback addresses."""

from __future__ import annotations

import ipaddress


def is_loopback_address(host: str) -> bool:
    """Return whether a host name or address is loopback."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
