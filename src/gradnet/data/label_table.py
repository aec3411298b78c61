"""Labelled pictures as a table: a .csv or .tsv file with the columns `file` and `label`."""

from __future__ import annotations

from pathlib import Path

from gradnet.data.labels import Labelled, number_labels
from gradnet.data.pictures import read_pictures
from gradnet.errors import FileFormatError
from gradnet.formats.labels import read_label_table
from gradnet.progress import Listener, ignore


def read_picture_table(source: Path, listener: Listener = ignore) -> Labelled:
    """The pictures that the table names, in its order; paths are relative to the table's folder."""
    table = read_label_table(source, ("file",))
    if table.names is None:
        raise FileFormatError(f"{source} has no column called file", "make the first line file,label")
    labels, classes = number_labels(table.values, str(source))
    pixels = read_pictures([source.parent / name for name in table.names], listener)
    return Labelled("pixels", pixels, labels, classes, tuple(table.names))
