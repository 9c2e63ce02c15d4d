"""What CI runs sees nothing that this machine has in /tmp or at home. Issue 11."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

CI = Path(__file__).parents[1] / ".ci" / "run"
MAKEFILE = """test:
\t@echo "tmp $$(ls -A $${TMPDIR:-/tmp} | tr '\\n' ' ')"
\t@echo "home $$(ls -A $$HOME)"
\t@echo "here $$(pwd) $$(cat here)"
\t@echo "python $$($(PYTHON) -c 'import sys; print(sys.version_info >= (3, 11))')"
\t@echo "pip $$PIP_CONFIG_FILE"
\t@echo "private $$HOME"
\t@touch left $$HOME/left
\t@exit $(CODE)
"""


@pytest.fixture
def clone(tmp_path):
    (tmp_path / "clone" / ".ci").mkdir(parents=True)
    shutil.copy(CI, tmp_path / "clone" / ".ci")
    (tmp_path / "clone" / "Makefile").write_text(MAKEFILE)
    (tmp_path / "clone" / "here").write_text("it is")
    (tmp_path / "home" / ".config" / "pip").mkdir(parents=True)
    (tmp_path / "home" / ".config" / "pip" / "pip.conf").write_text("[global]\n")
    return tmp_path / "clone"


def ran(clone, code):
    env = {
        k: v for k, v in os.environ.items() if k not in ("PIP_CONFIG_FILE", "XDG_CONFIG_HOME", "MAKEFLAGS", "MFLAGS")
    }
    env |= {"HOME": str(clone.parent / "home"), "CODE": str(code)}
    command = ["bash", str(clone / ".ci" / "run")]
    return subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)


def test_the_tests_run_where_tmp_and_home_are_empty(clone):
    with tempfile.NamedTemporaryFile(prefix="seen-before-") as earlier:
        done = ran(clone, 0)
        assert done.returncode == 0, done.stderr
        found = dict(line.partition(" ")[::2] for line in done.stdout.splitlines())
        assert Path(earlier.name).name not in found["tmp"]
    under_tmp = clone.parts[2:3] if clone.is_relative_to("/tmp") else ()
    assert set(found["tmp"].split()) <= set(under_tmp)  # the way to the clone itself
    assert found["home"] == ""
    assert found["here"] == f"{clone} it is"
    assert found["python"] == "True"
    assert found["pip"] == str(clone.parent / "home" / ".config" / "pip" / "pip.conf")
    assert (clone / "left").exists()
    assert not Path(found["private"]).parent.exists()


def test_a_failure_is_a_failure(clone):
    assert ran(clone, 3).returncode != 0
