"""Which hosts are this machine and nothing else."""

from __future__ import annotations

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Whether a host, by its name or address, can be reached from this machine alone.

    >>> [is_loopback(host) for host in ("127.0.0.1", "127.1.2.3", "[::1]", "LOCALHOST", "0.0.0.0", "example.org", "")]
    [True, True, True, True, False, False, False]
    """
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False


def without_port(host: str) -> str:
    """The host of a ``Host`` header.

    >>> [without_port(host) for host in ("localhost:80", "localhost", "[::1]:80", "[::1]")]
    ['localhost', 'localhost', '[::1]', '[::1]']
    """
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() and not host.endswith("]") else host
