"""A scripted participant: drives the recipe app over HTTP as a tablet would and records what it did as truth.

It shares no code with the app and uses only its HTTP interface.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import secrets
import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import httpx

CLOCK_EXCHANGES = 5
INVITE = "KITCHENSYNC_INVITE"

Kind = Literal["done", "error", "undo", "pause", "resume"]


@dataclass(frozen=True)
class Action:
    """One planned action, `at_s` seconds after the beginning."""

    at_s: float
    kind: Kind
    step: int | None = None
    category: int | None = None


@dataclass(frozen=True)
class Tap:
    """One performed action: the touch on CLOCK_MONOTONIC of this computer, and the app's receipt."""

    op_id: str
    kind: Kind
    step: int | None
    category: int | None
    undoes: str | None
    touch_host_ns: int
    receipt_host_ns: int
    receipt_uncertainty_ns: int


@dataclass
class TabletTruth:
    """Ground truth to compare with the events of the recording."""

    schema: str = "tablet-truth/1"
    seed: int = 0
    recording: str = ""
    session: str = ""
    "The app's id of the recording."
    log_end: int = 0
    "Number of the last operation in the app's log."
    recipe: str = ""
    strategy: str = "normal"
    graph_hash: str = ""
    order: list[int] = field(default_factory=list)
    taps: list[Tap] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return the truth as written to JSON."""
        return asdict(self)


MISTAKES = (0, 1, 3, 4)
"""Error categories that fit a step done in order: preparation, measurement, timing, technique."""


def plan(
    order: Sequence[int], seconds: float, rng: random.Random, pause_s: tuple[float, float] | None = None
) -> list[Action]:
    """Spread the steps over the time, with one or two errors and one step that is undone and repeated.

    `pause_s` is when a privacy pause begins and ends.
    """
    slot = seconds / (len(order) + 1)
    wrong = rng.sample(range(len(order)), k=min(rng.choice((1, 2)), len(order)))
    hasty = rng.randrange(len(order))
    actions = []
    for place, step in enumerate(order):
        at_s = slot * (place + 0.5 + 0.3 * rng.random())
        if place in wrong:
            actions.append(Action(at_s - 0.2 * slot, "error", step, rng.choice(MISTAKES)))
        actions.append(Action(at_s, "done", step))
        if place == hasty:
            actions.append(Action(at_s + 0.1 * slot, "undo"))
            actions.append(Action(at_s + 0.15 * slot, "done", step))
    if pause_s is not None:
        actions += [Action(pause_s[0], "pause"), Action(pause_s[1], "resume")]
    return sorted(actions, key=lambda action: action.at_s)


@dataclass(frozen=True)
class Keys:
    """Keys that let a tablet in and a participant sign in."""

    device: str
    login: str


class Desk:
    """The person at the desk: from the invite of the first start to a paired tablet with a participant."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self.headers: dict[str, str] = {}
        self.admin = ""
        "The session of the admin after setup."

    def ask(self, path: str, body: dict[str, Any]) -> Any:
        """Send one request."""
        return _content(self.client.post(path, json=body, headers=self.headers))

    def set_up(self, invite: str, *, pseudonym: str) -> Keys:
        """Accept the invite, add a kitchen and a participant, pair a tablet, sign the participant in."""
        password = secrets.token_urlsafe(16)
        admin = self.ask("/api/v1/invite", {"code": invite, "password": password})["pseudonym"]
        signed = {"pseudonym": admin, "password": password, "program": True}
        self.admin = self.ask("/api/v1/desk/sign-in", signed)["token"]
        return self.welcome(pseudonym)

    def welcome(self, pseudonym: str, kitchen: str = "virtual kitchen") -> Keys:
        """Add a kitchen and a participant, pair a tablet there, sign the participant in."""
        pin = f"{secrets.randbelow(800_000) + 123_457}"
        self.headers = {"x-kitchensync-login": self.admin}
        place = self.ask("/api/v1/desk/kitchens", {"name": kitchen})["kitchen"]
        person = self.ask("/api/v1/desk/people", {"pseudonym": pseudonym, "pin": pin})["person"]
        code = self.ask("/api/v1/desk/pairing-codes", {"kitchen": place})["code"]
        device = self.ask("/api/v1/pair", {"code": code, "name": "virtual tablet", "program": True})["token"]
        self.headers = {"authorization": f"Bearer {device}"}
        login = self.ask("/api/v1/sign-in", {"person": person, "pin": pin, "program": True})["token"]
        return Keys(device, login)


