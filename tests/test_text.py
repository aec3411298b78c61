"""Numbers in sentences agree with their nouns."""

import pytest

from manifind.text import are, count


@pytest.mark.parametrize(
    ("n", "noun", "words"),
    [
        (0, "item", "0 items"),
        (1, "item", "1 item"),
        (2, "distinct item", "2 distinct items"),
        (1, "query", "1 query"),
        (1500, "query", "1,500 queries"),
        (0, "entry", "0 entries"),
        (1, "query vector", "1 query vector"),
        (3, "query vector", "3 query vectors"),
    ],
)
def test_a_noun_is_in_the_number_that_stands_before_it(n, noun, words):
    assert count(n, noun) == words
    assert are(n) == ("is" if n == 1 else "are")
