"""Python workers for Spark that have nothing to import: forks of one process that has imported it all.

Spark starts a Python process for each stateful operator and each source of ours, and a few for all queries together.
Each spends two seconds on imports, most of what a small streaming query takes. Here Spark is given a script in place of
Python. It hands its arguments, environment and files to a process that waits; that one forks, and the fork does what
``python -m`` would. All else is as ever: a process for each worker, Spark's modules, its sockets and signals.

``python ready_workers.py FOLDER PROGRAM ...`` runs a program that has such workers, if it makes no other choice.
"""

import array
import json
import os
import runpy
import select
import signal
import socket
import sys
from contextlib import suppress

STARTED = {  # by Spark, with -m; they run anew in each fork
    "pyspark.daemon",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.streaming.transform_with_state_driver_worker",
}
IMPORTED = [  # by these, by workers of the daemon, and with our functions
    *sorted(STARTED),
    "pyspark.worker",
    "pyspark.sql.streaming.proto.StateMessage_pb2",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.data_source_pushdown_filters",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "pandas",
    "pyarrow.parquet",
    "windrow",
    "windrow.hosts.spark.compile",
    "numba",
]
SCRIPT = """#!/bin/sh
exec '{python}' -I -S '{file}' --ask '{address}' "$@"
"""
SIZE = 8  # bytes of a length


def start(folder):
    """Let one wait in this folder for as long as this process lives: the script to give to Spark."""
    from pathlib import Path
    from subprocess import Popen

    folder.mkdir(parents=True, exist_ok=True)
    address, script = folder / "ready", folder / Path(sys.executable).name
    script.write_text(SCRIPT.format(python=sys.executable, file=os.path.abspath(__file__), address=address))
    script.chmod(0o755)
    address.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(address))
        listening.listen(100)  # who asks while it still imports waits
        # What a fork can no longer choose: the seed of hashes, which is Spark's. No thread outlives a fork: NumPy is
        # to start none; those of jemalloc and Polars sleep until there is much to do, and are not missed.
        environment = {**os.environ, "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
        number = listening.fileno()
        command = [sys.executable, os.path.abspath(__file__), "--wait", str(number), str(os.getpid())]
        with open(os.devnull) as nothing:
            process = Popen(command, env=environment, pass_fds=[number], stdin=nothing)
    process.returncode = 0  # nobody waits for it: it ends by itself
    return script


def ask(address, arguments):
    """In place of ``python arguments``: with the environment and files of this process, until that ends."""
    if arguments[0] != "-m" or arguments[1] not in STARTED:
        os.execv(sys.executable, [sys.executable, *arguments])
    text = json.dumps({"arguments": arguments[1:], "environment": dict(os.environ), "folder": os.getcwd()}).encode()
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(address)
        files = array.array("i", [0, 1, 2])
        sock.sendmsg([len(text).to_bytes(SIZE, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
        sock.sendall(text)
        fork = int.from_bytes(exactly(sock, SIZE), "big")

        def end(number, frame):
            with suppress(ProcessLookupError):
                os.kill(fork, number)

        signal.signal(signal.SIGTERM, end)
        for number in files:
            os.close(number)
        sock.recv(1)  # nothing, when the fork has ended


def exactly(sock, size):
    parts = []
    while size > 0:
        parts.append(sock.recv(size))
        if not parts[-1]:
            raise EOFError
        size -= len(parts[-1])
    return b"".join(parts)


def wait(listening, parent):
    """Import all; then fork for whoever asks, for as long as the parent lives. Returns in forks, with what to do."""
    alive = os.pidfd_open(parent)
    for name in IMPORTED:
        __import__(name)
    for name in STARTED:
        del sys.modules[name]
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for forks
    while True:
        ready, _, _ = select.select([listening, alive], [], [])
        if alive in ready:
            sys.exit()
        sock, _ = listening.accept()
        length, [(_, _, files)], _, _ = sock.recvmsg(SIZE, socket.CMSG_SPACE(3 * array.array("i").itemsize))
        asked = json.loads(exactly(sock, int.from_bytes(length, "big")))
        asked["files"] = array.array("i", files)
        if os.fork() == 0:
            os.close(alive)
            listening.close()
            sock.sendall(os.getpid().to_bytes(SIZE, "big"))
            sock.detach()  # open until the fork ends
            return asked
        sock.close()
        for number in asked["files"]:
            os.close(number)


def become(asked, paths):
    """Be the process that was asked for. ``paths``: where Python looks after the folder and PYTHONPATH."""
    import pyspark

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, file in enumerate(asked["files"]):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    home = os.path.dirname(pyspark.__file__) + os.sep
    given = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each and not each.startswith(home)]
    sys.path[:] = [asked["folder"], *given, *paths]
    module, *_ = sys.argv[:] = asked["arguments"]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def main(how, *arguments):
    if how == "--ask":
        ask(arguments[0], list(arguments[1:]))
    elif how == "--wait":
        known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        paths = [each for each in sys.path[1:] if each not in known]
        number, parent = map(int, arguments)
        become(wait(socket.socket(fileno=number), parent), paths)
    else:
        from pathlib import Path

        os.environ["PYSPARK_PYTHON"] = str(start(Path(how)))
        os.execv(sys.executable, [sys.executable, *arguments])


if __name__ == "__main__":
    main(*sys.argv[1:])
