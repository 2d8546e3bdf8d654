"""The public names: lazily loaded, and never lost behind a subfolder of the same name."""

import importlib
import pkgutil
import subprocess
import sys
from importlib.metadata import version

import pytest

import bridgehead

HEAVY = ["torch", "transformers", "rdkit", "fastapi", "faiss", "sklearn", "matplotlib", "polars"]
MODULES = [
    found.name
    for found in pkgutil.walk_packages(bridgehead.__path__, "bridgehead.")
    if not found.name.endswith("__main__")
]


def test_every_public_name_is_still_callable_after_every_submodule_was_imported():
    for name in MODULES:
        importlib.import_module(name)
    assert bridgehead.__all__
    for name in bridgehead.__all__:
        if not name.startswith("__"):
            assert callable(getattr(bridgehead, name)), f"bridgehead.{name} is not callable"


def test_no_public_name_is_that_of_a_submodule():
    submodules = {name.split(".")[1] for name in MODULES}
    assert not submodules & set(bridgehead.__all__)


def test_public_names_are_listed_once_in_order_and_shown_by_dir():
    assert len(set(bridgehead.__all__)) == len(bridgehead.__all__)
    assert set(bridgehead.__all__) <= set(dir(bridgehead))


def test_a_name_that_there_is_not_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = bridgehead.no_such_name


def test_importing_bridgehead_loads_no_heavy_library():
    script = f"import sys, bridgehead; print([n for n in {HEAVY} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_version_is_that_of_the_package():
    assert bridgehead.__version__ == version("bridgehead")
