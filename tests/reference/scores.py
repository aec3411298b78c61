"""Scores of one ranking at a time by walking down the list, and the same with well-known faults put in.

ranking: items, best first. right: what counts. ignored: skipped as if it were not in the list.
Values lie in [0, 1]; None where nothing can be found.
"""


def oxford_ap_by_walking(ranking, right, ignored):
    """Area under precision over recall by trapezoids, as compute_ap of the Oxford buildings sums it."""
    if not right:
        return None
    old_recall, old_precision, ap, found, rank = 0.0, 1.0, 0.0, 0, 0
    for item in ranking:
        if item in ignored:
            continue
        if item in right:
            found += 1
        recall, precision = found / len(right), found / (rank + 1)
        ap += (recall - old_recall) * (old_precision + precision) / 2
        old_recall, old_precision = recall, precision
        rank += 1
    return ap


def trec_ap_by_walking(ranking, right, ignored):
    """Sum of the precision at each right rank over |right|."""
    if not right:
        return None
    total, found, rank = 0.0, 0, 0
    for item in ranking:
        if item in ignored:
            continue
        rank += 1
        if item in right:
            found += 1
            total += found / rank
    return total / len(right)


def precision_by_walking(ranking, right, ignored, k):
    """Right ones among the first k, over k."""
    return _found_in(ranking, right, ignored, k) / k if right else None


def recall_by_walking(ranking, right, ignored, k):
    """Right ones among the first k, over |right|."""
    return _found_in(ranking, right, ignored, k) / len(right) if right else None


def revisited_precision_by_walking(ranking, right, ignored, k):
    """P at k_q = min(rank of the last right one that is found, k); 0 where none is found."""
    if not right:
        return None
    last, rank = 0, 0
    for item in ranking:
        if item in ignored:
            continue
        rank += 1
        if item in right:
            last = rank
    if last == 0:
        return 0.0
    return _found_in(ranking, right, ignored, min(last, k)) / min(last, k)


def _found_in(ranking, right, ignored, k):
    found = rank = 0
    for item in ranking:
        if item in ignored:
            continue
        rank += 1
        if rank > k:
            break
        if item in right:
            found += 1
    return found


def levels_by_loops(easy, hard, junk, level):
    """(right, ignored) of the revisited protocol for one query."""
    if level == "easy":
        return set(easy), set(junk) | set(hard)
    if level == "hard":
        return set(hard), set(junk) | set(easy)
    return set(easy) | set(hard), set(junk)


def landmarks_by_loops(ok, junk):
    """(query, right, ignored) for each image of each landmark, a landmark being a set that is right.

    ok, junk: one list of positions per official query; a landmark's junk is that of its first query.
    """
    asked, seen = [], []
    for right, ignored in zip(ok, junk, strict=True):
        if set(right) in seen or len(right) < 2:
            continue
        seen.append(set(right))
        for query in sorted(right):
            others = {item for item in right if item != query}
            asked.append((query, others, {*ignored, query}))
    return asked


def same_label_by_loops(labels, query):
    """(right, ignored): the others of the query's label, and the query itself."""
    return {i for i, label in enumerate(labels) if label == labels[query] and i != query}, {query}


def bullseye_by_walking(ranking, query, labels, window, rule):
    """(hits, possible) of one query.

    "counted": the query is put first and is one of the window. "left-out": it takes no place and is no hit;
    divided by the class size. "left-out-others": the same, divided by the class size minus one.
    """
    size = sum(label == labels[query] for label in labels)
    head = [query] if rule == "counted" else []
    for item in ranking:
        if len(head) == window:
            break
        if item != query:
            head.append(item)
    hits = sum(labels[item] == labels[query] for item in head)
    return hits, size - 1 if rule == "left-out-others" else size


def faulty_ap_with_precision_one_before_the_first(ranking, right, ignored):
    """The trapezoid before the first right one starts at precision 1, whatever its rank."""
    kept = [item for item in ranking if item not in ignored]
    ranks = [rank for rank, item in enumerate(kept) if item in right]
    total = 0.0
    for j, rank in enumerate(ranks):
        before = 1.0 if j == 0 else j / rank
        total += (before + (j + 1) / (rank + 1)) / 2
    return total / len(right)


def faulty_ap_with_junk_left_in(ranking, right, ignored):
    """Junk takes its rank as a wrong item does."""
    return oxford_ap_by_walking(ranking, right, set())


def faulty_ap_over_the_found(ranking, right, ignored):
    """Divided by the right ones that the ranking has."""
    found = [item for item in ranking if item in right]
    return oxford_ap_by_walking(ranking, set(found), ignored) if found else 0.0


def faulty_trec_ap_over_the_found(ranking, right, ignored):
    """Divided by the right ones that the ranking has."""
    found = [item for item in ranking if item in right]
    return trec_ap_by_walking(ranking, set(found), ignored) if found else 0.0


def faulty_label_ap_with_the_query_in_it(ranking, query, labels):
    """The query is one of its own answers, and one of those to be found."""
    right, _ = same_label_by_loops(labels, query)
    return trec_ap_by_walking(ranking, right | {query}, set())


def faulty_bullseye_with_the_query_twice(ranking, query, labels, window):
    """The query is put first, and counted again where its own ranking has it."""
    head = [query, *ranking[: window - 1]]
    return sum(labels[item] == labels[query] for item in head), sum(x == labels[query] for x in labels)
