"""Packs what `make tools` built into one file, and takes pieces from such a file instead of building them.

A piece is taken if its stamp is the one that this checkout would write: other pins or another platform build it as before.
The sum of the file stands in a file beside it, as in a release.
"""

import gzip
import hashlib
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.tools.build import (
    PIECES,
    Piece,
    fingerprint_of,
    is_current,
    kind_of,
    partial_dir,
    put_in_place,
    stamp_file,
    title_of,
)

#: The variable that names an archive, and the file with its sum.
VARIABLE: Final = "HOLDFAST_TOOLS"
SUMS: Final = "SHA256SUMS"


def pack(workspace: Workspace, file: Path) -> str:
    """Write every piece in .tools to a file, and its sum to SHA256SUMS beside it; return the sum.

    The same pieces give the same bytes. Raises RehearsalError if a piece is not built, or is from other pins.
    """
    absent = [title_of(piece) for piece in PIECES if not is_current(piece, workspace)]
    if absent:
        raise RehearsalError(
            f"{', '.join(absent)}: not built in {workspace.tools_dir}; run `make tools` with a PATH without them"
        )
    file.parent.mkdir(parents=True, exist_ok=True)
    with (
        file.open("wb") as target,
        # Without the name and the time of the file, which gzip writes by default.
        gzip.GzipFile(filename="", fileobj=target, mode="wb", mtime=0, compresslevel=6) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path in sorted(_files(workspace)):
            entry = tarfile.TarInfo(path.relative_to(workspace.tools_dir).as_posix())
            entry.size = path.stat().st_size
            entry.mode = 0o755 if entry.name.startswith("bin/") else 0o644
            with path.open("rb") as content:
                archive.addfile(entry, content)
    found = digest(file)
    (file.parent / SUMS).write_text(f"{found}  {file.name}\n", encoding="utf-8")
    return found


def unpack(file: Path, missing: Sequence[Piece], workspace: Workspace) -> list[str]:
    """Put the missing pieces that an archive has into .tools, and return their titles.

    Raises RehearsalError if the file is not the one of its sum, or holds a path outside of it; nothing of it is used then.
    """
    _check(file)
    taken: list[str] = []
    with partial_dir(workspace) as folder:
        try:
            with tarfile.open(file) as archive:
                archive.extractall(folder, filter="data")
        except tarfile.TarError as error:
            raise RehearsalError(f"{VARIABLE}={file}: {error}; use an archive of a release") from error
        for piece in missing:
            made, wanted = folder / kind_of(piece) / piece.name, fingerprint_of(piece, workspace)
            stamp = folder / "stamps" / kind_of(piece) / piece.name
            if made.exists() and stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
                put_in_place(piece, made, workspace, wanted)
                taken.append(title_of(piece))
    return taken


def digest(file: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _check(file: Path) -> None:
    sums = file.parent / SUMS
    if not file.is_file() or not sums.is_file():
        raise RehearsalError(
            f"{VARIABLE}={file}: needs the archive and {SUMS} beside it; download both from a release"
        )
    lines = (line.split() for line in sums.read_text("utf-8").splitlines())
    wanted = [words[0] for words in lines if words[1:] == [file.name]]
    if wanted != [found := digest(file)]:
        raise RehearsalError(
            f"{VARIABLE}={file}: its SHA-256 is {found}, {sums} says {' and '.join(wanted) or 'nothing'}; download both again"
        )


def _files(workspace: Workspace) -> Iterator[Path]:
    for piece in PIECES:
        place = workspace.tools_dir / kind_of(piece) / piece.name
        yield from [place] if place.is_file() else (path for path in place.rglob("*") if path.is_file())
        yield stamp_file(piece, workspace)
