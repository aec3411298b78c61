"""The durable thing on disk: a directory with one SQLite file and immutable segments beside it.

    museum.manifind/
      collection.sqlite            what is true: manifest, ids, metadata, items that came after the fit,
                                   size and digest of every segment
      segments/ROLE-TOKEN.npy      descriptors, lengths, features
      segments/ROLE-TOKEN.npz      the graphs, and the search indexes as plain arrays, without objects
      segments/model-TOKEN.safetensors

A fit writes and syncs new segments first; one SQLite transaction then makes them the truth. Items that come and go
afterwards are rows of the database alone. A crash leaves the old state or the new one. Nothing in it can run code when
it is opened. `collection.Collection` is the door; docs/collections.md says what it promises.
"""
