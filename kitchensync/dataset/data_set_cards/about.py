"""The description of a data set by its authors: title, licence, creators, and responsible use."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from kitchensync.task_graphs.errors import RecipeError

RAI = (
    *("dataCollection", "dataCollectionType", "dataCollectionMissingData", "dataCollectionRawData"),
    *(
        "dataCollectionTimeframe",
        "dataImputationProtocol",
        "dataManipulationProtocol",
        "dataPreprocessingProtocol",
    ),
    *("dataAnnotationProtocol", "dataAnnotationPlatform", "dataAnnotationAnalysis", "annotationsPerItem"),
    *(
        "annotatorDemographics",
        "machineAnnotationTools",
        "dataReleaseMaintenancePlan",
        "personalSensitiveInformation",
    ),
    *("personalSensitiveInformation", "dataSocialImpact", "dataBiases", "dataLimitations", "dataUseCases"),
)
"""The properties of Croissant's vocabulary for responsible AI, version 1.0."""


class BadAbout(RecipeError):
    """A malformed description of a data set."""


@dataclass(frozen=True)
class About:
    """The description of a data set; `licence` is an SPDX id, `rai` is keyed by the names in `RAI`."""

    title: str = ""
    description: str = ""
    licence: str = ""
    creators: tuple[str, ...] = ()
    url: str = ""
    contact: str = ""
    cite_as: str = ""
    version: str = "1.0.0"
    published: str = ""
    rai: Mapping[str, str] = field(default_factory=dict)


def parse_about(text: str, name: str) -> About:
    """Read a description, TOML. Raises BadAbout."""
    try:
        table: dict[str, Any] = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadAbout(f"{name}: is not TOML ({error}); correct it") from error
    keys = [field.name for field in fields(About)]
    for key, value in table.items():
        if key not in keys:
            raise BadAbout(f"{name}: {key}: there are {', '.join(keys)}; remove it")
        _check(name, key, value)
    if "creators" in table:
        table["creators"] = tuple(table["creators"])
    if "published" in table:
        table["published"] = str(table["published"])
    return About(**table)


def _check(name: str, key: str, value: Any) -> None:
    if key == "creators":
        ok, expected = isinstance(value, list) and all(isinstance(v, str) for v in value), "a list of texts"
    elif key == "rai":
        ok = isinstance(value, dict) and all(isinstance(text, str) for text in value.values())
        expected = "a table of texts"
        if ok and (unknown := sorted(set(value) - set(RAI))):
            raise BadAbout(f"{name}: rai.{unknown[0]}: there are {', '.join(RAI)}; remove it")
    else:
        ok, expected = (
            isinstance(value, str) or (key == "published" and hasattr(value, "isoformat")),
            "a text",
        )
    if not ok:
        raise BadAbout(f"{name}: {key}: is not {expected}; correct it")
