"""Does a built documentation site load anything from elsewhere? A script for CI.

``python built_site.py DIRECTORY`` reads every page, style sheet and script. A link that a
reader may click is fine; a script, style, font, image or frame of another host is
not, nor is an address in a script that is not known to be out of use here.
"""

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

_LOADING = {
    "audio": ("src",),
    "embed": ("src",),
    "form": ("action",),
    "iframe": ("src",),
    "image": ("href", "xlink:href"),
    "img": ("src", "srcset"),
    "input": ("src",),
    "link": ("href",),
    "object": ("data",),
    "script": ("src",),
    "source": ("src", "srcset"),
    "track": ("src",),
    "use": ("href", "xlink:href"),
    "video": ("src", "poster"),
}
"""Attributes that make a browser fetch something, by element."""

_HARMLESS_LINKS = frozenset({"canonical", "next", "prev", "alternate", "license", "author"})
"""Kinds of ``link`` that only name an address."""

_OUTSIDE = re.compile(r"(?:https?|wss?|ftp):|//", re.I)
_IN_STYLE = re.compile(r"(?:url\(|@import)\s*['\"]?\s*((?:https?:)?//[^'\")\s;]+)", re.I)
_IN_SCRIPT = re.compile(r"['\"`]((?:https?|wss?):?//[^'\"`\s)]+)")

UNUSED_IN_SCRIPTS = (
    # Fetched by the theme for figures of a repository; mkdocs.yml names none.
    "https://api.github.com/",
    "https://${e}/api/v4/projects/",
    # Fetched by the theme for diagrams; a page that has one is a finding (see below).
    "https://unpkg.com/mermaid@",
    # Fetched in browsers without ResizeObserver, which is in all of them since 2020.
    "https://unpkg.com/resize-observer-polyfill",
    # Names of XML vocabularies and of an author's page: nothing is fetched.
    "http://www.w3.org/",
    "https://clipboardjs.com/",
)
"""Addresses in the theme's scripts that these pages never make it fetch."""


class _Page(HTMLParser):
    """Collects what a page makes a browser fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag
        values = {name: value or "" for name, value in attrs}
        rel = set(values.get("rel", "").lower().split())
        if not (tag == "link" and rel and rel <= _HARMLESS_LINKS):
            for name in _LOADING.get(tag, ()):
                if _OUTSIDE.match(values.get(name, "").strip()):
                    self.found.append(f"<{tag} {name}={values[name]!r}>")
        if "mermaid" in values.get("class", "").split():
            self.found.append(f"<{tag} class={values['class']!r}>: the theme fetches mermaid")
        self.found += [f"style: {url}" for url in _IN_STYLE.findall(values.get("style", ""))]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self._inside = ""

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "style":
            self.found += in_style(data)
        elif self._inside == "script":
            self.found += in_script(data)


def in_page(text: str) -> list[str]:
    """What an HTML page loads from elsewhere."""
    page = _Page()
    page.feed(text)
    page.close()
    return page.found


def in_style(text: str) -> list[str]:
    """What a style sheet loads from elsewhere."""
    return [f"style: {url}" for url in _IN_STYLE.findall(text)]


def in_script(text: str) -> list[str]:
    """Addresses in a script that are not known to be out of use."""
    return [
        f"script: {url}"
        for url in _IN_SCRIPT.findall(text)
        if not url.startswith(UNUSED_IN_SCRIPTS)
    ]


_READERS = {".html": in_page, ".css": in_style, ".svg": in_page, ".js": in_script}


def findings(site: Path) -> Iterator[str]:
    """One line for everything that the files of a site load from elsewhere."""
    for path in sorted(site.rglob("*")):
        if path.suffix in _READERS and path.is_file():
            for found in _READERS[path.suffix](path.read_text(encoding="utf-8")):
                yield f"{path.relative_to(site)}: {found}"


def main(site: Path) -> int:
    """Print the findings; 1 when there are any, or no pages."""
    if not any(site.rglob("*.html")):
        print(f"{site} has no pages")
        return 1
    found = list(findings(site))
    print("\n".join(found) if found else f"{site} loads nothing from elsewhere")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
