"""The root folders that hold the product, by name."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = [
    *("calibration", "capture", "dataset", "kitchensync", "recipe_app", "sensors", "storage", "sync"),
    "task_graphs",
]
"""Not the virtual kitchen, which is made of the same devices and apart."""
