"""Invites, pairing, PINs, passwords, cards: who gets in, who does not, and what is kept of the secrets."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import pytest
from argon2 import PasswordHasher, extract_parameters
from sqlalchemy import insert

from kitchensync.operations.errors import BadOperation
from kitchensync.recipe_app.errors import NameTaken, NotAllowed, TooOften
from kitchensync.recipe_app.people import secrets
from kitchensync.recipe_app.people.accounts import Accounts
from kitchensync.recipe_app.people.attempts import AT_ONCE, Bucket
from kitchensync.recipe_app.people.pseudonyms import FREE, check_pseudonym, suggest
from kitchensync.recipe_app.people.roles import HOLDERS, ROLES, Access, allowed
from kitchensync.recipe_app.people.secrets import fast_hash
from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.store.app_records import AppRecords, is_admin
from kitchensync.recipe_app.store.database import Database

SECOND_NS = 1_000_000_000
PIN, PASSWORD = "482916", "a long enough pass phrase"


@dataclass
class House:
    """Accounts, their clock, and somebody with a PIN."""

    accounts: Accounts
    utc_ns: int = 1_790_000_000_000_000_000

    def wait(self, seconds: float) -> None:
        self.utc_ns += round(seconds * SECOND_NS)


@pytest.fixture
def house(database: Database) -> House:
    made = House.__new__(House)
    made.utc_ns = 1_790_000_000_000_000_000
    made.accounts = Accounts(AppRecords(database, now_ns=lambda: 5, utc_ns=lambda: made.utc_ns))
    made.accounts.records.note("kitchen", "k1", {"name": "Lab"}, actor="")
    return made


def person(house: House, name: str = "Basil", role: str = "participant") -> str:
    made = house.accounts.add_person(name, [role], actor="")
    house.accounts.set_pin(made, PIN, actor="")
    return made


def test_a_tablet_is_paired_once_with_its_code(house: House) -> None:
    code = house.accounts.pairing_code("k1", actor="")
    device, token = house.accounts.pair(code.lower(), "By the stove", secure=True)
    visitor = house.accounts.visitor(device_token=token, login_token="")
    assert visitor.device is not None
    assert (visitor.device["id"], visitor.device["kitchen"], visitor.person) == (device, "k1", None)
    with pytest.raises(NotAllowed, match="ask for a new one"):
        house.accounts.pair(code, "Another", secure=True)
    house.accounts.remove_device(device, actor="")
    assert house.accounts.visitor(device_token=token, login_token="").device is None


def test_codes_and_invites_expire_and_are_not_interchangeable(house: House) -> None:
    basil = person(house)
    code, invite = house.accounts.pairing_code("k1", actor=""), house.accounts.invite(basil, actor="")
    with pytest.raises(NotAllowed):
        house.accounts.pair(invite, "x", secure=True)
    with pytest.raises(NotAllowed):
        house.accounts.accept_invite(code, PASSWORD)
    house.wait(16 * 60)
    with pytest.raises(NotAllowed):
        house.accounts.pair(code, "x", secure=True)
    assert house.accounts.accept_invite(invite, PASSWORD) == basil
    with pytest.raises(NotAllowed):
        house.accounts.accept_invite(invite, PASSWORD)


def test_a_session_belongs_to_its_tablet_and_ends(house: House) -> None:
    basil = person(house)
    device, token = house.accounts.pair(house.accounts.pairing_code("k1", actor=""), "A", secure=True)
    _, other = house.accounts.pair(house.accounts.pairing_code("k1", actor=""), "B", secure=True)
    login = house.accounts.sign_in(basil, "pin", PIN, device=device, desk=False)
    visitor = house.accounts.visitor(device_token=token, login_token=login)
    assert (visitor.actor, visitor.roles, visitor.desk) == (basil, frozenset({"participant"}), False)
    assert house.accounts.visitor(device_token=other, login_token=login).person is None
    assert house.accounts.visitor(device_token="", login_token=login).person is None
    house.wait(12 * 3600 + 1)
    assert house.accounts.visitor(device_token=token, login_token=login).person is None
    again = house.accounts.sign_in(basil, "pin", PIN, device=device, desk=False)
    house.accounts.sign_out(again)
    assert house.accounts.visitor(device_token=token, login_token=again).person is None


def test_five_wrong_pins_make_one_wait_and_a_right_one_forgets_them(house: House) -> None:
    basil = person(house)
    for _ in range(5):
        with pytest.raises(NotAllowed):
            house.accounts.sign_in(basil, "pin", "000001", device="d", desk=False)
    with pytest.raises(TooOften, match="wait 30 s"):
        house.accounts.sign_in(basil, "pin", PIN, device="d", desk=False)
    house.wait(31)
    with pytest.raises(NotAllowed):
        house.accounts.sign_in(basil, "pin", "000001", device="d", desk=False)
    house.wait(31)
    with pytest.raises(TooOften, match="wait 29 s"):
        house.accounts.sign_in(basil, "pin", PIN, device="d", desk=False)
    house.wait(30)
    assert house.accounts.sign_in(basil, "pin", PIN, device="d", desk=False)
    with pytest.raises(NotAllowed):
        house.accounts.sign_in(basil, "pin", "000001", device="d", desk=False)


def test_guesses_at_once_are_five_and_no_more(house: House) -> None:
    basil = person(house)

    def guess(pin: str) -> str:
        try:
            house.accounts.sign_in(basil, "pin", pin, device="d", desk=False)
        except TooOften:
            return "refused"
        except NotAllowed:
            return "checked"
        return "in"

    with ThreadPoolExecutor(12) as pool:
        came = list(pool.map(guess, [f"{100001 + number}" for number in range(24)]))
    assert (came.count("checked"), came.count("refused")) == (5, 19)
    assert guess(PIN) == "refused"
    house.wait(31)
    with ThreadPoolExecutor(12) as pool:  # after the wait it is one, not one of each
        came = list(pool.map(guess, [f"{200001 + number}" for number in range(12)]))
    assert (came.count("checked"), came.count("refused")) == (1, 11)


def test_whoever_is_right_at_the_same_time_is_let_in_and_counts_for_nothing(house: House) -> None:
    basil = person(house)
    with ThreadPoolExecutor(4) as pool:  # a double touch, or two tabs
        tokens = list(
            pool.map(lambda _: house.accounts.sign_in(basil, "pin", PIN, device="d", desk=False), range(4))
        )
    assert len(set(tokens)) == 4
    assert house.accounts.records.rows(tables.attempt) == []


def test_a_clock_that_is_set_back_locks_nobody_out(house: House) -> None:
    basil, year_s = person(house), 365 * 86_400
    house.wait(year_s)  # a computer without a battery for its clock
    for _ in range(5):
        with pytest.raises(NotAllowed):
            house.accounts.sign_in(basil, "pin", "111222", device="d1", desk=False)
    with pytest.raises(TooOften):
        house.accounts.sign_in(basil, "pin", PIN, device="d1", desk=False)
    house.wait(-year_s)
    assert house.accounts.sign_in(basil, "pin", PIN, device="d1", desk=False)


def test_nobody_signs_in_without_a_secret_or_when_switched_off(house: House) -> None:
    basil = person(house)
    for who, kind in ((basil, "password"), ("nobody", "pin"), ("nobody", "password")):
        with pytest.raises(NotAllowed):
            house.accounts.sign_in(who, kind, PIN, device="d", desk=False)
    login = house.accounts.sign_in(basil, "pin", PIN, device="", desk=False)
    house.accounts.change_person(basil, {"active": False}, actor="")
    assert house.accounts.visitor(device_token="", login_token=login).person is None
    with pytest.raises(NotAllowed):
        house.accounts.sign_in(basil, "pin", PIN, device="", desk=False)


def test_a_card_signs_in_until_there_is_a_newer_one(house: House) -> None:
    basil = person(house)
    card = house.accounts.new_card(basil, actor="")
    assert house.accounts.sign_in_by_card(card, device="")
    newer = house.accounts.new_card(basil, actor="")
    with pytest.raises(NotAllowed):
        house.accounts.sign_in_by_card(card, device="")
    assert house.accounts.sign_in_by_card(newer, device="")


def test_a_card_is_valid_for_90_days_and_names_them_itself(house: House) -> None:
    basil = person(house)
    card = house.accounts.new_card(basil, actor="")
    house.wait(90 * 86_400)
    assert house.accounts.sign_in_by_card(card, device="")
    house.wait(86_400)
    last, _, token = card.partition(".")
    for tried in (card, f"{int(last) + 9}.{token}", token, "", "."):
        with pytest.raises(NotAllowed):
            house.accounts.sign_in_by_card(tried, device="")


def test_a_card_from_before_cards_ended_is_not_valid(house: House) -> None:
    basil = person(house)
    old = "kN0lA9-a-token-without-a-day"
    with house.accounts.records.database.writing() as connection:
        row = {"person": basil, "kind": "card", "hash": fast_hash(old)}
        connection.execute(insert(tables.credential).values(row))
    with pytest.raises(NotAllowed, match="ask for a new one"):
        house.accounts.sign_in_by_card(old, device="")


def test_nothing_secret_is_in_the_database_in_plain_text(house: House) -> None:
    basil = person(house, role="admin")
    invite = house.accounts.invite(basil, actor="")
    house.accounts.accept_invite(invite, PASSWORD)
    code, card = house.accounts.pairing_code("k1", actor=""), house.accounts.new_card(basil, actor="")
    device, token = house.accounts.pair(code, "A", secure=True)
    login = house.accounts.sign_in(basil, "pin", PIN, device=device, desk=False)
    everything = ""
    with house.accounts.records.database.reading() as connection:
        for table in tables.metadata.sorted_tables:
            everything += repr(connection.execute(table.select()).all())
    for secret in (PIN, PASSWORD, invite, code, card, token, login):
        assert secret not in everything
        assert secret.replace("-", "") not in everything


def test_guesses_cost_what_owasp_asks_for_at_least(true_hasher: PasswordHasher) -> None:
    cost = extract_parameters(true_hasher.hash("482916"))
    assert (cost.type.name, cost.memory_cost >= 19 * 1024, cost.time_cost >= 2) == ("ID", True, True)


@pytest.mark.parametrize("pin", ["", "12345", "1234567", "abcdef", "١٢٣٤٥٦", "111111", "123456", "654321"])
def test_pins_that_anybody_tries_first_are_refused(house: House, pin: str) -> None:
    with pytest.raises(BadOperation):
        house.accounts.set_pin(house.accounts.add_person("X", ["participant"], actor=""), pin, actor="")


@pytest.mark.parametrize(
    ("name", "roles"), [("", ["admin"]), ("x" * 41, ["admin"]), ("A", []), ("A", ["root"])]
)
def test_bad_people_are_refused(house: House, name: str, roles: list[str]) -> None:
    with pytest.raises(BadOperation):
        house.accounts.add_person(name, roles, actor="")


def test_two_people_never_share_a_pseudonym(house: House) -> None:
    person(house)
    with pytest.raises(NameTaken, match="called Basil already"):
        person(house, "  Basil ")


@pytest.mark.parametrize(
    "alike", ["\u0430dmin", "ADMIN", "\uff41dmin", "a\u0501min", "\u0410\u0501\u041cin", "adm\u0131n"]
)
def test_a_pseudonym_that_looks_like_a_taken_one_is_refused(house: House, alike: str) -> None:
    person(house, "admin", "admin")
    with pytest.raises(NameTaken, match="called admin already"):
        person(house, alike)


UNSEEN = ["\x1b[31m", "\x00", "\x9b", "\u202e", "\u2066", "\u200b", "\u200f", "\u2060", "\ufeff", "\x7f"]


@pytest.mark.parametrize("hidden", UNSEEN)
def test_names_have_no_control_characters(house: House, hidden: str) -> None:
    with pytest.raises(BadOperation):
        house.accounts.add_person(f"a{hidden}b", ["participant"], actor="")
    with pytest.raises(BadOperation):
        house.accounts.add_kitchen(f"a{hidden}b", actor="")
    code = house.accounts.pairing_code("k1", actor="")
    with pytest.raises(BadOperation):
        house.accounts.pair(code, f"a{hidden}b", secure=True)
    assert house.accounts.pair(code, "Café 厨房 \U0001f373", secure=True)


def with_password(house: House, name: str, role: str = "admin") -> str:
    made = house.accounts.add_person(name, [role], actor="")
    house.accounts.accept_invite(house.accounts.invite(made, actor=""), PASSWORD)
    return made


@pytest.mark.parametrize("change", ["pin", "password", "invite", "everywhere"])
def test_a_new_secret_ends_every_session_of_that_person_alone(house: House, change: str) -> None:
    accounts = house.accounts
    ada, other = with_password(house, "Ada"), with_password(house, "Dill")
    accounts.set_pin(ada, PIN, actor="")
    invite = accounts.invite(ada, actor="")
    device, token = accounts.pair(accounts.pairing_code("k1", actor=""), "A", secure=True)
    on_tablet = accounts.sign_in(ada, "pin", PIN, device=device, desk=False)
    at_desk, of_other = (
        accounts.sign_in(who, "password", PASSWORD, device="", desk=True) for who in (ada, other)
    )
    changes = {
        "pin": lambda: accounts.set_pin(ada, "602214", actor=""),
        "password": lambda: accounts.accept_invite(invite, f"another {PASSWORD}"),
        "invite": lambda: accounts.invite(ada, actor=""),
        "everywhere": lambda: accounts.sign_out_everywhere(ada),
    }
    changes[change]()
    assert accounts.visitor(device_token=token, login_token=on_tablet).person is None
    assert accounts.visitor(device_token="", login_token=at_desk).person is None
    assert accounts.visitor(device_token="", login_token=of_other).actor == other


def test_a_secret_that_is_replaced_while_it_is_checked_signs_nobody_in(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    basil = person(house)
    device, _ = house.accounts.pair(house.accounts.pairing_code("k1", actor=""), "A", secure=True)
    matches = secrets.matches

    def slow(stored: str | None, secret: str) -> bool:
        house.accounts.set_pin(basil, "602214", actor="")
        return matches(stored, secret)

    monkeypatch.setattr(secrets, "matches", slow)
    with pytest.raises(NotAllowed):
        house.accounts.sign_in(basil, "pin", PIN, device=device, desk=False)


def test_two_admins_who_demote_each_other_leave_one(house: House) -> None:
    both = [house.accounts.add_person(name, ["admin"], actor="") for name in ("Ada", "Dill")]

    def demote(who: str) -> bool:
        with contextlib.suppress(BadOperation):
            house.accounts.change_person(who, {"roles": ["operator"]}, actor="")
            return True
        return False

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(demote, both)) == [False, True]
    left = next(row for row in house.accounts.records.rows(tables.person) if is_admin(row))
    with pytest.raises(BadOperation, match="last admin"):
        house.accounts.change_person(left["id"], {"active": False}, actor="")


def test_of_many_who_add_the_same_name_at_once_one_succeeds(house: House) -> None:
    def added(make: Callable[[], str]) -> bool:
        try:
            return bool(make())
        except NameTaken:
            return False

    twin = partial(house.accounts.add_person, "Twin", ["participant"], actor="")
    same = partial(house.accounts.add_kitchen, "Second", actor="")
    for make in (twin, same):
        with ThreadPoolExecutor(12) as pool:
            assert sorted(pool.map(added, [make] * 12)) == [False] * 11 + [True]


def test_access_grows_with_the_role_and_the_desk_needs_the_desk() -> None:
    for between in ("operator", "annotator"):  # neither may what the other may
        for access in Access:
            grows = ("participant", between, "researcher", "admin")
            held = [allowed(access, device=True, roles=frozenset((role,)), desk=True) for role in grows]
            assert held == sorted(held)
    for access in HOLDERS:
        assert not allowed(access, device=True, roles=frozenset(), desk=True)
    for access in (Access.OPERATE, Access.STUDY, Access.ADMIN):
        assert not allowed(access, device=True, roles=frozenset(ROLES), desk=False)


def test_a_bucket_lets_a_burst_through_and_then_so_many_a_minute() -> None:
    now = [0]
    bucket = Bucket(6, lambda: now[0])
    assert [tried(bucket, "a") for _ in range(7)] == [True] * 6 + [False]
    assert tried(bucket, "b")
    now[0] += 10 * SECOND_NS
    assert [tried(bucket, "a") for _ in range(2)] == [True, False]


def tried(bucket: Bucket, origin: str) -> bool:
    try:
        with bucket.attempt(origin):
            return True
    except TooOften:
        return False


def test_few_tries_are_made_at_the_same_time_and_one_of_an_origin() -> None:
    """Each costs 19 MiB: forty at once would be more than the whole app."""
    bucket = Bucket(60, lambda: 0)
    with contextlib.ExitStack() as stack:
        for origin in range(AT_ONCE - 1):
            stack.enter_context(bucket.attempt(str(origin)))
        assert not tried(bucket, "0")
        stack.enter_context(bucket.attempt("one more"))
        assert not tried(bucket, "and another")
        with ThreadPoolExecutor() as pool:
            tablet = pool.submit(waits_for_its_turn, bucket)
            stack.close()
            assert tablet.result(timeout=60)
    assert tried(bucket, "0")


def waits_for_its_turn(bucket: Bucket) -> bool:
    with bucket.attempt("tablet 1", waits=True):
        return True


@pytest.mark.parametrize("said", ["Klara Grünwald", " Klara\tG. ", "", "  ", "a\u00a0b", "a\nb"])
def test_what_may_be_a_name_is_no_pseudonym(said: str) -> None:
    with pytest.raises(BadOperation, match="one word"):
        check_pseudonym(said)


def test_a_free_pseudonym_is_always_at_hand() -> None:
    taken: list[str] = []
    for _ in range(3 * len(FREE)):
        taken.append(check_pseudonym(suggest([name.upper() for name in taken])))
    assert len({name.casefold() for name in taken}) == len(taken)
