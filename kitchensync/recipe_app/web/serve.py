"""Run the app: check the options, open the database and the port, serve until a signal."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import logging
import secrets
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import uvicorn
from sqlalchemy import delete, select
from sqlalchemy.exc import SQLAlchemyError

from kitchensync.capture.station import Station
from kitchensync.recipe_app.cooking.collaborators import Collaborators, collaborators
from kitchensync.recipe_app.cooking.film_states import prepare_ended
from kitchensync.recipe_app.cooking.withdrawals import carry_out, end_withdrawn, finish_open
from kitchensync.recipe_app.errors import BadSetup
from kitchensync.recipe_app.exchange import app_withdrawals
from kitchensync.recipe_app.exchange.folders import Folders
from kitchensync.recipe_app.people.accounts import Accounts
from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.store.app_records import AppRecords, is_admin, new_id
from kitchensync.recipe_app.store.database import open_database
from kitchensync.recipe_app.store.shelf import OWN_RECIPES, Shelf
from kitchensync.recipe_app.web.app import create_app
from kitchensync.recipe_app.web.door import tls
from kitchensync.recipe_app.web.door.connections import MOST_HEAD, BoundedServer
from kitchensync.shell.end_signals import ending_at_signals
from kitchensync.shell.host_clock import host_ns, utc_anchor
from kitchensync.shell.loopback import is_loopback_address
from kitchensync.storage.installation.key import KEY_FILE, check_own_folder, kept_key, own_key, take_folder
from kitchensync.storage.installation.own_list import OWN_LIST
from kitchensync.storage.lab import share
from kitchensync.storage.names import APP_FOLDER
from kitchensync.storage.options.data_folder import default_data

log = logging.getLogger(__name__)

OBEYED = (KEY_FILE, OWN_LIST, app_withdrawals.BACKUPS, "app.db")
"""Files of the app's folder that the app trusts, so a folder with one from another computer needs `mine`."""
FILE_AGAIN_S = 5.0
OPEN_AGAIN_S = 600.0
"""Retry interval for stores and cameras that a withdrawal could not reach, seconds."""


@dataclass(frozen=True)
class Setup:
    """The options of `kitchensync app`."""

    data: Path | None
    host: str
    port: int
    recipes: Path | None
    database: str | None
    demo: bool
    rig: tuple[str, ...] = ()
    trusted_proxy: tuple[str, ...] = ()
    mine: bool = False


