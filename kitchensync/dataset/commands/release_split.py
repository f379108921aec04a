"""`kitchensync release split`: split a data set for training, validation and test."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path

import click

from kitchensync.dataset.commands.export_source import CORRECTED, STRICT, Assessed, read_source, status_of
from kitchensync.dataset.commands.options import SourcePath
from kitchensync.dataset.source.sums import refresh
from kitchensync.dataset.splits.rule import Rule, divide, normal_only
from kitchensync.dataset.splits.split_findings import check_split
from kitchensync.dataset.splits.split_kinds import PARTS, SplitReport
from kitchensync.shell.answer import Answer, answers, show_table
from kitchensync.storage.options.output_options import OutputFolder, output
from kitchensync.storage.options.outputs import write_into
from kitchensync.task_graphs.formats.graph_files import read_text
from kitchensync.task_graphs.formats.strict_json import Reader, load

KINDS = ("environment", "person", "recipes", "recordings", "steps", "type")
PLACE = "data_splits"
"""The folder of the lists inside a data set; its checksums are updated."""
SUPPLEMENT = "supplement"


class CheckedSplit(Assessed, SplitReport):
    """The object `release-split/1`."""

    faults: list[str]
    written: list[str]


@click.command()
@click.argument("folder", type=SourcePath())
@click.option("--kind", type=click.Choice(KINDS), required=True, help="What no two parts may share.")
@output("out", "--out", kind=OutputFolder(), required=True, help="Folder of the lists.")
@click.option(
    "--rule",
    metavar="FILE|supplement",
    help="JSON, part -> environments, persons, recipes or recordings; or the rule of the paper's supplement "
    "(environment, person).",
)
@click.option("--ratio", metavar="TRAIN,VAL,TEST", help="Shares of the three parts, such as 0.6,0.2,0.2.")
@click.option(
    "--seed", type=click.IntRange(0), help="Seed of the random draw; the same seed gives the same parts."
)
@CORRECTED
@STRICT
@answers("release-split/1")
def split(
    folder: Path,
    kind: str,
    out: Path,
    force: bool,
    rule: str | None,
    ratio: str | None,
    seed: int | None,
    corrected: bool,
    strict: bool,
) -> Answer[CheckedSplit]:
    """Split the data set in FOLDER for training, validation and test.

    Writes <kind>_data_split_combined.json and _normal.json, the latter without recordings with errors; nothing if a
    part shares with the test part what the kind separates. FOLDER may also hold recordings: those that may be
    released are divided. The published data set has its own rule; other data need --ratio and --seed, or --rule.
    Kitchens, persons and recipes are not divided; the largest are assigned first, and the seed decides between equal
    sizes. The published program divides steps in the order of the list, because its shuffle has no effect: this
    gives a warning, and --corrected --seed N shuffles them.

    \b
    Example:
      kitchensync release split our-kitchens --kind person --ratio 0.6,0.2,0.2 --seed 1 --out our-kitchens/data_splits
    """
    if corrected and (kind != "steps" or rule or ratio):
        raise click.UsageError("--corrected is for the published rule of steps: give --kind steps alone")
    chosen = _rule(rule, ratio, seed, corrected)
    source = read_source((folder,))
    data = source.data
    if (chosen is None or chosen.name == "published") and data.is_own:
        raise click.UsageError(
            "the published rule is not for your own data; give --ratio and --seed, or --rule"
        )
    recordings = list(data.annotations.recordings)
    divided = divide(kind, recordings, chosen or Rule("published"))
    findings = check_split(divided, data)
    files: dict[str, bytes] = {}
    if not findings.faults:
        for name, parts in (("combined", divided), ("normal", normal_only(divided, recordings))):
            content = parts.parts if parts.entries is None else parts.entries
            files[f"{kind}_data_split_{name}.json"] = json.dumps(content).encode()
    write_into(out, files, force=force)
    if out.name == PLACE:
        refresh(out.parent, [f"{PLACE}/{name}" for name in files])
    warnings = findings.warnings + source.warnings
    if kind == "steps" and chosen is None:
        warnings.append(
            "steps are cut in the order of the list, as published; --corrected --seed N shuffles them"
        )
    status = "FAIL" if findings.faults else status_of(warnings)
    failed = status == "FAIL" or (strict and status == "WARN")
    report: CheckedSplit = {
        "status": status,
        **findings.report,
        "faults": findings.faults,
        "warnings": warnings,
        "written": sorted(files),
    }
    return Answer(report, partial(_show, out), failed=failed)


def _rule(rule: str | None, ratio: str | None, seed: int | None, corrected: bool) -> Rule | None:
    if rule is not None and ratio is not None:
        raise click.UsageError("--rule and --ratio exclude each other; give one of them")
    is_random = ratio is not None or rule == SUPPLEMENT or corrected
    if is_random and seed is None:
        raise click.UsageError("give --seed too: a random split must be reproducible")
    if not is_random and seed is not None:
        raise click.UsageError(
            "--seed goes with --ratio, --corrected or --rule supplement; other splits are not random"
        )
    if ratio is not None:
        try:
            shares = [Fraction(share.strip()) for share in ratio.split(",")]
        except (ValueError, ZeroDivisionError):
            shares = []
        if len(shares) != 3 or min(shares) < 0 or sum(shares) != 1:
            raise click.BadParameter(f"{ratio!r}: not three shares that add up to 1", param_hint="--ratio")
        return Rule("ratio", ratio=(shares[0], shares[1], shares[2]), seed=seed)
    if rule is None:
        return Rule("published", seed=seed) if corrected else None
    return Rule(SUPPLEMENT, seed=seed) if rule == SUPPLEMENT else Rule("file", values=_values(Path(rule)))


def _values(path: Path) -> dict[str, list[str]]:
    if not path.is_file():
        raise click.BadParameter(f"{path}: there is no such file", param_hint="--rule")
    read = Reader(path.name)
    parts = read.object(load(read_text(path), path.name), "")
    read.known_keys(parts, set(PARTS), "")
    return {
        part: [
            str(value) if type(value) is int else read.text(value, part) for value in read.array(values, part)
        ]
        for part, values in parts.items()
    }


def _show(out: Path, report: CheckedSplit) -> None:
    parts: Mapping[str, Mapping[str, object]] = report["parts"]
    columns = ["recordings", "hours", "with_errors", "recipes", "persons", "environments"]
    rows = [[part, *(str(numbers[name]) for name in columns)] for part, numbers in parts.items()]
    show_table(["part", *columns], rows)
    for line in report["faults"] + report["warnings"] + report["notes"]:
        click.echo(line)
    click.echo(f"{report['status']}: {', '.join(report['written']) or 'nothing'} written to {out}")
