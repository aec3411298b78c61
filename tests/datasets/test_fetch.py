"""Downloads against a server that behaves, misbehaves, and lies; nothing here leaves this machine."""

import hashlib
import io
import socket
import sys
import tarfile
import zipfile

import pytest

from manifind.datasets.catalogue import RemoteFile
from manifind.datasets.download import RetryPolicy, fetch
from manifind.errors import DataError, InputError, MissingExtraError
from manifind.files import SUMS, read_sums

pytest.importorskip("pooch")

BODY = b"descriptors " * 50_000
SHA = hashlib.sha256(BODY).hexdigest()


@pytest.fixture
def refused(tiny, tmp_path, quick):
    """The problem with which a file is not fetched; the hint names it, its source and its place."""

    def run(url, retries=quick, **settings):
        dataset = tiny(RemoteFile(url, "deep/a.mat", "descriptors", **settings))
        with pytest.raises(DataError) as caught:
            fetch(dataset, tmp_path, retries=retries)
        place = tmp_path / "tiny" / "deep" / "a.mat"
        for part in ("a.mat", "https://example.org/tiny", str(place), "`manifind data check tiny`", "ask a friend"):
            assert part in caught.value.hint
        assert not place.exists()
        assert not list(tmp_path.rglob("*.partial"))
        return caught.value.problem

    return run


def test_a_file_comes_whole_and_its_digest_is_recorded(server, tiny, tmp_path, quick):
    dataset = tiny((server.serve("/a.mat", BODY), "deep/a.mat"))
    (got,) = fetch(dataset, tmp_path, retries=quick)
    assert (got.outcome, got.sha256, got.folder) == ("downloaded", SHA, None)
    assert got.path == tmp_path / "tiny" / "deep" / "a.mat"
    assert got.path.read_bytes() == BODY
    assert read_sums(tmp_path / "tiny") == {"deep/a.mat": SHA}
    assert sorted(file.name for file in (tmp_path / "tiny").rglob("*")) == [SUMS, "a.mat", "deep"]


def test_a_file_that_is_there_is_not_fetched_again(server, tiny, tmp_path, quick):
    dataset = tiny((server.serve("/a.mat", BODY), "a.mat"))
    fetch(dataset, tmp_path, retries=quick)
    (again,) = fetch(dataset, tmp_path, retries=quick)
    assert (again.outcome, again.sha256) == ("present", SHA)
    assert len(server.asked) == 1


def test_a_published_digest_needs_no_record(server, tiny, tmp_path, quick):
    dataset = tiny(RemoteFile(server.serve("/a.mat", BODY), "a.mat", "descriptors", sha256=SHA))
    assert [fetch(dataset, tmp_path, retries=quick)[0].outcome for _ in range(2)] == ["downloaded", "present"]
    assert read_sums(tmp_path / "tiny") == {}


def test_a_file_that_someone_put_there_is_recorded_and_used(server, tiny, tmp_path, quick):
    dataset = tiny((server.serve("/a.mat", BODY), "a.mat"))
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "a.mat").write_bytes(b"by hand")
    assert [fetch(dataset, tmp_path, retries=quick)[0].outcome for _ in range(2)] == ["found", "present"]
    assert read_sums(tmp_path / "tiny") == {"a.mat": hashlib.sha256(b"by hand").hexdigest()}
    assert server.asked == []


def test_progress_is_told_up_to_the_last_byte(server, tiny, tmp_path, quick):
    reports = []
    fetch(tiny((server.serve("/a.mat", BODY), "a.mat")), tmp_path, retries=quick, listener=reports.append)
    fetching = [report for report in reports if report.stage == "fetching a.mat"]
    assert len(fetching) > 1
    assert {report.total for report in fetching} == {len(BODY)}
    assert fetching[-1].done == len(BODY)


def test_bytes_are_asked_for_as_they_are(server, tiny, tmp_path, quick):
    fetch(tiny((server.serve("/a.mat", BODY), "a.mat")), tmp_path, retries=quick)
    assert server.asked[0][1]["Accept-Encoding"] == "identity"


