"""How the source is laid out, held as data, and each rule shown to notice a breach.

A failure here is a decision to take, not a formality: a new room belongs in a
layer, a new import below the command line must be of something that cannot read a
clock, a file, a socket or chance.
"""

from pathlib import Path

import pytest

import dra_core
from support import architecture

PACKAGE = "dra_core"
MODULES = architecture.read_package(Path(dra_core.__file__).parent)

LAYERS: tuple[tuple[str, ...], ...] = (
    ("__main__",),
    ("cli",),
    ("",),  # the door: re-exports, imported by the command line and by users only
    ("v1alpha2", "testing", "adapters"),
    ("scheduling", "explanation"),
    ("allocator",),
    ("inventory",),
    ("cel", "claims"),
    ("api",),
    ("values",),
    ("errors", "features", "_version"),
)
"""Imports only point down; neighbours never meet."""

COMMAND_LINE = ("cli", "__main__")
"""The only rooms that read files, print, and know what time it is."""

STANDARD_LIBRARY = frozenset(
    {
        "__future__", "abc", "base64", "binascii", "bisect", "collections", "contextlib",
        "copy", "datetime", "decimal", "enum", "fractions", "functools", "hashlib", "heapq",
        "ipaddress", "itertools", "json", "keyword", "math", "numbers", "operator", "re",
        "string", "struct", "textwrap", "types", "typing", "unicodedata", "urllib.parse",
        "warnings", "weakref",
    }
)  # fmt: skip
"""What may be used below the command line: pure computation. An allow-list, because a
list of what is forbidden is never complete."""

THIRD_PARTY = frozenset({"attrs", "sortedcontainers", "semver"})
"""The run-time dependencies; nothing else is imported below the command line."""

EXCEPTIONS: dict[str, frozenset[str]] = {
    # Laws and strategies for embedders: the extra "testing" (jsonpointer comes with
    # jsonpatch), and that values survive pickling.
    "dra_core.testing": frozenset({"hypothesis", "jsonpatch", "jsonpointer", "pickle"}),
    # The HTTP library below each client, for the errors that it raises; imported when a
    # request is sent (tests/adapters/test_imports.py).
    "dra_core.adapters.kubernetes_client": frozenset({"urllib3"}),
    "dra_core.adapters.kr8s_client": frozenset({"kr8s", "httpx"}),
    "dra_core.adapters.lightkube_client": frozenset({"httpx", "httpx2"}),
    # The locks of the stores; threads are the caller's (see the next list).
    "dra_core.scheduling.delivery": frozenset({"threading"}),
    # The lock of the cache of selectors.
    "dra_core.cel.selector": frozenset({"threading"}),
}
"""What a module, or a package with all below it, may import beyond the rest, and why."""

LOCKS = frozenset({"Lock", "RLock", "Condition", "get_ident"})
"""What may be used of ``threading``: nothing that starts a thread or keeps state in one."""

IMPURE_CALLS = frozenset(
    {"open", "input", "print", "breakpoint", "__import__", ".now", ".utcnow", ".today"}
)
"""Built-ins and methods of allowed modules that reach outside all the same."""

MAX_MODULE_LINES = 600
MAX_FUNCTION_LINES = 60

PUBLIC_NAMES: tuple[str, ...] = (
    "Allocated",
    "AllocatedState",
    "AllocationError",
    "AllocationResult",
    "Allocator",
    "ApiRequest",
    "AssumeCache",
    "ClaimTracker",
    "Decoder",
    "DeviceClass",
    "DeviceId",
    "DeviceTaintRule",
    "DraError",
    "Features",
    "Inventory",
    "MalformedObjectError",
    "Node",
    "ObjectKey",
    "Pod",
    "PodGroup",
    "PoolId",
    "Quantity",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "ResourceSlice",
    "SelectorCache",
    "Undecided",
    "Unsatisfiable",
    "__version__",
    "apply_taint_rules",
    "decode",
    "encode",
    "explain",
    "resolve_claims",
    "validate",
)
"""What ``from dra_core import …`` promises (docs/compatibility.md). Sorted."""


def below_command_line() -> dict[str, list[architecture.Module]]:
    """Modules by room, the command line left out."""
    rooms: dict[str, list[architecture.Module]] = {}
    for module in MODULES.values():
        room = architecture.room_of(module.name, PACKAGE)
        if room not in COMMAND_LINE:
            rooms.setdefault(room, []).append(module)
    return rooms


ROOMS = below_command_line()


