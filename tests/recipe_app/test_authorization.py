"""Every address of the app against everybody who may ask: who is let in, and what a foreign page cannot do."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from everybody import WHO, clients
from numbered_recording import write_numbered

from kitchensync.recipe_app.cooking.collaborators import collaborators
from kitchensync.recipe_app.store import tables
from kitchensync.recipe_app.web.app import ROUTES, create_app
from kitchensync.recipe_app.web.door.request_bodies import MAX_BODY
from kitchensync.shell.loopback import is_loopback_address

PAGES = Path(__file__).resolve().parents[2] / "kitchensync" / "recipe_app"
PASSWORD = "a long enough pass phrase"
REFUSED = (401, 403)

EXPECTED = {
    "public": "nobody tablet participant operator annotator researcher admin",
    "device": "tablet participant",
    "person": "participant operator annotator researcher admin",
    "cook": "participant",
    "operate": "operator researcher admin",
    "annotate": "annotator researcher admin",
    "study": "researcher admin",
    "admin": "admin",
}
PUBLIC = {
    *("/", "/t/{path:path}", "/q", "/q/{_}", "/sw.js", "/locales/{language}.json", "/doctor", "/ca.crt"),
    *(
        "/desk/sign-in",
        "/api/v1/time",
        "/api/v1/me",
        "/api/v1/pair",
        "/api/v1/desk/sign-in",
        "/api/v1/invite",
    ),
}


@pytest.mark.promise("Strangers on the network get a refusal")
@pytest.mark.slow
def test_every_route_lets_in_whom_it_names_and_nobody_else(kitchen: Any) -> None:
    recording = kitchen.choose()["recording"]
    kitchen.agree(recording, "release_raw", "annotate")
    write_numbered(kitchen.data, "clip1")
    kitchen.tools.records.give_folder(recording, "clip1", actor="")
    kitchen.tools.intake.file()
    people = clients(kitchen)
    for route in ROUTES:
        if "/sign-out" in route.path:
            continue  # it would end the others' sessions; every person may
        path = route.path.replace("{recording}", recording).replace("{recipe}", "tea_and_toast")
        path = re.sub(r"\{[a-z]+(:path)?\}", "0" * 64, path)
        for who in WHO:
            body = {} if route.method in ("POST", "PUT") else None
            answer = people[who].request(route.method, path, json=body)
            let_in = answer.status_code not in REFUSED and answer.headers.get("location") != "/desk/sign-in"
            assert let_in == (who in EXPECTED[route.access].split()), (route.path, who, answer.status_code)
            assert answer.status_code < 500, (route.path, who, answer.text)
            if let_in and route.page and route.access != "public" and "0" * 64 not in path:
                leads_on = route.path == "/desk/review/next"
                assert answer.status_code == (303 if leads_on else 200), (route.path, who, answer.text)


def test_only_what_must_be_is_public() -> None:
    assert {route.path for route in ROUTES if route.access == "public"} == PUBLIC


def test_a_role_on_a_tablet_opens_no_desk(kitchen: Any) -> None:
    person = kitchen.tools.accounts.add_person("Chief", ["admin", "participant"], actor="")
    kitchen.tools.accounts.set_pin(person, "482916", actor="")
    answer = kitchen.at_tablet(person).get("/api/v1/desk/recordings/x")
    assert (answer.status_code, answer.json()["error"]) == (401, "this needs a sign-in at the desk")


def browser_with_a_password(kitchen: Any, url: str) -> tuple[httpx.Client, dict[str, str]]:
    """A browser, and what an admin types in it at the desk."""
    person = kitchen.tools.accounts.add_person("Ada", ["admin"], actor="")
    kitchen.tools.accounts.accept_invite(kitchen.tools.accounts.invite(person, actor=""), PASSWORD)
    client: httpx.Client = kitchen.client()
    client.base_url = httpx.URL(url)
    return client, {"pseudonym": "Ada", "password": PASSWORD}


def pair_here(kitchen: Any, client: httpx.Client) -> None:
    body = {"code": kitchen.tools.accounts.pairing_code(kitchen.place, actor=""), "name": "T"}
    assert client.post("/api/v1/pair", json=body).status_code == 200


@pytest.mark.slow
def test_a_paired_browser_opens_no_desk_until_its_tablet_is_removed(kitchen: Any) -> None:
    client, signed = browser_with_a_password(kitchen, kitchen.url)
    assert client.post("/api/v1/desk/sign-in", json=signed).status_code == 200
    assert client.get("/desk/audit").status_code == 200
    pair_here(kitchen, client)  # it keeps the cookie of the desk
    me = client.get("/api/v1/me").json()
    assert (me["device"]["name"], me["desk"], me["person"], me["csrf"]) == ("T", False, None, "")
    for route in ROUTES:
        if route.access in ("person", "cook", "operate", "study", "admin"):
            path = re.sub(r"\{[a-z]+(:path)?\}", "0" * 64, route.path)
            answer = client.request(route.method, path, json={} if route.method == "POST" else None)
            sent_away = answer.headers.get("location") == "/desk/sign-in"
            assert answer.status_code == 401 or sent_away, (path, answer.status_code)
    refused = client.post("/api/v1/desk/sign-in", json=signed)
    assert refused.status_code == 403
    assert "another browser" in refused.json()["error"]
    assert "set-cookie" not in refused.headers
    assert "private window" in (page := client.get("/desk/sign-in").text)
    assert "password" not in page
    kitchen.tools.accounts.remove_device(me["device"]["id"], actor="")
    assert client.post("/api/v1/desk/sign-in", json=signed).status_code == 200
    assert client.get("/desk/audit").status_code == 200


def test_a_program_with_the_token_of_a_tablet_has_no_desk(kitchen: Any) -> None:
    desk = kitchen.desk("admin")
    both = {"authorization": f"Bearer {kitchen.pair()[1]}", **desk.headers}
    assert desk.get("/api/v1/desk/recordings/x").status_code == 404
    assert httpx.get(f"{kitchen.url}/api/v1/desk/recordings/x", headers=both).status_code == 401


@pytest.mark.slow
def test_the_guided_tour_shows_the_desk_in_the_browser_of_its_tablet(kitchen: Any) -> None:
    tools, tour = kitchen.tools, {"pseudonym": "Basil", "pin": "482916"}
    url = kitchen.serve(create_app(collaborators(tools.records, tools.folders, tools.shelf, demo=tour)))
    client, signed = browser_with_a_password(kitchen, url)
    pair_here(kitchen, client)
    assert client.post("/api/v1/desk/sign-in", json=signed).status_code == 200
    assert client.get("/desk/audit").status_code == 200


@pytest.mark.slow
def test_an_operator_makes_participants_and_nobody_above(kitchen: Any) -> None:
    operator = kitchen.desk("operator")
    assert operator.post("/api/v1/desk/people", json={"pseudonym": "New", "pin": "482916"}).status_code == 200
    above = {"pseudonym": "Boss", "roles": ["admin"]}
    assert operator.post("/api/v1/desk/people", json=above).status_code == 403
    admin = next(row["id"] for row in kitchen.tools.records.rows(tables.person) if "operator" in row["roles"])
    assert operator.post(f"/api/v1/desk/people/{admin}", json={"pin": "482917"}).status_code == 403
    assert operator.post(f"/api/v1/desk/people/{kitchen.basil}", json={"roles": ["admin"]}).status_code == 403


@pytest.mark.slow
def test_a_person_or_an_admin_ends_every_session_of_that_person(kitchen: Any) -> None:
    admin, operator = kitchen.desk("admin"), kitchen.desk("operator")
    elsewhere = kitchen.second_tablet()
    assert kitchen.tablet.post("/api/v1/sign-out/everywhere", json={}).status_code == 200
    for tablet in (kitchen.tablet, elsewhere):
        assert tablet.get("/api/v1/me").json()["person"] is None
    of_operator = operator.get("/api/v1/me").json()["person"]["id"]
    address = f"/api/v1/desk/people/{of_operator}/sign-out"
    assert operator.post(address, json={}).status_code == 401
    assert admin.post(address, json={}).status_code == 200
    assert operator.get("/api/v1/me").json()["person"] is None
    assert admin.get("/desk/audit").status_code == 200


def test_a_name_that_is_taken_is_a_conflict(kitchen: Any) -> None:
    admin = kitchen.desk("admin")
    for address, body in (("people", {"pseudonym": "Twin"}), ("kitchens", {"name": "Second"})):
        answers = [admin.post(f"/api/v1/desk/{address}", json=body).status_code for _ in range(2)]
        assert answers == [200, 409]


def browser_like(kitchen: Any) -> httpx.Client:
    """A client with cookies, as a browser has them after signing in at the desk."""
    client, signed = browser_with_a_password(kitchen, kitchen.url)
    answer = client.post("/api/v1/desk/sign-in", json=signed)
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert "SameSite=strict" in answer.headers["set-cookie"]
    return client


def test_a_foreign_page_changes_nothing(kitchen: Any) -> None:
    client = browser_like(kitchen)
    csrf = client.get("/api/v1/me").json()["csrf"]
    good = {"x-kitchensync-csrf": csrf, "origin": kitchen.url}
    tries: list[tuple[dict[str, str], int]] = [
        ({}, 403),
        ({"x-kitchensync-csrf": "wrong"}, 403),
        ({**good, "origin": "http://evil.example"}, 403),
        ({**good, "origin": kitchen.url.replace("http:", "https:")}, 403),  # the same host by another scheme
        ({**good, "sec-fetch-site": "cross-site"}, 403),
        ({**good, "content-type": "text/plain"}, 415),
        (good, 200),
    ]
    for number, (headers, status) in enumerate(tries):
        content = json.dumps({"name": f"Kitchen {number}"})
        sent = {"content-type": "application/json", **headers}
        assert client.post("/api/v1/desk/kitchens", content=content, headers=sent).status_code == status
    assert len(kitchen.tools.records.rows(tables.kitchen)) == 1


def test_pages_allow_no_foreign_code_and_use_none(kitchen: Any) -> None:
    client = kitchen.client()
    for address in ("/t/choose", "/desk/sign-in", "/static/main.js", "/api/v1/time", "/absent", "/sw.js"):
        policy = client.get(address).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
    files = [
        path for folder in ("templates", "static") for path in (PAGES / folder).rglob("*") if path.is_file()
    ]
    written = [path for path in files if path.suffix != ".woff2" and path.name != "OFL.txt"]
    for path in written:
        text = path.read_text()
        assert not re.findall(r"(?:src|href|from|url)\W{1,3}(?:https?:)?//(?!www\.w3\.org)", text), path.name
        assert not re.search(r"<script>|\sstyle=|\son[a-z]+=|innerHTML|insertAdjacentHTML", text), path.name


def test_the_shell_is_small_and_all_of_it_is_there(kitchen: Any) -> None:
    client = kitchen.client()
    worker = client.get("/sw.js").text
    files = json.loads(re.search(r"const FILES = (\[.*?\]);", worker)[1])
    fetched = {address: client.get(address) for address in [*files, "/t/choose"]}
    assert {answer.status_code for answer in fetched.values()} == {200}
    one_language = [
        a for name, a in fetched.items() if not name.startswith("/locales") or name.endswith("en.json")
    ]
    assert sum(len(answer.content) for answer in one_language) < 400_000
    asked = {"/static/icon.svg"}
    for answer in fetched.values():
        asked |= set(re.findall(r'"(/static/[^"$]+)"', answer.text))
    assert asked <= set(files)
    assert len(asked) > 20


@pytest.mark.slow
def test_names_are_text_everywhere(kitchen: Any, tmp_path: Path) -> None:
    nasty = "<script>alert(1)</script>"
    kitchen.tools.accounts.add_person(nasty, ["participant"], actor="")
    kitchen.pair(nasty)
    steps = {"0": "START", "1": f"Add-{nasty}", "2": "END"}
    recipe = json.dumps({"steps": steps, "edges": [[0, 1], [1, 2]]})
    researcher, admin = kitchen.desk("researcher"), kitchen.desk("admin")
    upload = {"file_name": "odd.json", "text": recipe}
    assert researcher.post("/api/v1/desk/recipes", json=upload).status_code == 200
    recording = kitchen.choose(recipe="odd")["recording"]
    for address in (
        *("people", "devices", "recipes", "audit", f"recordings/{recording}"),
        *(f"recordings/{recording}/script", f"recordings/{recording}/consent"),
    ):
        answer = admin.get(f"/desk/{address}")
        assert answer.status_code == 200
        assert nasty not in answer.text
    assert "&lt;script&gt;" in admin.get("/desk/people").text
    for name in ("../evil.json", "a/b.json", ".json", "x" * 90):
        assert researcher.post("/api/v1/desk/recipes", json={**upload, "file_name": name}).status_code == 422


def test_a_foreign_host_name_is_refused(kitchen: Any) -> None:
    client = kitchen.client()
    for host in ("kitchen.example", "127.0.0.1.example:8000", "", "192.0.2.7:8000"):
        assert client.get("/api/v1/time", headers={"host": host}).status_code in (400, 403)
    for host in ("localhost:8000", "127.0.0.1", "[::1]:8000", "127.4.5.6:1"):
        assert client.get("/api/v1/time", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        *(("127.0.0.1", True), ("127.9.8.7", True), ("::1", True), ("localhost", True)),
        *(("0.0.0.0", False), ("x", False)),
    ],
)
def test_loopback_addresses(host: str, loopback: bool) -> None:
    assert is_loopback_address(host) is loopback


def test_only_small_json_is_taken(kitchen: Any) -> None:
    client, address = kitchen.tablet, "/api/v1/ops"
    as_json = {"content-type": "application/json"}
    assert client.post(address, content="{}", headers={"content-type": "text/plain"}).status_code == 415
    large = json.dumps({"note": "x" * MAX_BODY})
    assert client.post(address, content=large, headers=as_json).status_code == 413
    pieces = (large[i : i + 1000].encode() for i in range(0, len(large), 1000))
    assert client.post(address, content=pieces, headers=as_json).status_code == 413
    for text in ("", "{", "[" * 9000, "\x00", '{"operations": 1e999}'):
        assert client.post(address, content=text, headers=as_json).status_code in (400, 422)


@pytest.mark.slow
def test_wrong_methods_and_addresses_are_one_line(kitchen: Any) -> None:
    client = kitchen.client()
    assert client.delete("/api/v1/time").status_code == 405
    for address in ("/absent", "/static/../app.py", "/static/%2e%2e/app.py"):
        answer = client.get(address)
        assert answer.status_code == 404
        assert "\n" not in answer.json()["error"]
    assert kitchen.tablet.get("/api/v1/recipes/absent/order").status_code == 404
    assert kitchen.tablet.get("/api/v1/recipes/tea_and_toast/order?seed=-1").status_code == 422


def test_signing_in_too_often_has_to_wait(kitchen: Any) -> None:
    client = kitchen.client()
    body = {"pseudonym": "nobody", "password": "x"}
    answers = [client.post("/api/v1/desk/sign-in", json=body).status_code for _ in range(7)]
    assert answers == [403] * 5 + [429] * 2


def at(kitchen: Any, address: str) -> httpx.Client:
    """A browser at an address of its own."""
    made = httpx.Client(
        base_url=kitchen.url, transport=httpx.HTTPTransport(local_address=address), timeout=30
    )
    return kitchen.opened.enter_context(made)  # type: ignore[no-any-return]


@pytest.mark.slow
def test_wrong_passwords_lock_nobody_out_elsewhere_and_no_browser_that_is_signed_in(kitchen: Any) -> None:
    _, signed = browser_with_a_password(kitchen, kitchen.url)
    before, stranger, elsewhere = (at(kitchen, one) for one in ("127.0.0.2", "127.0.0.2", "127.0.0.3"))
    assert before.post("/api/v1/desk/sign-in", json=signed).status_code == 200
    wrong = {**signed, "password": "not the pass phrase"}
    answers = [stranger.post("/api/v1/desk/sign-in", json=wrong).status_code for _ in range(8)]
    assert answers == [403] * 5 + [429] * 3
    assert elsewhere.post("/api/v1/desk/sign-in", json=signed).status_code == 200
    assert stranger.post("/api/v1/desk/sign-in", json=signed).status_code == 429  # from there nobody gets in
    assert before.get("/desk/audit").status_code == 200  # but who is in
    assert before.post("/api/v1/desk/sign-in", json=signed).status_code == 200
    names = (stranger.post("/api/v1/desk/sign-in", json={**wrong, "pseudonym": f"x{n}"}) for n in range(99))
    assert 429 in (answer.status_code for answer in names)  # its minute is used up for every name
    assert before.post("/api/v1/desk/sign-in", json=signed).status_code == 200


@pytest.mark.slow
def test_wrong_pins_on_one_tablet_lock_nobody_out_on_another(kitchen: Any) -> None:
    wrong = {"person": kitchen.basil, "pin": "111112"}
    stranger, other = (kitchen.client(authorization=f"Bearer {kitchen.pair()[1]}") for _ in range(2))
    answers = [stranger.post("/api/v1/sign-in", json=wrong).status_code for _ in range(7)]
    assert answers == [403] * 5 + [429] * 2
    assert other.post("/api/v1/sign-in", json={**wrong, "pin": "482916"}).status_code == 200
    again = [kitchen.tablet.post("/api/v1/sign-in", json=wrong).status_code for _ in range(7)]
    assert again == [403] * 5 + [429] * 2  # a signed-in tablet may not guess either
    assert kitchen.tablet.get("/api/v1/recipes").status_code == 200
