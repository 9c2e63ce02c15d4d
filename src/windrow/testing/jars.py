"""The jars of a Kafka broker: fetched once by the Ivy that PySpark has, checked against a list, and kept.

They come from Ivy's default repository, Maven Central. ``kafka.lock`` names them all, each with its SHA-256.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import ssl
import struct
import subprocess
import tempfile
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from windrow.errors import PlanError
from windrow.hosts.spark import java

SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true" usepoms="false"/></resolvers>
</ivysettings>
"""
WANTED = """<ivy-module version="2.0">
  <info organisation="windrow" module="broker"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{}
  </dependencies>
</ivy-module>
"""
ONE = (
    '    <dependency org="{0.group}" name="{0.name}" rev="{0.version}" transitive="false" conf="default->default">'
    '<artifact name="{0.name}" type="jar" ext="jar"/></dependency>'
)
PASSWORD, SALT, X509 = "changeit", b"Mighty Aphrodite", b"X.509"  # of Java's key stores
PATIENCE = 600.0  # seconds that fetching them may take


@dataclass(frozen=True)
class Jar:
    """A jar as the lock file names it."""

    group: str
    name: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        return f"{self.name}-{self.version}.jar"

    def is_at(self, folder: Path) -> bool:
        """Whether it is in a folder, as it should be."""
        path = folder / self.file
        return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == self.sha256


def locked() -> list[Jar]:
    """All jars that a broker needs."""
    found = []
    for line in (files("windrow.testing") / "kafka.lock").read_text().splitlines():
        name, sha256 = line.split()
        group, artifact, version = name.split(":")
        found.append(Jar(group, artifact, version, sha256))
    return found


def cache() -> Path:
    """Where what is fetched is kept: $WINDROW_CACHE, or the folder for caches of this user."""
    if given := os.environ.get("WINDROW_CACHE"):
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "windrow"


def fetched() -> Path:
    """A folder with the jars, and no others. If they are not there they are fetched, a quarter of a minute."""
    wanted = locked()
    version = next(jar.version for jar in wanted if jar.name == "kafka-clients")
    folder = cache() / f"kafka-{version}"
    if all(jar.is_at(folder) for jar in wanted):
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f".kafka-{version}").open("w") as door:
        fcntl.flock(door, fcntl.LOCK_EX)  # of several processes one fetches them
        if not all(jar.is_at(folder) for jar in wanted):
            _into(folder, wanted)
    return folder


def _into(folder: Path, wanted: list[Jar]) -> None:
    """All of them or nothing."""
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as made:
        draft = Path(made) / "jars"
        _fetch(wanted, Path(made), draft)
        if odd := [jar.file for jar in wanted if not jar.is_at(draft)]:
            raise PlanError(
                f"{', '.join(odd)} is not what kafka.lock says: a broker does not start with other jars than those. "
                "Look at what answers for Maven Central here"
            )
        shutil.rmtree(folder, ignore_errors=True)  # of a fetch that was disturbed
        draft.rename(folder)


def _fetch(wanted: list[Jar], work: Path, into: Path) -> None:
    import pyspark

    [ivy] = sorted((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))[-1:]
    (work / "settings.xml").write_text(SETTINGS)
    (work / "ivy.xml").write_text(WANTED.format("\n".join(ONE.format(jar) for jar in wanted)))
    where = ["-cache", str(work / "cache"), "-retrieve", f"{into}/[artifact]-[revision].[ext]", "-warn"]
    command = ["-jar", str(ivy), "-settings", str(work / "settings.xml"), "-ivy", str(work / "ivy.xml"), *where]
    trusting = ["-Djavax.net.ssl.trustStore=" + str(work / "trusted"), "-Djavax.net.ssl.trustStorePassword=" + PASSWORD]
    done = _java(work, command)
    if done.returncode != 0 and "SSLHandshakeException" in done.stdout + done.stderr:
        (work / "trusted").write_bytes(trusted(ssl.create_default_context().get_ca_certs(binary_form=True)))
        done = _java(work, [*trusting, *command])
    if done.returncode != 0:
        raise PlanError(
            f"the jars of a Kafka broker cannot be fetched from Maven Central: {(done.stdout + done.stderr)[-2000:]}"
        )


def _java(folder: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    whole = [java.ensure(), *command]
    return subprocess.run(whole, capture_output=True, text=True, timeout=PATIENCE, cwd=folder, check=False)


def trusted(certificates: list[bytes]) -> bytes:
    """A key store of Java with the certificates that this machine trusts: a Java from a package knows others."""
    entries = [struct.pack(">III", 0xFEEDFEED, 2, len(certificates))]
    for number, certificate in enumerate(certificates):
        alias = str(number).encode()
        entries += [struct.pack(">IH", 2, len(alias)), alias, struct.pack(">QH", 0, len(X509)), X509]
        entries += [struct.pack(">I", len(certificate)), certificate]
    data = b"".join(entries)
    digest = hashlib.sha1(PASSWORD.encode("utf-16-be") + SALT + data)  # as the format wants it
    return data + digest.digest()