def test_the_package_was_found() -> None:
    """The checks below look at the real source, all of it."""
    assert {"dra_core", "dra_core.errors", "dra_core.api.objects"} <= set(MODULES)


def test_imports_point_down() -> None:
    """Imports only point down; neighbours never meet."""
    assert architecture.upward_imports(MODULES, PACKAGE, LAYERS) == []


def test_no_import_cycles() -> None:
    """No module reaches itself by imports."""
    assert architecture.import_cycles(MODULES) == []


DOOR = frozenset({"importlib"})
"""The door imports a name's room when the name is first used."""


def may_import(name: str) -> frozenset[str]:
    """What a module may import, exceptions included."""
    if name == PACKAGE:
        return STANDARD_LIBRARY | DOOR
    extra = (allowed for place, allowed in EXCEPTIONS.items() if f"{name}.".startswith(f"{place}."))
    return frozenset().union(STANDARD_LIBRARY, THIRD_PARTY, *extra)


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_only_pure_imports(room: str) -> None:
    """No clock, randomness, file, socket or thread below the command line."""
    found = [
        finding
        for module in ROOMS[room]
        for finding in architecture.forbidden_imports([module], may_import(module.name), PACKAGE)
    ]
    assert found == []


def test_exceptions_name_modules() -> None:
    """An exception for a module that is gone would be one for nobody."""
    assert set(EXCEPTIONS) <= set(MODULES)


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_threading_means_locks(room: str) -> None:
    """No thread is started; modules that may lock say so where they open."""
    assert architecture.used_of("threading", ROOMS[room]) <= LOCKS
    for module in ROOMS[room]:
        if architecture.used_of("threading", [module]):
            assert "lock" in (module.docstring or ""), module.name


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_only_pure_calls(room: str) -> None:
    """Nothing opens, prints, asks or reads the time."""
    assert architecture.impure_calls(ROOMS[room], IMPURE_CALLS) == []


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_no_global_state(room: str) -> None:
    """No state outlives the object that a caller owns."""
    assert architecture.global_state(ROOMS[room]) == []


def test_every_module_has_a_docstring() -> None:
    """A module opens with what may live in it."""
    assert architecture.missing_docstrings(MODULES.values()) == []


def test_modules_are_short() -> None:
    """A module of more than 600 lines has a second purpose."""
    assert architecture.long_modules(MODULES.values(), MAX_MODULE_LINES) == []


def test_functions_are_short() -> None:
    """No function is longer than 60 lines."""
    assert architecture.long_functions(MODULES.values(), MAX_FUNCTION_LINES) == []


def test_public_names_are_pinned() -> None:
    """The list of public names changes on purpose only."""
    assert tuple(sorted(getattr(dra_core, "__all__", ()))) == PUBLIC_NAMES


def test_public_names_exist() -> None:
    """Every promised name is there, and ``dir()`` shows nothing private instead."""
    assert [name for name in PUBLIC_NAMES if not hasattr(dra_core, name)] == []
    assert set(PUBLIC_NAMES) <= set(dir(dra_core))


# The checks themselves: each is shown source that breaks its rule.


def _modules(**sources: str) -> dict[str, architecture.Module]:
    """Modules of a made-up package ``p``: ``a__b`` is ``p.a.b``, ``p`` the package itself."""
    named = {f"p.{key.replace('__', '.')}" if key != "p" else "p": text
             for key, text in sources.items()}  # fmt: skip
    return {
        name: architecture.parse(
            name, text, is_package=any(other.startswith(f"{name}.") for other in named)
        )
        for name, text in named.items()
    }


P_LAYERS = (("",), ("top",), ("left", "right"), ("low",))


@pytest.mark.parametrize(
    ("sources", "found"),
    [
        ({"low__m": "import p.top"}, "p.low.m:1: imports p.top"),
        ({"low__m": "from p.top import f"}, "p.low.m:1: imports p.top"),
        ({"low__m": "from p import top"}, "p.low.m:1: imports p"),
        ({"low": "", "low__m": "from ..top import f"}, "p.low.m:1: imports p.top"),
        ({"low": "from ..top import f", "low__m": ""}, "p.low:1: imports p.top"),
        ({"low__n": "", "low__m": "from .top import f"}, None),
        ({"low": "from .top import f"}, "p.low:1: imports p.top"),
        ({"left": "import p.right"}, "p.left:1: imports p.right"),
        ({"low": "def f():\n    import p.left"}, "p.low:2: imports p.left"),
        ({"top": "from p import f"}, "p.top:1: imports p"),
        ({"top": "import p.elsewhere"}, "p.top:1: imports p.elsewhere"),
        ({"attic": ""}, "p.attic: room 'attic' has no layer"),
        ({"p": "from p.top import f"}, None),
        ({"top": "import p.left\nfrom p.low.m import f\nimport os"}, None),
        ({"low": "", "low__m": "from . import n\nfrom p.low import f"}, None),
    ],
)
def test_check_of_direction(sources: dict[str, str], found: str | None) -> None:
    """Imports that point up or sideways are found, those that point down are not."""
    assert architecture.upward_imports(_modules(**sources), "p", P_LAYERS) == (
        [found] if found else []
    )


