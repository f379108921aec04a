"""The `kitchensync` command: a table of commands, each in the folder it belongs to, loaded when called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kitchensync.command_shell import Shell
from kitchensync.shell.lazy_group import Table

COMMANDS: dict[str, Table] = {
    "Record": {
        "record": ("capture.commands.record:record", "Record headsets and cameras until told to stop."),
        "rig": ("capture.commands.rig:rig", "Write or check rig.toml, the list of devices to record."),
        "doctor": ("capture.commands.doctor:doctor", "Check this computer or a headset before a session."),
        "gopro": ("capture.commands.gopro:gopro", "Inspect, join, download and import GoPro files."),
        "card": (
            "session_cards.card_command:card",
            "Show whether a recording is usable, while people are there.",
        ),
    },
    "Control a recording": {
        "stop": ("capture.commands.steer:stop", "Stop a running recording, or abort it with a reason."),
        "pause": ("capture.commands.steer:pause", "Begin a privacy pause of a running recording."),
        "resume": ("capture.commands.steer:resume", "End the privacy pause of a running recording."),
        "mark": ("capture.commands.steer:mark", "Mark a moment of a running recording."),
        "top": ("capture.commands.top:top", "Show the state of running recordings."),
        "recover": ("capture.commands.record:recover", "Finish recordings whose recorder crashed."),
    },
    "Check and store": {
        "list": ("storage.commands.look:list_recordings", "List the recordings below a folder, recursively."),
        "info": ("storage.commands.look:info", "Show what a recording contains."),
        "verify": ("storage.commands.storage:verify", "Recompute ledger and checksums from the files alone."),
        "archive": ("storage.commands.storage:archive", "Pack finished streams into one file each."),
        "move": (
            "storage.commands.storage:move",
            "Copy to network storage, verify, free local files by rule.",
        ),
        "upload": (
            "storage.commands.storage:upload",
            "Copy to cloud storage and read everything back.",
        ),
        "consent": (
            "storage.commands.consent:consent",
            "Enter what the participant of a recording agreed to.",
        ),
        "redact": ("storage.commands.redact:redact", "Destroy what was recorded in privacy pauses."),
        "withdraw": (
            "recipe_app.commands.withdraw:withdraw",
            "Destroy the recordings of a person who withdrew consent.",
        ),
        "batch": ("batch.command:batch", "Run one command on many recordings."),
    },
    "Synchronize": {
        "sync": ("sync.commands.sync:sync", "Align the clocks of a recording and index its frames."),
        "sync-camera": (
            "sync.commands.camera:sync_camera",
            "Measure a camera's frame latency relative to its gyroscope.",
        ),
        "align": ("sync.commands.sync:align", "Align two files by their motion, without a recording."),
        "report": ("sync.commands.sync:report", "Write report.html, a one-page summary of a recording."),
    },
    "View": {
        "side-by-side": (
            "sync.commands.film:side_by_side",
            "Write a video of all cameras to check an alignment by eye.",
        ),
        "view": ("calibration.commands.view:view", "Open a recording in Rerun, everything on one timeline."),
        "overlay": (
            "calibration.commands.space:overlay",
            "Draw hands, gaze and outlines into a camera's video.",
        ),
        "cloud": (
            "calibration.commands.space:cloud",
            "Write all depth as one coloured point cloud.",
        ),
        "mesh": ("calibration.commands.space:mesh", "Fuse depth into a mesh of the kitchen."),
        "calibrate": (
            "calibration.commands.calibrate:calibrate",
            "Calibrate lenses, mounts and inertial sensors.",
        ),
    },
    "Cook and study": {
        "app": ("recipe_app.commands.app_command:app", "Serve the recipe app for tablets and the desk."),
        "adopt": (
            "recipe_app.commands.adopt:adopt",
            "Make a recording from videos that were filmed elsewhere.",
        ),
        "backup": ("recipe_app.commands.keep:backup", "Back up the data of the recipe app, while it runs."),
        "restore": ("recipe_app.commands.keep:restore", "Restore a backup of the recipe app."),
        "take-dump": (
            "recipe_app.commands.keep:take_dump",
            "Import entries that a tablet saved without the server.",
        ),
        "graph": (
            "recipe_app.commands.graph.group:graph",
            "Check task graphs, draw orders and scripts, score recordings.",
        ),
        "study": ("recipe_app.commands.study:study", "Plan who cooks what, where and when."),
    },
    "Annotate": {
        "annotate": (
            "dataset.commands.annotate.annotate:annotate",
            "Exchange step times with other annotation tools.",
        ),
        "annotations": (
            "recipe_app.commands.keep:collection_commands",
            "Import and export folders of published annotations.",
        ),
    },
    "Data sets": {
        "cut": ("exports.cut_recording:cut", "Make a part of a recording a recording of its own."),
        "export": (
            "dataset.commands.export.export:export",
            "Export data in the formats that models read.",
        ),
        "release": (
            "recipe_app.commands.release_command:release",
            "Make data sets from recordings, and check them.",
        ),
        "measure": (
            "dataset.commands.measure:measure",
            "Score the answers of models with published metrics.",
        ),
    },
    "Try it": {
        "sample": ("capture.commands.sample:sample", "Make a small recording of the virtual kitchen."),
        "simulate": ("virtual_kitchen.cli:simulate", "Run a virtual kitchen that speaks the real protocols."),
        "replay": ("storage.commands.replay:replay", "Serve a recording as a headset on the real wire."),
        "rehearse": (
            "capture.commands.rehearse:rehearse",
            "Inject faults on purpose and account for every packet.",
        ),
    },
}
"""Section of the help -> command -> (where it lives, one line of help): `--help` imports none of them."""


@click.group(
    cls=Shell, sections=COMMANDS, context_settings={"help_option_names": ["-h", "--help"], "color": True}
)
@click.version_option(package_name="kitchensync")
@click.pass_context
def main(context: click.Context) -> None:
    """Record people cooking with many sensors, on one clock, with the cause of every gap.

    \b
    Example:
      kitchensync record take-1 --data data --hololens 192.168.1.20 --gopro http://172.27.111.51:8080
    """
    context.obj = {
        "mounts": _check_mounts,
        "check_place": _check_place,
        "shows_people": _shows_people,
        "replay": _replay,
    }


def _check_mounts(recording: Path) -> None:
    """Join the report with who knows about mounts: `sync` and `calibration` are siblings."""
    from kitchensync.calibration.jobs.mount_check import refresh

    refresh(recording)


def _check_place(out: Path) -> None:
    """Join the virtual kitchen, which stands apart, with the rule for outputs. Raises OutputRefused."""
    from kitchensync.storage.options.outputs import check_place

    check_place(out)


def _shows_people(film: Path) -> bool:
    """Join the virtual kitchen with consent: tell whether people are in a film. Raises Withdrawn, HoldsPauses."""
    from kitchensync.storage.consent import Purpose, require_consent_for_file
    from kitchensync.storage.redact.to_destroy import check_no_pauses_in

    manifest = require_consent_for_file(film.resolve(), Purpose.LOOK)
    check_no_pauses_in(film)
    return manifest is not None and manifest.get("virtual") is not True


def _replay(sent: Any, host: str) -> None:
    """Join a recording with the virtual headset, which stands apart. Raises KitchenError."""
    from kitchensync.virtual_kitchen.replaying import serve

    serve(sent, host)
