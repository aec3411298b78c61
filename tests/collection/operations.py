"""Operations of a season that do the same whenever and wherever they are done, and all that is told after them."""

from __future__ import annotations

import pickle

import manifind
from collection.small_collection import NAMES, random_rows

QUERIES = random_rows(5, 9)


class Place:
    """A collection at a path, and two fitted models from a file that may replace it."""

    def __init__(self, path, models):
        self.path, self.models = path, pickle.loads(models.read_bytes())
        self.collection = manifind.load(path) if path.exists() else None

    def do(self, number):
        """The operation of this number in the season."""
        SEASON[number](self, number)


def save(place, number):
    place.collection = place.models[number % 2].save(place.path, NAMES, overwrite=True)


def add(place, number):
    names = [f"new/{number}-{i}.jpg" for i in range(5)]
    place.collection.add(random_rows(5, 100 + number), names, [{"season": number}] * 5)


def remove(place, number):
    place.collection.remove(place.collection.ids[number : number + 4])


def describe(place, number):
    some = place.collection.ids[::9]
    place.collection.update(some, metadata=[{"season": number}] * len(some))


def replace(place, number):
    place.collection.update(place.collection.ids[[0, number, -1]], random_rows(3, 200 + number))


def refit(place, _):
    manifind.refit(place.collection)


SEASON = [
    *(save, add, remove, describe, replace, refit),
    *(add, replace, remove, add, refit, describe),
    *(save, add, remove, save, refit),
]
CHANGES = {operation.__name__: operation for operation in (add, remove, describe, replace, refit)}


def summary(collection):
    """Everything that a collection answers, so that two can be compared bit for bit."""
    ids = collection.ids.tolist()
    asked = [collection.search(QUERIES, k) for k in (1, 5, len(ids))]
    asked.append(collection.search_ids([ids[0], ids[-1]], 9))
    if any("season" in fields for fields in collection.metadata(ids)):
        asked.append(collection.search(QUERIES, 9, "season >= 3"))
    rankings = [(ranking.ids.tolist(), ranking.scores.tobytes()) for ranking in asked]
    return ids, collection.metadata(ids), rankings, collection.features.tobytes()


def contents(path):
    """The same of what stands at a path, after every byte of it was verified; None where there is nothing."""
    return summary(manifind.load(path, verify=True)) if path.exists() else None
