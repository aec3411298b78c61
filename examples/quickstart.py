"""From an array to a ranked list: fit on part of the digits, search with digits that were never seen."""

from sklearn.datasets import load_digits

from manifind import GradNet, load

X = load_digits().data  # (1797, 64): any matrix of descriptors, no labels
database, queries = X[:1700], X[1700:]

model = GradNet(random_state=0).fit(database)
ranking = model.search(queries, k=10)  # ids (97, 10) are positions in the database, best first
print(ranking.ids[0], ranking.scores[0])

model.save("digits.manifind", ids=[f"digit-{i}" for i in range(1700)], overwrite=True)
print(load("digits.manifind").search(queries[:1], k=3).ids)  # your own ids, in any process, without torch
