"""Both pages in a real browser: the scripts run, the step is on the screen, the picture is whole."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import cv2
import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--hide-scrollbars",
]

pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="no chromium on this computer; `make system` installs it"
)


def browse(profile: Path, *options: str) -> str:
    """Run the browser once; virtual time lets the page's own requests and timers happen first."""
    command = [str(BROWSER), *FLAGS, f"--user-data-dir={profile}", "--virtual-time-budget=2500", *options]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


@pytest.fixture
def following(kitchen: Any) -> tuple[str, str]:
    """The address of a follow page two steps into a recipe, and the third step's text."""
    client = kitchen.client()
    choice = {"op_id": "choose-0001", "recipe": "tea_and_toast", "seed": 2}
    steps = client.post("/api/recordings/soup_1/recipe", json=choice).json()["recipe"]["steps"]
    for number in range(2):
        body = {"op_id": f"operation-{number}", "kind": "done"}
        assert client.post("/api/recordings/soup_1/operations", json=body).status_code == 200
    return f"{client.base_url}/follow/soup_1", steps[2]["text"]


def test_the_start_page_shows_the_order_of_the_seed(kitchen: Any, tmp_path: Path) -> None:
    client = kitchen.client()
    first = client.get("/api/recipes").json()["recipes"][0]["recipe"]
    drawn = client.get(f"/api/recipes/{first}/order?seed=0").json()
    page = browse(tmp_path / "profile", "--dump-dom", str(client.base_url))
    preview = page[page.index('id="preview"') :]
    places = [preview.index(f"<li>{drawn['steps'][str(node)]['text']}</li>") for node in drawn["order"]]
    assert places == sorted(places)


def test_the_follow_page_shows_the_current_step(following: tuple[str, str], tmp_path: Path) -> None:
    address, text = following
    page = browse(tmp_path / "profile", "--dump-dom", address)
    assert f'class="current">{text}</h1>' in page
    assert ">2 / 11</p>" in page
    assert 'class="dot recording"' in page
    assert page.count("<li data-place=") == 2


@pytest.mark.parametrize(("width", "height"), [(1024, 768), (800, 1280)])
def test_the_follow_page_is_dark_with_large_targets(
    following: tuple[str, str], tmp_path: Path, width: int, height: int
) -> None:
    picture = tmp_path / "follow.png"
    address, _ = following
    browse(tmp_path / "profile", f"--screenshot={picture}", f"--window-size={width},{height}", address)
    pixels = cv2.imread(str(picture))
    assert pixels is not None
    assert pixels.shape[1] == width
    assert pixels.mean() < 90  # a bright page blooms in the cameras' pictures
    assert pixels.max() > 200  # but its text is there
