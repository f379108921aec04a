"""NOTICE names every installed library whose licence asks for more than a notice."""

from __future__ import annotations

import configparser
import re
from importlib.metadata import Distribution, distributions
from pathlib import Path

import yaml

NOTICE = (Path(__file__).resolve().parents[1] / "NOTICE").read_text(encoding="utf-8")
ASKING = re.compile(r"\b(?:[AL]?GPL|MPL|EPL|CDDL|EUPL)\b|Mozilla Public|GNU ", re.IGNORECASE)
LOCKS = Path(__file__).resolve().parents[1] / "requirements"


def licence_of(one: Distribution) -> str:
    """What a library says of its licence: the expression, or its classifiers."""
    said = one.metadata.get("License-Expression") or ""
    classifiers = one.metadata.get_all("Classifier") or []
    return said or "; ".join(line for line in classifiers if line.startswith("License"))


def test_every_such_licence_is_named() -> None:
    locked = "".join(path.read_text(encoding="utf-8") for path in LOCKS.glob("*.txt"))
    pinned = set(re.findall(r"^([\w.-]+)==", locked.lower(), re.MULTILINE))
    asking = {
        one.metadata["Name"].lower()
        for one in distributions()
        if one.metadata["Name"].lower() in pinned and ASKING.search(licence_of(one))
    }
    assert "psycopg" in asking  # the reader of licences reads
    named = set(re.findall(r"[a-z0-9][a-z0-9_.-]*", NOTICE.lower()))
    assert asking - named == set()


def test_the_citation_is_of_this_package() -> None:
    root = Path(__file__).resolve().parents[1]
    cited = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    config = configparser.ConfigParser()
    config.read(root / "setup.cfg", encoding="utf-8")
    assert cited["license"] == config["metadata"]["license"]
    assert (cited["cff-version"], cited["title"], bool(cited["authors"])) == ("1.2.0", "KitchenSync", True)
