"""Where a database is: read from the environment or from a file, and shown without what must stay secret."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote

from manifind.collection.ids import is_text
from manifind.errors import InputError, MissingExtraError

VARIABLE = "MANIFIND_STORE"
_EXAMPLES = "such as postgresql://host/database, http://host:19530 for Milvus, or FILE.db for Milvus on this machine"
_OTHER_WAYS = f"put the address into {VARIABLE} in the environment, or into an --address-file"
_SECRETS = ("password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key")
_HIDDEN = "***"

# What is shown of an address has to look like what it should be: in an address that is not written as its driver
# reads it, a part of the password stands where a host, a port or a database is expected.
_HOST = r"(?:[A-Za-z0-9_.-]+|[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*(?:%[A-Za-z0-9_.-]+)?|/[\w ./+~-]*)"  # a name, IPv6, a socket
_PORT = r"[0-9]{1,5}"
_NAME = r"[\w.$ -]+"
_PLAIN = {
    "host": f"{_HOST}?(?:,{_HOST}?)*",
    "port": f"(?:{_PORT})?(?:,(?:{_PORT})?)*",
    "service": _NAME,
    "dbname": _NAME,
}
_SCHEME = re.compile("([A-Za-z]{2,}):/")
# One raw @ at most, after a user name and a password; libpq would take the first of several for the end of both.
_POSTGRES = re.compile(r"postgres(?:ql)?://(?:[^@/:?&=#]*(?::[^@/]*)?@)?[^@]*", re.DOTALL)
_MILVUS = re.compile(
    rf"(?P<scheme>https?)://(?:(?P<user>[^/?#]*)@)?"
    rf"(?P<place>(?:[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\])(?::{_PORT})?(?:/[A-Za-z0-9_.~/-]*)?)",
    re.DOTALL | re.IGNORECASE,
)


@dataclass(frozen=True)
class Address:
    """Of one database. kind: "postgres" or "milvus". shown: what people may see of it, and all that is ever printed.

    parameters: for the driver, passwords included. secrets: texts that no message may hold.
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
            encoded = b64encode(secret.encode("utf-8", "replace")).decode()
            for form in (secret, quote(secret, safe=""), repr(secret)[1:-1], encoded):
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
    found = _SCHEME.match(text)
    if not is_text(text):
        raise _unreadable()
    if text.endswith(".db") and not found and not set(text) & set("=@"):
        return Address("milvus", text, {"uri": text})
    if found and found[1].lower() in ("http", "https"):
        return _milvus_address(text)
    if _POSTGRES.fullmatch(text) or (not found and "=" in text):
        return _postgres_address(text)
    raise _unreadable()


def looks_like_address(text: str) -> bool:
    """Whether it may be an address that was given in the place of something else, and must not be repeated."""
    return _SCHEME.match(text) is not None or "@" in text or "password=" in text


def _unreadable() -> InputError:
    return InputError(
        "the address of the database cannot be read",
        f"give one {_EXAMPLES}; percent-encode special characters in the user name and the password, @ as %40",
    )


def _milvus_address(text: str) -> Address:
    parts = _MILVUS.fullmatch(text)
    if parts is None:
        raise _unreadable()
    shown, user = f"{parts['scheme']}://{parts['place']}", parts["user"]
    if not user:
        return Address("milvus", shown, {"uri": shown})
    token = unquote(user)  # "user:password", or a key
    secrets = {token, user, token.partition(":")[2], user.partition(":")[2]} - {""}
    return Address("milvus", shown, {"uri": shown, "token": token}, tuple(sorted(secrets, key=len)[::-1]))


def _postgres_address(text: str) -> Address:
    try:
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict
    except ImportError as error:
        raise MissingExtraError(
            "a PostgreSQL database needs psycopg, which is not installed", 'pip install "manifind[postgres]"'
        ) from error
    try:
        found = {name: str(value) for name, value in conninfo_to_dict(text).items() if value is not None}
    except (ProgrammingError, UnicodeDecodeError):  # the latter for percent-encoded bytes that are no text
        found = {}
    if not found or not _is_plain(found):
        raise _unreadable()
    place = found.get("host", found.get("service", "")) + (f":{found['port']}" if "port" in found else "")
    shown = f"postgresql://{quote(place, safe=':,/')}/{found.get('dbname', '')}"
    return Address("postgres", shown, found, tuple(found[name] for name in _SECRETS if found.get(name)))


def _is_plain(found: Mapping[str, str]) -> bool:
    """Whether all that will be shown looks like what it should be."""
    return all(not found.get(name) or re.fullmatch(pattern, found[name]) for name, pattern in _PLAIN.items())


def _content(file: Path) -> str:
    """What a file says; its path is not repeated, since an address may have been given in its place."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
    raise InputError(
        f"the --address-file cannot be read: {reason}", "give the path of a text file that holds the address"
    )


def _from_environment() -> tuple[str, ...]:
    return tuple(filter(None, [os.environ.get("PGPASSWORD")]))
