"""Preprocessing of descriptors, and the orthogonal map that makes rows narrower."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from manifind.arrays import Doubles, Floats, row_blocks
from manifind.errors import InputError
from manifind.settings import PREPROCESS, check_value

_ROWS_PER_BLOCK = 8192
_ROWS_TO_WHITEN = 20_000  # from which the covariance is estimated; more would not change it by much
_LEAST_VARIANCE = 1e-6  # of the largest: what lies below is rounding, and W keeps an inverse in float32
_LEAST_SHARE = 0.25  # of the dimensions that are effective, below which whitening is warned of
_LONGEST = 1e18  # its square, and the sum of a few such squares, are below the largest float32
_SHORTEST = 1e-18  # the square of a hundredth of it is still above the smallest float32


@dataclass(frozen=True)
class Preprocessor:
    """The preprocessing that a model was fitted with.

    kind: "unit" scales each row to length 1; "center" removes `mean` first; "whiten" removes it and multiplies by
    `whitening` before it scales; "none" changes nothing.
    mean: (d,) of the database, or None. whitening: (d, d), symmetric, or None.
    scale: one number for all rows, only where d = 1: a single dimension has no direction, so scaling
    each row to length 1 would leave nothing but its sign.
    """

    kind: str
    mean: Floats | None = None
    scale: float | None = None
    whitening: Floats | None = None

    def __call__(self, X: Floats) -> Floats:
        """Preprocessed copy of the rows of X; a row of zeros stays a row of zeros."""
        if self.kind == "unit" and self.scale is None and len(X) <= _ROWS_PER_BLOCK:
            return unit_rows(X)  # what follows, in fewer calls: a single query waits for each of them
        return self.with_lengths(X)[0]

    def with_lengths(self, X: Floats) -> tuple[Floats, Floats]:
        """The preprocessed copy, and (n, 1) what each row was divided by, so that `restore` can undo it."""
        if self.kind == "none":
            _refuse_too_long(X)
            return np.array(X, dtype=np.float32), np.ones((len(X), 1), dtype=np.float32)
        out, lengths = np.empty_like(X, dtype=np.float32), np.empty((len(X), 1), dtype=np.float32)
        for rows in row_blocks(len(X), _ROWS_PER_BLOCK):
            block = X[rows].astype(np.float64)  # squares of very large and very small numbers leave float32
            if self.mean is not None:
                block -= self.mean
            if self.whitening is not None:
                block = block @ self.whitening
            divisor = unit_lengths(block) if self.scale is None else np.full((len(block), 1), self.scale)
            block /= divisor
            out[rows] = block
            lengths[rows] = np.minimum(divisor, np.finfo(np.float32).max)
        if self.scale is not None:
            _refuse_too_long(out)
        return out, lengths

    def restore(self, prepared: Floats, lengths: Floats) -> Floats:
        """The rows that were preprocessed, to float32 rounding."""
        original: Floats = prepared * lengths
        if self.whitening is not None:
            try:
                solved = np.linalg.solve(self.whitening.astype(np.float64), original.T.astype(np.float64))
            except np.linalg.LinAlgError:
                raise InputError("this whitening has no inverse, so it is none that was fitted") from None
            original = np.ascontiguousarray(solved.T, dtype=np.float32)
        return original if self.mean is None else original + self.mean


def fit_preprocessor(kind: str, X: Floats) -> Preprocessor:
    """The preprocessing named `kind`, with what it needs to know of the database X."""
    check_value("preprocess", kind, PREPROCESS)
    if kind == "none":
        _refuse_too_short(X)
    mean = X.mean(axis=0, dtype=np.float64).astype(np.float32) if kind in ("center", "whiten") else None
    if kind == "none" or X.shape[1] > 1:
        return Preprocessor(kind, mean, whitening=_whitening(X) if kind == "whiten" else None)
    largest = float(np.abs(X if mean is None else X - mean).max())
    one = np.ones((1, 1), dtype=np.float32)  # a single dimension has no directions to weigh against each other
    return Preprocessor(kind, mean, largest or 1.0, one if kind == "whiten" else None)


def whitening_warning(preprocessor: Preprocessor) -> str | None:
    """One sentence where whitening gives most of the weight to directions in which the items hardly differ."""
    W = preprocessor.whitening
    if W is None or len(W) == 1:
        return None
    variances = 1 / np.square(np.linalg.eigvalsh(W.astype(np.float64)))
    effective, d = float(variances.sum() ** 2 / np.square(variances).sum()), len(W)
    if effective >= _LEAST_SHARE * d:
        return None
    return (
        f"the variance of these descriptors lies in about {effective:.0f} of their {d} dimensions, and whitening gives "
        "all dimensions the same weight, noise too: unless a PCA reduced them before, compare with preprocess 'unit'"
    )


def _whitening(X: Floats) -> Floats:
    """W = S^(-1/2), (d, d), where S is the covariance of the rows, shrunk towards a sphere.

    Directions that only a few rows, or rounding, have anything to say about would otherwise be blown up; Ledoit and
    Wolf's estimate says from the rows themselves how far to shrink. W has an inverse, so nothing of a row is lost.
    """
    from sklearn.covariance import ledoit_wolf

    some = X[:: -(-len(X) // _ROWS_TO_WHITEN)].astype(np.float64)
    some /= np.abs(some).max() or 1.0  # directions alone matter: squares of very large numbers would overflow
    variances, directions = np.linalg.eigh(ledoit_wolf(some)[0] if len(some) > 1 else np.eye(X.shape[1]))
    largest = variances[-1] if variances[-1] > 0 else 1.0
    spread = np.sqrt(np.maximum(variances / largest, _LEAST_VARIANCE))
    return np.asarray((directions / spread) @ directions.T, dtype=np.float32)


def _refuse_too_long(X: Floats) -> None:
    """Rows of any length may pass unscaled, as long as their squared distances stay within float32."""
    largest = float(np.abs(X).max(initial=0.0))
    if largest * X.shape[1] ** 0.5 > _LONGEST:
        problem = f"there are numbers as large as {largest:.3g}, whose squared distances do not fit into float32"
        raise InputError(problem, "divide the descriptors by a constant, or set preprocess='unit'")


def _refuse_too_short(X: Floats) -> None:
    """A database of tiny numbers, of which float32 could not tell the squared distances from zero."""
    largest = float(np.abs(X).max(initial=0.0))
    if 0 < largest * X.shape[1] ** 0.5 < _SHORTEST:
        raise InputError(
            f"there is no number larger than {largest:.3g}, and squared distances of such numbers vanish in float32",
            "multiply the descriptors by a constant, or set preprocess='unit'",
        )


def unit_lengths(X: Floats | Doubles) -> Doubles:
    """(n, 1) Euclidean length of each row, 1 where it is zero, so that dividing by it is always safe."""
    wide = np.asarray(X, dtype=np.float64)
    lengths: Doubles = np.sqrt(np.vecdot(wide, wide))
    if not lengths.all():
        lengths[lengths == 0] = 1.0
    return lengths[:, None]


def unit_rows(X: Floats) -> Floats:
    """Rows of X scaled to length 1; a row of zeros stays as it is."""
    return np.asarray(np.divide(X, unit_lengths(X)), dtype=np.float32)


_ROWS_PER_PRODUCT = 4096


def reduce_features(parts: list[Floats], n_components: int | None) -> tuple[Floats, Floats | None, float]:
    """Features of unit length, at most n_components wide, with cosines as near as can be to the parts' own.

    parts: (N, d_l) each, side by side they are H. Returns the features, (N, D'); their basis, (D, D'), or None where
    nothing was left out; and the share of H's energy, the sum of squares, that it holds. The basis has the leading
    right singular vectors of H with unit rows: no other of that width loses less of the inner products.
    """
    N, D = len(parts[0]), sum(part.shape[1] for part in parts)
    width = D if n_components is None else min(n_components, D, N)
    if width == D:
        features = np.concatenate(parts, axis=1)
        for rows in row_blocks(N, _ROWS_PER_PRODUCT):
            features[rows] = unit_rows(features[rows])
        return features, None, 1.0
    basis, kept = leading_directions(parts, width)
    features = np.empty((N, width), dtype=np.float32)
    for rows in row_blocks(N, _ROWS_PER_PRODUCT):
        features[rows] = unit_rows(_unit_block(parts, rows) @ basis)
    return features, basis, kept


def leading_directions(parts: list[Floats], width: int) -> tuple[Floats, float]:
    """(D, width) leading right singular vectors of H with unit rows, and the share of its energy they hold.

    parts: as above. width: at most N and D. Computed from whichever Gram matrix is the smaller.
    """
    N, D = len(parts[0]), sum(part.shape[1] for part in parts)
    if N < D:
        H = _unit_block(parts, slice(None)).astype(np.float64)
        gram: Doubles | Floats = H @ H.T
        energies, left = _leading_eigenpairs(gram, width)
        vectors: Doubles | Floats = H.T @ (left / np.sqrt(np.maximum(energies, np.finfo(np.float64).tiny)))
    else:
        gram = np.zeros((D, D))
        for rows in row_blocks(N, _ROWS_PER_PRODUCT):
            block = _unit_block(parts, rows)
            gram += block.T @ block
        # Eigenvectors of the largest eigenvalues need no more digits than the features have: half the time.
        gram = gram.astype(np.float32)
        energies, vectors = _leading_eigenpairs(gram, width)
    return np.ascontiguousarray(vectors, dtype=np.float32), float(energies.sum() / float(np.trace(gram)))


def _leading_eigenpairs(gram: Doubles | Floats, width: int) -> tuple[Doubles | Floats, Doubles | Floats]:
    """The largest eigenvalues, falling, and their eigenvectors as columns."""
    n = len(gram)
    values, vectors = eigh(gram, subset_by_index=(n - width, n - 1))
    return values[::-1], vectors[:, ::-1]


def _unit_block(parts: list[Floats], rows: slice) -> Floats:
    return unit_rows(np.concatenate([part[rows] for part in parts], axis=1))