def serve(setup: Setup, *, say: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM. Raises BadSetup in one line."""
    shelf_folder = _shelf_folder(setup)
    with contextlib.ExitStack() as stack:
        data = _data(setup, stack)
        own = _own(data, is_mine=setup.mine)
        listener = stack.enter_context(_listen(setup.host, setup.port))
        secure = _credentials(setup.host, own)
        database = open_database(setup.database or own / "app.db", kept_key(own))
        stack.callback(database.close)
        records = AppRecords(database, now_ns=host_ns, utc_ns=lambda: utc_anchor().utc_ns)
        app_withdrawals.apply(own, records, setup.database or own / "app.db")
        tools = collaborators(
            records,
            Folders(data),
            Shelf(shelf_folder, own / "recipes"),
            clock_id=clock_id(),
            key=kept_key(own),
            capture=Station(data, *setup.rig) if setup.rig else None,
            watch=Station(data),
            hosts=frozenset(tls.own_names(setup.host)),
            demo=_demo(records) if setup.demo else None,
            ca_file=secure.authority.read_bytes() if secure else None,
        )
        stack.callback(tools.films.close)
        stack.callback(tools.pictures.close)
        stack.callback(tools.batches.close)
        stack.callback(tools.cards.close)
        place = setup.database or own / "app.db"
        file = partial(_file, tools, partial(carry_out, tools, own, place, kept_key(own)))
        stack.enter_context(_repeated("filing", FILE_AGAIN_S, file))
        stack.enter_context(_repeated("small videos", FILE_AGAIN_S, partial(prepare_ended, tools)))
        stack.enter_context(_repeated("withdrawals", OPEN_AGAIN_S, partial(finish_open, tools, own)))
        urls = addresses(setup.host, listener.getsockname()[1], secure)
        for line in _welcome(tools, urls, secure, data):
            say(line)
        server = BoundedServer(_config(tools, secure, setup.trusted_proxy))

        def end() -> None:
            server.should_exit = True

        # Also before the server listens to signals itself; after its orderly end it raises them again.
        stack.enter_context(ending_at_signals(end))
        say(f"ready app={urls[0]}")
        server.run(sockets=[listener])


def _config(tools: Collaborators, secure: tls.Credentials | None, proxies: tuple[str, ...]) -> uvicorn.Config:
    return uvicorn.Config(
        create_app(tools),
        log_level="warning",
        access_log=False,
        lifespan="off",
        server_header=False,
        # Uvicorn's default trusts this whole computer: any program on it could invent the address it comes from.
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        h11_max_incomplete_event_size=MOST_HEAD,
        ssl_certfile=secure.certificate if secure else None,
        ssl_keyfile=secure.key if secure else None,
    )


def _credentials(host: str, own: Path) -> tls.Credentials | None:
    """Return TLS credentials beyond loopback: plain HTTP would expose PINs and voice notes to the network."""
    if is_loopback_address(host):
        return None
    now = datetime.datetime.now(datetime.UTC)
    spare = tls.spare_addresses() if tls.is_every_address(host) else []
    return tls.credentials(own / "tls", tls.own_names(host), now=now, spare=spare)


def clock_id() -> str:
    """Return an id of this boot of the computer: CLOCK_MONOTONIC restarts with each boot."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        boot = secrets.token_hex(8)  # macOS: a new id at every start is safe, times are only trusted less
    return hashlib.sha256(boot.encode()).hexdigest()[:12]


def _welcome(
    tools: Collaborators, urls: list[str], secure: tls.Credentials | None, data: Path
) -> Iterator[str]:
    """Yield the lines printed at start: what is served, how to begin, further addresses for tablets."""
    url, *others = urls
    yield f"recipes: {len(tools.shelf.recipes())} from {tools.shelf.folder}; recordings: {data}"
    if tools.demo is not None:
        (kitchen,) = tools.records.rows(tables.kitchen, limit=1)
        code = tools.accounts.pairing_code(kitchen["id"], actor="")
        yield f"the guided tour: {url}t/pair#{code}"
        yield f"sign in as {tools.demo['pseudonym']} with the PIN {tools.demo['pin']}"
    if (admin := _admin_without_password(tools.records)) is not None:
        yield "there is no admin yet: open this link once within 72 hours and set a password:"
        yield f"invite={url}desk/sign-in#{tools.accounts.invite(admin, actor='')}"
    if others:
        yield f"also: {' '.join(others)}"
    if secure is not None and secure.left_out:
        yield (
            f"not at {', '.join(secure.left_out)}: the certificate on the tablets does not cover it; to use it, "
            f"remove {secure.authority.parent}, start again and install the new one on every tablet"
        )


def _admin_without_password(records: AppRecords) -> str | None:
    """Return the first admin to invite, added if there is none; None if an admin can sign in."""
    admins = [row["id"] for row in records.rows(tables.person, limit=1 << 20) if is_admin(row)]
    with_password = {
        row["person"] for row in records.rows(tables.credential, tables.credential.c.kind == "password")
    }
    if with_password & set(admins):
        return None
    if admins:
        return str(admins[0])
    body = {"pseudonym": "admin", "roles": ["admin"], "active": True}
    with records.changing() as connection:
        taken = connection.execute(select(tables.person.c.id).where(tables.person.c.pseudonym == "admin"))
        person = str(taken.scalar() or new_id(records.utc_ns()))
        # An existing person called admin gets the role by the invite only, not by an old password.
        old = (tables.credential.c.person == person, tables.credential.c.kind == "password")
        connection.execute(delete(tables.credential).where(*old))
        records.note_within(connection, "person", person, body, actor="")
    return person


def _demo(records: AppRecords) -> dict[str, str]:
    """Make the kitchen and the person of the guided tour, with a new PIN."""
    accounts = Accounts(records)
    pin = f"{secrets.randbelow(800_000) + 123_457}"
    if not records.rows(tables.kitchen):
        records.note("kitchen", new_id(records.utc_ns()), {"name": "Demo kitchen"}, actor="")
    rows = records.rows(tables.person, tables.person.c.pseudonym == "Basil")
    person = rows[0]["id"] if rows else accounts.add_person("Basil", ["participant"], actor="")
    accounts.set_pin(person, pin, actor="")
    return {"pseudonym": "Basil", "pin": pin}


def _file(tools: Collaborators, carry_out_withdrawn: Callable[[], object] = list) -> None:
    """Retry filing into recordings' folders, and ending and destroying withdrawn recordings."""
    tools.records.heed_destroyed()
    tools.intake.file()
    end_withdrawn(tools)
    carry_out_withdrawn()


@contextlib.contextmanager
def _repeated(name: str, every_s: float, work: Callable[[], object]) -> Iterator[None]:
    """Repeat some work in a thread while the block runs, whatever errors it raises."""
    end = threading.Event()

    def run() -> None:
        while not end.is_set():
            try:
                work()
            except SQLAlchemyError as error:
                # A full disk or a restarted server: pending work stays pending.
                log.warning("%s: the database cannot be used now: %s", name, error)
            except Exception:
                log.exception("%s failed; retrying", name)
            end.wait(every_s)

    thread = threading.Thread(target=run, name=name)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


def _shelf_folder(setup: Setup) -> Path:
    folder = OWN_RECIPES if setup.recipes is None else setup.recipes
    if not folder.is_dir():
        raise BadSetup(f"{folder}: this folder of recipes does not exist; give one with --recipes")
    return folder


def _data(setup: Setup, stack: contextlib.ExitStack) -> Path:
    if setup.demo and setup.data is None:
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kitchensync-demo-")))
    data = setup.data or default_data()
    try:
        data.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadSetup(
            f"{data}: cannot be used for recordings ({error.strerror}); choose another --data"
        ) from error
    return data


def _own(data: Path, *, is_mine: bool) -> Path:
    """Return the app's own folder, readable only by this user even if a group may read the recordings.

    A folder from elsewhere could list files to destroy and cameras to contact: `is_mine` confirms that it is this
    user's. Raises BadSetup, BadInstallation.
    """
    own = data / APP_FOLDER
    try:
        own.mkdir(mode=0o700, exist_ok=True)
        check_own_folder(own)
        if own.stat().st_mode & 0o077:
            own.chmod(0o700)
    except OSError as error:
        raise BadSetup(f"{own}: cannot be used ({error.strerror}); choose another --data") from error
    if is_mine or not any((own / name).exists() for name in OBEYED):
        take_folder(own)
    else:
        own_key(own)
    share(data / "any")
    return own


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise BadSetup(f"--host {host}: no such address on this computer ({error.strerror})") from error
    # With IPPROTO_TCP named, asyncio disables Nagle's algorithm on accepted connections: otherwise 40 ms per answer.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(256)
    except OSError as error:
        listener.close()
        raise BadSetup(f"{host}:{port} cannot be opened ({error.strerror}); choose another --port") from error
    return listener


def addresses(host: str, port: int, secure: tls.Credentials | None) -> list[str]:
    """Return the URLs of the app, the best first; several if it listens on every address."""
    hosts = [host]
    if secure is not None and tls.is_every_address(host):
        hosts = [address for address in tls.own_addresses() if address not in secure.left_out] or [
            "127.0.0.1"
        ]
    names = [f"[{address}]" if ":" in address else address for address in hosts]
    return [f"{'https' if secure else 'http'}://{name}:{port}/" for name in names]
