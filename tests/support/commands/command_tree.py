"""Every command without commands of its own, by its name as it is typed: `graph orders`; and how to call it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from kitchensync.cli import main


def commands_below(group: click.Group, before: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield the commands of a group with their names."""
    context = click.Context(group)
    for word in group.list_commands(context):
        command = group.get_command(context, word)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands_below(command, f"{before}{word} ")
        else:
            yield f"{before}{word}", command


COMMANDS = dict(commands_below(main))

RECORDING, FILE, FOLDER = "RECORDING", "FILE", "FOLDER"
"""Placeholders for the path in a row: what the command takes there."""
GRAPH = str(Path(__file__).parents[3] / "kitchensync" / "examples" / "recipes" / "tea_and_toast.json")

ROWS: dict[str, list[str]] = {
    "list": [FOLDER],
    "info": [RECORDING],
    "card": [RECORDING],
    "batch": ["verify", RECORDING],
    "verify": [RECORDING],
    "archive": [RECORDING],
    "move": [RECORDING, "--to", "STORE"],
    "upload": [RECORDING, "file://WRITTEN/cloud"],
    "redact": [RECORDING, "--reason", "a visitor"],
    "withdraw": [RECORDING],
    "consent": [RECORDING, "--reference", "form", "--scopes", "annotate", "--by", "op"],
    "sync": [RECORDING, "--jobs", "1"],
    "sync-camera": [FILE],
    "side-by-side": [RECORDING, "--out", "WRITTEN/out.mp4", "--to", "0.4"],
    "align": ["--hololens", FILE, "--gopro", FILE],
    "report": [RECORDING],
    "graph agree": [FILE, GRAPH],
    "graph check": [FILE],
    "graph convert": [FILE, "--to", "dot"],
    "graph hints": [FILE, "--step", "1"],
    "graph orders": [FILE],
    "graph score": [FOLDER],
    "graph script": [FILE],
    "adopt": ["film-1", FILE, "--data", "WRITTEN/data"],
    "restore": [FILE, "--data", "WRITTEN/data"],
    "take-dump": [FILE, "--data", "WRITTEN/data"],
    "annotations import": [FOLDER, "--data", "WRITTEN/data"],
    "annotate export": [RECORDING, "--out", "WRITTEN/out"],
    "annotate push": [RECORDING, "--url", "http://127.0.0.1:9", "--token-file", GRAPH],
    "annotate pull": [RECORDING, "--url", "http://127.0.0.1:9", "--token-file", GRAPH],
    "annotate read": [FILE],
    "annotate agree": [FILE],
    "annotate accept": [RECORDING, "--annotation", "1"],
    "release captaincook4d": [RECORDING, "--out", "WRITTEN/set"],
    "release split": [RECORDING, "--kind", "type", "--ratio", "1,0,0", "--seed", "1", "--out", "WRITTEN/out"],
    "release stats": [RECORDING],
    "release check": [FOLDER],
    "release push": [FOLDER, "--to", "STORE"],
    "export localization": [RECORDING, "--splits", FOLDER, "--out", "WRITTEN/out"],
    "export seconds": [RECORDING, "--out", "WRITTEN/out.csv"],
    "export frames": [RECORDING, "--out", "WRITTEN/out"],
    "export features": [RECORDING, "--out", "WRITTEN/out"],
    "export steps": [RECORDING, "--out", "WRITTEN/out.csv"],
    "export opinions": [RECORDING, "--out", "WRITTEN/out.json"],
    "export windows": [RECORDING, "--out", "WRITTEN/out.json"],
    "export promqa": [RECORDING, "--out", "WRITTEN/out.json"],
    "export assembly": [FILE, FOLDER, "--out", "WRITTEN/out.json"],
    "export coherence": [RECORDING, "--out", "WRITTEN/out.json"],
    "export prompts": [RECORDING, "--out", "WRITTEN/out.json"],
    "export keysteps": [RECORDING, "--out", "WRITTEN/out.json"],
    "export tables": [RECORDING, "--out", "WRITTEN/out"],
    "cut": [RECORDING, "--to", "2", "--out", "WRITTEN/out"],
    "export lerobot": [RECORDING, "--out", "WRITTEN/out"],
    "export mcap": [RECORDING, "--out", "WRITTEN/out"],
    "measure spans": [FILE],
    "measure coherence": [FILE],
    "measure answers": [FILE, "--out", "WRITTEN/out.json"],
    "calibrate check": [RECORDING],
    "calibrate gopro": [FILE],
    "calibrate imu": [RECORDING],
    "calibrate rig": [RECORDING],
    "view": [RECORDING, "--save", "WRITTEN/out.rrd"],
    "cloud": [RECORDING, "--out", "WRITTEN/out.ply"],
    "mesh": [RECORDING, "--out", "WRITTEN/out.ply"],
    "overlay": [RECORDING, "--out", "WRITTEN/out.mp4"],
    "gopro inspect": [FILE],
    "gopro join": [FILE, "WRITTEN/out.mp4"],
    "gopro remember": ["front", "https://192.168.1.9", "--certificate", FILE],
    "gopro fetch": [RECORDING],
    "gopro import": [FOLDER, "--recording", RECORDING],
    "gopro free": [RECORDING],
    "replay": [RECORDING],
    "rig check": [FILE],
    "study coverage": [FILE, "--data", FOLDER],
    "study plan": [FILE, "--out", "WRITTEN/out.json"],
}
"""Arguments of every command that takes a path; WRITTEN and STORE are folders to write to."""
