"""The command `plan-media`."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from math import isnan
from pathlib import Path
from typing import Any

import click

from kitchensync.storage.shell.answer import Answer, answers
from kitchensync.storage.shell.given_path import given_path


class Amount(click.FloatRange):
    """A number of something that there is."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> float:
        """Refuse what is no number, too."""
        if isnan(number := super().convert(value, parameter, context)):
            self.fail(f"{value!r} is no number", parameter, context)
        return float(number)


AMOUNT = Amount(min=0.01, max=1e6)
NO_RIG = {"hololens": ("any",), "gopro": ("http://any",)}
"""One headset and one camera, wherever they are."""


def _supply(flag: str, usual: float, words: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare what a lab has of one piece each; see `Supplies`."""
    return click.option(flag, type=AMOUNT, default=usual, show_default=True, help=words)


@click.command("plan-media")
@click.option("--minutes", type=AMOUNT, required=True, help="Length of one recording in minutes.")
@click.option("--recordings", type=click.IntRange(1, 1_000_000), required=True, help="How many recordings.")
@click.option(
    "--rig",
    type=given_path(exists=True),
    help="rig.toml that names devices and settings; default: one headset with its default streams, one camera.",
)
@click.option(
    "--link", type=click.Choice(["wifi", "wired"]), default=None, help="How the headsets are connected."
)
@click.option("--data", type=given_path(exists=True), help="Folder whose disk must have room for all of it.")
@_supply(
    "--camera-mbit-per-s",
    60.0,
    "Bit rate of a camera's film in Mbit/s: 4K30 is 60, up to 120 where its bit rate is set to high.",
)
@_supply("--camera-battery-minutes", 70.0, "Minutes that a camera's battery lasts.")
@_supply("--headset-battery-minutes", 120.0, "Minutes that a headset's battery lasts.")
@_supply("--card-gb", 128.0, "Size of a camera's card in GB.")
@_supply(
    "--fetch-mb-per-s", 30.0, "Rate in MB/s at which films are fetched from a camera: 2 to 35 were seen."
)
@answers("plan-media/1")
def plan_media(
    minutes: float, recordings: int, rig: Path | None, link: str | None, data: Path | None, **supplies: float
) -> Answer:
    """Estimate what sessions need: GB per device, batteries, cards, hours to download the videos, disk.

    Sizes are what the streams are told to send; what compresses on disk takes less. Exit code 1 when the disk of
    --data has no room for them.

    \b
    Example:
      kitchensync plan-media --minutes 20 --recordings 12
    """
    from kitchensync.capture.doctor.media_plan import Supplies, media_plan
    from kitchensync.capture.rig.rig_file import no_options, order_from

    given = {"rig": rig} if rig else NO_RIG
    options = no_options() | given | {"link": link, "data": data or Path(), "start_timeout": 0.0}
    plan = media_plan(order_from("plan", options), minutes, recordings, Supplies(**supplies))
    if data is None:
        return Answer(plan, _show)
    free = shutil.disk_usage(data).free
    fits = plan["bytes"] <= free
    lacking = f"{data} has {free / 1e9:.1f} GB free, {plan['bytes'] / 1e9:.1f} GB are wanted; free some space"
    return Answer(plan | {"free_bytes": free, "fits": fits}, _show, [] if fits else [lacking], not fits)


def _show(plan: dict[str, Any]) -> None:
    from kitchensync.storage.shell.answer import show_table, size_words

    columns = ("device", "each", "all", "batteries", "swaps", "inside one", "cards", "hours to fetch")
    rows = [
        (
            name,
            size_words(row["bytes_each"]),
            size_words(row["bytes"]),
            row["batteries"],
            row["battery_swaps"],
            row["swaps_inside"],
            row.get("cards", ""),
            f"{row['fetch_hours']:.1f}" if "fetch_hours" in row else "",
        )
        for name, row in plan["devices"].items()
    ]
    show_table(columns, rows)
    hours = plan["recordings"] * plan["minutes"] / 60
    click.echo(
        f"{plan['recordings']} recordings, {hours:.1f} hours: {size_words(plan['bytes'])} on disk, "
        f"{plan['fetch_hours']:.1f} hours to fetch the films"
    )
    if plan["not_counted"]:
        click.echo(f"not counted, their size is not known: {', '.join(plan['not_counted'])}")
