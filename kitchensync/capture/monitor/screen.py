"""Show running recordings on a terminal: problems first, then tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kitchensync.shell.answer import size_words

if TYPE_CHECKING:
    from kitchensync.capture.monitor.monitor import RecordingView

BARS = " ▁▂▃▄▅▆▇█"
STYLES = {"recording": "bold green", "starting": "yellow", "stopping": "yellow"}
SEVERITY_STYLES = {"alarm": "bold red", "warning": "yellow"}


def rate_line(rates_hz: Sequence[float], nominal_hz: float | None, width: int = 20) -> str:
    """Draw rates as bars; a full bar is the nominal rate, or the highest rate if there is none."""
    top = nominal_hz or max(rates_hz, default=0.0)
    if not top:
        return ""
    return "".join(BARS[min(round(rate / top * 8), 8)] for rate in rates_hz[-width:])


def screen(recordings: list[RecordingView]) -> RenderableType:
    """Return all recordings for the terminal."""
    if not recordings:
        return Text("nothing is being recorded")
    return Group(*(part for view in recordings for part in _recording(view)))


def _recording(view: RecordingView) -> list[RenderableType]:
    style = STYLES.get(view["health"], "bold red")
    parts: list[RenderableType] = [Text.assemble(f"{view['recording']}  ", (view["health"], style))]
    if view["news_s"] is None or view["health"] == "unknown":
        parts.append(Text("its recorder does not answer: its state is not known", style="bold red"))
    for finding in view["findings"]:
        style = SEVERITY_STYLES[finding["severity"]]
        parts.append(Text(f"{finding['operator']}; {finding['do']}", style=style))
    if "streams" in view:
        parts += [
            _streams(view),
            *_cameras(view),
            _disk(view),
            *_stores(view),
            *_clocks(view),
            _processes(view),
        ]
    return [*parts, Text("")]


def _streams(view: RecordingView) -> Table:
    table = Table("stream", "state", "packets/s", "nominal", "last", "packets", "not on disk", box=None)
    table.add_column("recent rates")
    severities = {finding["subject"]: finding["severity"] for finding in reversed(view["findings"])}
    for name, facts in view["streams"].items():
        style = SEVERITY_STYLES.get(severities.get(name, ""), "")
        table.add_row(
            Text(name, style=style),
            Text(str(facts["state"] or "starting"), style=style),
            f"{facts['rate_hz']:.1f}",
            f"{facts['nominal_hz'] or 0:g}",
            f"{facts['silent_s']:.1f} s",
            str(facts["received"] or 0),
            str(facts["waiting"]),
            rate_line(facts["rates_hz"], facts["nominal_hz"]),
        )
    return table


def _cameras(view: RecordingView) -> list[Text]:
    texts = {
        "battery_percent": "battery {} %",
        "minutes_left": "{:.0f} min on the card",
        "recorded_s": "{} s",
    }
    lines = []
    for name, facts in view["cameras"].items():
        values = [text.format(facts[key]) for key, text in texts.items() if facts[key] is not None]
        lines.append(Text(", ".join([f"{name}: {facts['state']}", *values])))
    return lines


def _disk(view: RecordingView) -> Text:
    disk = view["disk"]
    if not disk:
        return Text("disk: not checked yet")
    time_left = "hours" if disk["minutes_left"] is None else f"{disk['minutes_left']:.0f} min"
    return Text(f"disk: {size_words(disk['free_bytes'])} free, {time_left} left")


def _stores(view: RecordingView) -> list[Text]:
    return [
        Text(
            f"{store['target']}: {store['files_done']} of {store['files']} files copied, "
            f"{size_words(store['bytes'] - store['bytes_safe'])} to go"
        )
        for store in view["stores"]
    ]


def _clocks(view: RecordingView) -> list[Text]:
    return [
        Text(f"{name}: {facts['probes']} clock answers", style="dim")
        for name, facts in view["processes"].items()
        if facts["probes"] is not None
    ]


def _processes(view: RecordingView) -> Text:
    used = [
        f"{name} {facts['cpu_share'] * 100:.0f} % {size_words(facts['memory_bytes'])}"
        for name, facts in view["processes"].items()
        if facts["cpu_share"] is not None and facts["memory_bytes"] is not None
    ]
    return Text("CPU and memory: " + ", ".join(used), style="dim")
