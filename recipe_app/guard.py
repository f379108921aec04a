"""The door of the app: who may come in, how much they may bring, and what a browser may do with our pages."""

from __future__ import annotations

import hmac
import ipaddress
import json
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY = 16_384
COOKIE = "kitchensync_token"

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": CONTENT_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


class Guard:
    """ASGI middleware: a token where one is set, else loopback names only; bounded JSON bodies; strict headers."""

    def __init__(self, app: ASGIApp, *, token: str | None) -> None:
        self.app, self.token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer it here in one line."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if refusal := self._refusal(scope, headers):
            await _answer(send, *refusal)
        elif self.token and (given := _token_in_query(scope)):
            await _answer(send, 303, "", {"location": scope["path"], "set-cookie": _cookie(given)})
        else:
            await self.app(scope, _bounded(receive), _with_headers(send))

    def _refusal(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        if self.token is not None:
            given = _token_in_query(scope) or _bearer(headers) or _token_in_cookie(headers)
            if not hmac.compare_digest(given.encode(), self.token.encode()):
                return 401, "open the address that the app printed at its start; it carries the token"
        elif not _is_loopback(headers.get("host", "")):
            return 403, "this app serves loopback addresses only; start it with --token to serve others"
        if scope["method"] == "POST":
            if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
                return 415, "send application/json"
            if not headers.get("content-length", "0").isdecimal():
                return 400, "the content length is not a number"
            if int(headers.get("content-length", "0")) > MAX_BODY:
                return 413, f"a request has at most {MAX_BODY} bytes"
        return None


def _bounded(receive: Receive) -> Receive:
    taken = 0

    async def bounded() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > MAX_BODY:
            raise HTTPException(413, f"a request has at most {MAX_BODY} bytes")
        return message

    return bounded


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers


async def _answer(send: Send, status: int, error: str, headers: dict[str, str] | None = None) -> None:
    body = json.dumps({"error": error}).encode() if error else b""
    sent = {
        **_HEADERS,
        "content-type": "application/json",
        "content-length": str(len(body)),
        **(headers or {}),
    }
    pairs = [(name.encode(), value.encode()) for name, value in sent.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})


def _token_in_query(scope: Scope) -> str:
    values = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])
    return values[0]


def _bearer(headers: Headers) -> str:
    scheme, _, value = headers.get("authorization", "").partition(" ")
    return value.strip() if scheme.lower() == "bearer" else ""


def _token_in_cookie(headers: Headers) -> str:
    try:
        cookies = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return ""
    return cookies[COOKIE].value if COOKIE in cookies else ""


def _cookie(token: str) -> str:
    return f"{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict"


def is_loopback_address(host: str) -> bool:
    """Tell whether a host name or address is this computer's own."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_loopback(host_header: str) -> bool:
    """Refuse a foreign name in the Host header: a web page elsewhere must not reach us through its own DNS."""
    host, colon, port = host_header.rpartition(":")
    if not colon or not port.isdecimal():
        host = host_header
    return is_loopback_address(host.strip("[]").lower())
