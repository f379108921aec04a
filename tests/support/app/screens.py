"""Checks of every screen: touch targets are large enough, and axe has no serious finding."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

PHONE = {"width": 390, "height": 844}
ZOOMED = {"width": 640, "height": 400}
"""A tablet at 200 %."""
TOUCHABLE = "button, a, select, input:not([type=radio]):not([type=checkbox]), label.option"
SMALL = """([touchable, least]) => [...document.querySelectorAll(touchable)]
  .map((box) => [box, box.getBoundingClientRect()])
  .filter(([box, { width, height }]) => box.checkVisibility() && Math.round(Math.min(width, height)) < least)
  .map(([box, { width, height }]) => `${box.textContent || box.id} ${width} x ${height}`)"""

CLOSE = """([touchable, least]) => {
  const dialog = document.querySelector("dialog[open]");
  const seen = (box) => { // what a list that scrolls cuts off is not there
    const { left, right, top, bottom } = box.getBoundingClientRect();
    const rect = { left, right, top, bottom };
    for (let outer = box.parentElement; outer; outer = outer.parentElement) {
      if (getComputedStyle(outer).overflowY === "visible") continue;
      const edge = outer.getBoundingClientRect();
      rect.top = Math.max(rect.top, edge.top);
      rect.bottom = Math.min(rect.bottom, edge.bottom);
    }
    return rect;
  };
  const boxes = [...document.querySelectorAll(touchable)]
    .filter((box) => box.checkVisibility() && (!dialog || dialog.contains(box)))
    .map((box) => [box.textContent, seen(box)]).filter(([, rect]) => rect.bottom > rect.top);
  const apart = (a, b) => Math.max(a.left - b.right, b.left - a.right, a.top - b.bottom, b.top - a.bottom);
  return boxes.flatMap(([one, a], place) => boxes.slice(place + 1)
    .filter(([, b]) => Math.round(apart(a, b)) < least).map(([other, b]) => `${one} | ${other}: ${apart(a, b)}`));
}"""

MISNAMED = """() => [...document.querySelectorAll("button[aria-label], a[aria-label]")]
  .filter((box) => box.checkVisibility() && /[\\p{L}\\p{N}]/u.test(box.textContent))
  .filter((box) => box.textContent.trim() !== box.getAttribute("aria-label"))
  .map((box) => `${box.textContent}: ${box.getAttribute("aria-label")}`)"""
COVERED = """() => {
  const { left, right, top, bottom } = document.getElementById("saved").getBoundingClientRect();
  const texts = document.createTreeWalker(document.getElementById("screen"), NodeFilter.SHOW_TEXT);
  const found = [], range = document.createRange();
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    if (!text.data.trim() || !text.parentElement.checkVisibility()) continue;
    range.selectNodeContents(text);
    const width = (box) => Math.min(right, box.right) - Math.max(left, box.left);
    const height = (box) => Math.min(bottom, box.bottom) - Math.max(top, box.top);
    const covers = (box) => width(box) > 1 && height(box) > 1;
    if ([...range.getClientRects()].some(covers)) found.push(text.data);
  }
  return found;
}"""
SAY = """([text, kept]) => {
  const saved = document.getElementById("saved");
  saved.textContent = text;
  saved.dataset.kept = String(kept);
  saved.classList.toggle("waiting", !kept);
}"""


def misnamed(page: Any) -> list[str]:
    """Return buttons and links whose accessible name differs from their text: the text, then the name."""
    return list(page.evaluate(MISNAMED))


def covered(page: Any, text: str, *, kept: bool) -> list[str]:
    """Return the texts that the status line of saving covers if it shows `text`."""
    page.evaluate(SAY, [text, kept])
    return list(page.evaluate(COVERED))


def close_boxes(page: Any, least: int) -> list[str]:
    """Return pairs of touch targets that are less than `least` CSS pixels apart or overlap."""
    return list(page.evaluate(CLOSE, [TOUCHABLE, least]))


def small_boxes(page: Any, least: int) -> list[str]:
    """Return the texts of touch targets that are smaller than `least` CSS pixels."""
    return list(page.evaluate(SMALL, [TOUCHABLE, least]))


def serious(page: Any, impacts: tuple[str, ...] = ("serious", "critical")) -> list[str]:
    """Return the serious and critical findings of axe on this screen. Its script bypasses our content policy."""
    axe = pytest.importorskip("axe_playwright_python.base", reason="axe comes with the dev extra")
    script = Path(axe.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
    session = page.context.new_cdp_session(page)
    session.send("Runtime.evaluate", {"expression": script})
    evaluation = {
        "expression": "axe.run().then((found) => JSON.stringify([found.violations, found.passes.length]))",
        "awaitPromise": True,
    }
    violations, passes = json.loads(session.send("Runtime.evaluate", evaluation)["result"]["value"])
    assert passes > 10
    return [
        f"{violation['id']}: {node['target']} {node['failureSummary']}"
        for violation in violations
        if violation["impact"] in impacts
        for node in violation["nodes"]
    ]


def findings(page: Any) -> list[str]:
    """Return all findings of axe on this screen."""
    return serious(page, ("minor", "moderate", "serious", "critical"))


def fit_to_be_shown(page: Any, least: int = 48) -> None:
    """Assert that a screen has no small box, no serious finding in light and in dark, and no sideways scrolling."""
    page.wait_for_load_state("load")
    small = small_boxes(page, least)
    assert small == [], small
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        problems = serious(page)
        assert problems == [], f"{scheme}: {problems}"
