"""Who a token belongs to is remembered, and never longer than it is true."""

from __future__ import annotations

from typing import Any

import pytest

from kitchensync.recipe_app.people.accounts import LOGIN_NS, Visitor
from kitchensync.recipe_app.people.visitors import REMEMBERED_S, Tokens, Visitors
from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.store.app_records import AppRecords
from kitchensync.recipe_app.store.database import open_database

PIN = "482916"


class Clock:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def signed_in(kitchen: Any) -> tuple[str, Tokens]:
    """A tablet and the tokens of Basil on it."""
    device, token = kitchen.pair()
    login = kitchen.tools.accounts.sign_in(kitchen.basil, "pin", PIN, device=device, desk=False)
    return device, Tokens(token, login)


@pytest.fixture
def visitors(kitchen: Any, clock: Clock, signed_in: tuple[str, Tokens]) -> Visitors:
    made = Visitors(kitchen.tools.accounts, clock_s=clock)
    assert made.known(signed_in[1]) is None
    found = made.look_up(signed_in[1])
    assert found.person is not None
    assert made.known(signed_in[1]) is found
    return made


def test_what_this_process_changes_holds_at_once(
    kitchen: Any, visitors: Visitors, signed_in: tuple[str, Tokens]
) -> None:
    device, tokens = signed_in
    accounts = kitchen.tools.accounts
    changes = [
        lambda: accounts.sign_out(tokens.login),
        lambda: accounts.change_person(kitchen.basil, {"active": False}, actor=""),
        lambda: accounts.remove_device(device, actor=""),
    ]
    left: list[Visitor] = []
    for change in changes:
        change()
        assert visitors.known(tokens) is None
        left.append(visitors.look_up(tokens))
        assert visitors.known(tokens) is left[-1]
    assert [(one.device is not None, one.person is not None) for one in left] == [
        (True, False),
        (True, False),
        (False, False),
    ]


def test_a_sign_in_ends_in_time(kitchen: Any, visitors: Visitors, signed_in: tuple[str, Tokens]) -> None:
    kitchen.utc_ns += LOGIN_NS
    assert visitors.known(signed_in[1]) is not None
    kitchen.utc_ns += 1
    assert visitors.known(signed_in[1]) is None
    assert visitors.look_up(signed_in[1]).person is None


def test_what_another_process_changes_holds_soon(
    kitchen: Any, visitors: Visitors, clock: Clock, signed_in: tuple[str, Tokens]
) -> None:
    device, tokens = signed_in
    other = open_database(kitchen.data / "_app" / "app.db")
    records = AppRecords(other, now_ns=lambda: 0, utc_ns=lambda: kitchen.utc_ns)
    with records.changing() as connection:
        connection.execute(tables.device_key.delete().where(tables.device_key.c.device == device))
    other.close()
    clock.seconds += REMEMBERED_S - 0.001
    assert visitors.known(tokens) is not None
    clock.seconds += 0.002
    assert visitors.known(tokens) is None
    assert visitors.look_up(tokens).device is None


@pytest.mark.slow
def test_a_removed_tablet_posts_nothing_more(kitchen: Any) -> None:
    recording = kitchen.choose()["recording"]
    kitchen.post(kitchen.operation(recording, "mark", {"text": "before"}))
    (row,) = kitchen.tools.records.rows(tables.device)
    operator = kitchen.desk("operator")
    assert operator.post(f"/api/v1/desk/devices/{row['id']}/remove", json={}).status_code == 200
    late = kitchen.operation(recording, "mark", {"text": "after"})
    assert kitchen.tablet.post("/api/v1/ops", json={"operations": [late]}).status_code == 401
    marks = [op for op in kitchen.tools.records.ops(recording) if op["kind"] == "mark"]
    assert [op["body"]["text"] for op in marks] == ["before"]


def test_the_memory_is_bounded_and_holds_no_token(kitchen: Any, visitors: Visitors) -> None:
    for number in range(600):
        visitors.look_up(Tokens(f"token {number}"))
    assert len(visitors._known) == 512
    assert "token 599" not in repr(visitors._known)