def _content(answer: httpx.Response) -> Any:
    if answer.is_error:
        request = answer.request
        raise RuntimeError(
            f"{request.method} {request.url.path}: {answer.status_code} {answer.text.strip()[:300]}"
        )
    return answer.json()


def operation_id(rng: random.Random) -> str:
    """Make the id of an operation, a version 7 UUID."""
    value = rng.getrandbits(128)
    value = value & ~(0xF << 76) & ~(0x3 << 62) | (0x7 << 76) | (0x2 << 62)
    return str(uuid.UUID(int=value))


class Tablet:
    """A client with its own clock that starts at an arbitrary time, as in a browser page."""

    def __init__(self, client: httpx.Client, keys: Keys, rng: random.Random) -> None:
        self.client, self.rng = client, rng
        self._headers = {"authorization": f"Bearer {keys.device}", "x-kitchensync-login": keys.login}
        self._zero_ns = time.monotonic_ns() - rng.randrange(10**9)
        self._best: dict[str, Any] | None = None
        self._seq = 0
        self.recording = ""
        self.actor = self.ask("GET", "/api/v1/me")["person"]["id"]

    def page_ms(self, host_ns: int) -> float:
        """Return the tablet's clock at a host time."""
        return (host_ns - self._zero_ns) / 1e6

    def ask(self, method: Literal["GET", "POST"], path: str, body: dict[str, Any] | None = None) -> Any:
        """Send one request. Raises RuntimeError with the app's message if it refuses."""
        return _content(self.client.request(method, path, json=body, headers=self._headers))

    def exchange_clocks(self) -> None:
        """Measure the offset to the capture clock; keep the shortest exchange."""
        for _ in range(CLOCK_EXCHANGES):
            sent = self.page_ms(time.monotonic_ns())
            answer = self.ask("GET", "/api/v1/time")
            received = self.page_ms(time.monotonic_ns())
            if self._best is None or received - sent < self._best["received_ms"] - self._best["sent_ms"]:
                clock = {key: answer[key] for key in ("host_ns", "clock_id", "signature")}
                self._best = {"sent_ms": sent, "received_ms": received, **clock}

    def send(self, kind: str, body: dict[str, Any]) -> tuple[str, int, Any]:
        """Act now and send it; one time in five send it twice, as a client does after a lost answer."""
        if self._best is None:
            self.exchange_clocks()
        touch_ns = time.monotonic_ns()
        self._seq += 1
        operation = {
            "op_id": operation_id(self.rng),
            "seq": self._seq,
            "recording": self.recording,
            "actor": self.actor,
            "kind": kind,
            "body": body,
            "clock": {"touch_ms": self.page_ms(touch_ns), **(self._best or {})},
        }
        times = 2 if self.rng.random() < 0.2 else 1
        for _ in range(times):
            (receipt,) = self.ask("POST", "/api/v1/ops", {"operations": [operation]})["receipts"]
        if "error" in receipt:
            raise RuntimeError(f"{kind}: {receipt['error']}")
        return operation["op_id"], touch_ns, receipt

    def tap(self, action: Action, *, undoes: str | None) -> Tap:
        """Touch the screen: a step done, an error, an undo."""
        bodies: dict[str, dict[str, Any]] = {
            "done": {"node": action.step},
            "undo": {"undoes": [undoes]},
            "pause": {},
            "resume": {},
        }
        if action.kind == "error":
            fields = {"node": action.step, "categories": [action.category]}
            bodies["error"] = {"error_id": operation_id(self.rng), "fields": fields}
        op_id, touch_ns, receipt = self.send(action.kind, bodies[action.kind])
        return Tap(
            op_id=op_id,
            kind=action.kind,
            step=action.step,
            category=action.category,
            undoes=undoes,
            touch_host_ns=touch_ns,
            receipt_host_ns=receipt["host_ns"],
            receipt_uncertainty_ns=receipt["uncertainty_ns"],
        )

    def choose(
        self, recipe: str | None, folder: str | None, seed: int, strategy: str = "normal"
    ) -> dict[str, Any]:
        """Stage 1: choose a recipe; return its frozen form."""
        names = [listed["recipe"] for listed in self.ask("GET", "/api/v1/recipes")["recipes"]]
        chosen = recipe or self.rng.choice(names)
        body = {
            "op_id": operation_id(self.rng),
            "recipe": chosen,
            "seed": seed,
            "folder": folder,
            "strategy": strategy,
        }
        bundle = self.ask("POST", "/api/v1/recordings", body)
        self.recording = bundle["recording"]
        self.checklist = bundle["checklist"]
        frozen: dict[str, Any] = bundle["ops"][0]["body"]
        return frozen

    def prepare(self) -> None:
        """Stage 2 and the checklist: plan nothing, tick everything."""
        self.send("prepared", {})
        self.send("consent", {"version": self.checklist["consent"], "accepted": True})
        for item in self.checklist["items"]:
            self.send("check", {"item": item["name"], "checked": True})
        self.send("checked", {"version": self.checklist["version"], "confirmed_by": "virtual-2"})


