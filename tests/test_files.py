"""Files put in place: whole afterwards, as they were where something fails, and nothing left beside them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifind.errors import InputError
from manifind.files import atomic_write, write_file


@given(st.binary(max_size=1000), st.binary(max_size=1000))
def test_a_file_holds_exactly_what_was_put_there_last(tmp_path_factory, first, second):
    folder = tmp_path_factory.mktemp("files")
    for content in (first, second):
        write_file(folder / "new" / "file", content)
        assert (folder / "new" / "file").read_bytes() == content
    assert [file.name for file in (folder / "new").iterdir()] == ["file"]


def test_until_it_is_whole_the_old_file_stands(tmp_path):
    (tmp_path / "file").write_text("old")
    with atomic_write(tmp_path / "file") as partial:
        partial.write_text("new")
        assert (tmp_path / "file").read_text() == "old"
    assert (tmp_path / "file").read_text() == "new"


def test_what_fails_in_between_changes_nothing(tmp_path):
    (tmp_path / "file").write_text("old")

    def fail():
        with atomic_write(tmp_path / "file") as partial:
            partial.write_text("half")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("file", "old")]


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(InputError, match=r"file/below cannot be written"):
        write_file(tmp_path / "file" / "below", b"")
    with pytest.raises(InputError, match="cannot be written"):
        write_file(tmp_path, b"")
