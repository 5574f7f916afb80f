"""A real, throw-away PostgreSQL for tests: on loopback, with a password, gone afterwards.

The server comes from the `pgserver` wheel's own binaries or a system installation. We start it
ourselves: run as root, `pgserver` would add a system user and open up the permissions of every
folder above the data. PostgreSQL refuses to run as root, so as root it runs as an unprivileged
user that every system has.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE_S = 30.0

Keeper = subprocess.Popen[bytes]

# The shell outlives us by one line: when our end of the pipe closes, however we end, it stops the
# server (SIGQUIT: at once, nothing here is worth a checkpoint) and removes the folder.
KEEPER = """
folder=$1; shift
exec 3<&0
"$@" </dev/null >"$folder/log" 2>&1 &
read -r _ <&3
kill -QUIT $!
wait
rm -rf "$folder"
"""

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "60",
    "shared_buffers": "16MB",
    "dynamic_shared_memory_type": "mmap",
    # Safe against killed clients, which is what tests do; not against power loss.
    "fsync": "off",
}


class PostgresMissing(RuntimeError):
    """No PostgreSQL can be had here."""


@contextmanager
def postgres_server() -> Iterator[str]:
    """Bring up a server and yield the URL of an empty database."""
    keeper, url = _brought_up()
    try:
        yield url
    finally:
        _stop(keeper)


def _brought_up() -> tuple[Keeper, str]:
    """A few tries: another program may take the free port before the server does."""
    for _ in range(3):
        try:
            return _try()
        except RuntimeError as error:
            failure = error
            if "could not bind" not in str(error):
                break
    raise failure


def _try() -> tuple[Keeper, str]:
    folder = Path(tempfile.mkdtemp(prefix="noisewise-pg-"))
    user = _unprivileged()
    password = secrets.token_hex(12)
    try:
        _hand_over(folder, user)
        binaries = _binaries(user, folder)
        _initialise(binaries, user, folder, password)
        keeper, port = _start(binaries, user, folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return keeper, f"postgresql://noisewise:{password}@127.0.0.1:{port}/postgres"


def _hand_over(path: Path, user: dict[str, Any]) -> None:
    if user:
        os.chown(path, user["user"], user["group"])


def _unprivileged() -> dict[str, Any]:
    """Arguments for `subprocess` that step down from root; none where we are not root."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    raise PostgresMissing("running as root, and there is no user `postgres` or `nobody`")


def _binaries(user: dict[str, Any], folder: Path) -> Path:
    """The first folder of binaries that the server's user can run."""
    candidates = []
    spec = importlib.util.find_spec("pgserver")
    bundled = Path(spec.origin).parent / "pginstall" if spec and spec.origin else None
    if bundled:
        candidates.append(bundled / "bin")
    candidates += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = shutil.which("initdb")
    if found:
        candidates.append(Path(found).resolve().parent)
    for candidate in candidates:
        if _runs(candidate, user):
            return candidate
    if bundled:  # in a private folder, as under root's home: the server's user needs a copy
        copy = Path(shutil.copytree(bundled, folder / "install", symlinks=True)) / "bin"
        if _runs(copy, user):
            return copy
    raise PostgresMissing("install `pgserver`, or PostgreSQL on the system")


def _runs(binaries: Path, user: dict[str, Any]) -> bool:
    try:
        for name in ("initdb", "postgres"):
            _run([binaries / name, "--version"], user)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def _initialise(binaries: Path, user: dict[str, Any], folder: Path, password: str) -> None:
    word = folder / "password"
    word.write_text(password)
    _hand_over(word, user)
    command: list[str | Path] = [binaries / "initdb", "-D", folder / "data", "-U", "noisewise"]
    command += ["--auth=scram-sha-256", f"--pwfile={word}"]
    command += ["--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"]
    try:
        _run(command, user)
    except subprocess.CalledProcessError as error:
        raise RuntimeError(f"initdb failed: {error.stdout}") from None


def _run(command: list[str | Path], user: dict[str, Any]) -> None:
    subprocess.run(
        command,
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd="/",
        **user,
    )


def _start(binaries: Path, user: dict[str, Any], folder: Path) -> tuple[Keeper, int]:
    port = _free_port()
    settings = [f"--{name}={value}" for name, value in SETTINGS.items()]
    server = [str(binaries / "postgres"), "-D", str(folder / "data"), "-p", str(port), *settings]
    keeper: Keeper = subprocess.Popen(
        ["sh", "-c", KEEPER, "sh", str(folder), *server],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,  # an interrupt at the terminal is ours to handle
        **user,
    )
    try:
        _await_ready(folder)
    except BaseException:
        _stop(keeper)
        raise
    return keeper, port


def _await_ready(folder: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while _line(folder / "data" / "postmaster.pid", 7) != "ready":
        log = _text(folder / "log")
        if "FATAL" in log or time.monotonic() > deadline:
            raise RuntimeError(f"PostgreSQL did not start: {log}")
        time.sleep(0.02)


def _stop(keeper: Keeper) -> None:
    keeper.communicate(timeout=PATIENCE_S)  # closes the pipe, which is the signal


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def _line(path: Path, number: int) -> str:
    lines = _text(path).splitlines()
    return lines[number].strip() if len(lines) > number else ""
