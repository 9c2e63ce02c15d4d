"""What `import windrow` brings in: nothing that only Spark, the command line or a benchmark needs. Issue 11."""

import subprocess
import sys

import windrow

HEAVY = ("pyspark", "pandas", "typer", "rich", "matplotlib", "grpc")
SHOW = f"import sys, windrow; print([name for name in {HEAVY} if name in sys.modules])"


def test_importing_windrow_imports_no_spark():
    found = subprocess.run([sys.executable, "-c", SHOW], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_every_public_name_is_there():
    assert [name for name in windrow.__all__ if not hasattr(windrow, name)] == []
    assert not hasattr(windrow, "nothing_of_this_name")
