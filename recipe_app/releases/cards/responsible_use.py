"""What follows for responsible use from the way recordings are made, in Croissant's words (RAI)."""

from __future__ import annotations

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
    """Return property -> text; of simulated recordings it says so."""
    return ALL | (OWN if is_own else TAKEN_OVER) | (VIRTUAL if is_virtual else {})
