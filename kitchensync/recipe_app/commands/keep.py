"""Commands on the app's data: `kitchensync backup`, `restore`, `take-dump` and `annotations`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

import click

from kitchensync.recipe_app.commands.app_options import DATA, DATABASE
from kitchensync.recipe_app.commands.at_rest import memory
from kitchensync.recipe_app.exchange import published
from kitchensync.recipe_app.exchange.app_withdrawals import note_backup
from kitchensync.recipe_app.exchange.dumps import MOST_BYTES, DumpOutcome, read_dump, take_in
from kitchensync.recipe_app.exchange.published_graphs import ImportedCollection, shelve_graphs
from kitchensync.recipe_app.store.backup import WITHDRAWALS, BackupManifest, CheckedBackup, back_up
from kitchensync.recipe_app.store.restore import restore as put_back
from kitchensync.shell.answer import Answer, answers
from kitchensync.shell.host_clock import utc_anchor
from kitchensync.shell.progress import Bar
from kitchensync.storage.installation.key import kept_key, take_folder
from kitchensync.storage.names import APP_FOLDER
from kitchensync.storage.options.given_path import given_path
from kitchensync.storage.options.output_options import OutputFolder, output, output_file
from kitchensync.storage.options.outputs import write_into
from kitchensync.task_graphs.formats.graph_files import read_bytes


class WrittenCollection(TypedDict):
    """The object `annotations-export/1`."""

    out: str
    written: list[str]
    corrected: list[str]
    "Recordings that were corrected at the desk."
    warnings: list[str]


NOT_LISTED = (
    "withdrawals after this backup was made are not known here: copy _app/withdrawals.jsonl of the installation that "
    "it is of into DATA/_app and start the app, or run `kitchensync withdraw` for them again"
)


@click.command()
@output_file("file")
@DATA
@DATABASE
@answers("backup/1")
def backup(file: Path, force: bool, data: Path, database: str | None) -> Answer[CheckedBackup]:
    """Back up the data of the recipe app to FILE, while it runs.

    People, tablets, every operation, voice notes, uploaded recipes, the list of withdrawals; not the recordings
    themselves. With --force FILE
    is replaced when the new one is whole and was read back; a kill in between leaves the old one.

    \b
    Example: kitchensync backup kitchen.backup --data recordings
    """
    place, recipes = _place(data, database)
    with Bar("backing up", unit="%") as bar:
        manifest = back_up(
            place,
            recipes,
            file,
            key=kept_key(data / APP_FOLDER),
            utc_ns=utc_anchor().utc_ns,
            tell=lambda share: bar.show(100 * share, 100),
            force=force,
        )
    note_backup(data / APP_FOLDER, file)
    return _answer("backup/1", file, manifest)


@click.command()
@click.argument("file", type=given_path(exists=True, dir_okay=False))
@click.option(
    "--without-key",
    is_flag=True,
    help="The app.key of the backup's installation is lost: take the log without its proof, rebuild its chain.",
)
@DATA
@DATABASE
@answers("restore/1")
def restore(file: Path, without_key: bool, data: Path, database: str | None) -> Answer[CheckedBackup]:
    """Restore a backup into a data folder or database that holds no data of the app yet.

    Every hash and the chain of the log are proven first; the chain needs the `_app/app.key` of the installation that
    the backup is of: copy it into DATA/_app before. Copy
    `_app/withdrawals.jsonl` too: what it lists is destroyed again. People sign in again; tablets stay paired.

    \b
    Example: kitchensync restore kitchen.backup --data recordings
    """
    place, recipes = _place(data, database)
    key = kept_key(data / APP_FOLDER)
    is_listed = (data / APP_FOLDER / WITHDRAWALS).exists()
    manifest = put_back(file, place, recipes, key=key, without_key=without_key)
    take_folder(data / APP_FOLDER)
    with memory(data, database):  # opening it destroys what is listed as withdrawn
        return _answer("restore/1", file, manifest, warnings=() if is_listed else (NOT_LISTED,))


@click.command("take-dump")
@click.argument("files", nargs=-1, required=True, type=given_path(exists=True, dir_okay=False))
@DATA
@DATABASE
@answers("take-dump/1")
def take_dump(files: tuple[Path, ...], data: Path, database: str | None) -> Answer[DumpOutcome]:
    """Import entries a tablet saved to a file while the server was unreachable. A second import changes nothing.

    \b
    Example: kitchensync take-dump kitchensync-dump.json --data recordings
    """
    outcome = _taken(files, data, database)
    counts = (
        f"{outcome.new} operations are new, {outcome.known} were here already, {outcome.sounds} voice notes"
    )
    return Answer(outcome, lambda _: click.echo(counts), [f"refused: {why}" for why in outcome.refused])


def _taken(files: tuple[Path, ...], data: Path, database: str | None) -> DumpOutcome:
    contents = [(read_bytes(path, most_bytes=2 * MOST_BYTES), path.name) for path in files]
    dumps = [read_dump(content.decode(errors="replace"), name) for content, name in contents]
    with memory(data, database) as tools:
        taken = [take_in(dump, tools.records, tools.intake, actor="", corrects=True) for dump in dumps]
    return DumpOutcome(
        operations=sum(outcome.operations for outcome in taken),
        new=sum(outcome.new for outcome in taken),
        known=sum(outcome.known for outcome in taken),
        sounds=sum(outcome.sounds for outcome in taken),
        refused=[why for outcome in taken for why in outcome.refused],
    )


@click.group("annotations")
def collection_commands() -> None:
    """Import folders of published annotations into the app, and export them.

    \b
    Example: kitchensync annotations import captaincook4d --data recordings
    """


@collection_commands.command("import")
@click.argument("folder", type=given_path(exists=True, file_okay=False))
@DATA
@DATABASE
@answers("annotations-import/1")
def import_folder(folder: Path, data: Path, database: str | None) -> Answer[ImportedCollection]:
    """Import FOLDER, in the form of CaptainCook4D, into the app: its recordings appear in the desk's list.

    \b
    Example: kitchensync annotations import captaincook4d --data recordings
    """
    with memory(data, database) as tools:
        files = published.files_of(folder)
        name = folder.name.encode(errors="replace").decode()[:40]  # a folder name need not be valid UTF-8
        taken: ImportedCollection = {
            **published.take_in(files, name, tools.records, actor=""),
            **shelve_graphs(files, tools.records, tools.shelf, actor=""),
        }
    counted = f"{taken['new']} operations and {len(taken['recipes'])} recipes are new"
    words = "\n".join([f"{taken['name']}: {taken['recordings']} recordings, {counted}", *taken["unusable"]])
    return Answer(taken, lambda _: click.echo(words))


@collection_commands.command("export")
@click.option("--collection", help="Its id, as the import printed it [default: the only one].")
@output("out", "--out", kind=OutputFolder(), required=True, help="Folder to write into.")
@DATA
@DATABASE
@answers("annotations-export/1")
def export_folder(
    collection: str | None, out: Path, force: bool, data: Path, database: str | None
) -> Answer[WrittenCollection]:
    """Write a folder of annotations from the app's log: byte for byte as it came, but for what the desk corrected.

    \b
    Example: kitchensync annotations export --data recordings --out captaincook4d-again
    """
    with memory(data, database) as tools:
        collections = list(published.collections(tools.records))
        only = collections[0] if len(collections) == 1 else ""
        exported = published.give_back(collection or only, tools.records)
        write_into(out, {path: text.encode() for path, text in exported.files.items()}, force=force)
    answer: WrittenCollection = {
        "out": str(out),
        "written": sorted(exported.files),
        "corrected": exported.corrected,
        "warnings": exported.warnings,
    }
    words = (
        f"{out}: {len(exported.files)} files, corrected recordings: {', '.join(exported.corrected) or 'none'}"
    )
    return Answer(answer, lambda _: click.echo(words), exported.warnings)


def _place(data: Path, database: str | None) -> tuple[Path | str, Path]:
    return database or data / APP_FOLDER / "app.db", data / APP_FOLDER / "recipes"


def _answer(
    schema: str, file: Path, manifest: BackupManifest, warnings: Sequence[str] = ()
) -> Answer[CheckedBackup]:
    words = f"{file}: {manifest['operations']} operations, log ends with {manifest['last_hash'][:12]}"
    answer: CheckedBackup = {**manifest, "schema": schema, "file": str(file), "warnings": list(warnings)}
    return Answer(answer, lambda _: click.echo(words), warnings)
