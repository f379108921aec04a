"""Forged stamps, actors, rights and dumps: none is accepted, and each is as soon as its one check is gone."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from kitchensync.operations.errors import BadOperation
from kitchensync.recipe_app.cooking.checklist import CONSENT_VERSION
from kitchensync.recipe_app.exchange import intake, touch_clock
from kitchensync.recipe_app.exchange.dumps import read_dump, site_of, take_in
from kitchensync.recipe_app.store.app_records import new_id

pytestmark = pytest.mark.slow

TIMES = 40
SECOND = 1_000_000_000


class World:
    """A recording that Basil began on a tablet, and what strangers have: a tablet, another person, time."""

    def __init__(self, kitchen: Any) -> None:
        self.kitchen, self.rng = kitchen, random.Random(18)
        self.recording = kitchen.choose()["recording"]
        kitchen.now_ns += 20 * SECOND
        self.clock = kitchen.clock()
        kitchen.now_ns += 40 * SECOND
        self.clove = kitchen.tools.accounts.add_person("Clove", ["participant"], actor="")
        kitchen.tools.accounts.set_pin(self.clove, "271828", actor="")
        self.device, self.token = kitchen.pair("Stranger")
        login = kitchen.tools.accounts.sign_in(self.clove, "pin", "271828", device=self.device, desk=False)
        bearer = {"authorization": f"Bearer {self.token}"}
        self.nobody_elsewhere = kitchen.client(**bearer)
        self.clove_elsewhere = kitchen.client(**bearer, **{"x-kitchensync-login": login})
        own = {"authorization": kitchen.tablet.headers["authorization"]}
        self.nobody_here = kitchen.client(**own)
        self.own_device = kitchen.tools.records.frozen(self.recording)["device"]
        login = kitchen.tools.accounts.sign_in(
            self.clove, "pin", "271828", device=self.own_device, desk=False
        )
        self.clove_here = kitchen.client(**own, **{"x-kitchensync-login": login})

    def operation(self, kind: str = "mark", body: Any = None, **more: Any) -> dict[str, Any]:
        said = {"text": f"forged {self.rng.random()}"} if body is None else body
        made: dict[str, Any] = self.kitchen.operation(self.recording, kind, said, **more)
        return made

    def consent(self, **more: Any) -> dict[str, Any]:
        return self.operation("consent", {"version": CONSENT_VERSION, "accepted": True}, **more)

    def keep(self, **more: Any) -> dict[str, Any]:
        return self.operation("keep", {}, **more)

    def stored(self, client: httpx.Client, operation: dict[str, Any]) -> dict[str, Any] | None:
        """What the log holds of an operation after it was sent."""
        answer = client.post("/api/v1/ops", json={"operations": [operation]})
        assert answer.status_code == 200, answer.text
        return self.find(operation["op_id"])

    def find(self, op_id: str) -> dict[str, Any] | None:
        ops = self.kitchen.tools.records.ops(self.recording)
        return next((op for op in ops if op["op_id"] == op_id), None)

    def stamped(self, client: httpx.Client | None = None, **clock: Any) -> bool:
        """Return whether a clock is believed: the stamp comes from the exchange that it claims."""
        fields = {"touch_ms": 1000 + self.rng.random(), "sent_ms": 990, "received_ms": 1010, **self.clock}
        operation = self.operation(clock={**fields, **clock})
        stored = self.stored(client or self.kitchen.tablet, operation)
        return stored is not None and stored["basis"] in ("page", "wall")

    def brought(self, *operations: dict[str, Any], device: str = "", corrects: bool = False) -> list[Any]:
        """What the log holds of operations after an operator took them in as a dump of a tablet."""
        touch = {"page": "p", "touch_ms": 5.0, "wall_ms": self.kitchen.utc_ns / 1e6 - 5}
        waiting = [{"operation": one, "touch": touch, "clock": None} for one in operations]
        content = json.dumps(
            {
                "site": site_of(self.kitchen.tools.records),
                "device": device or self.own_device,
                "made_ms": 1,
                "waiting": waiting,
            }
        )
        return self.take(content, hashlib.sha256(content.encode()).hexdigest(), operations, corrects)

    def take(self, content: str, sha256: str, operations: Any, corrects: bool = False) -> list[Any]:
        text = json.dumps({"schema": "tablet-dump/1", "sha256": sha256, "content": content})
        tools = self.kitchen.tools
        try:
            take_in(read_dump(text, "dump"), tools.records, tools.intake, actor="op-1", corrects=corrects)
        except BadOperation:
            return [None for _ in operations]
        return [self.find(one["op_id"]) for one in operations]


def nothing(*_: Any, **__: Any) -> None:
    """A check that was taken out."""


Check = tuple[Any, str, Any]
SIGNED: Check = (touch_clock, "was_answered", lambda *_: True)
INSIDE: Check = (touch_clock, "inside", lambda stamp, **_: stamp)
ACTOR: Check = (intake.Sender, "actor_of", lambda _, operation: operation.actor)
CONSENT: Check = (intake, "require_consent_by_person", nothing)
OWN: Check = (intake, "require_own", nothing)
KEPT: Check = (intake, "require_kept_by_person", nothing)
CORRECTING: Check = (intake, "require_correcting", nothing)


@dataclass(frozen=True)
class Forgery:
    """One kind: whether a try is accepted, and the check that stands against it."""

    name: str
    check: Check
    accepted: Callable[[World], bool]


def named(world: World, client: httpx.Client, actor: str) -> bool:
    stored = world.stored(client, world.operation(actor=actor))
    return stored is not None and stored["actor"] == actor


def agreed(world: World, client: httpx.Client, **more: Any) -> bool:
    return world.stored(client, world.consent(**more)) is not None


def finished(world: World) -> None:
    if not any(op["kind"] == "finish" for op in world.kitchen.tools.records.ops(world.recording)):
        world.kitchen.post(world.operation("end", {}), world.operation("finish", {}))


def into_finished(world: World, kind: str, body: dict[str, Any]) -> bool:
    finished(world)
    return world.brought(world.operation(kind, body))[0] is not None


def new_error() -> dict[str, Any]:
    return {"error_id": new_id(7), "fields": {"node": 1, "categories": [1]}}


def other_boot(world: World) -> bool:
    old, now = world.clock, world.kitchen.tools.intake
    now.clock_id = "boot-2"
    try:
        return world.stamped(**old)
    finally:
        now.clock_id = "boot-1"


def flipped(text: str, rng: random.Random) -> str:
    place = rng.randrange(len(text))
    return text[:place] + ("0" if text[place] != "0" else "1") + text[place + 1 :]


FORGERIES = [
    Forgery("clock without signature", SIGNED, lambda w: w.stamped(signature="")),
    Forgery("clock with an empty name", SIGNED, lambda w: w.stamped(signature="", clock_id="")),
    Forgery(
        "signature with a digit changed",
        SIGNED,
        lambda w: w.stamped(signature=flipped(w.clock["signature"], w.rng)),
    ),
    Forgery("signature cut short", SIGNED, lambda w: w.stamped(signature=w.clock["signature"][:-1])),
    Forgery(
        "signature made with another key",
        SIGNED,
        lambda w: w.stamped(
            signature=touch_clock.signature(w.rng.randbytes(32), "boot-1", w.clock["host_ns"])
        ),
    ),
    Forgery(
        "answer of another time",
        SIGNED,
        lambda w: w.stamped(host_ns=w.clock["host_ns"] + w.rng.randrange(1, 10**9)),
    ),
    Forgery(
        "answer of an earlier time",
        SIGNED,
        lambda w: w.stamped(host_ns=w.clock["host_ns"] - w.rng.randrange(1, 10**9)),
    ),
    Forgery("answer of another run of the computer", SIGNED, other_boot),
    Forgery(
        "touch 1 ns after the start", INSIDE, lambda w: w.stamped(touch_ms=0, sent_ms=1e6, received_ms=1e6)
    ),
    Forgery(
        "touch before the recording was chosen",
        INSIDE,
        lambda w: w.stamped(touch_ms=1000, sent_ms=40_000, received_ms=40_000),
    ),
    Forgery(
        "touch before it on a wall clock",
        INSIDE,
        lambda w: w.stamped(touch_ms=1000, sent_ms=90_000, received_ms=90_000, basis="wall"),
    ),
    Forgery(
        "age from before it",
        INSIDE,
        lambda w: (w.stored(w.kitchen.tablet, w.operation(tapped_ms_ago=900_000)) or {})["basis"] == "age",
    ),
    Forgery("nobody under a name", ACTOR, lambda w: named(w, w.nobody_here, w.kitchen.basil)),
    Forgery("nobody under an invented name", ACTOR, lambda w: named(w, w.nobody_here, "admin")),
    Forgery("one person under another's name", ACTOR, lambda w: named(w, w.clove_here, w.kitchen.basil)),
    Forgery("an invented name in a sign-in", ACTOR, lambda w: named(w, w.kitchen.tablet, "operator")),
    Forgery(
        "a dump in another's name",
        ACTOR,
        lambda w: (w.brought(w.operation(actor=w.kitchen.basil))[0] or {})["actor"] != "op-1",
    ),
    Forgery("consent by nobody", CONSENT, lambda w: agreed(w, w.nobody_here, actor="")),
    Forgery("consent by nobody under a name", CONSENT, lambda w: agreed(w, w.nobody_here)),
    Forgery("consent by another", CONSENT, lambda w: agreed(w, w.clove_here, actor=w.clove)),
    Forgery("consent by another under a name", CONSENT, lambda w: agreed(w, w.clove_here)),
    Forgery("consent in a dump", CONSENT, lambda w: w.brought(w.consent(), corrects=True)[0] is not None),
    Forgery(
        "another tablet without a sign-in",
        OWN,
        lambda w: w.stored(w.nobody_elsewhere, w.operation()) is not None,
    ),
    Forgery(
        "another tablet with another person",
        OWN,
        lambda w: w.stored(w.clove_elsewhere, w.operation()) is not None,
    ),
    Forgery(
        "another tablet's end",
        OWN,
        lambda w: w.stored(w.clove_elsewhere, w.operation("pause", {})) is not None,
    ),
    Forgery(
        "a dump of a tablet without part in it",
        OWN,
        lambda w: w.brought(w.operation(), device=w.device)[0] is not None,
    ),
    Forgery(
        "withdrawal taken back by nobody",
        KEPT,
        lambda w: w.stored(w.nobody_here, w.keep(actor="")) is not None,
    ),
    Forgery(
        "withdrawal taken back under a name", KEPT, lambda w: w.stored(w.nobody_here, w.keep()) is not None
    ),
    Forgery("withdrawal taken back by another", KEPT, lambda w: w.stored(w.clove_here, w.keep()) is not None),
    Forgery(
        "withdrawal taken back by a dump", KEPT, lambda w: w.brought(w.keep(), corrects=True)[0] is not None
    ),
    Forgery("correction by a dump", CORRECTING, lambda w: into_finished(w, "add_error", new_error())),
    Forgery("undo by a dump", CORRECTING, lambda w: into_finished(w, "undo", {"undoes": [w.recording]})),
    Forgery("withdrawal by a dump", CORRECTING, lambda w: into_finished(w, "withdraw", {})),
]


@pytest.fixture
def world(kitchen: Any) -> World:
    return World(kitchen)


@pytest.mark.slow
def test_no_forgery_is_accepted(world: World) -> None:
    accepted = {one.name: sum(one.accepted(world) for _ in range(TIMES)) for one in FORGERIES}
    assert len(accepted) >= 25
    assert {name: count for name, count in accepted.items() if count} == {}


@pytest.mark.slow
def test_each_forgery_is_accepted_without_its_one_check(world: World) -> None:
    refused = []
    for one in FORGERIES:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(*one.check)
            if not one.accepted(world):
                refused.append(one.name)
    assert refused == []


def test_who_takes_a_dump_in_is_kept_with_each_of_its_operations(world: World) -> None:
    sent = world.operation()
    assert world.stored(world.kitchen.tablet, sent)["actor"] == world.kitchen.basil  # type: ignore[index]
    fresh = world.operation()
    was, came = world.brought(sent, fresh)
    assert (was["actor"], "imported" in was["clock"]) == (world.kitchen.basil, False)
    assert (came["actor"], came["clock"]["imported"]) == ("op-1", True)
    assert came["clock"]["named_actor"] == world.kitchen.basil
    finished(world)
    late = world.operation("add_error", new_error())
    assert world.brought(late, corrects=True)[0] is not None  # a researcher may


def test_a_touch_of_the_recording_is_stamped_by_its_exchange(world: World) -> None:
    fields = {"touch_ms": 1500, "sent_ms": 990, "received_ms": 1010, **world.clock}
    stored = world.stored(world.kitchen.tablet, world.operation(clock=fields))
    assert stored is not None
    assert (stored["basis"], stored["host_ns"]) == ("page", world.clock["host_ns"] + SECOND // 2)
    assert stored["uncertainty_ns"] == 10_000_000 + 50_000 + 1_000_000
    large = 2**60 + 12_345  # a browser keeps it as a float64, which is another whole number
    signed = touch_clock.signature(b"k" * 32, "boot-1", large)
    assert touch_clock.was_answered(b"k" * 32, "boot-1", int(float(large)), signed)


@pytest.mark.promise("Strangers on the network get a refusal")
def test_a_tablet_without_part_in_a_recording_steers_nothing(world: World) -> None:
    address = f"/api/v1/capture/{world.recording}"
    for client in (world.nobody_elsewhere, world.clove_elsewhere):
        answer = client.post(address, json={"action": "abort", "reason": "x"})
        assert (answer.status_code, "of another tablet" in answer.text) == (422, True), answer.text
        sound = client.put(
            f"/api/v1/voice/{world.recording}/{hashlib.sha256(b'x').hexdigest()}",
            content=b"x",
            headers={"content-type": "audio/webm"},
        )
        assert "of another tablet" in sound.text


def test_the_key_is_its_owners_and_the_same_after_a_restart(tmp_path: Any) -> None:
    from kitchensync.storage.errors import BadInstallation
    from kitchensync.storage.installation.key import kept_key

    key = kept_key(tmp_path / "_app")
    path = tmp_path / "_app" / "app.key"
    assert (kept_key(tmp_path / "_app"), path.stat().st_mode & 0o777) == (key, 0o600)
    assert [one.name for one in path.parent.iterdir()] == ["app.key"]
    path.write_bytes(key[:-1])
    with pytest.raises(BadInstallation, match="no key of 32 bytes"):
        kept_key(tmp_path / "_app")
