"""What only people know of a data set: its title, licence and authors, and what they say of its use."""

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
    """A description of a data set that says what it has no place for."""


@dataclass(frozen=True)
class About:
    """A data set in the words of those who made it; `licence` is an SPDX id, `rai` goes by the names in `RAI`."""

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
        found: dict[str, Any] = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadAbout(f"{name}: is not TOML ({error}); correct it") from error
    known = [one.name for one in fields(About)]
    for key, value in found.items():
        if key not in known:
            raise BadAbout(f"{name}: {key}: there are {', '.join(known)}; take it out")
        _check(name, key, value)
    if "creators" in found:
        found["creators"] = tuple(found["creators"])
    if "published" in found:
        found["published"] = str(found["published"])
    return About(**found)


def _check(name: str, key: str, value: Any) -> None:
    if key == "creators":
        ok = isinstance(value, list) and all(isinstance(one, str) for one in value)
    elif key == "rai":
        ok = isinstance(value, dict) and all(isinstance(one, str) for one in value.values())
        if ok and (unknown := sorted(set(value) - set(RAI))):
            raise BadAbout(f"{name}: rai.{unknown[0]}: there are {', '.join(RAI)}; take it out")
    else:
        ok = isinstance(value, str) or (key == "published" and hasattr(value, "isoformat"))
    if not ok:
        wanted = {"creators": "a list of texts", "rai": "a table of texts"}.get(key, "a text")
        raise BadAbout(f"{name}: {key}: is not {wanted}; correct it")
