"""Hooks of mkdocs: a link to a file of the repository outside `docs` leads to a copy of that file in the site."""

import posixpath
import re
import tomllib
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_LINK = re.compile(r"\[(?P<text>[^\]]+)\]\((?P<target>\.\./[^)#\s]+)(?P<anchor>#[^)]*)?\)")
_COPIES = "source"


def on_config(config: MkDocsConfig) -> None:
    """Write the version of the sources below each page."""
    project = tomllib.loads((Path(config.docs_dir).parent / "pyproject.toml").read_text("utf-8"))
    config.copyright = f"Holdfast {project['project']['version']}"


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace links that leave `docs`: by one to a copy of the file, or by their text if the target is a folder.

    Raises FileNotFoundError, which fails the build, for a target that does not exist.
    """
    docs = Path(config.docs_dir)
    folder = posixpath.dirname(page.file.src_uri)

    def replaced(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link["target"]))
        if not target.startswith("../"):
            return link[0]
        path = (docs / target).resolve(strict=True)
        if path.is_dir():
            return link["text"]
        uri = posixpath.join(_COPIES, path.relative_to(docs.parent).as_posix())
        if files.get_file_from_path(uri) is None:
            files.append(File.generated(config, uri, abs_src_path=str(path)))
        return f"[{link['text']}]({posixpath.relpath(uri, folder or '.')})"

    return _LINK.sub(replaced, markdown)
