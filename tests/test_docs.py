"""The examples in README and docs/ run, and the pages keep their promises."""

import json
import re
from pathlib import Path

import pytest
import yaml

from support import built_site, examples

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_examples_run(page: Path) -> None:
    """Every Python example runs as it stands, the later ones after the earlier."""
    found = len(re.findall(r"^ *```python", page.read_text(encoding="utf-8"), re.M))
    assert examples.run_page(page) == found


def test_readme_has_an_example() -> None:
    """The README shows the library at work."""
    assert list(examples.python_blocks((ROOT / "README.md").read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_fence_is_checked(page: Path) -> None:
    """Python is fenced as ``python``, so that it is run; YAML and JSON can be read."""
    for info, body in _fences(page.read_text(encoding="utf-8")):
        assert info in ("python", "yaml", "json", "text", "console"), info
        if info == "yaml":
            assert list(yaml.safe_load_all(body))
        elif info == "json":
            assert json.loads(body)


def _fences(text: str) -> list[tuple[str, str]]:
    return re.findall(r"^```([^\n`]*)\n(.*?)^```$", text, re.M | re.S)


def test_readme_commands_are_targets() -> None:
    """The commands that README names are targets of the Makefile."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"(?:^|`)make ([a-z]+)", readme, re.M))
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    assert {"demo", "test"} <= named <= targets


def test_every_room_has_a_reference_page() -> None:
    """Whatever can be imported is in the reference, the command line apart."""
    places = (ROOT / "src" / "dra_core").iterdir()
    rooms = {
        path.stem for path in places if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    private = {"__init__", "__main__", "_version", "cli"}
    pages = (ROOT / "docs" / "reference").glob("*.md")
    found = re.findall(
        r"^::: dra_core\.(\w+)", "\n".join(page.read_text(encoding="utf-8") for page in pages), re.M
    )
    assert sorted(found) == sorted(rooms - private)


def test_changelog_has_an_unreleased_section() -> None:
    """What is new stands in CHANGELOG before it is released."""
    assert "\n## [Unreleased]\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


# The helpers themselves.


def test_a_failing_example_is_noticed(tmp_path: Path) -> None:
    """An example that raises fails, with the line of the page."""
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n```python\nx = 1\n```\n\ntext\n\n```python\nassert x == 2\n```\n")
    with pytest.raises(AssertionError) as raised:
        examples.run_page(page)
    assert raised.traceback[-1].lineno == 9  # counted from 0


def test_only_python_blocks_are_run() -> None:
    """Other fences are left alone; an indented fence loses its indentation."""
    text = (
        "```text\n1/0\n```\n\n- item\n\n    ```python\n    y = 1\n    ```\n\n```pycon\n1/0\n```\n"
    )
    assert list(examples.python_blocks(text)) == [examples.Block(8, "y = 1\n")]


def test_a_page_without_examples_is_no_proof(tmp_path: Path) -> None:
    """The script for CI fails when there was nothing to run."""
    page = tmp_path / "page.md"
    page.write_text("nothing")
    assert examples.main([str(page)]) == 1


@pytest.mark.parametrize(
    "html",
    [
        '<script src="https://cdn.example.com/x.js"></script>',
        '<script src="//cdn.example.com/x.js"></script>',
        '<link rel="stylesheet" href="https://fonts.example.com/css">',
        '<link rel="preconnect" href="https://fonts.example.com">',
        '<img src="https://example.com/badge.svg">',
        '<iframe src="http://example.com/"></iframe>',
        '<p style="background: url(https://example.com/a.png)">',
        "<style>@import 'https://example.com/a.css';</style>",
        '<script>load("https://example.com/a.js")</script>',
        '<pre class="mermaid">graph</pre>',
    ],
)
def test_loading_from_elsewhere_is_found(html: str) -> None:
    """Whatever makes a browser fetch something from another host is a finding."""
    assert len(built_site.in_page(f"<html><body>{html}</body></html>")) == 1


@pytest.mark.parametrize(
    "html",
    [
        '<a href="https://example.com/">a link to click</a>',
        '<script src="assets/x.js"></script>',
        '<link rel="canonical" href="https://example.com/">',
        '<img src="data:image/png;base64,AAAA">',
        '<script>load("https://api.github.com/repos/")</script>',
        "<p>https://example.com/</p>",
    ],
)
def test_what_is_not_fetched_is_not_found(html: str) -> None:
    """Links, own files and addresses that are known to be out of use are fine."""
    assert built_site.in_page(html) == []


def test_styles_and_scripts_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every kind of file of a site is looked at; an empty site is no good site."""
    assert built_site.main(tmp_path) == 1
    (tmp_path / "index.html").write_text("<p>fine</p>")
    assert built_site.main(tmp_path) == 0
    (tmp_path / "a.css").write_text("@font-face { src: url('https://example.com/f.woff2') }")
    (tmp_path / "b.js").write_text("fetch('https://example.com/x')")
    assert built_site.main(tmp_path) == 1
    printed = capsys.readouterr().out
    assert "a.css: style: https://example.com/f.woff2" in printed
    assert "b.js: script: https://example.com/x" in printed
