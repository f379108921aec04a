"""Secrets, of which only hashes are stored: PIN and password by slow Argon2id, random tokens by SHA-256."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from kitchensync.operations.errors import BadOperation

# OWASP's minimum: 19 MiB, two passes.
_HASHER = PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)
LATER_BY = 5
"""Added niceness of the hashing threads, so that password guessing does not slow down the app."""


def _lower_priority() -> None:
    if sys.platform == "linux":  # only there a thread has its own priority
        me = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, me, os.getpriority(os.PRIO_PROCESS, me) + LATER_BY)


_HASHING = ThreadPoolExecutor(2, initializer=_lower_priority)
"""Few own threads: the C library keeps 19 MiB for each thread that ever hashed, 450 MiB for forty threads."""
_DUMMY = _HASHER.hash(secrets.token_hex(8))
_CODE_LETTERS = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"  # without 0, 1, I and O, which are easily confused

SHORTEST_PASSWORD = 10  # an attacker with many addresses has five tries at each
DAY_NS = 86_400_000_000_000


def slow_hash(secret: str) -> str:
    """Hash a PIN or a password with Argon2id."""
    return _HASHING.submit(_HASHER.hash, secret).result()


def matches(stored: str | None, secret: str) -> bool:
    """Check a PIN or a password; a missing one takes as long as a wrong one."""
    try:
        return _HASHING.submit(_HASHER.verify, stored or _DUMMY, secret).result() and stored is not None
    except (VerificationError, InvalidHashError):
        return False


def new_token() -> str:
    """Make a token of 256 bits."""
    return secrets.token_urlsafe(32)


def new_card(until_utc_ns: int) -> str:
    """Make the token of a card, which contains its last day: the stored hash is over both."""
    return f"{until_utc_ns // DAY_NS}.{new_token()}"


def card_is_valid(token: str, utc_ns: int) -> bool:
    """Return whether a card has not expired; a token without a last day is from before cards expired, and invalid."""
    last, dot, _ = token.partition(".")
    return bool(dot) and last.isdecimal() and len(last) < 9 and utc_ns // DAY_NS <= int(last)


def new_code() -> str:
    """Make a pairing code for people to type: 40 bits, valid for minutes."""
    letters = "".join(secrets.choice(_CODE_LETTERS) for _ in range(8))
    return f"{letters[:4]}-{letters[4:]}"


def fast_hash(token: str) -> str:
    """Hash a random token or code."""
    if re.fullmatch(r"\s*[0-9A-Za-z]{4}-[0-9A-Za-z]{4}\s*", token):
        token = token.strip().upper()
    return hashlib.sha256(token.encode()).hexdigest()


def second_token(token: str) -> str:
    """Return the CSRF token of a session, derived from the session's token so that it need not be stored."""
    return hmac.new(token.encode(), b"csrf", hashlib.sha256).hexdigest()


def check_pin(pin: str) -> None:
    """Check that a PIN has six digits and is not trivial. Raises BadOperation."""
    if not re.fullmatch(r"[0-9]{6}", pin):
        raise BadOperation("a PIN has six digits")
    if len(set(pin)) == 1 or pin in "01234567890" or pin in "09876543210":
        raise BadOperation("this PIN is one that anybody tries first; choose another")
