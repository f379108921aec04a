"""croissant.json of a data set: its files and tables for machines, with the fields for responsible AI (RAI)."""

from __future__ import annotations

import json
import re

from kitchensync.dataset.data_set_cards.card_facts import Facts
from kitchensync.task_graphs.formats.annotations import VIDEOS

STEPS = "annotation_csv/step_annotations.csv"
TABLES: dict[str, tuple[str, str, dict[str, str]]] = {
    "steps": (
        STEPS,
        "One row for each step of each recording, in the order of its script; times are seconds of the film, "
        "-1 where the step was not done.",
        {
            "recording_id": "sc:Text",
            "step_id": "sc:Integer",
            "start_time": "sc:Float",
            "end_time": "sc:Float",
            "description": "sc:Text",
            "has_errors": "sc:Boolean",
        },
    ),
    "recordings": (
        VIDEOS,
        "One row for each recording: numbers of its kitchen and person, length of its film.",
        {
            "recording_id": "sc:Text",
            "environment_id": "sc:Integer",
            "person_id": "sc:Integer",
            "duration(min)": "sc:Float",
            "duration(sec)": "sc:Float",
        },
    ),
}
"""Record set -> file, description, columns."""
FORMATS = {"csv": "text/csv", "json": "application/json", "jsonl": "application/jsonlines"}
UNLISTED = ("captain_cook_4d", "data_splits", "previews")
_OURS = ("citeAs", "column", "equivalentProperty", "extract", "field", "fileProperty", "fileObject", "fileSet",
         "format", "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet",
         "references", "regex", "repeated", "replace", "samplingRate", "separator", "source", "subField",
         "transform")  # fmt: skip
CONTEXT: dict[str, object] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{name: f"cr:{name}" for name in _OURS},
}


def as_croissant(facts: Facts) -> str:
    """Return the text of croissant.json; videos, arrays and splits are in SHA256SUMS only."""
    about = facts.about
    tables = {name: table for name, table in TABLES.items() if table[0] in facts.hashes}
    is_spdx = re.fullmatch(r"[A-Za-z0-9.+-]+", about.licence)
    metadata: dict[str, object] = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "name": re.sub(r"[^A-Za-z0-9._-]+", "-", facts.title).strip("-") or "data-set",
        "alternateName": facts.title,
        "description": facts.description,
        "conformsTo": ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"],
        "license": f"https://spdx.org/licenses/{about.licence}.html" if is_spdx else about.licence,
        "url": about.url,
        "version": about.version,
        "datePublished": about.published,
        "citeAs": about.cite_as,
        "keywords": ["egocentric", "procedural", "cooking", "errors"],
        "creator": [{"@type": "sc:Organization", "name": name} for name in about.creators],
    }
    card = {key: value for key, value in metadata.items() if value}
    card |= {f"rai:{name}": text for name, text in facts.rai().items()}
    card["distribution"] = [
        {
            "@type": "cr:FileObject",
            "@id": path,
            "name": path,
            "contentUrl": path,
            "contentSize": f"{facts.sizes[path]} B",
            "encodingFormat": FORMATS[path.rpartition(".")[2]],
            "sha256": facts.hashes[path],
        }
        for path in sorted(facts.hashes)
        if path.partition("/")[0] not in UNLISTED and path.rpartition(".")[2] in FORMATS
    ]
    card["recordSet"] = [_record_set(name, *table) for name, table in tables.items()]
    return json.dumps(card, indent=2, ensure_ascii=False) + "\n"


def _record_set(name: str, path: str, description: str, columns: dict[str, str]) -> dict[str, object]:
    names = {column: f"{name}/{re.sub(r'[^a-z_]+', '_', column).strip('_')}" for column in columns}
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": description,
        "field": [
            {
                "@type": "cr:Field",
                "@id": names[column],
                "name": names[column],
                "dataType": kind,
                "source": {"fileObject": {"@id": path}, "extract": {"column": column}},
            }
            for column, kind in columns.items()
        ],
    }
