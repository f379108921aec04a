"""Facts for the cards of a data set, counted from its files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from kitchensync.dataset.data_set_cards.about import About
from kitchensync.dataset.source.data_set import ReleasedMember
from kitchensync.dataset.source.data_set_folder import DataSet, lacking_in

NOT_STATED = "not stated"


@dataclass(frozen=True)
class Facts:
    """The content of the cards; `hashes` and `sizes` by relative path, `members` as returned by `release`."""

    about: About
    data: DataSet
    members: list[ReleasedMember]
    hashes: Mapping[str, str]
    sizes: Mapping[str, int]
    is_virtual: bool = False
    name: str = "data-set"
    splits: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        """The title of the description, else the folder's name."""
        return self.about.title or self.name

    @property
    def holds_recordings(self) -> bool:
        """Whether it has videos or headset data, and not only copied annotations."""
        return any(name.startswith("captain_cook_4d/") for name in self.hashes)

    @property
    def hours(self) -> float:
        """Hours of video."""
        return sum(self.data.lengths_s.values()) / 3600

    @property
    def description(self) -> str:
        """The authors' description, else a sentence with counts."""
        if self.about.description:
            return self.about.description
        recordings = self.data.annotations.recordings
        counts = (
            (len(recordings), "recording"),
            (len({recording.activity_id for recording in recordings}), "recipe"),
            (len({recording.person_id for recording in recordings}), "person"),
            (len({recording.environment for recording in recordings}), "kitchen"),
        )
        made, cooked, cooks, places = (f"{count} {noun}{'s' * (count != 1)}" for count, noun in counts)
        return (
            f"{made} ({self.hours:.2f} hours) of {cooked} cooked by {cooks} in {places}, seen by a "
            "head-mounted camera, with the times of all steps and the errors."
        )

    def absent(self) -> dict[str, Counter[str]]:
        """Return kind -> reason -> number of recordings without that kind."""
        reasons: dict[str, Counter[str]] = {}
        for member in self.members:
            for row in member["absent"]:
                reasons.setdefault(row["kind"], Counter())[row["why"]] += 1
        return reasons

    def gaps(self) -> dict[str, list[str]]:
        """Return recording -> a line for each stream with gaps during an entry."""
        return lacking_in(self.data.facts)

    def timing(self) -> str:
        """Return a sentence with the largest alignment errors of the videos; empty if they are not known."""
        films = [film for facts in self.data.facts.values() for film in facts.get("alignment", [])]
        worst = {
            name: max((film[name] for film in films if film[name] is not None), default=None)
            for name in ("gyroscopes_within_ms", "pictures_within_ms")
        }
        if worst["gyroscopes_within_ms"] is None:
            return ""
        counted = f"{len(films)} file{'s' * (len(films) != 1)}"
        bound = f"Films are on the headset's time, by both gyroscopes, within {worst['gyroscopes_within_ms']:.2f} ms"
        if worst["pictures_within_ms"] is None:
            return f"{bound} (95 %, the worst of {counted})."
        assumed = any("assumed" in film["said"] for film in films)
        how = "assumed" if assumed else "measured"
        pictures = f"pictures within {worst['pictures_within_ms']:.0f} ms, as the camera's latency is {how}"
        return f"{bound}; {pictures} (95 %, the worst of {counted})."

    def rai(self) -> dict[str, str]:
        """Return the texts about responsible use: the authors' texts, else defaults, and always the gaps."""
        defaults = texts(is_own=self.data.is_own, is_virtual=self.is_virtual)
        properties = defaults | dict(self.about.rai)
        gaps = [f"{name}: {'; '.join(lines)}." for name, lines in self.gaps().items()]
        missing = " ".join([properties["dataCollectionMissingData"], *gaps])
        return properties | {"dataCollectionMissingData": missing}


OWN = {
    "dataCollection": "People cooked a recipe from a tablet while a head-mounted camera, and a headset where there "
    "was one, recorded them; some followed scripts with planned errors.",
    "dataAnnotationProtocol": "Steps begin and end where the tablet was touched, on the film's time; errors "
    "were planned before, logged while cooking, or added in review, and corrected at a desk.",
    "dataLimitations": "Where a start was not touched, a step begins where the one before it ended; the bound of "
    "each time stands in kitchensync.jsonl.",
}
TAKEN_OVER = {
    "dataCollection": "As its publication says; this folder was released again.",
    "dataAnnotationProtocol": "As its publication says, but for what was corrected at a desk.",
    "dataLimitations": "Faults of the published files are kept; `kitchensync release check` names them.",
}
ALL = {
    "dataCollectionType": "Direct measurement; recording of human activity",
    "dataCollectionMissingData": "What is absent of a recording has no key in metadata/download_links.json.",
    "personalSensitiveInformation": "Persons and kitchens are numbers. Films show hands, kitchens and possibly "
    "persons, and may hold voices; a recording of people is released by their consent.",
    "dataBiases": "Kitchens, recipes and persons are those of one group of people.",
    "dataUseCases": "Recognition and localization of steps, recognition of errors in procedures.",
    "dataReleaseMaintenancePlan": "Withdrawn recordings are taken out of the next version; ids stay.",
}
VIRTUAL = {
    "dataCollection": "Made by a simulator, without people.",
    "personalSensitiveInformation": "None: the recordings are simulated.",
}


def texts(*, is_own: bool, is_virtual: bool) -> dict[str, str]:
    """Return the default texts by property."""
    return ALL | (OWN if is_own else TAKEN_OVER) | (VIRTUAL if is_virtual else {})
