"""The cards of a data set: read by the tools that they are for, and by nobody's hand."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import http.server
import json
import re
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import made_data_sets
import pytest
from click.testing import CliRunner

from kitchensync.cli import main
from kitchensync.dataset.data_set_cards.about import RAI, BadAbout, parse_about

ABOUT = """
title = "Our kitchens: \\"tea\\" & more"
description = "Tea, four times.\\nFilmed in one kitchen."
licence = "CC-BY-4.0"
creators = ["A lab", "Another lab"]
url = "https://example.org/our-kitchens"
contact = "lab@example.org"
cite_as = "@misc{ours, title={Our kitchens}}"
published = 2026-11-23

[rai]
dataSocialImpact = "Helps people cook."
"""


@pytest.fixture(scope="module")
def data_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cards") / "our-kitchens"
    return made_data_sets.own_data_set(folder, parse_about(ABOUT, "about.toml"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_mlcroissant_accepts_the_card_and_reads_every_record(data_set: Path) -> None:
    mlcroissant = pytest.importorskip("mlcroissant", reason="not installed: pip install -e '.[dev]'")
    card = mlcroissant.Dataset(jsonld=data_set / "croissant.json")
    assert not card.metadata.ctx.issues.errors
    assert not card.metadata.ctx.issues.warnings
    steps = list(card.records(record_set="steps"))
    with (data_set / "annotation_csv/step_annotations.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(steps) == len(rows) == 8
    for step, row in zip(steps, rows, strict=True):
        assert step["steps/recording_id"].decode() == row["recording_id"]
        assert step["steps/description"].decode() == row["description"]
        assert step["steps/start_time"] == float(row["start_time"])
        assert step["steps/has_errors"] == (row["has_errors"] == "True")
    lengths = [one["recordings/duration_sec"] for one in card.records(record_set="recordings")]
    assert lengths == [5.0] * 4


def test_the_card_has_every_field_for_responsible_use_that_its_venue_asks_for(data_set: Path) -> None:
    card = json.loads((data_set / "croissant.json").read_text())
    needed = ("dataCollection", "dataBiases", "personalSensitiveInformation", "dataLimitations", "dataUseCases",
              "dataAnnotationProtocol", "dataReleaseMaintenancePlan")  # fmt: skip
    assert all(card[f"rai:{name}"] for name in needed)
    assert card["rai:dataSocialImpact"] == "Helps people cook."
    assert {key[4:] for key in card if key.startswith("rai:")} <= set(RAI)
    assert "http://mlcommons.org/croissant/RAI/1.0" in card["conformsTo"]
    for one in card["distribution"]:
        assert one["sha256"] == hashlib.sha256((data_set / one["contentUrl"]).read_bytes()).hexdigest()


def test_the_hub_s_reader_parses_the_readme(data_set: Path) -> None:
    hub = pytest.importorskip("huggingface_hub", reason="not installed: pip install -e '.[dev]'")
    card = hub.DatasetCard.load(data_set / "README.md")
    assert card.data.pretty_name == 'Our kitchens: "tea" & more'
    assert card.data.license == "cc-by-4.0"
    assert card.data.size_categories == ["n<1K"]
    (config,) = card.data.to_dict()["configs"]
    assert (data_set / config["data_files"]).is_file()
    assert "| Tea | 4 | 2 | 0.01 |" in card.text
    assert "`gopro_4k`: not asked for (4 recordings)" in card.text
    assert "lab@example.org" in card.text
    tops = {path.name for path in data_set.iterdir()} - {"README.md", "LICENSE", "previews"}
    assert all(f"| `{top}" in card.text for top in tops)


def test_the_checksums_are_of_every_file_as_sha256sum_reads_them(data_set: Path) -> None:
    done = subprocess.run(["sha256sum", "-c", "--quiet", "--strict", "SHA256SUMS"], cwd=data_set, check=False)
    assert done.returncode == 0
    named = {line.split("  ")[1] for line in (data_set / "SHA256SUMS").read_text().splitlines()}
    there = {path.relative_to(data_set).as_posix() for path in data_set.rglob("*") if path.is_file()}
    assert there - named == {"SHA256SUMS"}
    assert "LICENSE" in there


def test_the_page_shows_a_picture_of_each_recording_and_loads_nothing_from_elsewhere(data_set: Path) -> None:
    page = (data_set / "index.html").read_text()
    shown = re.findall(r'src="([^"]+)"', page)
    assert len(shown) == 4
    for path in shown:
        picture = cv2.imread(str(data_set / path))
        assert picture.shape == (192, 320, 3)
        assert picture[90, 160, 0] > 100  # blue, as the films are
    assert "http" not in page


def test_a_release_without_words_of_people_says_so(tmp_path: Path) -> None:
    folder = made_data_sets.own_data_set(tmp_path / "set", films=False)
    assert "all rights reserved" in (folder / "LICENSE").read_text()
    assert 'license_name: "not stated"' in (folder / "README.md").read_text()
    assert "license" not in json.loads((folder / "croissant.json").read_text())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("title = 3", "title: is not a text"),
        ("titel = 'x'", "titel: there are title"),
        ("creators = 'x'", "creators: is not a list"),
        ("[rai]\nbias = 'x'", "rai.bias: there are"),
        ("title = ", "is not TOML"),
    ],
)
def test_a_description_that_cannot_be_meant_is_refused_in_one_line(text: str, said: str) -> None:
    with pytest.raises(BadAbout, match=re.escape(said)) as refused:
        parse_about(text, "about.toml")
    assert "\n" not in str(refused.value)
    assert tomllib.loads(ABOUT)["licence"] == "CC-BY-4.0"


class Server(http.server.SimpleHTTPRequestHandler):
    """Serves a folder with ranges; breaks off in the middle of what `broken` names, once."""

    folder: Path
    broken: set[str]
    asked: list[tuple[str, str]]

    def do_GET(self) -> None:
        name = self.path.lstrip("/")
        content = (self.folder / name).read_bytes()
        begin = int((self.headers["Range"] or "bytes=0-")[6:-1])
        self.asked.append((name, self.headers["Range"] or ""))
        self.send_response(206 if begin else 200)
        self.send_header("content-length", str(len(content) - begin))
        self.end_headers()
        if name in self.broken:
            self.broken.remove(name)
            content = content[: len(content) // 2]
            self.close_connection = True
        self.wfile.write(content[begin:])

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def served(data_set: Path) -> Iterator[tuple[str, type[Server]]]:
    handler = type("Served", (Server,), {"folder": data_set, "broken": set(), "asked": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", handler
        server.shutdown()
        thread.join()


def fetch(data_set: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """Run the downloader of the data set as a stranger would: alone, with the standard library."""
    command = [sys.executable, "-I", "-S", str(data_set / "download.py"), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_downloader_goes_on_where_it_was_cut_and_proves_every_file(
    data_set: Path, served: tuple[str, type[Server]], tmp_path: Path
) -> None:
    address, handler = served
    film = made_data_sets.FILM.format("1_1")
    handler.broken.add(film)
    done = fetch(data_set, address, tmp_path / "copy")
    assert done.returncode == 0, done.stdout + done.stderr
    asked = [how for name, how in handler.asked if name == film]
    assert asked == ["", f"bytes={(data_set / film).stat().st_size // 2}-"]
    theirs = {p.relative_to(data_set): p.read_bytes() for p in data_set.rglob("*") if p.is_file()}
    ours = {
        p.relative_to(tmp_path / "copy"): p.read_bytes()
        for p in (tmp_path / "copy").rglob("*")
        if p.is_file()
    }
    assert ours == theirs
    handler.asked.clear()
    (tmp_path / "copy" / film).write_bytes(b"flipped")
    assert fetch(data_set, address, tmp_path / "copy").returncode == 0
    assert [name for name, _ in handler.asked] == ["SHA256SUMS", film]  # nothing is fetched twice


def test_the_downloader_takes_no_file_that_is_another_and_writes_nothing_outside(
    data_set: Path, served: tuple[str, type[Server]], tmp_path: Path
) -> None:
    address, handler = served
    forged = tmp_path / "forged"
    forged.mkdir()
    (forged / "SHA256SUMS").write_text(f"{'0' * 64}  README.md\n")
    (forged / "README.md").write_text("not what was promised")
    handler.folder = forged
    done = fetch(data_set, address, tmp_path / "copy")
    assert (done.returncode, (tmp_path / "copy" / "README.md").exists()) == (1, False)
    assert "is not what SHA256SUMS says" in done.stdout
    (forged / "SHA256SUMS").write_text(f"{'0' * 64}  ../outside\n")
    done = fetch(data_set, address, tmp_path / "copy")
    assert (done.returncode, (tmp_path / "outside").exists()) == (1, False)


class Endless(http.server.BaseHTTPRequestHandler):
    """Sends what it was told of a file, and for the others an answer without an end."""

    answers: dict[str, bytes]

    def do_GET(self) -> None:
        self.send_response(200)
        if (head := self.answers.get(self.path.lstrip("/"))) is not None:
            self.wfile.write(b"".join(self._headers_buffer) + head)  # type: ignore[attr-defined]
            return
        self.end_headers()
        with contextlib.suppress(OSError):
            while True:
                self.wfile.write(b"0" * 65536)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({}, "more than 67108864 bytes"),
        ({"SHA256SUMS": b"\r\n" + b"0" * 64 + b"  README.md\n"}, "does not state its length"),
        (
            {
                "SHA256SUMS": b"\r\n" + b"0" * 64 + b"  README.md\n",
                "README.md": b"content-length: 999999999999999\r\n\r\nendless",
            },
            "free on the disk",
        ),
        ({"SHA256SUMS": b"\r\n" + b"0" * 64 + b"  a\x1b[31m\n"}, "not a line of it"),
    ],
)
def test_the_downloader_takes_no_file_without_an_end(
    data_set: Path, tmp_path: Path, answers: dict[str, bytes], said: str
) -> None:
    handler = type("Sending", (Endless,), {"answers": answers})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        done = fetch(data_set, f"http://127.0.0.1:{server.server_address[1]}", tmp_path / "copy")
        server.shutdown()
        thread.join()
    assert (done.returncode, said in done.stdout + done.stderr) == (1, True), done.stdout + done.stderr
    assert not [path for path in (tmp_path / "copy").rglob("*") if path.is_file()]


def test_splits_made_later_keep_the_checksums_true(data_set: Path, tmp_path: Path) -> None:
    folder = made_data_sets.own_data_set(tmp_path / "set", films=False)
    words = [
        "--kind",
        "recordings",
        "--ratio",
        "0.5,0.25,0.25",
        "--seed",
        "1",
        "--out",
        folder / "data_splits",
    ]
    done = CliRunner().invoke(main, ["release", "split", str(folder), *map(str, words), "--force"])
    assert done.exit_code == 0, done.output
    assert (
        subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=folder, check=False).returncode == 0
    )
