"""Links of built pages: those within the site must lead somewhere, and no page may load from another host."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {
    "audio": "src", "embed": "src", "iframe": "src", "img": "src", "link": "href", "object": "data",
    "script": "src", "source": "src", "video": "src",
}  # fmt: skip
"""Attributes whose target a browser loads by itself."""

_HOST = re.compile(r"(?:[a-z0-9-]+\.)+[a-z]{2,}")
_STYLE_URL = re.compile(r"""(?:url\(|@import)\s*['"]?\s*([^'")\s;]+)""")


@dataclass
class _Page(HTMLParser):
    """What a page links to and can be linked at."""

    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.ids.add(value)
            if tag == "a" and name == "href" and value is not None:
                self.links.append(value)
            if name == LOADED.get(tag) and value is not None:
                self.loaded.append(value)


def faults(site: Path) -> list[str]:
    """Everything that is wrong with the links of the pages below ``site``, sorted."""
    pages = {path.resolve(): _read(path) for path in site.rglob("*.html")}
    found = [fault for path, page in pages.items() for fault in _of_page(site, path, page, pages)]
    for style in site.rglob("*.css"):
        for target in _STYLE_URL.findall(style.read_text(encoding="utf-8")):
            if urlsplit(target).netloc:
                found.append(f"{style.relative_to(site)}: loads {target}")
    return sorted(found)


def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def _of_page(site: Path, path: Path, page: _Page, pages: dict[Path, _Page]) -> Iterator[str]:
    name = path.relative_to(site.resolve())
    for target in page.loaded:
        if urlsplit(target).netloc:
            yield f"{name}: loads {target}"
        elif urlsplit(target).scheme != "data":
            yield from _inside(name, path, target, page, pages)
    for target in page.links:
        parts = urlsplit(target)
        if not parts.scheme and not parts.netloc:
            yield from _inside(name, path, target, page, pages)
        elif parts.scheme != "https" or not _HOST.fullmatch(parts.netloc) or re.search(r"\s", target):
            yield f"{name}: {target} is no address"


def _inside(name: Path, path: Path, target: str, page: _Page, pages: dict[Path, _Page]) -> Iterator[str]:
    parts = urlsplit(target)
    file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not file.is_file():
        yield f"{name}: {target} leads nowhere"
    elif parts.fragment and file in pages and unquote(parts.fragment) not in pages[file].ids:
        yield f"{name}: {target} has no such place"
