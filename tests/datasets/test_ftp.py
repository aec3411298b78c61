"""FTP, which the published descriptors need: a server of a few lines that behaves and misbehaves."""

import hashlib
import socket
import socketserver
import threading

import pytest

from manifind.datasets.download import RetryPolicy, fetch
from manifind.errors import DataError

BODY = b"ground truth " * 20_000


class _Session(socketserver.StreamRequestHandler):
    def handle(self):
        self.say("220 ready")
        for line in iter(self.rfile.readline, b""):
            command, _, argument = line.decode().strip().partition(" ")
            self.server.reports.append((command, argument))
            answer = getattr(self, f"do_{command.lower()}", None)
            if answer is None:
                self.say("502 not known")
            elif answer(argument) == "over":
                return

    def say(self, text):
        self.wfile.write(f"{text}\r\n".encode())

    def do_user(self, name):
        self.say("331 password please" if self.server.mode != "closed" else "530 me:secret may not log in")

    def do_pass(self, word):
        self.say("230 welcome")

    def do_type(self, kind):
        self.say("200 binary")

    def do_size(self, path):
        self.say("502 not known" if self.server.mode == "sizeless" else f"213 {len(BODY)}")

    def do_epsv(self, _):
        self.say("500 not known")

    def do_pasv(self, _):
        self.data = socket.create_server(("127.0.0.1", 0))
        port = self.data.getsockname()[1]
        self.say(f"227 passive (127,0,0,1,{port // 256},{port % 256})")

    def do_retr(self, path):
        mode = self.server.mode
        with self.data:
            if path != "/deep/a.mat":
                return self.say("550 no such file")
            if mode == "busy" and len([c for c, _ in self.server.reports if c == "RETR"]) < 3:
                return self.say("450 busy")
            self.say("150 coming")
            connection, _ = self.data.accept()
            with connection:
                connection.sendall(BODY if mode in ("", "sizeless", "busy") else BODY[:1000])
        if mode == "cut":
            return "over"
        return self.say("226 done")

    def do_quit(self, _):
        self.say("221 bye")
        return "over"


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    mode = ""

    def handle_error(self, request, client_address):
        """Say nothing of clients that go away."""


@pytest.fixture
def ftp():
    with _Server(("127.0.0.1", 0), _Session) as running:
        running.reports = []
        running.address = f"ftp://127.0.0.1:{running.server_address[1]}/deep/a.mat"
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def problem_of(dataset, root, retries):
    with pytest.raises(DataError) as caught:
        fetch(dataset, root, retries=retries)
    assert "get a.mat from https://example.org/tiny" in caught.value.hint
    assert not list((root / "tiny").iterdir())
    return caught.value.problem


@pytest.mark.parametrize("mode", ["", "sizeless"])
def test_a_file_comes_over_ftp_and_progress_is_told(ftp, tiny, tmp_path, quick, mode):
    ftp.mode = mode
    reports = []
    (got,) = fetch(tiny((ftp.address, "a.mat")), tmp_path, retries=quick, listener=reports.append)
    assert got.sha256 == hashlib.sha256(BODY).hexdigest()
    assert got.path.read_bytes() == BODY
    assert (reports[-1].done, reports[-1].total) == (len(BODY), len(BODY))
    assert ("USER", "anonymous") in ftp.reports


def test_a_missing_file_is_told_with_the_servers_words_and_not_tried_again(ftp, tiny, tmp_path, quick):
    problem = problem_of(tiny((ftp.address.replace("deep", "flat"), "a.mat")), tmp_path, quick)
    assert "the server answered '550 no such file'" in problem
    assert [command for command, _ in ftp.reports].count("RETR") == 1


def test_a_busy_server_is_tried_until_it_is_not(ftp, tiny, tmp_path, quick):
    ftp.mode = "busy"
    assert fetch(tiny((ftp.address, "a.mat")), tmp_path, retries=quick)[0].path.read_bytes() == BODY


@pytest.mark.parametrize("mode", ["cut", "short"])
def test_a_transfer_that_ends_early_is_noticed(ftp, tiny, tmp_path, quick, mode):
    ftp.mode = mode
    assert "the connection was dropped" in problem_of(tiny((ftp.address, "a.mat")), tmp_path, quick)
    assert [command for command, _ in ftp.reports].count("RETR") == 3


def test_name_and_password_are_used_and_never_shown(ftp, tiny, tmp_path, quick):
    url = ftp.address.replace("ftp://", "ftp://me:se%20cret@")
    fetch(tiny((url, "a.mat")), tmp_path, retries=quick)
    assert ("USER", "me") in ftp.reports
    assert ("PASS", "se cret") in ftp.reports
    ftp.mode = "closed"
    (tmp_path / "tiny" / "a.mat").unlink()
    (tmp_path / "tiny" / "SHA256SUMS").unlink()
    problem = problem_of(tiny((url, "a.mat")), tmp_path, quick)
    assert problem.startswith(f"{ftp.address} cannot be fetched: the server answered '530")
    assert "se%20cret" not in problem


def test_a_server_that_is_not_there_is_told_in_words(tiny, tmp_path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    dataset = tiny((f"ftp://127.0.0.1:{port}/a.mat", "a.mat"))
    assert "refused the connection" in problem_of(dataset, tmp_path, RetryPolicy(1, 5, 0))


def test_a_server_that_says_nothing_is_left_after_the_timeout(tiny, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        dataset = tiny((f"ftp://127.0.0.1:{silent.getsockname()[1]}/a.mat", "a.mat"))
        assert "silent for 0.2 s" in problem_of(dataset, tmp_path, RetryPolicy(1, 0.2, 0))
