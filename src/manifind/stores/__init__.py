"""Vector databases that serve what was learned: PostgreSQL with pgvector, and Milvus, behind one small interface.

    store       what a table of vectors can do, and what is checked before it is asked
    address     where a database is, and what of that nobody may see
    connecting  from an address to an open database
    postgres    the interface over psycopg; `postgres_where` for conditions on metadata, `postgres_copy` for rows
    milvus      the interface over pymilvus; `milvus_where` for conditions on metadata, `milvus_rows` for metadata
    publishing  a collection into a database
    published   answers from there, through `answering`; `model_row` is what they need besides vectors

docs/stores.md says how they are used and what each was tested with.
"""

from manifind.stores.publish import Publication, publish
from manifind.stores.published import PublishedCollection, open_published

__all__ = ["Publication", "PublishedCollection", "open_published", "publish"]
