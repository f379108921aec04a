"""Correct boundaries of steps on pages as a person would, counting keys and other input."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

NUDGES = {1: ("Comma", "Period"), 3: ("KeyK", "KeyL"), 10: ("KeyI", "KeyO")}
"""Frames by which a key of the reviewer moves a boundary -> the keys for earlier and for later."""
NOTCH_PX, SCROLLED_MS = 120, 100
MOST_FRAMES = 20
"""Largest distance of a proposal from its boundary, frames."""

Wanted = dict[tuple[str, str], int]
"""(number of the step as `S05`, start or end) -> frame, from 0."""


@dataclass
class Hand:
    """A person at a page; counts their input."""

    page: Any
    keys: int = 0
    buttons: int = 0
    moves: int = 0
    notches: int = 0
    over: tuple[int, int] | None = None

    def press(self, key: str, times: int = 1, held: str = "") -> None:
        """Press a key several times while modifiers (`Control+Alt`) are held."""
        if not times:
            return
        modifiers = held.split("+") if held else []
        for modifier in modifiers:
            self.page.keyboard.down(modifier)
        for _ in range(times):
            self.page.keyboard.press(key)
        for modifier in modifiers:
            self.page.keyboard.up(modifier)
        self.keys += times + len(modifiers)

    def point(self, x: int, y: int) -> None:
        """Move the pointer to a place, unless it is there."""
        self.moves += (x, y) != self.over
        self.over = x, y
        self.page.mouse.move(x, y)

    def drag_to(self, x: int, y: int) -> None:
        """Drag from the pointer's place to another."""
        self.page.mouse.down()
        self.point(x, y)
        self.page.mouse.up()
        self.buttons += 2

    def turn(self, right: int = 0, down: int = 0) -> None:
        """Turn the wheel by notches at the pointer's place."""
        self.page.mouse.wheel(right * NOTCH_PX, down * NOTCH_PX)
        self.page.wait_for_timeout(SCROLLED_MS)
        self.notches += abs(right) + abs(down)


def wanted(proposed: Iterable[tuple[str, int, int]], seed: int) -> Wanted:
    """Return boundaries, each some frames away from its proposal (step, first, last)."""
    rng = random.Random(seed)
    ends = {
        (step, end): at for step, *both in proposed for end, at in zip(("start", "end"), both, strict=True)
    }
    return {
        boundary: rng.choice(
            [place for place in range(at - MOST_FRAMES, at + MOST_FRAMES + 1) if 0 <= place != at]
        )
        for boundary, at in ends.items()
    }


def fewest_nudges(frames: int) -> list[int]:
    """Return the shortest list of nudges, in frames, with this sum."""
    sizes = [sign * size for size in NUDGES for sign in (-1, 1)]
    for count in range(2 * MOST_FRAMES):
        for nudges in combinations_with_replacement(sizes, count):
            if sum(nudges) == frames:
                return list(nudges)
    raise ValueError(frames)


def correct_in_the_reviewer(hand: Hand, wanted: Wanted) -> None:
    """Correct every boundary in the desk's reviewer by keys only, and submit."""
    now = hand.page.locator("#now")
    for _ in wanted:
        match = re.fullmatch(r"(S\d+) · .* (begins|ends) at picture (\d+)", now.inner_text())
        assert match, now.inner_text()
        place = wanted[match[1], "start" if match[2] == "begins" else "end"]
        for nudge in fewest_nudges(place - int(match[3])):
            hand.press(NUDGES[abs(nudge)][nudge > 0])
        hand.press("Enter")
    hand.page.locator("#left[data-open='0']").wait_for()
    hand.press("Enter")
    hand.page.get_by_text("Submitted.").wait_for()


FRAME_PX, NAMES_PX, ROW_PX = 16, 150, 24
"""Width of a frame on Label Studio's timeline, space left of the first one, height of a region, pixels."""
TIMELINE = """(id) => {
    const shown = document.querySelector("[class*=timeline-frames__scroll]");
    const { left, right, top, bottom } = shown.getBoundingClientRect();
    const row = shown.querySelector(`[data-id="${id}"]`);
    const y = row.getBoundingClientRect().y + 12, { start, end } = row.dataset;
    return { left, right, top, bottom, scrolled: shown.scrollLeft, y, start: +start, end: +end };
}"""
NEAR_PX = 30


def correct_in_label_studio(hand: Hand, wanted: Wanted) -> None:
    """Correct every boundary on a real server's page, by dragging it on the timeline, and submit.

    This is the cheapest way there: dragging shows the video's frame, typing a number needs a step there first.
    Clicks on the overview instead of the wheel, 1.3 s each, take the same time.
    """
    for (step, end), place in sorted(wanted.items(), key=lambda boundary: boundary[1]):
        x, to_x, y = _in_sight(hand, f"touch-{step}-1", end, place + 1)
        hand.point(x, y)
        hand.drag_to(to_x, y)
        assert hand.page.evaluate(TIMELINE, f"touch-{step}-1")[end] == place + 1
    with hand.page.expect_response(
        lambda answer: answer.request.method == "POST" and "/annotations" in answer.url
    ):
        hand.press("Enter", held="Control")


def _in_sight(hand: Hand, region: str, end: str, frame: int) -> tuple[int, int, int]:
    """Turn the wheel until a boundary and its new place are visible; return the x of both and their y."""
    while True:
        seen = hand.page.evaluate(TIMELINE, region)
        x, to_x = (
            round(seen["left"] + NAMES_PX + (at - 0.5) * FRAME_PX - seen["scrolled"])
            for at in (seen[end], frame)
        )
        right = (max(x, to_x) > seen["right"] - NEAR_PX) - (min(x, to_x) < seen["left"] + NAMES_PX)
        down = (seen["y"] > seen["bottom"] - ROW_PX / 2) - (seen["y"] < seen["top"] + ROW_PX / 2)
        if not (right or down):
            return x, to_x, round(seen["y"])
        if hand.over is None:
            hand.point(round(seen["right"]) - 2 * NEAR_PX, round(seen["bottom"]) - NEAR_PX)
        hand.turn(right, down)
