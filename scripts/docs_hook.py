"""The hook of MkDocs (``hooks:`` in mkdocs.yml) that adds the derived pages."""

from __future__ import annotations

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from scripts.docs_pages import expand, on_page_markdown, reference_pages

__all__ = ["on_files", "on_page_markdown"]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the reference and fill the navigation from the folders."""
    for name, text in reference_pages().items():
        files.append(File.generated(config, name, content=text))
    config.nav = [expand(entry, files) for entry in config.nav or []]
    return files
