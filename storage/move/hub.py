"""The Hugging Face hub as a store: large files are sent one by one, and all count with one commit at the end."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sensors.files_on_disk import file_sha256
from storage.errors import CloudRefused, SourceDiffers
from storage.move.cloud_store import why

HUB = "hf://"
KIND = "datasets"


class HubStore:
    """A data set's repository, `hf://datasets/OWNER/NAME`; who may write is for the hub's own settings (HF_TOKEN)."""

    commits = True

    def __init__(self, url: str) -> None:
        """Make the repository where there is none, private: publishing it is done by hand. Raises CloudRefused."""
        kind, _, repository = url.removeprefix(HUB).strip("/").partition("/")
        if kind != KIND or repository.count("/") != 1:
            raise CloudRefused(url, "", f"the address is {HUB}{KIND}/OWNER/NAME")
        try:
            self._hub: Any = importlib.import_module("huggingface_hub")
        except ImportError as error:
            raise CloudRefused(url, "", f'{error}; install the extra: pip install -e ".[hub]"') from error
        self._hub.utils.disable_progress_bars()  # there is one already
        self.identity, self._repository = url, repository
        self._added: list[Any] = []
        try:
            self._api = self._hub.HfApi()
            self._api.create_repo(repository, repo_type="dataset", private=True, exist_ok=True)
            self._there = self._hashes()
        except Exception as error:
            raise CloudRefused(url, "", why(error)) from error

    def _hashes(self) -> dict[str, tuple[int, str]]:
        """Return size and hash of the large files that are there; of small ones the hub says no SHA-256."""
        tree = self._api.list_repo_tree(self._repository, repo_type="dataset", recursive=True)
        large = ((one.path, getattr(one, "lfs", None)) for one in tree)
        return {path: (lfs.size, lfs.sha256) for path, lfs in large if lfs is not None}

    def holds(self, name: str, size: int, sha256: str, *, noted: bool) -> bool:
        """Compare with what the hub says it has; a small file is as it is noted."""
        return self._there[name] == (size, sha256) if name in self._there else noted

    def send(self, source: Path, name: str, sha256: str, tell: Callable[[int], None]) -> str:
        """Send a large file, which the hub takes once, by its hash; a small one goes with the commit."""
        if file_sha256(source) != sha256:
            raise SourceDiffers(source)
        one = self._hub.CommitOperationAdd(path_in_repo=name, path_or_fileobj=source)
        self._api.preupload_lfs_files(self._repository, [one], repo_type="dataset")
        self._added.append(one)
        tell(source.stat().st_size)
        return "hash known to the hub"

    def finish(self) -> None:
        """Commit everything that was sent."""
        words = "Release a data set"
        self._api.create_commit(self._repository, self._added, commit_message=words, repo_type="dataset")
