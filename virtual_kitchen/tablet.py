"""A scripted participant: drives the recipe app over HTTP as a tablet would, and writes down what it really did.

It shares no code with the app; it knows only the app's HTTP interface.
"""

from __future__ import annotations

import argparse
import json
import random
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import httpx

CLOCK_EXCHANGES = 5

Kind = Literal["done", "error", "undo"]


@dataclass(frozen=True)
class Action:
    """What the participant means to do, `at_s` seconds after beginning."""

    at_s: float
    kind: Kind
    step: int | None = None
    category: int | None = None


@dataclass(frozen=True)
class Tap:
    """What was really done: the touch on CLOCK_MONOTONIC of this computer, and the app's receipt for it."""

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
    """Everything a judge needs to compare with the events of the recording."""

    schema: str = "tablet-truth/1"
    seed: int = 0
    recording: str = ""
    recipe: str = ""
    graph_hash: str = ""
    order: list[int] = field(default_factory=list)
    taps: list[Tap] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return the truth as it is written."""
        return asdict(self)


def plan(order: Sequence[int], seconds: float, rng: random.Random) -> list[Action]:
    """Spread the steps over the time, with one or two errors and one step that is undone and done again."""
    slot = seconds / (len(order) + 1)
    wrong = rng.sample(range(len(order)), k=min(rng.choice((1, 2)), len(order)))
    hasty = rng.randrange(len(order))
    actions = []
    for place, step in enumerate(order):
        at_s = slot * (place + 0.5 + 0.3 * rng.random())
        if place in wrong:
            actions.append(Action(at_s - 0.2 * slot, "error", step, rng.randrange(8)))
        actions.append(Action(at_s, "done", step))
        if place == hasty:
            actions.append(Action(at_s + 0.1 * slot, "undo"))
            actions.append(Action(at_s + 0.15 * slot, "done", step))
    return actions


class Tablet:
    """A client with a clock of its own, whose zero is arbitrary, as a browser page has."""

    def __init__(self, client: httpx.Client, now_ns: Callable[[], int], rng: random.Random) -> None:
        self.client, self.now_ns, self.rng = client, now_ns, rng
        self._zero_ns = now_ns() - rng.randrange(10**9)
        self._best: dict[str, Any] | None = None

    def page_ms(self, host_ns: int) -> float:
        """Return the tablet's own clock at a moment."""
        return (host_ns - self._zero_ns) / 1e6

    def ask(self, method: Literal["GET", "POST"], path: str, body: dict[str, Any] | None = None) -> Any:
        """Send one request. Raises RuntimeError with the app's own words when it refuses."""
        answer = self.client.request(method, path, json=body)
        if answer.is_error:
            raise RuntimeError(f"{method} {path}: {answer.status_code} {answer.text.strip()[:300]}")
        return answer.json()

    def exchange_clocks(self) -> None:
        """Measure the offset to the capture clock; the shortest exchange is kept."""
        for _ in range(CLOCK_EXCHANGES):
            sent = self.page_ms(self.now_ns())
            host_ns = self.ask("GET", "/api/clock")["host_ns"]
            received = self.page_ms(self.now_ns())
            if self._best is None or received - sent < self._best["received_ms"] - self._best["sent_ms"]:
                self._best = {"sent_ms": sent, "received_ms": received, "host_ns": host_ns}

    def new_id(self) -> str:
        """Make an operation id that depends on the seed alone."""
        return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))

    def tap(self, recording: str, action: Action, *, undoes: str | None) -> Tap:
        """Touch the screen now and send it, twice in one case of five, as a client does after a lost answer."""
        touch_ns = self.now_ns()
        body: dict[str, Any] = {
            "op_id": self.new_id(),
            "kind": action.kind,
            "step": action.step,
            "category": action.category,
            "undoes": undoes,
            "clock": {"touch_ms": self.page_ms(touch_ns), **(self._best or {})},
        }
        path = f"/api/recordings/{recording}/operations"
        receipt = self.ask("POST", path, body)
        if self.rng.random() < 0.2:
            receipt = self.ask("POST", path, body)
        return Tap(
            op_id=body["op_id"],
            kind=action.kind,
            step=action.step,
            category=action.category,
            undoes=undoes,
            touch_host_ns=touch_ns,
            receipt_host_ns=receipt["host_ns"],
            receipt_uncertainty_ns=receipt["uncertainty_ns"],
        )


def participate(
    url: str,
    *,
    recording: str | None,
    seconds: float,
    seed: int,
    recipe: str | None = None,
    token: str | None = None,
    now_ns: Callable[[], int] = time.monotonic_ns,
    sleep: Callable[[float], None] = time.sleep,
) -> TabletTruth:
    """Choose a recipe and an order, follow it over `seconds`, log errors, undo once; return what was done.

    Without a `recording` a standalone session is begun. Raises RuntimeError when the app refuses something.
    """
    rng = random.Random(f"tablet {seed}")
    headers = {"authorization": f"Bearer {token}"} if token else {}
    with httpx.Client(base_url=url, headers=headers, timeout=10, trust_env=False) as client:
        tablet = Tablet(client, now_ns, rng)
        name = recording or tablet.ask("POST", "/api/standalone", {"op_id": tablet.new_id()})["recording"]
        state = _choose(tablet, name, recipe, seed)
        order = [step["node"] for step in state["recipe"]["steps"]]
        truth = TabletTruth(
            seed=seed,
            recording=name,
            recipe=state["recipe"]["name"],
            graph_hash=state["recipe"]["graph_hash"],
            order=order,
        )
        begun_ns = now_ns()
        for action in plan(order, seconds, rng):
            sleep(max(action.at_s - (now_ns() - begun_ns) / 1e9, 0.0))
            tablet.exchange_clocks()
            undoes = truth.taps[-1].op_id if action.kind == "undo" else None
            truth.taps.append(tablet.tap(name, action, undoes=undoes))
        return truth


def _choose(tablet: Tablet, recording: str, recipe: str | None, seed: int) -> Any:
    names = [found["recipe"] for found in tablet.ask("GET", "/api/recipes")["recipes"]]
    chosen = recipe or tablet.rng.choice(names)
    body = {"op_id": tablet.new_id(), "recipe": chosen, "seed": seed}
    return tablet.ask("POST", f"/api/recordings/{recording}/recipe", body)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one participant from the command line; print the truth or write it to --out."""
    parser = argparse.ArgumentParser(prog="python -m virtual_kitchen.tablet", description=__doc__)
    parser.add_argument("--url", required=True, help="address of the app, for example http://127.0.0.1:8000")
    parser.add_argument("--recording", help="recording id; without it a standalone session")
    parser.add_argument("--recipe", help="recipe name; without it one is chosen by the seed")
    parser.add_argument("--seconds", type=float, default=30.0, help="time for all steps")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--token", help="token of an app that asks for one")
    parser.add_argument("--out", type=Path, help="file for the truth; without it standard output")
    given = parser.parse_args(arguments)
    try:
        truth = participate(
            given.url,
            recording=given.recording,
            seconds=given.seconds,
            seed=given.seed,
            recipe=given.recipe,
            token=given.token,
        )
    except (httpx.HTTPError, RuntimeError) as error:
        parser.exit(1, f"error: {given.url}: {error}\n")
    text = json.dumps(truth.as_json(), indent=1)
    if given.out is None:
        print(text)
    else:
        part = given.out.with_name(given.out.name + ".part")
        part.write_text(text + "\n")
        part.replace(given.out)


if __name__ == "__main__":
    main()
