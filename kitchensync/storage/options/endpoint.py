"""An OpenAI-compatible server of the environment, with limits for its answers and a kind for each failure.

It is off by default. Every request is logged before it is sent (`third_parties`). An answer is untrusted text:
callers parse it strictly, and nothing in it is executed.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from kitchensync.shell.loopback import is_loopback_address
from kitchensync.shell.untrusted_json import BadJson, parse_json
from kitchensync.storage.errors import StorageError

if TYPE_CHECKING:
    import httpx

LOG = Path("kitchensync") / "sent-to-others.jsonl"


def note_sent(
    host: str, content: bytes, what: str, environment: Mapping[str, str] = os.environ
) -> Path | None:
    """Log a request before it is sent; return the private log, None for this computer. Raises OSError."""
    if not host or is_loopback_address(host):
        return None
    entry = {"utc_ns": time.time_ns(), "host": host, "what": what, "bytes": len(content)}
    line = json.dumps(entry | {"sha256": hashlib.sha256(content).hexdigest()}) + "\n"
    log = Path(environment.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / LOG
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab") as file:
        file.write(line.encode())
        os.fsync(file.fileno())
    return log


def read_key(path: Path) -> str:
    """Read a key from a file that only its owner may read. Raises PermissionError, OSError, ValueError."""
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_mode & 0o077:
            raise PermissionError(f"{path} may be read by others; run: chmod 600 {path}")
        words = file.read(4096).decode("ascii").split()
    if len(words) != 1:
        raise ValueError(f"{path} holds no key; save the key alone in it")
    return words[0]


TIMEOUT_S = 20.0
MAX_ANSWER_BYTES = 200_000
LONGEST_WAIT_S = 60.0  # Retry-After comes from the server and may be any number

Failure = Literal["not_noted", "unreachable", "timed_out", "busy", "refused", "too_long", "unreadable"]


class NoAnswer(StorageError):
    """A server without a usable answer; `kind` is for counts."""

    def __init__(self, kind: Failure, why: str) -> None:
        super().__init__(why)
        self.kind: Failure = kind


class _Busy(Exception):
    def __init__(self, wait_s: float) -> None:
        super().__init__()
        self.wait_s = wait_s


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server; `key` never appears in a message. `tries` is the number of requests to a busy server."""

    base_url: str
    model: str
    key: str | None = field(default=None, repr=False)
    timeout_s: float = TIMEOUT_S
    tries: int = 1

    @property
    def host(self) -> str:
        """Host of the server. Raises NoAnswer for an invalid address."""
        import httpx  # needs an extra, which commands without a server do not

        try:
            return httpx.URL(self.base_url).host
        except httpx.InvalidURL as error:
            raise NoAnswer("unreachable", type(error).__name__) from error


def names_of(purpose: str) -> tuple[str, str, str, str]:
    """Return the variables of the server for a purpose: address, model, key file, variable with the key."""
    start = f"KITCHENSYNC_{purpose.upper()}"
    return f"{start}_URL", f"{start}_MODEL", f"{start}_KEY_FILE", f"{start}_KEY_ENV"


def endpoint_of(
    purpose: str, environment: Mapping[str, str], *, timeout_s: float = TIMEOUT_S, tries: int = 1
) -> Endpoint | None:
    """Read the server for a purpose, None if not set. A key requires https. Raises OSError, ValueError."""
    url_name, model_name, file_name, variable_name = names_of(purpose)
    url, model = environment.get(url_name, "").rstrip("/"), environment.get(model_name, "")
    if not url or not model:
        return None
    if file_name in environment:
        key = read_key(Path(environment[file_name]))
    else:
        key = environment.get(environment.get(variable_name, ""), "")
    endpoint = Endpoint(url, model, key or None, timeout_s, tries)
    if key and not url.startswith("https://"):
        with suppress(NoAnswer):
            if not is_loopback_address(endpoint.host):
                raise ValueError(
                    f"{url}: the key would go over the network in the clear; give its https address"
                )
    return endpoint


def chat_body(endpoint: Endpoint, messages: list[dict[str, Any]], **more: Any) -> bytes:
    """Return the request for a chat's next message; `more` are fields such as `response_format`, `seed`."""
    return json.dumps({"model": endpoint.model, "temperature": 0, "messages": messages, **more}).encode()


def chat(
    endpoint: Endpoint, body: bytes, what: str, environment: Mapping[str, str]
) -> tuple[str, Path | None]:
    """Return the text of a chat's next message, and the log with the request. Raises NoAnswer."""
    content, log = post(endpoint, "/chat/completions", body, what, environment)
    try:
        text = parse_json(content, most_bytes=MAX_ANSWER_BYTES)["choices"][0]["message"]["content"]
    except (BadJson, KeyError, TypeError, IndexError) as error:
        raise NoAnswer("unreadable", f"no message in its answer ({type(error).__name__})") from error
    if not isinstance(text, str):
        raise NoAnswer("unreadable", "its message is no text")
    return text, log


def post(
    endpoint: Endpoint,
    path: str,
    content: bytes,
    what: str,
    environment: Mapping[str, str],
    content_type: str = "application/json",
) -> tuple[bytes, Path | None]:
    """Log `content` as `what` and send it; return the answer and the log. Raises NoAnswer."""
    try:
        log = note_sent(endpoint.host, content, what, environment)
    except OSError as error:
        raise NoAnswer("not_noted", f"it could not be noted ({error.strerror})") from error
    for tries_left in range(endpoint.tries - 1, -1, -1):
        try:
            return _once(endpoint, path, content, content_type), log
        except _Busy as busy:
            if not tries_left:
                break
            time.sleep(busy.wait_s)
    raise NoAnswer("busy", "the server asks to come back later (429)")


def _once(endpoint: Endpoint, path: str, content: bytes, content_type: str) -> bytes:
    import httpx

    headers = {"content-type": content_type}
    headers |= {"Authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
    until = time.monotonic() + endpoint.timeout_s
    try:
        with (
            httpx.Client(timeout=endpoint.timeout_s, trust_env=False) as client,
            client.stream("POST", endpoint.base_url + path, content=content, headers=headers) as response,
        ):
            return _read(response, until)
    except httpx.TimeoutException as error:
        raise NoAnswer("timed_out", type(error).__name__) from error
    except httpx.HTTPStatusError as error:
        raise NoAnswer("refused", f"it answered {error.response.status_code}") from error
    except httpx.RemoteProtocolError as error:
        raise NoAnswer("unreadable", "its answer broke off") from error
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
        raise NoAnswer("unreachable", type(error).__name__) from error


def _read(response: httpx.Response, until: float) -> bytes:
    """Return the body of an answer; the time limit is for the whole answer."""
    if response.status_code == HTTPStatus.TOO_MANY_REQUESTS:
        text = response.headers.get("retry-after", "")
        raise _Busy(min(float(text), LONGEST_WAIT_S) if text.isascii() and text.isdigit() else 1.0)
    response.raise_for_status()
    content = bytearray()
    for part in response.iter_bytes():
        content += part
        if len(content) > MAX_ANSWER_BYTES:
            raise NoAnswer("too_long", f"more than {MAX_ANSWER_BYTES} bytes")
        if time.monotonic() > until:
            raise NoAnswer("timed_out", "its answer did not end")
    return bytes(content)