def test_a_missing_file_is_asked_for_once(server, refused):
    problem = refused(server.serve("/a.mat", 404))
    assert problem == f"{server.address}/a.mat cannot be fetched: the server answered 404 (Not Found)"
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_server_that_recovers_is_tried_until_it_does(server, tiny, tmp_path, quick, status):
    dataset = tiny((server.serve("/a.mat", status, status, BODY), "a.mat"))
    assert fetch(dataset, tmp_path, retries=quick)[0].sha256 == SHA
    assert len(server.asked) == 3


def test_a_server_that_does_not_recover_is_given_up_after_three_tries(server, refused):
    problem = refused(server.serve("/a.mat", 500))
    assert problem.endswith("the server answered 500 (Internal Server Error) (3 tries)")
    assert len(server.asked) == 3


def test_a_status_without_a_name_is_told_by_its_number(server, refused):
    assert "the server answered 599" in refused(server.serve("/a.mat", lambda handler: handler.send(b"", status=599)))


def drop(handler):
    handler.send(BODY[:1000], promised=len(BODY))
    handler.connection.shutdown(socket.SHUT_RDWR)


def test_a_connection_that_is_dropped_halfway_is_noticed(server, refused):
    assert "the connection was dropped" in refused(server.serve("/a.mat", drop))
    assert len(server.asked) == 3


def test_a_body_shorter_than_promised_is_noticed(server, refused):
    url = server.serve("/a.mat", lambda handler: handler.send(BODY, promised=len(BODY) + 1))
    assert "the connection was dropped" in refused(url)


def test_a_short_body_is_noticed_even_where_the_client_does_not_mind(server, refused, monkeypatch):
    requests = pytest.importorskip("requests")
    monkeypatch.setattr(requests.Response, "iter_content", lambda self, size: [b"x" * 60])
    url = server.serve("/a.mat", lambda handler: handler.send(b"x" * 60, promised=100))
    assert "the connection was dropped after 60 of 100 bytes (3 tries)" in refused(url)


@pytest.mark.parametrize("page", [b"<!DOCTYPE html><p>We have moved", b"\n <html lang=en>", b"<HTML>"])
def test_a_web_page_in_place_of_a_file_that_is_gone_is_not_taken_for_it(server, refused, page):
    assert "the server sent a web page instead of the file" in refused(server.serve("/a.mat", page))
    assert len(server.asked) == 1


def test_an_empty_answer_is_not_taken_for_the_file(server, refused):
    assert "the server sent an empty file" in refused(server.serve("/a.mat", b""))


def test_a_dropped_download_is_tried_again(server, tiny, tmp_path, quick):
    dataset = tiny((server.serve("/a.mat", drop, BODY), "a.mat"))
    assert fetch(dataset, tmp_path, retries=quick)[0].path.read_bytes() == BODY


def test_a_server_that_says_nothing_is_left_after_the_timeout(server, refused):
    url = server.serve("/a.mat", lambda handler: handler.server.released.wait(20))
    assert "the server was silent for 0.2 s (2 tries)" in refused(url, RetryPolicy(2, 0.2, 0))


def test_a_server_that_stops_halfway_is_left_after_the_timeout(server, refused):
    def stall(handler):
        handler.send(BODY[:1000], promised=len(BODY))
        handler.server.released.wait(20)

    problem = refused(server.serve("/a.mat", stall), RetryPolicy(1, 0.2, 0))
    assert problem.endswith("the server was silent for 0.2 s")


def test_a_server_that_is_not_there_is_named_in_words(refused):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    assert "the server refused the connection (3 tries)" in refused(f"http://127.0.0.1:{port}/a.mat")


def test_a_name_that_does_not_resolve_is_told_in_words(refused, monkeypatch):
    def fail(*arguments, **settings):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    assert "name cannot be found; is this machine online?" in refused("http://nowhere.invalid/a.mat")


def test_wrong_bytes_for_a_published_digest_are_not_kept(server, refused):
    problem = refused(server.serve("/a.mat", b"something else"), sha256=SHA)
    assert hashlib.sha256(b"something else").hexdigest() in problem
    assert f"expected {SHA}, as published" in problem
    assert len(server.asked) == 1, "the same bytes would come again"


