"""What is installed: one extension for every Python, and the command of the same version."""
import subprocess
from pathlib import Path

import weir


def test_the_package_is_the_one_that_was_built(weir_bin):
    package, build = Path(weir.__file__).resolve().parent, weir_bin.parents[2]
    assert package == build / "python/weir"


def test_the_command_has_the_same_version(weir_bin):
    said = subprocess.run([weir_bin, "version"], check=True, capture_output=True, text=True)
    assert weir.__version__ in said.stdout.split()


def test_one_extension_with_types():
    package = Path(weir.__file__).parent
    assert [path.name for path in package.glob("*.so")] == ["_weir.abi3.so"]
    assert (package / "py.typed").exists() and (package / "_weir.pyi").exists()


def test_what_python_stores_the_command_reads(weir_bin, store_url):
    with weir.open(store_url):
        pass
    said = subprocess.run([weir_bin, "--store", store_url, "verify"], check=True,
                          capture_output=True, text=True)
    assert "0 objects" in said.stdout + said.stderr
