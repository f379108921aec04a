"""Who may come in, how much they may bring, and what the pages let a browser do."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from recipe_app.guard import MAX_BODY, is_loopback_address

PAGES = Path(__file__).resolve().parents[2] / "recipe_app"


def test_the_start_page_offers_recordings_and_recipes_with_their_orders(kitchen: Any) -> None:
    kitchen.record("old_1", state="complete")
    page = kitchen.client().get("/").text
    assert 'value="soup_1"' in page
    assert "old_1" not in page
    assert "Tea and toast" in page
    assert re.search(r"11 steps,\s+630\s+valid orders", page)


def test_the_follow_page_of_an_unknown_recording_is_a_404_page(kitchen: Any) -> None:
    answer = kitchen.client().get("/follow/absent")
    assert answer.status_code == 404
    assert "no recording &#39;absent&#39;" in answer.text


def test_recipe_and_recording_names_are_escaped(kitchen: Any, tmp_path: Path) -> None:
    kitchen.recipes = tmp_path / "odd"
    kitchen.recipes.mkdir()
    steps = {"0": "START", "1": "Add-<script>alert(1)</script>", "2": "END"}
    good = {"steps": steps, "edges": [[0, 1], [1, 2]]}
    (kitchen.recipes / "odd.json").write_text(json.dumps(good))
    (kitchen.recipes / "bad.json").write_text(json.dumps({"steps": {"<b>": "A"}, "edges": []}))
    (kitchen.recipes / "loop.json").write_text(
        json.dumps({"steps": steps, "edges": [[0, 1], [1, 1], [1, 2]]})
    )
    client = kitchen.client()
    page = client.get("/").text
    assert "<b>" not in page
    assert "&lt;b&gt;" in page
    assert "loop.json cannot be used: step 1: steps wait for each other" in page
    unusable = {found["file"] for found in client.get("/api/recipes").json()["unusable"]}
    assert unusable == {"bad.json", "loop.json"}
    body = {"op_id": "choose-0001", "recipe": "odd"}
    assert client.post("/api/recordings/soup_1/recipe", json=body).status_code == 200
    assert "<script>alert" not in client.get("/follow/soup_1").text


def test_a_recipe_file_that_changes_is_read_again(kitchen: Any, tmp_path: Path) -> None:
    kitchen.recipes = tmp_path / "own"
    kitchen.recipes.mkdir()
    client = kitchen.client()
    assert "No recipes in" in client.get("/").text
    steps = {"0": "START", "1": "Boil-Boil water", "2": "END"}
    path = kitchen.recipes / "tea.json"
    path.write_text(json.dumps({"steps": steps, "edges": [[0, 1], [1, 2]]}))
    assert [found["steps"] for found in client.get("/api/recipes").json()["recipes"]] == [1]
    path.write_text("{}")
    assert client.get("/api/recipes").json()["recipes"] == []


def test_pages_allow_no_foreign_code_and_use_none(kitchen: Any) -> None:
    client = kitchen.client()
    for address in ("/", "/follow/soup_1", "/static/follow.js", "/api/clock", "/absent"):
        policy = client.get(address).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
    for path in [*PAGES.glob("templates/*.html"), *PAGES.glob("static/*")]:
        text = path.read_text()
        assert not re.findall(r"(?:src|href|from|url)\W{1,3}(?:https?:)?//(?!www\.w3\.org)", text), path.name
        assert not re.search(r"<script>|style=|\son[a-z]+=", text), path.name
    assert sum(path.stat().st_size for path in PAGES.glob("static/*")) < 300_000


def test_everything_the_pages_ask_for_is_there(kitchen: Any) -> None:
    client = kitchen.client()
    asked = {"/static/icon.svg"}
    for address in ("/", "/follow/soup_1"):
        asked |= set(re.findall(r'"(/static/[^"]+)"', client.get(address).text))
    for script in PAGES.glob("static/*.js"):
        asked |= set(re.findall(r'"(/static/[^"]+)"', script.read_text()))
    assert len(asked) > 8
    for address in asked:
        assert client.get(address).status_code == 200, address


def test_a_foreign_host_name_is_refused(kitchen: Any) -> None:
    client = kitchen.client()
    for host in ("kitchen.example", "127.0.0.1.example:8000", "", "192.0.2.7:8000"):
        assert client.get("/api/clock", headers={"host": host}).status_code in (400, 403)
    for host in ("localhost:8000", "127.0.0.1", "[::1]:8000", "127.4.5.6:1"):
        assert client.get("/api/clock", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.9.8.7", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("x", False),
    ],
)
def test_loopback_addresses(host: str, loopback: bool) -> None:
    assert is_loopback_address(host) is loopback


def test_with_a_token_nothing_is_served_without_it(kitchen: Any) -> None:
    kitchen.token = "a-token-of-the-test"
    client = kitchen.client()
    body = {"op_id": "begin-0001"}
    for answer in (
        client.get("/"),
        client.get("/api/clock"),
        client.get("/static/follow.js"),
        client.get("/openapi.json"),
        client.get("/?token=another-token"),
        client.get("/api/clock", headers={"authorization": "Bearer wrong"}),
        client.get("/api/clock", headers={"cookie": "kitchensync_token=wrong"}),
        client.post("/api/standalone", json=body),
    ):
        assert answer.status_code == 401
    assert client.get("/api/clock", headers={"authorization": f"Bearer {kitchen.token}"}).status_code == 200
    welcome = client.get(f"/?token={kitchen.token}")
    assert (welcome.status_code, welcome.headers["location"]) == (303, "/")
    assert "HttpOnly" in welcome.headers["set-cookie"]
    assert client.get("/").status_code == 200
    assert client.post("/api/standalone", json=body).status_code == 200


def test_only_small_json_is_taken(kitchen: Any) -> None:
    client = kitchen.client()
    address = "/api/recordings/soup_1/operations"
    as_json = {"content-type": "application/json"}
    assert client.post(address, content="{}", headers={"content-type": "text/plain"}).status_code == 415
    assert client.post(address, data={"op_id": "operation-1"}).status_code == 415
    large = json.dumps({"note": "x" * MAX_BODY})
    assert client.post(address, content=large, headers=as_json).status_code == 413
    pieces = (large[i : i + 1000].encode() for i in range(0, len(large), 1000))
    assert client.post(address, content=pieces, headers=as_json).status_code == 413
    for text in ("", "{", "[" * 9000, "\x00", '{"op_id": 1e999}'):
        assert client.post(address, content=text, headers=as_json).status_code in (400, 422)
    assert not (kitchen.data / "soup_1" / "events").exists()


def test_wrong_methods_and_addresses_are_one_line(kitchen: Any) -> None:
    client = kitchen.client()
    assert client.delete("/api/clock").status_code == 405
    for address in ("/absent", "/static/../app.py", "/static/%2e%2e/app.py", "/api/recipes/absent/order"):
        answer = client.get(address)
        assert answer.status_code == 404
        assert "\n" not in answer.json()["error"]
    assert client.get("/api/recipes/tea_and_toast/order?seed=-1").status_code == 422
