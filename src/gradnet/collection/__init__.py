"""The durable thing on disk: a directory with one SQLite file and immutable segments beside it.

    museum.gradnet/
      collection.sqlite            what is true: manifest, ids, size and digest of every segment
      segments/ROLE-TOKEN.npy      descriptors, lengths, features
      segments/graph-TOKEN.npz     the graphs, without objects
      segments/model-TOKEN.safetensors

A commit writes and syncs new segments first; one SQLite transaction then makes them the truth. A crash
leaves the old state or the new one. Nothing in it can run code when it is opened.
"""
