"""`kitchensync sample`: a small recording of the virtual kitchen for trying things out."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import click

from kitchensync.capture.served_kitchen import finish, simulator
from kitchensync.shell.answer import Answer, answers, size_words
from kitchensync.shell.progress import Bar
from kitchensync.storage.events import EventLog
from kitchensync.storage.manifest import edit_manifest
from kitchensync.storage.names import MANIFEST
from kitchensync.storage.options.output_options import OutputFolder
from kitchensync.storage.options.outputs import check_recording_place, written_folder

SEED, SECONDS = 1, 20  # the steps of DONE_S must fit in
STREAMS = "pv,gyroscope,spatial_input"
RIG = """\
pv_width = 424
pv_height = 240
[hololens]
hololens = "{host}"
[gopro]
gopro = "{camera}"
"""
RECIPE = {
    "name": "sandwich",
    "title": "Sandwich",
    "order": [1, 2, 3],
    "steps": {
        "1": {"label": "Slice-Slice the bread", "text": "Slice the bread"},
        "2": {"label": "Spread-Spread the butter on the bread", "text": "Spread the butter on the bread"},
        "3": {"label": "Cover-Cover it with a second slice", "text": "Cover it with a second slice"},
    },
    "edges": [[0, 1], [1, 2], [2, 3]],
    "planned": [],
    "strategy": "normal",
    "display": "step",
    "seed": 1,
}
DONE_S = {1: 6.0, 2: 13.0, 3: 18.5}
"""Times at which each step was marked as done, in seconds after the start."""
WRONG = 2
FIELDS = {"node": WRONG, "categories": [4], "description": "torn bread"}
"""The error of technique in the log."""


class MadeSample(NamedTuple):
    """The object `sample/1`."""

    recording: str
    path: Path
    seconds: float
    bytes: int


@click.command()
@click.argument("out", metavar="DIR", type=OutputFolder())
@answers("sample/1")
def sample(out: Path) -> Answer[MadeSample]:
    """Make a small recording of the virtual kitchen for trying things out: 20 seconds in about 5 MB.

    It has the front camera (424x240), gyroscope, head, hands and gaze of a headset, the video of a camera, and
    three steps of a recipe, the second of them done wrong. It takes half a minute, and 600 MB for temporary files.

    \b
    Example:
      kitchensync sample data/sample
    """
    check_recording_place(out)
    with written_folder(out, proof=MANIFEST) as part:
        _make(part, out.name)
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    return Answer(
        MadeSample(out.name, out, SECONDS, size),
        lambda _: click.echo(f"{out.name}: {SECONDS} s, {size_words(size)}, in {out}"),
    )


def _make(part: Path, name: str) -> None:
    """Record, align and archive in a temporary folder, then copy the result to `part`. Raises KitchenFailed."""
    import zmq  # noqa: F401  # `record` needs it: a missing extra is reported before anything starts

    with TemporaryDirectory(prefix="kitchensync-sample-") as folder, Bar(unit="steps") as bar:
        work = Path(folder)
        recording, rig = work / "data" / name, work / "rig.toml"
        bar.show(0, 3, f"recording {SECONDS} s")
        with simulator(work, SEED, SECONDS) as kitchen:
            rig.write_text(RIG.format(host=kitchen.host, camera=kitchen.gopro))
            arguments = ["record", name, "--data", str(recording.parent), "--rig", str(rig)]
            arguments += ["--streams", STREAMS, "--participant", "virtual-1", "--place", "virtual kitchen"]
            finish(arguments, work, kitchen.environment)
        _write_steps(recording)
        for done, verb in enumerate(("sync", "archive"), start=1):
            bar.show(done, 3, verb)
            finish([verb, str(recording)], work, {})
        for source in sorted(recording.rglob("*")):
            target = part / source.relative_to(recording)
            target.mkdir() if source.is_dir() else target.write_bytes(source.read_bytes())


def _write_steps(recording: Path) -> None:
    """Write the event log of a tablet on which three steps were marked as done."""
    from kitchensync.storage.rebuild.rebuilt_manifest import entered

    log = EventLog(recording, "tablet")
    with edit_manifest(recording) as manifest:
        started = manifest["started"]
        assert started is not None  # it has just been recorded
        begin_ns = started["host_ns"]
        log.append("recipe", host_ns=begin_ns, uncertainty_ns=0, body=RECIPE, op_id="recipe")
        for node, at_s in DONE_S.items():
            at_ns = begin_ns + round(at_s * 1e9)
            done = {"node": node, "device": "tablet"}
            if node == WRONG:
                error = {"error_id": "error", "device": "tablet", "fields": FIELDS}
                log.append("error", host_ns=at_ns - 10**9, uncertainty_ns=0, body=error, op_id="error")
            log.append("done", host_ns=at_ns, uncertainty_ns=0, body=done, op_id=f"done-{node}")
        manifest |= entered(recording)