def test_check_of_cycles() -> None:
    """A cycle through several modules is one finding with all of them; a chain is none."""
    cycle = _modules(
        p="", a="from p import b", b="import p.c", c="from p.a import f", d="import p.a"
    )
    assert architecture.import_cycles(cycle) == ["p.a <-> p.b <-> p.c"]
    assert architecture.import_cycles(_modules(a="import p.b", b="import p.c", c="")) == []


@pytest.mark.parametrize(
    ("source", "ok"),
    [
        ("import time", False),
        ("from random import Random", False),
        ("import os.path", False),
        ("import urllib.request", False),
        ("def f():\n    import socket", False),
        ("import yaml", False),
        ("import threading", False),
        ("import urllib.parse\nimport math\nimport attrs\nfrom p.a import b", True),
    ],
)
def test_check_of_imports(source: str, ok: bool) -> None:
    """What is not on the list is found, also inside functions."""
    allowed = STANDARD_LIBRARY | THIRD_PARTY
    assert (architecture.forbidden_imports(_modules(m=source).values(), allowed, "p") == []) is ok


@pytest.mark.parametrize(
    ("source", "used"),
    [
        ("import threading\nthreading.Lock()", {"Lock"}),
        ("import threading\nx: threading.Thread", {"Thread"}),
        ("from threading import Thread as T, RLock", {"Thread", "RLock"}),
        ("import threading as t", {"threading as t"}),
        ("import attrs\nthreaded.Lock()", set()),
    ],
)
def test_check_of_threading(source: str, used: set[str]) -> None:
    """What is used of a module is found, however it was imported."""
    assert architecture.used_of("threading", _modules(m=source).values()) == used


def test_exceptions_go_by_whole_names() -> None:
    """An exception holds for a package and what is in it, not for what begins alike."""
    assert "hypothesis" in may_import("dra_core.testing")
    assert "hypothesis" in may_import("dra_core.testing.laws")
    assert "hypothesis" not in may_import("dra_core.testing_more")


@pytest.mark.parametrize(
    ("source", "ok"),
    [
        ("open('x')", False),
        ("print(1)", False),
        ("datetime.now()", False),
        ("datetime.datetime.now(tz)", False),
        ("date.today()", False),
        ("f(now)\nmask.open()\nnow()", True),
    ],
)
def test_check_of_calls(source: str, ok: bool) -> None:
    """Calls that reach outside are found."""
    assert (architecture.impure_calls(_modules(m=source).values(), IMPURE_CALLS) == []) is ok


@pytest.mark.parametrize(
    ("source", "ok"),
    [
        ("def f():\n    global x\n    x = 1", False),
        ("from functools import lru_cache", False),
        ("import functools\n@functools.cache\ndef f(): ...", False),
        ("from functools import cached_property, reduce", True),
    ],
)
def test_check_of_state(source: str, ok: bool) -> None:
    """Assigned globals and caches of functions are found."""
    assert (architecture.global_state(_modules(m=source).values()) == []) is ok


def test_check_of_docstrings() -> None:
    """A module without docstring is found, an empty one too."""
    modules = _modules(a="", b="x = 1", c='"""What lives here."""').values()
    assert architecture.missing_docstrings(modules) == ["p.a", "p.b"]


def test_check_of_lengths() -> None:
    """Lengths count lines of code and blank lines, docstrings of functions not."""
    text = 'def f():\n    """One.\n\n    Three.\n    """\n    x = 1\n\n    return x\n'
    modules = _modules(m=f"class C:\n    {text.replace(chr(10), chr(10) + '    ')}").values()
    assert architecture.long_functions(modules, 4) == []
    assert architecture.long_functions(modules, 3) == ["p.m:2: f: 4 lines"]
    assert architecture.long_modules(modules, 8) == ["p.m: 10 lines"]
    assert architecture.long_modules(modules, 10) == []