def participate(
    url: str,
    *,
    recording: str | None,
    seconds: float,
    seed: int,
    invite: str = "",
    keys: Keys | None = None,
    recipe: str | None = None,
    strategy: str = "normal",
    pause_s: tuple[float, float] | None = None,
    withdraws: bool = False,
) -> TabletTruth:
    """Choose a recipe, prepare, follow it over `seconds`, log errors, undo once, review; return the truth.

    With `withdraws` the participant withdraws at the end. Without a `recording` the session has no devices. Without
    `keys` this uses up the app's first invite. Raises RuntimeError if the app refuses something.
    """
    rng = random.Random(f"tablet {seed}")
    with httpx.Client(base_url=url, timeout=30, trust_env=False) as client:
        keys = keys or Desk(client).set_up(invite, pseudonym="virtual-1")
        tablet = Tablet(client, keys, rng)
        frozen = tablet.choose(recipe, recording, seed, strategy)
        truth = TabletTruth(
            seed=seed,
            recording=recording or tablet.recording,
            session=tablet.recording,
            recipe=frozen["name"],
            strategy=strategy,
            graph_hash=frozen["graph_hash"],
            order=frozen["order"],
        )
        tablet.exchange_clocks()
        tablet.prepare()
        begun_ns = time.monotonic_ns()
        for action in plan(frozen["order"], seconds, rng, pause_s):
            time.sleep(max(action.at_s - (time.monotonic_ns() - begun_ns) / 1e9, 0.0))
            tablet.exchange_clocks()
            done = [tap.op_id for tap in truth.taps if tap.kind == "done"]
            undoes = done[-1] if action.kind == "undo" else None
            truth.taps.append(tablet.tap(action, undoes=undoes))
        if withdraws:
            _, _, receipt = tablet.send("withdraw", {})
            truth.log_end = receipt["n"]
            return truth
        tablet.send("end", {})
        _, _, receipt = tablet.send("finish", {})
        truth.log_end = receipt["n"]
        return truth


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one participant from the command line; print the truth or write it to --out."""
    parser = argparse.ArgumentParser(prog="python -m kitchensync.virtual_kitchen.tablet", description=__doc__)
    parser.add_argument("--url", required=True, help="address of the app, for example http://127.0.0.1:8000")
    parser.add_argument("--recording", help="recording id; without it a standalone session")
    parser.add_argument("--recipe", help="recipe name; without it one is chosen by the seed")
    parser.add_argument("--seconds", type=float, default=30.0, help="time for all steps")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--invite",
        default=os.environ.get(INVITE),
        required=INVITE not in os.environ,
        help=f"the invite that the app printed at its first start; without it that of the variable {INVITE}",
    )
    parser.add_argument("--out", type=Path, help="file for the truth; without it standard output")
    options = parser.parse_args(arguments)
    try:
        truth = participate(
            options.url,
            recording=options.recording,
            seconds=options.seconds,
            seed=options.seed,
            recipe=options.recipe,
            invite=options.invite.rpartition("#")[2],
        )
    except (httpx.HTTPError, RuntimeError) as error:
        parser.exit(1, f"error: {options.url}: {error}\n")
    text = json.dumps(truth.as_json(), indent=1)
    if options.out is None:
        print(text)
    else:
        part = options.out.with_name(options.out.name + ".part")
        part.write_text(text + "\n")
        part.replace(options.out)


if __name__ == "__main__":
    main()
