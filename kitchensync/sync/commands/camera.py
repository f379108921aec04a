"""The command `sync-camera`: measure when a camera's pictures are taken on its gyroscope's time."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from kitchensync.shell.progress import Bar
from kitchensync.shell.terminal import headline
from kitchensync.storage.options.given_path import given_path
from kitchensync.storage.options.output_options import OutputFolder
from kitchensync.sync.recording.camera_latency import keep, measure_file

LONGEST_S = 60.0
"""Length of the measured part of a film."""


@click.command("sync-camera")
@click.argument("file", type=given_path(exists=True, dir_okay=False))
@click.option(
    "--data",
    type=OutputFolder(exists=True),
    help="Folder of recordings to keep the result in.  [default: only show it]",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def sync_camera(file: Path, data: Path | None, as_json: bool) -> None:
    """Measure a camera's picture latency: image rotation against its own gyroscope.

    FILE is a clip of 20 to 30 s in the mode that is used for recording, stabilisation off, in which the camera is
    turned briskly about all axes in a well-lit room. With --data the result is kept there for camera and mode, and
    `sync` uses it for every recording in that folder instead of +-15 ms.

    \b
    Example:
      kitchensync sync-camera GX010042.MP4 --data data
    """
    with Bar(file.name, unit="s") as bar:
        answer = measure_file(file, seconds=LONGEST_S, progress=bar.show)
    if data is not None and answer["status"] == "measured":
        answer["stored"] = str(keep(answer, data))
    click.echo(json.dumps(answer)) if as_json else _show(answer, data)
    if answer["status"] != "measured":
        sys.exit(1)


def _show(answer: dict[str, Any], data: Path | None) -> None:
    """Print the result for people."""
    camera = f"{answer['model'] or 'camera'} {answer['serial'] or 'without serial number'}, {answer['mode']}"
    if answer["status"] != "measured":
        headline(f"refused  {camera}", "red")
        for reason in answer["reasons"]:
            click.echo(f"  - {reason}")
        return
    evidence, late_ms = answer["evidence"], answer["latency_ms"]
    headline(f"measured  {camera}", "green")
    when = f"{abs(late_ms):.1f} ms {'later' if late_ms >= 0 else 'earlier'}"
    click.echo(f"  pictures are taken {when} than their stamps say, give or take {answer['sigma_ms']:.1f} ms")
    halves = " and ".join(f"{value:.1f}" for value in evidence["halves_ms"])
    click.echo(
        f"  R2 {evidence['r2']:.3f} over {evidence['pairs_used']} pictures; halves of the clip: {halves} ms"
    )
    kept = f"kept in {answer['stored']}" if answer["stored"] else "not kept: --data FOLDER lets sync use it"
    click.echo(f"  {kept}")
