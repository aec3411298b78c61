"""What files of pictures are called, for those who do not look into them."""

from __future__ import annotations

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

NOT_FOR_PEOPLE = ("sha256", "modified", FINGERPRINT)
"""Fields that only serve to know a file again."""
