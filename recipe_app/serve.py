"""Run the app: check the options, open the port, serve until a signal comes."""

from __future__ import annotations

import contextlib
import secrets
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from recipe_app.app import create_app
from recipe_app.collaborators import Collaborators
from recipe_app.errors import BadSetup
from recipe_app.guard import is_loopback_address
from recipe_app.sessions import Sessions
from recipe_app.shelf import OWN_RECIPES, Shelf
from sensors.host_clock import host_ns, utc_anchor

SHORTEST_TOKEN = 8


@dataclass(frozen=True)
class Setup:
    """The options of `kitchensync app`; an empty token means "make one"."""

    data: Path | None
    host: str
    port: int
    recipes: Path | None
    token: str | None
    demo: bool


def serve(setup: Setup, *, say: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM. Raises BadSetup in one line."""
    token = _token(setup)
    shelf = _shelf(setup)
    with contextlib.ExitStack() as stack:
        data = _data(setup, stack)
        listener = stack.enter_context(_listen(setup.host, setup.port))
        sessions = Sessions(data, utc_ns=lambda: utc_anchor().utc_ns)
        app = create_app(Collaborators(sessions, shelf, host_ns), token=token)
        config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off")
        stack.enter_context(_quiet_signals())
        say(f"recipes: {len(shelf.recipes())} from {shelf.folder}; recordings: {data}")
        say(f"ready app={address(setup.host, listener.getsockname()[1], token)}")
        uvicorn.Server(config).run(sockets=[listener])


def _token(setup: Setup) -> str | None:
    if setup.token is None and not is_loopback_address(setup.host):
        raise BadSetup(
            f"--host {setup.host} can be reached by others; add --token so that only you can enter"
        )
    if setup.token == "":
        return secrets.token_urlsafe(16)
    if setup.token is not None and (len(setup.token) < SHORTEST_TOKEN or not _is_plain(setup.token)):
        raise BadSetup(f"a token has at least {SHORTEST_TOKEN} of A-Z a-z 0-9 - _; or let --token make one")
    return setup.token


def _is_plain(token: str) -> bool:
    return token.isascii() and all(letter.isalnum() or letter in "-_" for letter in token)


def _shelf(setup: Setup) -> Shelf:
    folder = OWN_RECIPES if setup.recipes is None else setup.recipes
    if not folder.is_dir():
        raise BadSetup(f"{folder}: no such folder of recipes; give one with --recipes")
    return Shelf(folder)


def _data(setup: Setup, stack: contextlib.ExitStack) -> Path:
    if setup.demo and setup.data is None:
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kitchensync-demo-")))
    data = setup.data or Path("recordings")
    try:
        data.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadSetup(
            f"{data}: cannot be used for recordings ({error.strerror}); choose another --data"
        ) from error
    return data


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise BadSetup(f"--host {host}: no such address on this computer ({error.strerror})") from error
    # naming TCP lets asyncio switch Nagle's delay off for what it accepts: 40 ms an answer otherwise
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(256)
    except OSError as error:
        listener.close()
        raise BadSetup(f"{host}:{port} cannot be opened ({error.strerror}); choose another --port") from error
    return listener


def address(host: str, port: int, token: str | None) -> str:
    """Return the address to open; for "every address" the one by which the lab network reaches this computer."""
    if host in ("0.0.0.0", "::"):  # noqa: S104
        host = _own_address()
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}/" + (f"?token={token}" if token else "")


def _own_address() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent: it only asks which interface would be used
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])


@contextlib.contextmanager
def _quiet_signals() -> Iterator[None]:
    """Let SIGINT and SIGTERM end the server with exit code 0: it raises them again after its orderly end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
