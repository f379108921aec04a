"""`kitchensync release`: write recordings as a data set in the published form; check a data set."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, NotRequired

import click

from kitchensync.dataset.checks.check import check
from kitchensync.dataset.checks.check_private import private_words
from kitchensync.dataset.checks.release_faults import Difference, PrivateWord
from kitchensync.dataset.commands.export_source import Assessed, published_among, status_of
from kitchensync.dataset.commands.options import SourcePath
from kitchensync.dataset.commands.release_push import push
from kitchensync.dataset.commands.release_split import split
from kitchensync.dataset.commands.release_stats import stats
from kitchensync.dataset.data_set_cards.about import About, parse_about
from kitchensync.dataset.release import release as writer
from kitchensync.dataset.release.media_of_all import MediaOrder
from kitchensync.dataset.release.release import Released, Stated, other_files, release_again
from kitchensync.dataset.release.release_media import MEDIA
from kitchensync.dataset.source.data_set import ReleasedMember
from kitchensync.dataset.source.data_set_folder import is_published
from kitchensync.dataset.source.numbering import Numbering, parse_numbering
from kitchensync.dataset.source.own_members import LeftOut
from kitchensync.recipe_app.commands.app_options import DATABASE
from kitchensync.shell.answer import Answer, answers
from kitchensync.shell.progress import Bar, byte_bar
from kitchensync.shell.workforce_options import JOBS
from kitchensync.storage.batch.runner import Workforce
from kitchensync.storage.names import is_recording, recordings_in
from kitchensync.storage.options.data_folder import default_data
from kitchensync.storage.options.given_path import WITHOUT_CONSENT, given_path
from kitchensync.storage.options.output_options import OutputFolder, OutputPath, output
from kitchensync.storage.options.outputs import write_output
from kitchensync.task_graphs.formats.graph_files import read_text


class ReleasedDataSet(Assessed):
    """The object `release/1`."""

    recordings: list[ReleasedMember]
    left_out: list[LeftOut]
    files: int
    bytes: int
    no_splits: NotRequired[dict[str, str]]
    "Of own recordings: kind of split, and why there is none."
    notes: NotRequired[list[str]]
    corrected: NotRequired[list[str]]
    "Of a published folder: files that were corrected at the desk."


class CheckedDataSet(Assessed):
    """The object `release-check/1`."""

    differences: list[Difference]
    names_or_serials_found: list[PrivateWord]


@click.group()
def release() -> None:
    """Make data sets from recordings, split them, and check them.

    \b
    Example:
      kitchensync release captaincook4d data --out our-kitchens
      kitchensync release check our-kitchens
    """


for command in (split, stats, push):
    release.add_command(command)


@release.command("captaincook4d")
@click.argument("paths", nargs=-1, required=True, type=SourcePath())
@output("out", "--out", kind=OutputFolder(), required=True, help="Folder of the data set.")
@click.option(
    "--numbering",
    type=OutputPath(),
    help="Table of the published ids, not to be published itself [default: OUT.numbering.json].",
)
@click.option(
    "--media",
    default="360p",
    show_default=True,
    help="Films and synchronized data, separated by commas: 4k (the camera's own film without place and serial "
    "number), 720p, 360p (small films), hololens (the headset's streams on its camera's frames); nothing for none.",
)
@click.option(
    "--data",
    type=OutputFolder(),
    help="Data folder of the app: what was stated at its desk of recipes and participants is counted, what was "
    "corrected in a published folder counts  [default: around the recordings]",
)
@DATABASE
@click.option(
    "--about",
    type=given_path(exists=True, dir_okay=False),
    help="TOML: title, description, licence (SPDX id), creators, url, contact, cite_as, version, published, and the "
    "table rai with the properties of Croissant for responsible AI; it goes into the cards.",
)
@click.option("--strict", is_flag=True, help="Let WARN give exit code 1 too.")
@JOBS
@WITHOUT_CONSENT
@answers("release/1")
def captaincook4d(
    paths: tuple[Path, ...],
    out: Path,
    force: bool,
    numbering: Path | None,
    media: str,
    data: Path | None,
    database: str | None,
    about: Path | None,
    strict: bool,
    jobs: int | None,
    without_consent: str,
) -> Answer[ReleasedDataSet]:
    """Write recordings in the published form of CaptainCook4D.

    PATHS are recordings, or folders of them. What may not leave is left out and named. Run again, it goes on
    where it was interrupted; the ids stay. PATHS may also be one folder in the published form: its files come out
    byte for byte, but for what was corrected at the desk of the app over --data. Beside them are the cards:
    README.md for the Hugging Face hub, croissant.json, a page with previews, a downloader, SHA256SUMS.

    \b
    Example:
      kitchensync release captaincook4d data --out our-kitchens
    """
    kinds = _media(media)
    cards = parse_about(read_text(about), about.name) if about else About()
    if any(map(is_recording, out.glob("*"))):
        raise click.UsageError(f"{out} holds recordings; choose a separate folder for the data set")
    if published := published_among(paths):
        answer = _release_again(published, out, cards, data, database, force=force)
    else:
        table = numbering or out.with_name(f"{out.name}.numbering.json")
        stated = _stated(paths, data, database)
        order = MediaOrder(out.absolute(), kinds, force, without_consent)
        answer = _release_own(paths, order, cards, table, stated, Workforce(workers=jobs))
    if about is None:
        note = "no licence and no title are stated; write them into a TOML file and give it as --about"
        answer.setdefault("notes", []).append(note)
    failed = strict and answer["status"] == "WARN"
    return Answer(answer, partial(_show_release, out), failed=failed)


def _release_own(
    paths: tuple[Path, ...], order: MediaOrder, about: About, table: Path, stated: Stated, crew: Workforce
) -> ReleasedDataSet:
    recordings = [recording for path in paths for recording in recordings_in(path)]
    ids = parse_numbering(table.read_text(encoding="utf-8"), table.name) if table.exists() else Numbering()
    with Bar(unit="pictures") as bar:
        made = writer.release(
            recordings,
            order,
            ids,
            about,
            tell=bar.show,
            keep=lambda: write_output(table, ids.as_text().encode(), force=True),
            stated=stated,
            crew=crew,
        )
    notes = [f"used without consent: {name}" for name in made.not_agreed]
    return {**_summary(made, []), "no_splits": made.no_splits, "notes": notes}


def _stated(paths: tuple[Path, ...], data: Path | None, database: str | None) -> Stated:
    """Return a function that reads what was stated at the desk from the app's database, if there is one."""
    # The other commands of this group do not need the extra `app`, which these modules do.
    from kitchensync.recipe_app.commands.at_rest import memory, place_of
    from kitchensync.recipe_app.exchange.stated_facts import stated_of

    around = [data] if data else [folder for path in paths for folder in (path, path.parent)]
    places = [folder for folder in around if data or database or Path(place_of(folder, None)).is_file()]

    def stated(recipes: list[tuple[str, str]], people: list[str]) -> list[dict[str, Any]]:
        if not places:
            return []
        with memory(places[0], database) as tools:
            return stated_of(tools.records, recipes, people)

    return stated


