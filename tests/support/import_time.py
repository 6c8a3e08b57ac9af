"""How long ``import dra_core`` takes in a new interpreter, as a script for CI.

``python import_time.py`` measures the interpreter that runs it, several times, and
fails when not even the fastest import stays below the limit: a machine can be busy,
but never faster than the code allows.
"""

import subprocess
import sys

LIMIT_MS = 200.0
"""Promised for the package without its extras."""

ATTEMPTS = 12

_MEASURE = """
import time
start = time.perf_counter()
import dra_core
print((time.perf_counter() - start) * 1e3)
"""


def import_ms() -> float:
    """Milliseconds of one import in an interpreter of its own."""
    command = [sys.executable, "-I", "-c", _MEASURE]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> int:
    """Print the figures; 1 when the fastest attempt is over the limit."""
    import_ms()  # writes the bytecode that every later import reads
    times = sorted(import_ms() for _ in range(ATTEMPTS))
    print(f"import dra_core: {times[0]:.0f} ms at best, {times[len(times) // 2]:.0f} ms median")
    print(f"limit: {LIMIT_MS:.0f} ms at best")
    return int(times[0] >= LIMIT_MS)


if __name__ == "__main__":
    sys.exit(main())
