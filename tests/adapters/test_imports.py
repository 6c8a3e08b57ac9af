"""The adapters import no client package before one is used."""

import json
import subprocess
import sys

import pytest

PACKAGES = {"kubernetes", "kr8s", "lightkube", "httpx", "httpx2", "urllib3", "asyncio", "ssl"}


@pytest.mark.parametrize(
    "module", ["plain", "answers", "kubernetes_client", "kr8s_client", "lightkube_client"]
)
def test_nothing_is_imported_beforehand(module: str) -> None:
    """Importing an adapter needs no client package; reading an object imports none."""
    code = (
        f"import json, sys, dra_core.adapters.{module}, dra_core.adapters.plain as plain\n"
        "plain.to_plain({'metadata': {}})\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], check=True, capture_output=True)
    assert PACKAGES & {name.partition(".")[0] for name in json.loads(done.stdout)} == set()