def _release_again(
    folder: Path, out: Path, about: About, data: Path | None, database: str | None, *, force: bool
) -> ReleasedDataSet:
    """Release a published folder again, with the corrections of the app that imported it, if any."""
    from kitchensync.recipe_app.commands.at_rest import memory, place_of
    from kitchensync.recipe_app.exchange import published

    files = published.files_of(folder)
    corrected: list[str] = []
    warnings: list[str] = []
    place = place_of(data or default_data(), database)
    if data is not None or not isinstance(place, Path) or place.is_file():
        with memory(data or default_data(), database) as tools:
            collection = published.collection_of(files)
            if collection in published.collections(tools.records):
                exported = published.give_back(collection, tools.records)
                files, corrected, warnings = exported.files, exported.corrected, exported.warnings
    made = release_again(
        other_files(folder) | {name: text.encode() for name, text in files.items()}, out, about, force=force
    )
    return {**_summary(made, warnings), "corrected": corrected}


def _summary(made: Released, warnings: list[str]) -> ReleasedDataSet:
    return {
        "status": "WARN" if made.left_out or warnings else "PASS",
        "recordings": made.members,
        "left_out": made.left_out,
        "files": made.files,
        "bytes": made.bytes,
        "warnings": warnings,
    }


def _show_release(out: Path, answer: ReleasedDataSet) -> None:
    click.echo(
        f"{answer['status']}: {len(answer['recordings'])} recordings, {answer['files']} files in {out}"
    )
    for left_out in answer["left_out"]:
        click.echo(f"left out: {left_out['recording']}: {left_out['why']}")
    for recording in answer["recordings"]:
        for lacking in recording.get("lacking", []):
            click.echo(f"{recording['published_id']}: {lacking['said']}")
    for line in [*answer["warnings"], *answer.get("notes", [])]:
        click.echo(line)
    for kind, why in answer.get("no_splits", {}).items():
        click.echo(f"no split by {kind}: {why}")
    if "corrected" in answer:
        click.echo(f"corrected at the desk: {', '.join(answer['corrected']) or 'nothing'}")


