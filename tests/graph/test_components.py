"""Which nodes a query can reach: the components in which it begins."""

import numpy as np

from manifind.graph.knn_graph import component_indicator, reachable
from reference.graphs import as_csr

TWO_PAIRS_AND_ONE_ALONE = as_csr([[0, 1, 0, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 2, 0], [0, 0, 2, 0, 0], [0, 0, 0, 0, 0]])


def test_a_query_reaches_the_components_in_which_it_begins_and_no_other():
    components = component_indicator(TWO_PAIRS_AND_ONE_ALONE)
    start = as_csr([[1, 0, 0, 0, 0], [0, 0, 0, 0, 1], [0, 0.5, 0.1, 0, 0]])
    assert components.shape == (5, 3)
    np.testing.assert_array_equal(reachable(start, components), [[1, 1, 0, 0, 0], [0, 0, 0, 0, 1], [1, 1, 1, 1, 0]])
