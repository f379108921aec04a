"""Where the real sample data are from that some tests ask for: public repositories, and a commit that holds them."""

from __future__ import annotations

GPMF, TELEMETRY = "github.com/gopro/gpmf-parser", "github.com/JuanIrache/gopro-telemetry"
SOURCES = {
    "captaincook4d": "github.com/CaptainCook4D/annotations at a8a920a, 16 of its 24 recipes",
    "captaincook4d-derived": (
        "github.com/CaptainCook4D/multi_step_localization at 728418a and CaptainCook4D/error_recognition at 35ef284"
    ),
    "span-measures": (
        "worked out by another program from github.com/CaptainCook4D/annotations at a8a920a; published cases from "
        "github.com/WenliangGuo/ProcObject-10K-Page"
    ),
    "coherence-measures": (
        "worked out by another program from github.com/CaptainCook4D/annotations at a8a920a by the rules of "
        "github.com/sled-group/Transparent-Coherent-PMD at 52f87bd"
    ),
    "promqa": "github.com/kimihiroh/promqa at f150b98, data/examples.json",
    "gopro": f"{GPMF} and {TELEMETRY}; tests/support/checks/sources.py has the commit of each file",
    "gopro/max-heromode.mp4": f"{GPMF} at 9958d83, samples/max-heromode.mp4",
    "gopro/hero5.raw": f"{GPMF} at 2f54a2c, samples/hero5.raw",
    "gopro/hero6.raw": f"{GPMF} at 27fc123, samples/hero6.raw",
    "gopro/hero6+ble.raw": f"{GPMF} at 84963cb, samples/hero6+ble.raw",
    "gopro/Fusion.raw": f"{GPMF} at 1fd1576, samples/Fusion.raw",
    "gopro/hero11-chapter.raw": f"{TELEMETRY} at 171cd48, samples/hero11.raw",
    "gopro/hero7-rec1.raw": f"{TELEMETRY} at 7165607, samples/consecutive1.raw",
    "gopro/hero7-rec2.raw": f"{TELEMETRY} at 20bdd5e, samples/consecutive2.raw",
    "gopro/mp4header.raw": f"{TELEMETRY} at a0011b4, samples/mp4header.raw",
    "gopro/ground_truth.json": f"worked out by another program from {GPMF} at 9958d83 and {TELEMETRY} at 171cd48",
    "labelling": "made of steps in github.com/CaptainCook4D/annotations at a8a920a, in Label Studio's form",
    "strangers": (
        "made by programs of its own from gopro/max-heromode.mp4; two films from "
        "github.com/meta-pytorch/torchcodec at 78ed5ad, test/resources"
    ),
    "motion": (
        "github.com/mad-lab-fau/eargait at b02e17d, pupil-labs/pl-neon-recording at 4a34c6c, xioTechnologies/Fusion "
        "at 13ac768, MobileRoboticsSkoltech/twistnsync-python at 0dffc86"
    ),
}
"""By file, or by the folder at its beginning."""


def source_of(relative: str) -> str:
    """Return where a file of the sample data is from, in one line. Raises KeyError for one that nobody named."""
    return SOURCES.get(relative) or SOURCES[relative.partition("/")[0]]
