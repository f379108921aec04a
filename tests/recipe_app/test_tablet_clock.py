"""The clock fields that a tablet sends, by its own script: a page's clock stood still, a wall clock was set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import javascript

from kitchensync.recipe_app.exchange.touch_clock import Exchange, Stamp, stamp_exchange

CLOCK_JS = Path(__file__).resolve().parents[2] / "kitchensync" / "recipe_app" / "static" / "core" / "clock.js"
WORLD = """
const world = { host_ms: 1e6, slept_ms: 0, wall_ms: 1.7e12, way_ms: 1, clock_id: "boot-1" };
globalThis.performance.now = () => world.host_ms - world.slept_ms;
Date.now = () => Math.floor(world.wall_ms + world.host_ms);
const wait = (ms) => { world.host_ms += ms; };
const sleep = (ms) => { wait(ms); world.slept_ms += ms; };
globalThis.fetch = async () => {
  wait(world.way_ms);
  const host_ns = world.host_ms * 1e6;
  wait(world.way_ms);
  return { json: async () => ({ host_ns, clock_id: world.clock_id, signature: "s" }) };
};
const page = await import("%(clock)s");
const later = await import("%(clock)s?later"); // the same tablet after the page was loaded anew
const said = [];
const say = (touch, truth_ms, clock) => said.push({ truth_ns: truth_ms * 1e6, clock });
%(story)s
console.log(JSON.stringify({ said, now_ns: world.host_ms * 1e6 }));
"""


def told(story: str) -> list[tuple[Stamp, int]]:
    """Play a story in a world with clocks of its own; return for each touch what the server stamps, and the truth."""
    code = WORLD % {"clock": CLOCK_JS.as_uri(), "story": story}
    found: dict[str, Any] = json.loads(javascript.run(code))
    stamped = []
    for one in found["said"]:
        fields = {name: one["clock"][name] for name in ("touch_ms", "sent_ms", "received_ms", "basis")}
        exchange = Exchange(**fields, host_ns=round(one["clock"]["host_ns"]))
        stamped.append((stamp_exchange(exchange, now_ns=round(found["now_ns"])), round(one["truth_ns"])))
    return stamped


def test_a_page_whose_clock_stood_still_says_no_wrong_time() -> None:
    """A page's clock does not count while a tablet sleeps: no exchange from before tells a touch after that."""
    stamps = told(
        """
        await page.exchange();
        wait(5000);
        sleep(180_000);
        wait(2000);
        const touch = page.touchNow();
        const truth = world.host_ms;
        say(touch, truth, page.clockOf(touch)); // before anything was asked again
        wait(4000);
        world.way_ms = 20; // the network is slower now: the exchange of before looks better
        await page.exchange();
        say(touch, truth, page.clockOf(touch));
        """
    )
    assert [found.basis for found, _ in stamps] == ["wall", "page"]
    for found, truth_ns in stamps:
        assert abs(found.host_ns - truth_ns) <= found.uncertainty_ns
    assert stamps[1][0].uncertainty_ns < 50_000_000


def test_a_wall_clock_that_is_set_moves_no_touch_of_a_page_that_is_gone() -> None:
    ((found, truth_ns),) = told(
        """
        await page.exchange();
        wait(60_000);
        const touch = page.touchNow();
        const truth = world.host_ms;
        const clock = page.clockOf(touch);
        wait(60_000);
        world.wall_ms -= 30_000; // the network is back, and with it the right time
        await later.exchange();
        say(touch, truth, later.clockOf(touch, clock));
        """
    )
    assert found.basis == "page"
    assert abs(found.host_ns - truth_ns) <= found.uncertainty_ns < 20_000_000


def test_a_computer_that_was_started_anew_is_asked_again() -> None:
    ((found, truth_ns),) = told(
        """
        await page.exchange();
        const touch = page.touchNow();
        const clock = page.clockOf(touch);
        wait(1000);
        world.clock_id = "boot-2";
        await later.exchange();
        say(touch, world.host_ms - 1002, later.clockOf(touch, clock));
        """
    )
    assert found.basis == "wall"
    assert abs(found.host_ns - truth_ns) <= found.uncertainty_ns
