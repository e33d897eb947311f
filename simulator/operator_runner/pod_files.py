"""Writes the files of a volume so that a reader never sees half of a change."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import mkdtemp

CURRENT = "..data"


def write_volume(folder: Path, files: Mapping[str, bytes]) -> bool:
    """Make `folder` show exactly `files` (name → content); returns whether that changed anything.

    Like a kubelet: the names are links through one link to a folder with the content, which is exchanged in
    one step. A certificate and its key change together. Readable by their owner alone.
    """
    if _shown(folder) == files:
        return False
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    before = (folder / CURRENT).readlink() if (folder / CURRENT).is_symlink() else None
    content = Path(mkdtemp(prefix="..content-", dir=folder))
    for name, data in files.items():
        with os.fdopen(os.open(content / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
    _point(folder / CURRENT, content.name)
    for stale in [
        each for each in folder.iterdir() if not each.name.startswith("..") and each.name not in files
    ]:
        stale.unlink()
    for name in files:
        _point(folder / name, f"{CURRENT}/{name}")
    if before is not None:
        shutil.rmtree(folder / before, ignore_errors=True)
    return True


def _shown(folder: Path) -> Mapping[str, bytes] | None:
    current = folder / CURRENT
    return {each.name: each.read_bytes() for each in current.iterdir()} if current.is_dir() else None


def _point(link: Path, target: str) -> None:
    draft = link.with_name(f"..new-{link.name}")
    draft.unlink(missing_ok=True)
    draft.symlink_to(target)
    draft.replace(link)