def _media(text: str) -> tuple[str, ...]:
    kinds = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    if unknown := [kind for kind in kinds if kind not in MEDIA]:
        raise click.BadParameter(f"{unknown[0]!r}; there are {', '.join(MEDIA)}", param_hint="--media")
    return kinds


@release.command("check")
@click.argument("folder", type=given_path(exists=True, file_okay=False))
@click.option(
    "--against",
    type=SourcePath(),
    help="Folder of the recordings: what their manifests hold about devices and people must not be found. Or the "
    "published folder that was released again: known flaws count as warnings in files that are the same there.",
)
@click.option("--strict", is_flag=True, help="Let WARN give exit code 1 too.")
@answers("release-check/1")
def check_folder(folder: Path, against: Path | None, strict: bool) -> Answer[CheckedDataSet]:
    """Check a data set: form, checksums, ids, times, films, splits, cards, and that no name or place is in it.

    Times, coverage and alignment are computed as the verify.py of a data set does. What a stream does not cover is
    a warning.

    Flaws that published sets are known for (negative segments, repeats that overlap, tables that disagree) are
    differences in your own data and warnings in files of a published set.

    \b
    Example:
      kitchensync release check our-kitchens --against data
    """
    if not (folder / "annotation_json").is_dir():
        raise click.UsageError(f"{folder} is no data set: it has no folder annotation_json")
    published = against if against is not None and is_published(against) else None
    words = private_words(against) if against and not published else frozenset()
    with byte_bar() as tell:
        report = check(folder, words=words, published=published, tell=tell)
    failed = bool(report.differences or report.names)
    answer: CheckedDataSet = {
        "status": "FAIL" if failed else status_of(report.warnings),
        "differences": report.differences,
        "names_or_serials_found": report.names,
        "warnings": report.warnings,
    }
    failed = failed or (strict and answer["status"] == "WARN")
    return Answer(answer, partial(_show_check, folder), failed=failed)


def _show_check(folder: Path, answer: CheckedDataSet) -> None:
    for difference in answer["differences"]:
        click.echo(
            f"{difference['file']} {difference['where']}: {difference['got']} instead of {difference['want']}"
        )
    for match in answer["names_or_serials_found"]:
        click.echo(f"{match['file']}: holds {match['found']}")
    for line in answer["warnings"]:
        click.echo(line)
    click.echo(f"{answer['status']}: {folder}")