def test_bytes_that_changed_since_the_first_download_are_not_kept(server, tiny, tmp_path, quick):
    dataset = tiny((server.serve("/a.mat", BODY, b"new"), "a.mat"))
    fetch(dataset, tmp_path, retries=quick)[0].path.unlink()
    with pytest.raises(DataError, match=f"expected {SHA}, as recorded at its first download") as caught:
        fetch(dataset, tmp_path, retries=quick)
    assert "remove its line from SHA256SUMS" in caught.value.hint
    assert not (tmp_path / "tiny" / "a.mat").exists()
    assert read_sums(tmp_path / "tiny") == {"a.mat": SHA}


@pytest.mark.parametrize("sha256", [None, SHA])
def test_a_file_whose_bytes_changed_here_is_set_aside_and_fetched_again(server, tiny, tmp_path, quick, sha256):
    dataset = tiny(RemoteFile(server.serve("/a.mat", BODY), "a.mat", "descriptors", sha256=sha256))
    path = fetch(dataset, tmp_path, retries=quick)[0].path
    path.write_bytes(b"damaged")
    assert fetch(dataset, tmp_path, retries=quick)[0].outcome == "downloaded"
    assert path.read_bytes() == BODY
    assert path.with_name("a.mat.wrong").read_bytes() == b"damaged"


def test_a_damaged_file_does_not_stay_in_place_where_the_server_is_gone(server, tiny, tmp_path, quick):
    dataset = tiny(RemoteFile(server.serve("/a.mat", BODY, 404), "a.mat", "descriptors", sha256=SHA))
    path = fetch(dataset, tmp_path, retries=quick)[0].path
    path.write_bytes(b"damaged")
    with pytest.raises(DataError, match="404"):
        fetch(dataset, tmp_path, retries=quick)
    assert not path.exists()
    assert path.with_name("a.mat.wrong").read_bytes() == b"damaged"


def test_redirections_are_followed(server, tiny, tmp_path, quick):
    server.serve("/new.mat", BODY)
    url = server.serve("/a.mat", lambda handler: handler.send(b"", status=302, Location="/new.mat"))
    assert fetch(tiny((url, "a.mat")), tmp_path, retries=quick)[0].sha256 == SHA


@pytest.mark.parametrize("to", ["file:///etc/hostname", "ftp://127.0.0.1/a.mat"])
def test_redirections_to_other_kinds_of_address_are_not_followed(server, refused, to):
    refused(server.serve("/a.mat", lambda handler: handler.send(b"", status=302, Location=to)))
    assert len(server.asked) == 1


def test_redirections_in_a_circle_end(server, refused):
    url = server.serve("/a.mat", lambda handler: handler.send(b"", status=302, Location="/a.mat"))
    assert "cannot be fetched" in refused(url, RetryPolicy(1, 5, 0))


@pytest.mark.parametrize(
    "url", ["file:///etc/hostname", "sftp://example.org/a.mat", "doi:10.5281/a.mat", "a.mat", "http://[::1"]
)
def test_addresses_of_other_kinds_are_refused(refused, url):
    assert refused(url) == f"{url} is not an address of the kinds http, https, ftp"


@pytest.mark.parametrize("url", ["http://", "http://127.0.0.1:port/a.mat", "ftp://127.0.0.1:port/a.mat"])
def test_addresses_that_are_incomplete_are_refused_in_words(refused, url):
    assert f"{url} cannot be fetched: " in refused(url)


@pytest.mark.parametrize("answer", [404, 500, drop])
def test_no_message_has_a_password_in_it(server, tiny, tmp_path, quick, answer):
    server.serve("/a.mat", answer)
    url = f"{server.address}/a.mat".replace("http://", "http://me:secret@")
    with pytest.raises(DataError) as caught:
        fetch(tiny((url, "a.mat")), tmp_path, retries=quick)
    assert f"{server.address}/a.mat cannot be fetched" in caught.value.problem
    assert "secret" not in str(caught.value)
    assert "me:" not in str(caught.value)
    assert "Basic" in server.asked[0][1]["Authorization"]


