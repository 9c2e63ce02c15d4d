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
    def base(self) -> Path:
        """The classes of Java itself, for a Java that comes without an archive of them."""
        return self.folder / f"{self.name}-base.jsa"

    @property
    def manifest(self) -> Path:
        """What the files were like when they were made."""
        return self.folder / f"{self.name}.json"

    @property
    def settings(self) -> Path:
        """An empty folder of Spark's settings. It is on the class path, where Java 21 takes no archive beside a folder
        that does not exist, as PySpark's own, and no Java one beside a folder with something in it.
        """
        return self.folder / "conf"

    def options(self) -> str:
        """The Java options that use it; none where it cannot be used."""
        files = self._files()
        if files is None or not self.fits():
            return ""
        return f"-XX:SharedArchiveFile={os.pathsep.join(map(str, files))} {QUIET}"

    def take(self) -> str:
        """Its options, for a session of this process that is about to start."""
        if options := self.options():
            self._empty_settings()
            return options
        return ""

    def fits(self) -> bool:
        """Whether the session will be of PySpark's own jars, and with no settings but those it is given here: others
        have Java options of their own, which ours would replace.
        """
        given = os.environ.get("PYSPARK_SUBMIT_ARGS", "")
        if any(word in given for word in ("java-options", "JavaOptions", "properties-file")):
            return False
        own = os.environ.get("SPARK_CONF_DIR", "") in ("", str(self.settings)) and not _home("conf").exists()
        return own and not any(os.environ.get(name) for name in ("SPARK_HOME", "HADOOP_CONF_DIR"))

    def _empty_settings(self) -> None:
        self.settings.mkdir(parents=True, exist_ok=True)
        os.environ["SPARK_CONF_DIR"] = str(self.settings)

    def state(self) -> str:
        """Its status as text: Java itself is asked whether it accepts the archive."""
        if not self.manifest.exists():
            return NONE
        files = self._files()
        if not self.fits():
            return "not used: the environment names another Spark, or settings of its own"
        if files is None or not _is_taken(self.take()):
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
        if not self.fits():
            raise PlanError("an archive is for the Spark that comes with PySpark: unset SPARK_HOME and SPARK_CONF_DIR")
        self._empty_settings()
        self.manifest.unlink(missing_ok=True)
        kept, options = [self.classes], QUICK
        if not _has_base(self.java):
            _replace(self.base, lambda draft: _make_base(self.java, draft))
            kept, options = [self.base, self.classes], f"{QUICK} -XX:SharedArchiveFile={self.base}"
        _replace(self.classes, lambda draft: warm_up(f"{options} -XX:ArchiveClassesAtExit={draft}"))
        text = json.dumps({file.name: _looks(file) for file in kept})
        _replace(self.manifest, lambda draft: draft.write_text(text))


def _looks(file: Path) -> list[int]:
    found = file.stat()
    return [found.st_size, found.st_mtime_ns]


def _replace(file: Path, write: Callable[[Path], object]) -> None:
    """Write a draft, then give it its name: a session that starts meanwhile sees all of it or nothing."""
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=".draft-") as folder:
        draft = Path(folder) / file.name
        write(draft)
        if not draft.exists():
            raise PlanError(f"Java wrote no archive of classes to {draft}")
        shutil.move(draft, file)


def _is_taken(options: str) -> bool:
    """Whether Spark's Java, on the class path that its launcher makes, starts with this archive and not without it."""
    asked = [str(_home("bin") / "spark-submit"), "--driver-java-options", f"-Xshare:on {options}", "--version"]
    return _done(asked).returncode == 0


def _home(name: str) -> Path:
    """A folder of the Spark that comes with PySpark."""
    import pyspark

    return Path(pyspark.__file__).parent / name


def _has_base(java: str) -> bool:
    """Whether this Java comes with an archive of its own classes."""
    return _done([java, "-Xshare:on", "-version"]).returncode == 0


def _make_base(java: str, draft: Path) -> None:
    done = _done([java, "-Xshare:dump", f"-XX:SharedArchiveFile={draft}"])
    if done.returncode != 0:
        raise PlanError(f"Java made no archive of its own classes: {(done.stderr + done.stdout)[-1000:]}")


def _done(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=300)
