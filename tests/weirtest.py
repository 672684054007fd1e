"""What tests of the Python package and of other libraries' files share; see tools/test.

Files named test_torch_*.py, and all of tests/interop, run under a plain build only.
"""
import importlib
import os
from pathlib import Path

import peers
import pytest

ROOT = Path(__file__).resolve().parents[1]


def need(name):
    """The module, or a skip of the whole file that says why it is not there."""
    missing = ROOT / ".venv/missing"  # left by tools/setup
    try:
        return peers.streaming() if name == "streaming" else importlib.import_module(name)
    except ImportError as error:
        why = missing.read_text().strip() if missing.exists() else "tools/setup test installs it"
        pytest.skip(f"needs {name} ({error}): {why}", allow_module_level=True)


@pytest.fixture
def weir_bin():
    """The command that was built with the package."""
    return Path(os.environ.get("WEIR_BIN", ROOT / "build/plain/src/cli/weir")).resolve()


@pytest.fixture
def store_url(tmp_path):
    """A store of the test's own, that is not made yet."""
    return f"file:{tmp_path}/store"
