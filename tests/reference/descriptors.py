"""Preprocessing and duplicates, one row at a time."""

import math


def unit_row_by_loops(row):
    """x / |x|, and x itself where |x| = 0; the sums are Python's, exact to double precision."""
    largest = max(abs(float(x)) for x in row)
    if largest == 0:
        return [0.0 for _ in row]
    length = math.sqrt(math.fsum((float(x) / largest) ** 2 for x in row))
    return [float(x) / largest / length for x in row]


def centred_by_loops(rows):
    """x_i - (1/n) sum_j x_j, column by column."""
    n = len(rows)
    mean = [math.fsum(float(row[c]) for row in rows) / n for c in range(len(rows[0]))]
    return [[float(x) - m for x, m in zip(row, mean, strict=True)] for row in rows]


def distinct_by_loops(rows):
    """(first, of_row): positions of first appearances, and for each row the number of its first one.

    Tuples of floats compare by value, so that -0.0 is 0.0.
    """
    number, first, of_row = {}, [], []
    for position, row in enumerate(rows):
        key = tuple(float(x) for x in row)
        if key not in number:
            number[key] = len(first)
            first.append(position)
        of_row.append(number[key])
    return first, of_row


def lookup_by_loops(database, rows):
    """For each row, the first position in the database with the same values, or -1."""
    answer = []
    for row in rows:
        places = [p for p, other in enumerate(database) if all(a == b for a, b in zip(row, other, strict=True))]
        answer.append(places[0] if places else -1)
    return answer
