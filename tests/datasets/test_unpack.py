"""Archives: good ones come out whole, hostile ones leave nothing behind."""

import gzip
import io
import stat
import tarfile
import tracemalloc
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifind.datasets.archive import unpack
from manifind.errors import DataError

FILES = {"s1/1.pgm": b"one", "s1/10.pgm": b"ten", "README": b"", "deep/er/file": b"x" * 3000}
ESCAPES = ["../evil", "a/../../evil", "/evil", "..\\evil", "C:\\evil", "C:evil", "\\evil", "//host/share/evil"]


def zipped(path, files, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name) if isinstance(name, str) else name, content, method)
    return path


def tarred(path, files, mode="w:gz"):
    with tarfile.open(path, mode) as archive:
        for member, content in files.items():
            info = tarfile.TarInfo(member) if isinstance(member, str) else member
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def linked(name, kind, target="/etc/hostname"):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.fixture
def refused(tmp_path):
    """The problem with which an archive is not unpacked; only the archive is left."""

    def run(archive, **settings):
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(DataError) as caught:
            unpack(archive, tmp_path / "out", **settings)
        assert caught.value.problem.startswith(f"{archive} ")
        assert caught.value.hint
        assert sorted(tmp_path.rglob("*")) == before
        assert not (tmp_path.parent / "evil").exists()
        return caught.value.problem

    return run


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("a.zip", zipped),
        ("a.tgz", tarred),
        ("a.tar", lambda path, files: tarred(path, files, "w")),
        ("tar.named.zip", lambda path, files: tarred(path, files, "w")),
        ("pax.tgz", lambda path, files: tarred(path, {"é" * 120: b"", **files})),
    ],
)
def test_what_is_in_an_archive_comes_out(tmp_path, name, write):
    reports = []
    unpack(write(tmp_path / name, FILES), tmp_path / "to" / "out", listener=reports.append)
    for path, content in FILES.items():
        assert (tmp_path / "to" / "out" / path).read_bytes() == content
    assert [file.name for file in (tmp_path / "to").iterdir()] == ["out"]
    assert reports[-1].done >= len(FILES)


def test_folders_and_leading_dots_are_taken_as_they_are(tmp_path):
    folder = tarfile.TarInfo("./pictures")
    folder.type = tarfile.DIRTYPE
    unpack(tarred(tmp_path / "a.tgz", {folder: b"", "./pictures/a.gif": b"a"}), tmp_path / "out")
    assert (tmp_path / "out" / "pictures" / "a.gif").read_bytes() == b"a"
    unpack(zipped(tmp_path / "a.zip", {"pictures/": b"", "pictures/a.gif": b"a"}), tmp_path / "zip")
    assert (tmp_path / "zip" / "pictures" / "a.gif").read_bytes() == b"a"


def test_modes_are_not_taken_over(tmp_path):
    info = tarfile.TarInfo("tool")
    info.mode = 0o6777
    unpack(tarred(tmp_path / "a.tgz", {info: b"#!"}), tmp_path / "out")
    assert not (tmp_path / "out" / "tool").stat().st_mode & (stat.S_ISUID | stat.S_ISGID | stat.S_IXUSR)


@pytest.mark.parametrize("name", ESCAPES)
@pytest.mark.parametrize("write", [zipped, tarred])
def test_members_that_lead_out_of_the_folder_are_refused(tmp_path, refused, write, name):
    assert "would leave its folder" in refused(write(tmp_path / "a", {"fine": b"", name: b"evil"}))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, b"Z"])
def test_links_and_devices_in_a_tar_file_are_refused(tmp_path, refused, kind):
    assert "has a link or a device in it" in refused(tarred(tmp_path / "a", {linked("link", kind): b""}))


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_links_and_devices_in_a_zip_file_are_refused(tmp_path, refused, kind):
    info = zipfile.ZipInfo("link")
    info.external_attr = (kind | 0o777) << 16
    assert "has a link or a device in it" in refused(zipped(tmp_path / "a", {info: b"/etc"}))


@pytest.mark.parametrize("write", [zipped, tarred])
@pytest.mark.parametrize("declared", [None, 100_000])
def test_a_bomb_is_stopped_by_its_bytes(tmp_path, refused, write, declared):
    bomb = write(tmp_path / "a", {"zeros": bytes(20 << 20)})
    assert bomb.stat().st_size < 100_000
    assert "far more bytes" in refused(bomb, declared=declared)


