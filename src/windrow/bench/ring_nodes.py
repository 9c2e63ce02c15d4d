"""A ring of real processes on this machine: each is a node, as a task of a barrier stage is."""

from __future__ import annotations

import multiprocessing
import os
import secrets
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Concatenate, ParamSpec, TypeVar

from windrow.errors import InternalError
from windrow.hosts.ring.links import Address, Listener, TcpLinks

P = ParamSpec("P")
T = TypeVar("T")
THREADS = "POLARS_MAX_THREADS"


def in_ring(nodes: int, work: Callable[Concatenate[TcpLinks, P], T], *args: P.args, **named: P.kwargs) -> list[T]:
    """What ``work`` gives at each node, in a process of its own; it is called with the links of the node. Polars has
    one thread there, as in Spark's workers. Raises if it fails anywhere, and leaves no process behind.
    """
    context = multiprocessing.get_context("spawn")
    ends, started = list[Connection](), list[BaseProcess]()
    try:
        with _one_thread():
            for node in range(nodes):
                mine, theirs = context.Pipe()
                process: BaseProcess = context.Process(
                    target=_node, args=(node, theirs, work, args, named), daemon=True
                )
                process.start()
                theirs.close()
                ends.append(mine)
                started.append(process)
        addresses, secret = _gathered(ends), secrets.token_bytes(32)
        for end in ends:
            end.send((addresses, secret))
        return _gathered(ends)
    finally:
        for process in started:
            process.terminate()
            process.join()
        for end in ends:
            end.close()


def _node(node: int, end: Connection, work: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> None:
    """What runs in a process."""
    try:
        listener = Listener()
        end.send((True, listener.address))
        addresses, secret = end.recv()
        links = TcpLinks(node, listener, addresses, secret)
        found = work(links, *args, **named)
        links.close()
    except Exception:
        end.send((False, traceback.format_exc()))
        raise
    end.send((True, found))
    end.recv()  # the others may still have something to send


def _gathered(ends: Sequence[Connection]) -> list[Any]:
    """One answer of each node."""
    found: dict[int, Any] = {}
    while len(found) < len(ends):
        for ready in wait([end for node, end in enumerate(ends) if node not in found]):
            node = next(n for n, end in enumerate(ends) if end is ready)
            try:
                good, value = ends[node].recv()
            except EOFError:
                raise InternalError(f"the process of node {node} has ended") from None
            if not good:
                raise InternalError(f"node {node} has failed:\n{value}")
            found[node] = value
    return [found[node] for node in range(len(ends))]


@contextmanager
def _one_thread() -> Iterator[None]:
    """For processes that are started now."""
    before = os.environ.get(THREADS)
    os.environ[THREADS] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[THREADS]
        else:
            os.environ[THREADS] = before


__all__ = ["Address", "in_ring"]
