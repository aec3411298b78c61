"""Names that concern pictures: suffixes of their files, and the fields of their metadata."""

from __future__ import annotations

from typing import Any

SUFFIXES = (
    ".jpg",
    ".jpeg",
    ".jpe",
    ".jfif",
    ".png",
    ".webp",
    ".tif",
    ".tiff",
    ".bmp",
    ".gif",
    ".heic",
    ".heif",
)
"""How files end that claim to be pictures, in small letters."""

FINGERPRINT = "fingerprint"
"""The field that says in hexadecimal bits what a picture looks like."""

FINGERPRINT_BITS = 256

EXIF_FIELDS = ("taken", "latitude", "longitude")
"""Fields that are read from a file, and that users may correct."""

NOT_FOR_PEOPLE = ("sha256", "modified", FINGERPRINT, "exif")
"""Fields that only serve to know a file again."""


def picture_fields(said: dict[str, Any], before: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Metadata of a picture: what its file says, except where the user says something else.

    said: by the file. before: the metadata that the item had. own: the user's fields. None takes a field away that only
    the former file had.
    """
    users = {name for name in EXIF_FIELDS if name in before and name not in before.get("exif", EXIF_FIELDS)}
    read = {name: said.get(name) for name in EXIF_FIELDS if name not in users and name not in own}
    exif = [name for name, value in read.items() if value is not None]
    return {FINGERPRINT: None, **said, **read, "exif": exif, **own} | {
        name: before[name] for name in users - own.keys()
    }
