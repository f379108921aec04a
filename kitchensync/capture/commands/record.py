"""The commands `record` and `recover`."""

from __future__ import annotations

import contextlib
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from kitchensync.storage.options.data_folder import RULE, data_option, default_data
from kitchensync.storage.options.given_path import given_path
from kitchensync.storage.options.output_options import OutputFolder


@click.command()
@click.argument("recording", metavar="ID")
@data_option("Folder of all recordings.")
@click.option("--rig", type=given_path(exists=True), help="rig.toml that names the devices to record.")
@click.option("--hololens", multiple=True, metavar="[NAME=]HOST", help="A headset; may be repeated.")
@click.option(
    "--gopro", multiple=True, metavar="[NAME=]URL", help="A camera, http://host:port; may be repeated."
)
@click.option("--streams", metavar="A,B,...", help="Only these streams, by full or last name.")
@click.option(
    "--link",
    type=click.Choice(["wifi", "wired"]),
    default=None,
    help="How the headsets are connected; determines how their video is compressed.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    help="Length of the recording in seconds, from the first packets on.",
)
@click.option(
    "--start-timeout",
    default=30.0,
    show_default=True,
    help="Seconds to wait for the first packets before giving up.",
)
@click.option("--accept-version", metavar="A.B.C", help="Take exactly this hl2ss version.")
@click.option(
    "--redis", "redis_url", metavar="URL", help="Use this Redis or Valkey server instead of starting one."
)
@click.option(
    "--nas",
    multiple=True,
    type=OutputFolder(),
    help="Network store to copy to while recording; may be repeated.",
)
@click.option("--chunk-seconds", "chunk_s", default=10.0, hidden=True, help="Seal a file this often.")
@click.option("--retake-of", metavar="ID", help="The abandoned recording that this one replaces.")
@click.option("--consent", default="none", help="Reference of the consent, kept with the data.")
@click.option("--participant", default="", help="Pseudonym of the person who cooks.")
@click.option("--place", default="", help="Name of the kitchen.")
@click.option(
    "--override",
    default="",
    metavar="REASON",
    help="Begin although streams or cameras are missing after --start-timeout; the reason is kept.",
)
@click.option(
    "--strict", is_flag=True, help="Give exit code 1 also for WARN or a store without a complete copy."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end.")
def record(recording: str, as_json: bool, strict: bool, **options: Any) -> None:
    """Record the devices as ID until the time is up, Ctrl-C, `stop`, or the devices end the session.

    \b
    Example:
      kitchensync record take-1 --data data --hololens 192.168.1.20 --seconds 60
    """
    from kitchensync.capture.process.fork_server import ForkServer
    from kitchensync.capture.rig.rig_file import order_from
    from kitchensync.capture.session.child_processes import WORKER
    from kitchensync.capture.session.recording_session import record as run
    from kitchensync.capture.session.stream_lines import RecordingProgress
    from kitchensync.capture.worker import work
    from kitchensync.storage.commands.storage import show
    from kitchensync.storage.copies.store_states import StoreState
    from kitchensync.storage.verify import keep_verdict, verify

    with ForkServer(WORKER, work) as forks:  # first, because it cannot fork once there are threads
        order = order_from(recording, options)
        with RecordingProgress(order.recording, order.seconds, enabled=not as_json) as progress:
            result = run(order, progress.update, forks)
    for warning in result.warnings:
        click.echo(f"warning: {warning}", err=True)
    checked = verify(result.path)
    with contextlib.suppress(OSError):  # only a cache for the summary of the folder
        keep_verdict(result.path, checked)
    if as_json:
        keys = {key: value for key, value in checked.items() if key not in ("schema", "recording")}
        answer = {
            "schema": "record/1",
            "recording": recording,
            "path": str(result.path),
            "ended": result.outcome.reason,
            "restarts": result.outcome.restarts,
            **keys,
            "stores": [asdict(store) for store in result.stores],
        }
        click.echo(json.dumps(answer))
    else:
        show(checked)
        click.echo(f"recorded in {result.path}")
    for store in result.stores:
        click.echo(store.words, err=True)
    if result.waiting is not None:
        raise result.waiting
    is_clean = checked["status"] == "PASS" and all(
        store.state == StoreState.COPIED for store in result.stores
    )
    if checked["status"] == "FAIL" or (strict and not is_clean):
        sys.exit(1)


@click.command()
@click.option("--data", type=given_path(exists=True), help=f"Folder of all recordings  [default: {RULE}]")
@click.option(
    "--rebuild",
    type=given_path(exists=True),
    metavar="PATH",
    help="A recording whose recording.json is lost.",
)
@click.option(
    "--mine", is_flag=True, help="Also recover your recordings that another computer or user left open."
)
def recover(data: Path | None, rebuild: Path | None, mine: bool) -> None:
    """Finish recordings whose recorder crashed or could not store everything: store the packets still queued.

    The next `record` into the same folder does this automatically. With --rebuild a lost recording.json is taken
    from a copy, or rebuilt from the other files of that recording; `verify` then reports what could not be rebuilt.
    With --mine recordings of another computer or of another user of this one are recovered too; never use it for
    recordings that you received, because the files beside them can run any program.

    \b
    Example:
      kitchensync recover --data data
      kitchensync recover --rebuild data/take-1
    """
    if data is not None and rebuild is not None:
        raise click.UsageError("give either --data or --rebuild")
    if rebuild is not None:
        _rebuild(rebuild)
        return
    from kitchensync.capture.session.recover import recover_all

    recovered = recover_all(data or default_data(), accept_foreign=mine)
    for path in recovered.paths:
        click.echo(f"{path.name} is recovered; check it with `kitchensync verify {path}`")
    for line in recovered.failures:
        click.echo(f"kitchensync: {line}", err=True)
    if recovered.failures:
        sys.exit(1)
    if not recovered.paths:
        click.echo("nothing to recover")


def _rebuild(recording: Path) -> None:
    from kitchensync.capture.session.rebuild import rebuild

    rebuilt, has_queue = rebuild(recording)
    if rebuilt.copy is not None:
        click.echo(f"{recording.name}: recording.json is taken from {rebuilt.copy}")
    else:
        click.echo(f"{recording.name}: recording.json is rebuilt; unknown: {', '.join(rebuilt.unknown)}")
    if has_queue:
        click.echo(f"packets may wait in its queue: run `kitchensync recover --data {recording.parent}`")
    else:
        click.echo(f"check it with `kitchensync verify {recording}`")