def test_a_full_disk_is_told_in_words(server, tiny, tmp_path, quick):
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    dataset = tiny((server.serve("/a.mat", BODY), "a.mat"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(DataError, match="tiny cannot take the file: File too large") as caught:
            fetch(dataset, tmp_path, retries=quick)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "make room" in caught.value.hint
    assert len(server.asked) == 1
    assert list((tmp_path / "tiny").iterdir()) == []


def test_a_folder_that_cannot_be_written_is_told_in_words(server, tiny, tmp_path, quick):
    (tmp_path / "tiny").write_text("in the way")
    with pytest.raises(DataError, match=r"cannot be written to: Not a directory|File exists"):
        fetch(tiny((server.serve("/a.mat", BODY), "deep/a.mat")), tmp_path, retries=quick)
    assert server.asked == []


def test_a_folder_where_the_file_should_be_is_told_in_words(server, tiny, tmp_path, quick):
    (tmp_path / "tiny" / "a.mat" / "x").mkdir(parents=True)
    with pytest.raises(DataError, match=r"a\.mat cannot be read or written"):
        fetch(tiny((server.serve("/a.mat", BODY), "a.mat")), tmp_path, retries=quick)


def test_without_pooch_the_extra_is_named(tiny, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "requests", None)  # comes with pooch
    with pytest.raises(MissingExtraError, match=r'pip install "manifind\[data\]"'):
        fetch(tiny(("http://127.0.0.1/a.mat", "a.mat")), tmp_path)
    assert list((tmp_path / "tiny").iterdir()) == []


def test_only_the_parts_that_are_asked_for_are_fetched(server, tiny, tmp_path, quick):
    images = RemoteFile(server.serve("/b.jpg", b"photograph"), "b.jpg", "images")
    dataset = tiny((server.serve("/a.mat", BODY), "a.mat"), images)
    assert [got.file.path for got in fetch(dataset, tmp_path, retries=quick)] == ["a.mat"]
    assert [got.file.path for got in fetch(dataset, tmp_path, ["images"], retries=quick)] == ["b.jpg"]
    with pytest.raises(InputError, match="no part called 'sounds'"):
        fetch(dataset, tmp_path, ["sounds"])


def test_a_set_without_files_needs_nothing(tiny, tmp_path):
    assert fetch(tiny(), tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def zipped(**members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"folder/{name}", content)
    return stream.getvalue()


def test_an_archive_is_unpacked_once_and_need_not_be_kept(server, tiny, tmp_path, quick):
    url = server.serve("/a.zip", zipped(one="1", two="2"))
    dataset = tiny(RemoteFile(url, "a.zip", "descriptors", unpack_to="pictures"))
    (got,) = fetch(dataset, tmp_path, retries=quick)
    assert got.folder == tmp_path / "tiny" / "pictures"
    assert (got.folder / "folder" / "two").read_text() == "2"
    (got.folder / "folder" / "two").unlink()
    assert fetch(dataset, tmp_path, retries=quick)[0].outcome == "present"
    got.path.unlink()
    (left,) = fetch(dataset, tmp_path, retries=quick)
    assert (left.outcome, left.sha256, left.folder) == ("unpacked", None, got.folder)
    assert len(server.asked) == 1
    assert not (got.folder / "folder" / "two").exists()


def test_what_was_unpacked_from_a_wrong_archive_is_unpacked_anew(server, tiny, tmp_path, quick):
    dataset = tiny(RemoteFile(server.serve("/a.zip", zipped(one="1")), "a.zip", "descriptors", unpack_to="pictures"))
    (got,) = fetch(dataset, tmp_path, retries=quick)
    (got.folder / "folder" / "one").write_text("changed")
    got.path.write_bytes(b"changed")
    fetch(dataset, tmp_path, retries=quick)
    assert (got.folder / "folder" / "one").read_text() == "1"


def test_a_hostile_archive_leaves_nothing_outside_its_folder(server, tiny, tmp_path, quick):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        member = tarfile.TarInfo("../../escaped")
        member.size = 4
        archive.addfile(member, io.BytesIO(b"evil"))
    url = server.serve("/a.tgz", stream.getvalue())
    dataset = tiny(RemoteFile(url, "a.tgz", "descriptors", unpack_to="p"))
    with pytest.raises(DataError, match="would leave its folder"):
        fetch(dataset, tmp_path, retries=quick)
    assert sorted(file.name for file in tmp_path.rglob("*")) == ["a.tgz", "tiny"]
    (tmp_path / "tiny" / "a.tgz").unlink()
    server.serve("/a.tgz", zipped(one="1"))
    (got,) = fetch(dataset, tmp_path, retries=quick)
    assert got.outcome == "downloaded", "the hostile archive was not recorded as the first download"
