"""Checks of every request: host name and origin, limits for anonymous requests; and security headers."""

from __future__ import annotations

import json
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kitchensync.recipe_app.errors import TooOften
from kitchensync.recipe_app.people.visitors import Visitors
from kitchensync.recipe_app.web.door.access import tokens_of
from kitchensync.recipe_app.web.door.networks import LanePlace, Lanes, network_of
from kitchensync.recipe_app.web.i18n import words_of
from kitchensync.shell.loopback import is_loopback_address
from kitchensync.task_graphs.errors import RecipeError

PER_NETWORK, IN_TOTAL = 6, 12
"""Concurrent anonymous requests, from one network and in total."""
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self' blob:; "
    "connect-src 'self'; manifest-src 'self'; worker-src 'self'; font-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": CONTENT_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(self), screen-wake-lock=(self)",
    "cache-control": "no-store",
}
_UNSAFE = frozenset(("POST", "PUT", "PATCH", "DELETE"))


class Guard:
    """ASGI middleware: known host names only, same origin for requests that change data, security headers."""

    def __init__(self, app: ASGIApp, *, hosts: Collection[str], visitors: Visitors) -> None:
        self.app, self.hosts, self.visitors = app, frozenset(hosts), visitors
        self.lanes = Lanes(PER_NETWORK, IN_TOTAL)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it with an error."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if error := self._refusal(scope, headers):
            await _answer(send, 403, words_of(HTTPConnection(scope)).refusal(error))
            return
        send = _with_headers(send, secure=scope["scheme"] == "https")
        known = self.visitors.known(tokens_of(HTTPConnection(scope))[0])
        if known and (known.device or known.person):
            await self.app(scope, receive, send)
            return
        place = LanePlace(self.lanes, network_of((scope["client"] or ("",))[0]))
        try:
            await place.take()
        except TooOften as error:
            await _answer(send, 429, words_of(HTTPConnection(scope)).refusal(error))
            return
        try:
            await self.app(scope, place.receiving(receive), place.sending(send))
        finally:
            place.end()

    def _refusal(self, scope: Scope, headers: Headers) -> RecipeError | None:
        # Against DNS rebinding: another site must not reach the app through its own host name.
        host_header = headers.get("host", "")
        host, colon, port = host_header.rpartition(":")
        if not colon or not port.isdecimal():
            host = host_header
        name = host.strip("[]").lower()
        if not (is_loopback_address(name) or name in self.hosts):
            return RecipeError("this app is not served under that name")
        if scope["method"] in _UNSAFE and not _same_origin(scope, headers):
            return RecipeError("another site may not change anything here")
        return None


def _same_origin(scope: Scope, headers: Headers) -> bool:
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = headers.get("origin")
    if origin is None:
        return True  # not a browser, so it sends no cookies by itself
    parts = urlsplit(origin)
    return (parts.scheme, parts.netloc) == (scope["scheme"], headers.get("host", ""))


def _with_headers(send: Send, *, secure: bool) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            if secure:
                headers.setdefault("strict-transport-security", "max-age=31536000")
        await send(message)

    return send_with_headers


async def _answer(send: Send, status: int, error: str) -> None:
    body = json.dumps({"error": error}).encode()
    sent = {**_HEADERS, "content-type": "application/json", "content-length": str(len(body))}
    pairs = [(name.encode(), value.encode()) for name, value in sent.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})