def test_many_small_members_add_up(tmp_path, refused):
    bomb = zipped(tmp_path / "a", {f"{number}": bytes(1 << 20) for number in range(18)})
    assert "far more bytes" in refused(bomb)


@pytest.mark.parametrize("write", [zipped, lambda path, files: tarred(path, files, "w:gz")])
def test_a_bomb_is_stopped_by_the_number_of_its_members(tmp_path, refused, write):
    bomb = write(tmp_path / "a", {f"{number}": b"" for number in range(1200)})
    assert "far more members" in refused(bomb, declared=10_000)


def test_a_header_of_any_length_is_not_read_whole(tmp_path, refused):
    header = tarfile.TarInfo("PaxHeader")
    header.type, header.size = tarfile.XHDTYPE, 1 << 30
    with gzip.open(tmp_path / "a", "wb") as stream:
        stream.write(header.tobuf(tarfile.USTAR_FORMAT))
        for _ in range(40):
            stream.write(bytes(1 << 20))
    tracemalloc.start()
    refused(tmp_path / "a")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_without_a_bound_on_memory_are_refused(tmp_path, refused, method):
    assert f"method {method}" in refused(zipped(tmp_path / "a", FILES, method))


def test_two_members_at_one_place_are_refused(tmp_path, refused):
    with tarfile.open(tmp_path / "a", "w") as archive:
        for _ in range(2):
            archive.addfile(tarfile.TarInfo("same"))
    assert "two members at one place: 'same'" in refused(tmp_path / "a")
    assert "two members at one place" in refused(tarred(tmp_path / "b", {"a": b"", "a/b": b""}))


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_a_damaged_header_is_not_taken_for_the_end(tmp_path, refused, mode):
    path = tarred(tmp_path / "a", {"first": b"1" * 600, "second": b"2"}, mode)
    content = bytearray(gzip.decompress(path.read_bytes()) if mode == "w:gz" else path.read_bytes())
    content[content.index(b"second")] ^= 1
    path.write_bytes(gzip.compress(content) if mode == "w:gz" else content)
    assert "one of its headers is damaged" in refused(path)


def test_a_wrong_checksum_behind_the_last_member_is_noticed(tmp_path, refused):
    path = tarred(tmp_path / "a", FILES)
    content = bytearray(path.read_bytes())
    content[-8] ^= 1
    path.write_bytes(content)
    assert "cannot be unpacked: CRC check failed" in refused(path)


def test_a_tar_file_that_is_cut_between_two_members_is_noticed(tmp_path, refused):
    path = tarred(tmp_path / "a", {"first": b"1" * 512, "second": b"2"}, "w")
    path.write_bytes(path.read_bytes()[:1024])
    assert "it is cut short" in refused(path)


@pytest.mark.parametrize("write", [zipped, tarred])
def test_an_empty_archive_is_refused(tmp_path, refused, write):
    assert "has no file in it" in refused(write(tmp_path / "a", {}))


@pytest.mark.parametrize("content", [b"", b"not an archive", b"\x1f\x8b and then nonsense", b"PK\x05\x06" + bytes(18)])
def test_what_is_no_archive_is_refused(tmp_path, refused, content):
    (tmp_path / "a").write_bytes(content)
    refused(tmp_path / "a")


def test_an_encrypted_archive_is_refused(tmp_path, refused):
    path = zipped(tmp_path / "a", {"secret": b"content"})
    content = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(signature) + offset] |= 1
    path.write_bytes(content)
    assert "encrypted" in refused(path)


@given(data=st.data(), write=st.sampled_from([zipped, tarred]))
@settings(max_examples=60)
def test_a_damaged_archive_is_refused_or_unpacked_and_never_anything_else(tmp_path_factory, data, write):
    folder = tmp_path_factory.mktemp("damaged")
    path = write(folder / "a", FILES)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(len(content) // 2, len(content)))])
    try:
        unpack(path, folder / "out")
    except DataError:
        assert [file.name for file in folder.iterdir()] == ["a"]
    else:
        assert sorted(file.name for file in folder.iterdir()) == ["a", "out"]


def test_a_place_that_is_taken_is_told_in_words(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("")
    with pytest.raises(DataError, match=r"cannot be unpacked to .*out: Directory not empty"):
        unpack(zipped(tmp_path / "a", FILES), tmp_path / "out")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a", "out"]
