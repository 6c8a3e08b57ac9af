"""Checks of how source is laid out, as functions from parsed source to findings.

What may live here: reading source with ``ast`` and saying what breaks a rule. The
rules themselves, and what the project decided, are data in
``tests/test_architecture.py``. Every check returns findings as text, one per
fault, in the order of the source, so that a check can be shown to fail.
"""

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import attrs

Function = ast.FunctionDef | ast.AsyncFunctionDef


@attrs.frozen
class Import:
    """One imported name: ``target`` is a module where that can be told, else ``module.name``."""

    target: str
    line: int


@attrs.frozen
class Module:
    """A parsed module. ``is_package`` is true for an ``__init__.py``."""

    name: str
    text: str
    tree: ast.Module
    is_package: bool = False

    @property
    def docstring(self) -> str | None:
        """The docstring that the module opens with."""
        return ast.get_docstring(self.tree)

    @property
    def lines(self) -> int:
        """Lines of the file."""
        return len(self.text.splitlines())


def parse(name: str, text: str, *, is_package: bool = False) -> Module:
    """A module of the given dotted name from its text."""
    return Module(name, text, ast.parse(text), is_package)


def read_package(directory: Path) -> dict[str, Module]:
    """All modules below a package's directory by dotted name, sorted."""
    modules = {}
    for path in sorted(directory.rglob("*.py")):
        parts = path.relative_to(directory.parent).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        modules[name] = parse(name, path.read_text(encoding="utf-8"), is_package=is_package)
    return modules


def imports(module: Module, known: Collection[str] = ()) -> Iterator[Import]:
    """Every import of a module, wherever it stands, relative ones resolved.

    ``from a import b`` is an import of ``a.b`` where ``known`` has such a module, else
    of ``a``.
    """
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            base = _import_base(module, node)
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield Import(inner if inner in known else base, node.lineno)


def _import_base(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    kept = parts[: len(parts) - node.level + module.is_package]
    return ".".join([*kept, node.module] if node.module else kept)


def room_of(name: str, package: str) -> str:
    """The room a module is in: the first part of its name below the package.

    The package itself is the room ``""``.
    """
    return name.removeprefix(package).lstrip(".").partition(".")[0]


def upward_imports(
    modules: Mapping[str, Module], package: str, layers: Sequence[Collection[str]]
) -> list[str]:
    """Imports that do not point down. ``layers`` go from the top to the bottom.

    A room may import itself and rooms of lower layers; neighbours in one layer never
    meet, and nobody imports the package's door. A room in no layer is a finding.
    """
    level = {room: depth for depth, layer in enumerate(layers) for room in layer}
    found = []
    for module in modules.values():
        here = room_of(module.name, package)
        if here not in level:
            found.append(f"{module.name}: room {here!r} has no layer")
            continue
        for item in imports(module, modules):
            if item.target != package and not item.target.startswith(f"{package}."):
                continue
            there = room_of(item.target, package)
            if there != here and level.get(there, -1) <= level[here]:
                found.append(f"{module.name}:{item.line}: imports {item.target}")
    return found


def forbidden_imports(modules: Iterable[Module], allowed: Collection[str], own: str) -> list[str]:
    """Imports of modules outside ``allowed`` (top-level or dotted names) and ``own``."""
    found = []
    for module in modules:
        for item in imports(module):
            top = item.target.partition(".")[0]
            if top != own and top not in allowed and item.target not in allowed:
                found.append(f"{module.name}:{item.line}: imports {item.target}")
    return found


def import_cycles(modules: Mapping[str, Module]) -> list[str]:
    """Cycles among modules: one finding per group of modules that all reach each other."""
    edges = {
        name: {item.target for item in imports(module, modules) if item.target in modules}
        for name, module in modules.items()
    }
    reach = {name: _reachable(name, edges) for name in sorted(edges)}
    groups = {
        tuple(sorted(other for other in reach[name] if name in reach[other]))
        for name in reach
        if name in reach[name]
    }
    return [" <-> ".join(group) for group in sorted(groups)]


def _reachable(start: str, edges: Mapping[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    todo = sorted(edges[start])
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo.extend(sorted(edges[name]))
    return seen


def impure_calls(modules: Iterable[Module], names: Collection[str]) -> list[str]:
    """Calls of something by one of ``names``: as a bare name or as ``….name``.

    A name that starts with a dot (``.now``) means the attribute only.
    """
    found = []
    for module in modules:
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.Call):
                continue
            callee = node.func
            if isinstance(callee, ast.Name) and callee.id in names:
                found.append(f"{module.name}:{node.lineno}: calls {callee.id}")
            elif isinstance(callee, ast.Attribute) and f".{callee.attr}" in names:
                found.append(f"{module.name}:{node.lineno}: calls .{callee.attr}")
    return found


def used_of(library: str, modules: Iterable[Module]) -> set[str]:
    """The names of a library that modules use: imported from it, or as its attributes.

    An import under another name is returned as it stands, because it hides the rest.
    """
    used: set[str] = set()
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom) and node.module == library:
                used.update(alias.name for alias in node.names)
            elif isinstance(node, ast.Import):
                used.update(
                    f"{alias.name} as {alias.asname}"
                    for alias in node.names
                    if alias.name == library and alias.asname
                )
            elif (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == library
            ):
                used.add(node.attr)
    return used


def global_state(modules: Iterable[Module]) -> list[str]:
    """``global`` statements and caches that outlive their callers (functools)."""
    found = []
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Global):
                found.append(f"{module.name}:{node.lineno}: global {', '.join(node.names)}")
            elif isinstance(node, ast.ImportFrom) and node.module == "functools":
                found += [
                    f"{module.name}:{node.lineno}: functools.{alias.name}"
                    for alias in node.names
                    if alias.name in ("cache", "lru_cache")
                ]
            elif (
                isinstance(node, ast.Attribute)
                and node.attr in ("cache", "lru_cache")
                and isinstance(node.value, ast.Name)
                and node.value.id == "functools"
            ):
                found.append(f"{module.name}:{node.lineno}: functools.{node.attr}")
    return found


def missing_docstrings(modules: Iterable[Module]) -> list[str]:
    """Modules that do not open with a docstring; an empty file is one of them."""
    return [module.name for module in modules if not module.docstring]


def long_modules(modules: Iterable[Module], limit: int) -> list[str]:
    """Modules of more lines than ``limit``."""
    return [f"{m.name}: {m.lines} lines" for m in modules if m.lines > limit]


def long_functions(modules: Iterable[Module], limit: int) -> list[str]:
    """Functions of more lines than ``limit``; the docstring does not count."""
    found = []
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, Function) and (size := _size(node)) > limit:
                found.append(f"{module.name}:{node.lineno}: {node.name}: {size} lines")
    return found


def _size(function: Function) -> int:
    docstring = ast.get_docstring(function, clean=False) or ""
    end = function.end_lineno or function.lineno
    return end - function.lineno + 1 - len(docstring.splitlines())
