"""Packs what `make tools` built into one file, and takes pieces from such a file instead of building them.

A piece is taken if its stamp is the one that this checkout would write: other pins or another platform build it as before.
The sum of the file stands in a file beside it, as in a release.
"""

import gzip
import hashlib
import shutil
import tarfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Final

from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.tools.catalog import TOOLS, Tool
from pulumi_holdfast.rehearsal.tools.charts import CHARTS, chart_current, chart_fingerprint
from pulumi_holdfast.rehearsal.tools.locate import Piece, State, Survey
from pulumi_holdfast.rehearsal.tools.stamps import (
    binary_fingerprint,
    built_and_current,
    empty_partial_dir,
    partial_dir,
    replace_file,
    replace_folder,
    replace_stamped,
)

#: The variable that names an archive, and the file with its sum.
VARIABLE: Final = "HOLDFAST_TOOLS"
SUMS: Final = "SHA256SUMS"
# The first one in which no file differs from another by its time.
_TIME: Final = 315_532_800


def pack(workspace: Workspace, file: Path) -> str:
    """Write every piece in .tools to a file, and its sum to SHA256SUMS beside it; return the sum.

    The same pieces give the same bytes. Raises RehearsalError if a piece is not built, or is from other pins.
    """
    absent = [piece.title for piece in (*TOOLS, *CHARTS) if not _current(piece, workspace)]
    if absent:
        raise RehearsalError(
            f"{', '.join(absent)}: not built in {workspace.tools_dir}; run `make tools` with a PATH without them"
        )
    file.parent.mkdir(parents=True, exist_ok=True)
    root = workspace.tools_dir
    with (
        file.open("wb") as target,
        # Without the name and the time of the file, which gzip writes by default.
        gzip.GzipFile(filename="", fileobj=target, mode="wb", mtime=0, compresslevel=6) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path in sorted(_files(root)):
            entry = tarfile.TarInfo(path.relative_to(root).as_posix())
            entry.size, entry.mtime = path.stat().st_size, _TIME
            entry.mode = 0o755 if entry.name.startswith("bin/") else 0o644
            with path.open("rb") as content:
                archive.addfile(entry, content)
    found = digest(file)
    (file.parent / SUMS).write_text(f"{found}  {file.name}\n", encoding="utf-8")
    return found


def unpack(file: Path, survey: Survey, workspace: Workspace) -> list[str]:
    """Put the missing pieces of a survey that an archive has into .tools, and return their titles.

    Raises RehearsalError if the file is not the one of its sum; nothing of it is used then.
    """
    _check(file)
    empty_partial_dir(workspace)
    made = partial_dir(workspace)
    with _opened(file) as archive:
        for member, content in _members(file, archive):
            place = made / member
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("wb") as target:
                shutil.copyfileobj(content, target)
    taken: list[str] = []
    for piece in _missing(survey):
        kind, wanted = _kind(piece), _fingerprint(piece, workspace)
        stamp, found = made / "stamps" / kind / piece.name, made / kind / piece.name
        if not found.exists() or not stamp.is_file() or stamp.read_text(encoding="utf-8") != wanted:
            continue
        if isinstance(piece, Tool):
            found.chmod(0o755)
        place = workspace.tools_dir / kind / piece.name
        put = replace_file if isinstance(piece, Tool) else replace_folder
        replace_stamped(kind, piece.name, workspace, wanted, lambda put=put, a=found, b=place: put(a, b))
        taken.append(piece.title)
    empty_partial_dir(workspace)
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
    wanted = [
        line.split()[0] for line in sums.read_text("utf-8").splitlines() if line.split()[1:] == [file.name]
    ]
    if wanted != [found := digest(file)]:
        raise RehearsalError(
            f"{VARIABLE}={file}: its SHA-256 is {found}, {sums} says {' and '.join(wanted) or 'nothing'}; download both again"
        )


@contextmanager
def _opened(file: Path) -> Generator[tarfile.TarFile]:
    try:
        with tarfile.open(file) as archive:
            yield archive
    except tarfile.TarError as error:
        raise RehearsalError(
            f"{VARIABLE}={file}: {error}; use an archive of `holdfast tools archive dist/tools`"
        ) from error


def _members(file: Path, archive: tarfile.TarFile) -> Iterator[tuple[PurePosixPath, IO[bytes]]]:
    for entry in archive:
        path, content = PurePosixPath(entry.name), archive.extractfile(entry) if entry.isfile() else None
        if content is None or path.is_absolute() or ".." in path.parts:
            raise RehearsalError(
                f"{VARIABLE}={file}: {entry.name!r} is no file of .tools; use an archive of a release"
            )
        yield path, content


def _files(root: Path) -> Iterator[Path]:
    for piece in (*TOOLS, *CHARTS):
        place = root / _kind(piece) / piece.name
        yield from [place] if place.is_file() else (path for path in place.rglob("*") if path.is_file())
        yield root / "stamps" / _kind(piece) / piece.name


def _missing(survey: Survey) -> Sequence[Piece]:
    pieces = (*survey.tools.items(), *survey.charts.items())
    return [piece for piece, state in pieces if state is State.MISSING]


def _kind(piece: Piece) -> str:
    return "bin" if isinstance(piece, Tool) else "charts"


def _fingerprint(piece: Piece, workspace: Workspace) -> str:
    return (
        binary_fingerprint(piece, workspace)
        if isinstance(piece, Tool)
        else chart_fingerprint(piece, workspace)
    )


def _current(piece: Piece, workspace: Workspace) -> bool:
    return built_and_current(piece, workspace) if isinstance(piece, Tool) else chart_current(piece, workspace)
