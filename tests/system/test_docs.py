"""Commands that the documents show exist, with the options that are shown; the README's are also run."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import click
import pytest
from generate import BUILT, DOCS

from kitchensync.batch.jobs import options_of
from kitchensync.cli import main

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = sorted(path for folder in ("how-to", "explanation") for path in (DOCS / folder).glob("*.md"))
SHOWN = [
    (page.name, line.strip().removeprefix("$ "))
    for page in PAGES
    for line in re.findall(
        r"^(?:    |\$ )?(kitchensync [a-z].*)$", page.read_text(encoding="utf-8"), re.MULTILINE
    )
]


@pytest.mark.parametrize(("page", "line"), SHOWN)
def test_a_command_of_the_documents_is_one_that_we_have(page, line):
    words = shlex.split(line.partition(" #")[0].partition(" && ")[0].rstrip("\\ "))[1:]
    command: click.Command = main
    context = click.Context(main, info_name="kitchensync")
    while isinstance(command, click.Group) and not words[0].startswith("--"):
        name = words.pop(0)
        found = command.get_command(context, name)
        assert found is not None, f"{page}: there is no command {name!r}"
        command, context = found, click.Context(found, parent=context, info_name=name)
    given, _, passed_on = shlex.join(words).partition(" -- ")
    if passed_on:  # options of another command, as that one reads them
        assert options_of(given.split()[0], shlex.split(passed_on), context), line
    words = shlex.split(given)
    known = {
        option for parameter in command.params for option in [*parameter.opts, *parameter.secondary_opts]
    }
    unknown = [word for word in words if word.startswith("--") and word.partition("=")[0] not in known]
    assert unknown == [], f"{page}: {line}"


@pytest.fixture(scope="module")
def documents() -> dict[Path, str]:
    """Return the text of each page, those too that `make docs` builds."""
    pages = [*REPOSITORY.glob("*.md"), *DOCS.rglob("*.md")]
    built = {DOCS / name: make() for name, make in BUILT.items()}
    return {page: page.read_text(encoding="utf-8") for page in pages} | built


def test_pages_that_are_built_are_ignored_by_git_and_not_in_it():
    built = {f"docs/{name}" for name in BUILT}
    ignored = (REPOSITORY / ".gitignore").read_text().splitlines()
    assert {line[1:] for line in ignored if line.startswith("/docs/")} == built
    listed = ["git", "ls-files", *built]
    done = subprocess.run(listed, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout == ""


def test_links_between_the_documents_lead_somewhere(documents):
    """Links of pages at the root, which are read in the repository, lead to no page that is built."""
    for page, text in documents.items():
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
            path = (page.parent / target).resolve()
            is_built = path.is_relative_to(DOCS) and path.relative_to(DOCS).as_posix() in BUILT
            found = page.parent != REPOSITORY if is_built else path.exists()
            assert found, f"{page.name}: {target}"


def test_what_belongs_to_a_point_of_a_list_is_indented_as_the_site_wants_it(documents):
    """Behind a blank line the site's Markdown takes four spaces, fewer end the list; a fence stands alone."""
    strange = re.compile(r"\n\n {1,3}(?! )\S.*|\n(?:\d+\.|-) ```.*")
    found = {
        (page.name, one.strip())
        for page, text in documents.items()
        for one in strange.findall(re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))
    }
    assert found == set()


def test_files_that_the_documents_name_are_there(documents):
    named = re.compile(r"`((?:kitchensync|tests|benchmarks|examples|tools)/[\w/-]+\.py)`")
    gone = {
        (page.name, file)
        for page, text in documents.items()
        for file in named.findall(text)
        if not (REPOSITORY / file).exists()
    }
    assert gone == set()


def test_decisions_are_numbered_once():
    numbers = [path.name[:4] for path in (DOCS / "decisions").glob("*.md")]
    assert len(numbers) == len(set(numbers))
