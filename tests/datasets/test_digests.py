"""SHA256SUMS: what sha256sum writes is read, and the other way round."""

import hashlib
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifind.errors import DataError
from manifind.files import SUMS, read_sums, record, sha256_of

A, B = "a" * 64, "b" * 64


@given(content=st.binary(max_size=300))
@settings(max_examples=40)
def test_the_digest_is_that_of_the_bytes(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("digest") / "file"
    path.write_bytes(content)
    assert sha256_of(path) == hashlib.sha256(content).hexdigest()


def test_a_listener_hears_of_every_byte(tmp_path):
    (tmp_path / "file").write_bytes(b"x" * (3 << 20))
    reports = []
    sha256_of(tmp_path / "file", reports.append)
    assert [report.done for report in reports] == [1 << 20, 2 << 20, 3 << 20]
    assert {(report.stage, report.total) for report in reports} == {("checking file", 3 << 20)}


def test_nothing_is_recorded_at_first(tmp_path):
    assert read_sums(tmp_path) == read_sums(tmp_path / "nowhere") == {}


def test_records_are_added_and_replaced_and_no_partial_file_stays(tmp_path):
    record(tmp_path, "b.mat", B)
    record(tmp_path, "images/a b.tgz", A)
    record(tmp_path, "b.mat", A)
    assert (tmp_path / SUMS).read_text() == f"{A}  b.mat\n{A}  images/a b.tgz\n"
    assert read_sums(tmp_path) == {"b.mat": A, "images/a b.tgz": A}
    assert [file.name for file in tmp_path.iterdir()] == [SUMS]


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="sha256sum is not installed")
def test_sha256sum_agrees(tmp_path):
    (tmp_path / "a.mat").write_bytes(b"content")
    record(tmp_path, "a.mat", sha256_of(tmp_path / "a.mat"))
    subprocess.run(["sha256sum", "-c", "--strict", SUMS], cwd=tmp_path, check=True, capture_output=True)
    for mode in ("--binary", "--text"):
        written = subprocess.run(["sha256sum", mode, "a.mat"], cwd=tmp_path, check=True, capture_output=True, text=True)
        (tmp_path / SUMS).write_text(written.stdout)
        assert read_sums(tmp_path) == {"a.mat": sha256_of(tmp_path / "a.mat")}


@pytest.mark.parametrize("line", ["nonsense", f"{A}", f"{A[:-1]}  a.mat", f"{A.upper()}  a.mat", f"{A} a.mat"])
def test_a_damaged_line_is_refused_with_its_number(tmp_path, line):
    (tmp_path / SUMS).write_text(f"{A}  a.mat\n{line}\n")
    with pytest.raises(DataError, match="line 2"):
        read_sums(tmp_path)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / SUMS).write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="cannot be read"):
        read_sums(tmp_path)


def test_a_list_that_cannot_be_written_is_refused_in_words(tmp_path):
    (tmp_path / SUMS).mkdir()
    with pytest.raises(DataError, match="SHA256SUMS cannot be written: Is a directory"):
        record(tmp_path, "a.mat", A)
    assert [file.name for file in tmp_path.iterdir()] == [SUMS]
