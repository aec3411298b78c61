"""Where a database is: read from the environment or from a file, and shown without what must stay secret."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from gradnet.errors import InputError, MissingExtraError

VARIABLE = "GRADNET_STORE"
_EXAMPLES = (
    "such as postgresql://host/database, http://host:19530 for Milvus, or FILE.db for Milvus on this machine"
)
_OTHER_WAYS = f"put the address into {VARIABLE} in the environment, or into an --address-file"
_SECRETS = ("password", "sslpassword")
_HIDDEN = "***"


@dataclass(frozen=True)
class Address:
    """Of one database. kind: "postgres" or "milvus". shown: what people may see of it, and all that is ever printed.

    parameters: what the driver is told, passwords included. secrets: texts that no message may hold.
    """

    kind: str
    shown: str
    parameters: Mapping[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        return self.shown

    def scrubbed(self, message: object) -> str:
        """The first line of a message of the driver, without anything secret."""
        text = str(message).strip()
        for secret in self.secrets + _from_environment():
            for form in (secret, quote(secret, safe=""), repr(secret)[1:-1]):
                text = text.replace(form, _HIDDEN)
        return text.splitlines()[0][:300] if text else type(message).__name__


def read_address(given: str | None, file: Path | None) -> Address:
    """The address for a command: as an argument where it holds no password, else from a file or from the environment.

    Every user of a machine can read the arguments of the commands that run there.
    """
    if given is not None and file is not None:
        raise InputError("there are two addresses, an ADDRESS and an --address-file", "leave one of them out")
    if given is not None:
        address = parse_address(given)
        if address.secrets:
            raise InputError("the address on the command line holds a password or a token", _OTHER_WAYS)
        return address
    if file is not None:
        return parse_address(_content(file))
    if VARIABLE in os.environ:
        return parse_address(os.environ[VARIABLE])
    raise InputError(f"no address of a database is given, and {VARIABLE} is not set", _OTHER_WAYS)


def parse_address(text: str) -> Address:
    """An address from a text; where it cannot be read, nothing of it is repeated."""
    text = text.strip() if isinstance(text, str) else ""
    if text.endswith(".db") and "://" not in text:
        return Address("milvus", text, {"uri": text})
    scheme = urlsplit(text).scheme if "://" in text else ""
    if scheme in ("http", "https"):
        return _milvus_address(text)
    if scheme in ("postgresql", "postgres") or (not scheme and "=" in text):
        return _postgres_address(text)
    raise InputError("the address of the database cannot be read", f"give one {_EXAMPLES}")


def _milvus_address(text: str) -> Address:
    parts = urlsplit(text)
    user, _, place = parts.netloc.rpartition("@")
    if not place:
        raise InputError("the address of the database names no host", f"give one {_EXAMPLES}")
    shown = f"{parts.scheme}://{place}{parts.path}"
    if not user:
        return Address("milvus", shown, {"uri": shown})
    token = unquote(user)  # "user:password", or a key
    secrets = {token, user, token.partition(":")[2]} - {""}
    return Address("milvus", shown, {"uri": shown, "token": token}, tuple(sorted(secrets, key=len)[::-1]))


def _postgres_address(text: str) -> Address:
    try:
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict
    except ImportError as error:
        raise MissingExtraError(
            "a PostgreSQL database needs psycopg, which is not installed", 'pip install "gradnet[postgres]"'
        ) from error
    try:
        told = {name: str(value) for name, value in conninfo_to_dict(text).items() if value is not None}
    except ProgrammingError:
        told = {}
    if not told:
        raise InputError("the address of the PostgreSQL database cannot be read", f"give one {_EXAMPLES}")
    place = told.get("host", told.get("service", "")) + (f":{told['port']}" if "port" in told else "")
    shown = f"postgresql://{quote(place, safe=':,/')}/{told.get('dbname', '')}"
    return Address("postgres", shown, told, tuple(told[name] for name in _SECRETS if told.get(name)))


def _content(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise InputError(f"the address in {file} cannot be read: {reason}", "give a file of text") from None


def _from_environment() -> tuple[str, ...]:
    return tuple(filter(None, [os.environ.get("PGPASSWORD")]))
