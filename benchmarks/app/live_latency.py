"""How old the pictures of the live page are when a browser has drawn them: from the arrival of a packet to the glass.

    python -P benchmarks/app/live_latency.py [--seconds 30]

A virtual headset at real time, `kitchensync record`, app and Chromium on this computer. The arrival of a packet is
the kernel's; the clock of the browser counts from the server's answer to the frame after the drawing. Prints one line
of JSON, age in ms by stream, median and 95 %; exit 1 when the median of all is 300 ms or more.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [
    str(ROOT / one)
    for one in ("tests/support/app", "tests/support/processes", "tools", "benchmarks/packet_path")
]

from browser import LANDSCAPE, Tablet, chromium  # noqa: E402
from cases import cases  # noqa: E402
from pictures import demo, facts_of, sign_in  # noqa: E402
from waiting import until  # noqa: E402
from whole import COMMAND, free_host, simulator, write_rig  # noqa: E402

from kitchensync.storage.names import MANIFEST  # noqa: E402

LIMIT_MS, NAME, MOST_S = 300.0, "encoded rig at 1x", 300
BEGIN = """async () => {
  const { ask } = await import("/static/core/server.js"), { newId } = await import("/static/core/ids.js");
  const body = { op_id: newId(), recipe: "tea_and_toast", seed: 1, folder: "take" };
  return (await ask("/api/v1/recordings", { body })).recording;
}"""
WATCH = """() => {
  window.ages = [];
  new MutationObserver((changes) => {
    const heard = performance.now();
    const drawn = changes.map(({ target }) => [target.getAttribute("aria-label"), Number(target.dataset.ageMs)]);
    requestAnimationFrame(() => {
      const since = performance.now() - heard;
      window.ages.push(...drawn.map(([name, age]) => [name, age + since]));
    });
  }).observe(document.body, { subtree: true, attributeFilter: ["data-age-ms"] });
}"""


def ages_on_the_page(seconds: float) -> list[tuple[str, float]]:
    """Record, look at the live page so long, and return stream and age, ms, of all that was drawn."""
    case, host = replace(next(one for one in cases() if one.name == NAME), seconds=MOST_S), free_host()
    with (
        tempfile.TemporaryDirectory(prefix="ks") as name,
        demo() as (url, said),
        chromium() as browser,
    ):
        folder, found = Path(name), re.search(r"recordings: (\S+)", said)
        assert found
        write_rig(folder / "rig.toml", case, host)
        headset = simulator(case, host, folder / "sim")
        command = [COMMAND, "record", "take", "--data", found[1], "--rig", str(folder / "rig.toml"), "--json"]
        recorder = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            until((Path(found[1]) / "take" / MANIFEST).exists, "the recording")
            return looked(browser, url, said, seconds)
        finally:
            for process in (recorder, headset):
                process.terminate()
                process.wait()


def looked(browser: Any, url: str, said: str, seconds: float) -> list[tuple[str, float]]:
    """Begin a cooking on the tablet, open the live page at the desk, and return what was drawn there."""
    pin, code, invite = facts_of(said)
    tablet = Tablet(browser.new_context(viewport=LANDSCAPE).new_page(), url)
    tablet.pair(code)
    tablet.sign_in("Basil", pin)
    recording = tablet.page.evaluate(BEGIN)
    tablet.page.close()
    page = browser.new_context(viewport=LANDSCAPE).new_page()
    sign_in(page, invite)
    page.goto(f"{url}desk/recordings/{recording}/live")
    page.locator("canvas").first.wait_for()
    page.evaluate(WATCH)
    page.wait_for_timeout(1e3 * seconds)
    return [(name, age) for name, age in page.evaluate("() => window.ages")]


def main() -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=30.0)
    seconds = parser.parse_args().seconds
    drawn = ages_on_the_page(seconds)
    by_stream = {
        name: [age for of, age in drawn if of == name] for name in sorted({name for name, _ in drawn})
    }
    row = {
        name: {
            "a_second": round(len(ages) / seconds, 1),
            "p50_ms": round(float(np.median(ages))),
            "p95_ms": round(float(np.percentile(ages, 95))),
        }
        for name, ages in (by_stream | {"all": [age for _, age in drawn]}).items()
        if ages
    }
    print(json.dumps(row))
    return int("all" not in row or row["all"]["p50_ms"] >= LIMIT_MS)


if __name__ == "__main__":
    sys.exit(main())
