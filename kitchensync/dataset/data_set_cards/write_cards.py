"""Write the cards of a data set folder, and the checksums of all its files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kitchensync.dataset.data_set_cards import (
    data_dictionary,
    download_data_set,
    load_data_set,
    verify_data_set,
)
from kitchensync.dataset.data_set_cards.about import About
from kitchensync.dataset.data_set_cards.card_facts import Facts
from kitchensync.dataset.data_set_cards.croissant import as_croissant
from kitchensync.dataset.data_set_cards.readme import READERS, as_licence, as_readme
from kitchensync.dataset.pages.release_pages import render
from kitchensync.dataset.source.data_set import ReleasedMember
from kitchensync.dataset.source.data_set_folder import read_data_set
from kitchensync.dataset.source.sums import SUMS, hashes_of, sums_of
from kitchensync.sensors.gopro.files.media import open_container
from kitchensync.storage.options.outputs import write_into

PREVIEW = "previews/{}.jpg"
LICENCE = "LICENSE"
WIDTH_PX = 320
READER_MODULES = dict(zip(READERS, (load_data_set, verify_data_set), strict=True))
SMALL_FILMS = ("gopro_360p", "gopro_720p")


def write_cards(
    out: Path,
    about: About,
    members: list[ReleasedMember],
    names: Iterable[str],
    *,
    is_virtual: bool,
    force: bool,
) -> tuple[int, int]:
    """Write cards and checksums beside the files `names` of a data set; return the number of files and bytes.

    Raises OutputRefused.
    """
    pictures = {}
    for member in members:
        film = next((member["streams"][kind] for kind in SMALL_FILMS if kind in member["streams"]), None)
        if film is not None and (out / film).is_file():
            pictures[PREVIEW.format(member["published_id"])] = _middle(out / film)
    write_into(out, pictures, force=force)
    hashes = hashes_of(out, [*names, *pictures])
    sizes = {name: (out / name).stat().st_size for name in hashes}
    facts = Facts(about, read_data_set(out), members, hashes, sizes, is_virtual, out.name)
    shown = {name.removeprefix("previews/").removesuffix(".jpg"): name for name in pictures}
    cards = {
        "README.md": as_readme(facts).encode(),
        "croissant.json": as_croissant(facts).encode(),
        "index.html": render("index.html.j2", facts=facts, pictures=shown).encode(),
        "download.py": Path(download_data_set.__file__).read_bytes(),
    }
    if facts.holds_recordings:
        cards |= {name: Path(str(module.__file__)).read_bytes() for name, module in READER_MODULES.items()}
    if any(name.endswith(".npz") for name in hashes):
        cards[data_dictionary.PLACE] = data_dictionary.as_json().encode()
    if not any(name.startswith(LICENCE) for name in hashes):
        cards[LICENCE] = as_licence(facts).encode()
    write_into(out, cards, force=force)
    sums = sums_of(hashes | hashes_of(out, cards))
    write_into(out, {SUMS: sums.encode()}, force=force)
    written = [*hashes, *cards, SUMS]
    return len(written), sum((out / name).stat().st_size for name in written)


def _middle(film: Path) -> bytes:
    """Decode the key frame before the middle of a film."""
    import cv2

    with open_container(film) as source:
        stream = source.streams.video[0]
        source.seek(int((source.duration or 0) / 2), backward=True)
        picture = next(source.decode(stream)).to_ndarray(format="bgr24")
    height = round(picture.shape[0] * WIDTH_PX / picture.shape[1])
    small = cv2.resize(picture, (WIDTH_PX, height), interpolation=cv2.INTER_AREA)
    done, content = cv2.imencode(".jpg", small)
    if not done:
        raise RuntimeError(f"{film}: no picture of it could be written")
    return bytes(content)
