"""An archive of Spark's classes: Java maps it instead of loading and verifying some 15,000 classes at each start.

``windrow doctor --warm`` makes it, once for each installation. It belongs to one Java and one PySpark; where there is
none, or it is of others, or it was changed, sessions start without it, only slower. See
``-XX:SharedArchiveFile`` in the documentation of Java.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from windrow.errors import PlanError
from windrow.hosts.spark import java as javas

OPTIONS = "spark.driver.extraJavaOptions"
# For a JVM that lives a minute: compiling well costs more than it saves, as does collecting garbage beside the work.
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
NONE = "none; windrow doctor --warm makes one, and Spark starts faster"
UNUSED = "ignored: it is torn, changed or of another Java; windrow doctor --warm makes a new one"
QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"  # Java says on stdout why it ignores an archive


@dataclass(frozen=True)
class Archive:
    """The archive for one Java and the PySpark of this installation, whether or not it is there."""

    java: str

    @cached_property
    def folder(self) -> Path:
        """In the virtual environment, which goes away together with it; else among the caches of this user."""
        if sys.prefix != sys.base_prefix:
            return Path(sys.prefix) / "share" / "windrow"
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "windrow"

    @cached_property
    def name(self) -> str:
        """Which Java, by its version and place, and which PySpark."""
        place = zlib.crc32(os.path.realpath(self.java).encode())
        pyspark = importlib.metadata.version("pyspark")
        return f"pyspark-{pyspark}-java-{javas.build(self.java) or 'unknown'}-{place:08x}"

    @property
    def classes(self) -> Path:
        return self.folder / f"{self.name}.jsa"

    @property
    def manifest(self) -> Path:
        """What the files were like when they were made."""
        return self.folder / f"{self.name}.json"

    def options(self) -> str:
        """The Java options that use it; none where it cannot be used."""
        files = self._files()
        if files is None or not is_our_spark():
            return ""
        return f"-XX:SharedArchiveFile={os.pathsep.join(map(str, files))} {QUIET}"

    def state(self) -> str:
        """Its status as text: Java itself is asked whether it accepts the archive."""
        if not self.manifest.exists():
            return NONE
        files = self._files()
        if not is_our_spark():
            return "not used: the environment names another Spark, or settings of its own"
        if files is None or not _is_taken(self.options()):
            return UNUSED
        return f"in use ({sum(f.stat().st_size for f in files) / 2**20:.0f} MiB in {self.folder})"

    def _files(self) -> list[Path] | None:
        """The files, if they are as they were made."""
        try:
            stored = json.loads(self.manifest.read_text())
            if {name: _looks(self.folder / name) for name in stored} != stored:
                return None
        except (OSError, ValueError, TypeError):
            return None
        return [self.folder / name for name in stored] or None

    def make(self, warm_up: Callable[[str], None]) -> None:
        """Make it anew. ``warm_up`` runs a Spark under the Java options that it is given, to the end of that Java."""
        if not is_our_spark():
            raise PlanError("an archive is for the Spark that comes with PySpark: unset SPARK_HOME and SPARK_CONF_DIR")
        self.folder.mkdir(parents=True, exist_ok=True)
        self.manifest.unlink(missing_ok=True)
        _replace(self.classes, lambda draft: warm_up(f"{QUICK} -XX:ArchiveClassesAtExit={draft}"))
        if self.classes.exists():
            text = json.dumps({self.classes.name: _looks(self.classes)})
            _replace(self.manifest, lambda draft: draft.write_text(text))
        if not self.classes.exists() or not _is_taken(self.options()):
            self.manifest.unlink(missing_ok=True)
            self.classes.unlink(missing_ok=True)
            raise PlanError(
                f"Java {javas.build(self.java)} ({self.java}) makes no archive, or does not accept it on the class "
                "path of Spark's launcher: Java 21 does not, Java 17 does. Sessions start without one"
            )


def is_our_spark() -> bool:
    """Whether the session will be of PySpark's own jars and settings. A folder of settings is on the class path, where
    Java allows no archive beside it, and has Java options of its own, which ours would replace.
    """
    given = os.environ.get("PYSPARK_SUBMIT_ARGS", "")
    named = any(word in given for word in ("java-options", "JavaOptions", "properties-file"))
    return not named and not any(os.environ.get(name) for name in ("SPARK_HOME", "SPARK_CONF_DIR", "HADOOP_CONF_DIR"))


def _looks(file: Path) -> list[int]:
    found = file.stat()
    return [found.st_size, found.st_mtime_ns]


def _replace(file: Path, write: Callable[[Path], object]) -> None:
    """Write a draft, then give it its name: a session that starts meanwhile sees all of it or nothing."""
    file.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=".draft-") as folder:
        draft = Path(folder) / file.name
        write(draft)
        if draft.exists():
            shutil.move(draft, file)


def _is_taken(options: str) -> bool:
    """Whether Spark's Java, on the class path that its launcher makes, starts with this archive and not without it."""
    import pyspark

    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    asked = [str(submit), "--driver-java-options", f"-Xshare:on {options}", "--version"]
    return subprocess.run(asked, capture_output=True, timeout=300).returncode == 0
