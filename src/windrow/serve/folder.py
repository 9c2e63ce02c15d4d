"""The folder of a served session, as its server and its clients use it: the token, the address and the lock."""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from windrow.errors import WindrowError

TRIES, PAUSE = 20, 0.05  # a client that looks whether a server runs holds the lock for a moment


class Folder:
    """Where a session keeps its state, and its server the token, the address and a lock."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._token = self.path / "token"
        self._address = self.path / "address"
        self._lock = self.path / "lock"

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Keep others from serving the same folder. The lock ends with this process, however it ends."""
        self.path.mkdir(parents=True, exist_ok=True)
        with self._lock.open("a") as lock:
            for left in reversed(range(TRIES)):
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if not left:
                        raise WindrowError(f"{self.path} is already being served: stop that server first") from None
                    time.sleep(PAUSE)
            yield

    def served(self) -> bool:
        """Whether a server holds the lock."""
        if not self._lock.exists():
            return False
        with self._lock.open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    # -- the server's side -------------------------------------------------------------------------------------------
    def token(self) -> str:
        """The token that clients must show; made at the first start, readable by its owner alone."""
        if not self._token.exists():
            fresh = self._token.with_name("token.new")
            fresh.unlink(missing_ok=True)
            with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
                out.write(secrets.token_urlsafe(32) + "\n")
            fresh.replace(self._token)
        if self._token.stat().st_mode & 0o077:
            raise WindrowError(f"{self._token} is open to other users: chmod 600 it, or remove it to get a new token")
        return self.read_token()

    def publish(self, address: str) -> None:
        """Tell clients where the server is."""
        fresh = self._address.with_name("address.new")
        fresh.write_text(address + "\n")
        fresh.replace(self._address)

    def withdraw(self) -> None:
        """The server is gone."""
        self._address.unlink(missing_ok=True)

    # -- the clients' side -------------------------------------------------------------------------------------------
    def read_token(self) -> str:
        """The token as it is in the folder."""
        try:
            token = self._token.read_text().strip()
        except OSError as error:
            raise WindrowError(f"{self._token} cannot be read: {error.strerror}") from None
        if not token:
            raise WindrowError(f"{self._token} is empty: remove it, and start the server again")
        return token

    def read_address(self) -> str:
        """Where the server is. Refused if none runs: whoever has its port now must not see the token."""
        if not self.served() or not self._address.exists():
            raise WindrowError(f"no server runs over {self.path}: start one with windrow serve --folder {self.path}")
        return self._address.read_text().strip()
