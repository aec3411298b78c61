"""Where a database is: read from the environment or from a file, and shown without what must stay secret."""

import os
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote

from manifind.collection.ids import is_text
from manifind.errors import InputError, needing

VARIABLE = "MANIFIND_STORE"
_EXAMPLES = "such as postgresql://host/database, http://host:19530 for Milvus, or FILE.db for Milvus on this machine"
_OTHER_WAYS = f"put the address into {VARIABLE} in the environment, or into an --address-file"
_UNREADABLE = (
    "the address of the database cannot be read",
    f"give one {_EXAMPLES}; percent-encode special characters in the user name and the password, @ as %40",
)
_SECRETS = ("password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key")

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
        for secret in filter(None, (*self.secrets, os.environ.get("PGPASSWORD"))):
            encoded = b64encode(secret.encode("utf-8", "replace")).decode()
            for form in (secret, quote(secret, safe=""), repr(secret)[1:-1], encoded):
                text = text.replace(form, "***")
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
    if file is None and VARIABLE not in os.environ:
        raise InputError(f"no address of a database is given, and {VARIABLE} is not set", _OTHER_WAYS)
    try:
        text = os.environ[VARIABLE] if file is None else file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
    else:
        return parse_address(text)
    raise InputError(  # without its path and its cause, since an address may have been given in its place
        f"the --address-file cannot be read: {reason}", "give the path of a text file that holds the address"
    )


def parse_address(text: str) -> Address:
    """An address from a text; where it cannot be read, nothing of it is repeated."""
    text = text.strip() if isinstance(text, str) else ""
    scheme = _SCHEME.match(text)
    if is_text(text):
        if text.endswith(".db") and not scheme and not set(text) & set("=@"):
            return Address("milvus", text, {"uri": text})
        if parts := _MILVUS.fullmatch(text):
            return _milvus_address(parts)
        if _POSTGRES.fullmatch(text) or (not scheme and "=" in text):
            return _postgres_address(text)
    raise InputError(*_UNREADABLE)


def looks_like_address(text: str) -> bool:
    """Whether it may be an address that was given in the place of something else, and must not be repeated."""
    return _SCHEME.match(text) is not None or "@" in text or "password=" in text


def _milvus_address(parts: re.Match[str]) -> Address:
    shown, user = f"{parts['scheme']}://{parts['place']}", parts["user"]
    if not user:
        return Address("milvus", shown, {"uri": shown})
    token = unquote(user)  # "user:password", or a key
    secrets = {token, user, token.partition(":")[2], user.partition(":")[2]} - {""}
    return Address("milvus", shown, {"uri": shown, "token": token}, tuple(sorted(secrets, key=len)[::-1]))


def _postgres_address(text: str) -> Address:
    with needing("postgres", "a PostgreSQL database needs psycopg, which is not installed"):
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict
    try:
        found = {name: str(value) for name, value in conninfo_to_dict(text).items() if value is not None}
    except (ProgrammingError, UnicodeDecodeError):  # the latter for percent-encoded bytes that are no text
        found = {}
    # All that will be shown has to look like what it should be.
    if not found or not all(re.fullmatch(form, found[name]) for name, form in _PLAIN.items() if found.get(name)):
        raise InputError(*_UNREADABLE)
    place = found.get("host", found.get("service", "")) + (f":{found['port']}" if "port" in found else "")
    shown = f"postgresql://{quote(place, safe=':,/')}/{found.get('dbname', '')}"
    return Address("postgres", shown, found, tuple(found[name] for name in _SECRETS if found.get(name)))
