"""Vector databases that serve a collection: PostgreSQL with pgvector, and Milvus, behind one small interface.

    store      what a table of vectors can do, and what is checked before a database does it
    address    where a database is, and what of that nobody may see
    postgres   the interface over psycopg: rows by COPY, filters as SQL
    milvus     the interface over pymilvus: filters as expressions
    publish    a collection into a database
    published  answers from there

docs/stores.md says how they are used and what each was tested with.
"""

from manifind.stores.publish import Publication, publish
from manifind.stores.published import PublishedCollection, open_published

__all__ = ["Publication", "PublishedCollection", "open_published", "publish"]
