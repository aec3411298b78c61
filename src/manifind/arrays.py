"""Types of the arrays that pass between the packages, and the checks for every matrix of descriptors."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from manifind.errors import InputError

Floats: TypeAlias = NDArray[np.float32]  # descriptors, features, scores; C order
Doubles: TypeAlias = NDArray[np.float64]  # intermediate values that need the precision
Ints: TypeAlias = NDArray[np.int64]  # positions of items or nodes
Mask: TypeAlias = NDArray[np.bool_]
Sparse: TypeAlias = Any  # a scipy.sparse.csr_array of float32; SciPy publishes no types

_ROWS_PER_BLOCK = 8192  # keeps the temporaries of the finiteness check small beside the descriptors


def row_blocks(n_rows: int, rows_per_block: int) -> list[slice]:
    """Cut n_rows into slices of at most rows_per_block, in order."""
    return [slice(start, min(start + rows_per_block, n_rows)) for start in range(0, n_rows, rows_per_block)]


def check_descriptors(X: Any, name: str = "X", dimension: int | None = None) -> Floats:
    """Descriptors as a C-ordered float32 matrix of finite numbers, or an InputError that says why not.

    X: (n, d) numbers of any real type and memory layout, as an array, nested lists, a pandas DataFrame or a torch
    tensor on any device; never written to. A float32 matrix in C order is returned as it is, without a copy.
    dimension: the d that is expected, where it is known.
    """
    matrix = _as_matrix(X, name)
    if dimension is not None and matrix.shape[1] != dimension:
        problem = f"{name} has {matrix.shape[1]} features, but it is expecting {dimension} features as input"
        raise InputError(problem, "describe queries with the same model as the database")
    with np.errstate(over="ignore"):  # what overflows becomes infinity and is refused below
        converted: Floats = np.ascontiguousarray(matrix, dtype=np.float32)
    for rows in row_blocks(len(converted), _ROWS_PER_BLOCK):
        _refuse_not_finite(converted[rows], matrix, rows.start, name)
        if matrix.dtype.kind == "f" and matrix.dtype.itemsize > converted.dtype.itemsize:
            _refuse_vanished(converted[rows], matrix[rows], rows.start, name)
    return converted


def _refuse_not_finite(block: Floats, matrix: np.ndarray[Any, Any], start: int, name: str) -> None:
    if np.isfinite(np.vdot(block, block)):  # only a large number, or one that is not finite, spoils this sum
        return
    finite = np.isfinite(block)
    if not finite.all():
        row, column = np.argwhere(~finite)[0] + (start, 0)
        value = matrix[row, column]
        kind = "NaN" if np.isnan(value) else "infinity" if np.isinf(value) else f"{value}, too large for float32 (inf)"
        hint = "remove such rows, or find out why the descriptor failed there"
        raise InputError(f"{name} contains {kind} at row {row}, column {column}; every number must be finite", hint)


def _refuse_vanished(block: Floats, matrix: np.ndarray[Any, Any], start: int, name: str) -> None:
    """A row of numbers that float32 takes for zeros would be searched for as if nothing were known of it."""
    empty = np.flatnonzero(~block.any(axis=1))
    lost = empty[matrix[empty].any(axis=1)]
    if len(lost):
        row = int(lost[0])
        raise InputError(
            f"row {start + row} of {name} has no number larger than {np.abs(matrix[row]).max():.3g}, "
            "which is zero in float32",
            "multiply the descriptors by a constant",
        )


def _as_matrix(X: Any, name: str) -> np.ndarray[Any, Any]:
    if hasattr(X, "detach") and str(getattr(X, "layout", "torch.strided")) != "torch.strided":
        raise InputError(f"{name} is a sparse tensor; descriptors must be dense", "call .to_dense() first")
    if hasattr(X, "toarray"):
        raise InputError(f"{name} is a sparse matrix; descriptors must be dense", "call .toarray() first")
    try:
        matrix = np.asarray(from_tensor(X))
        if matrix.dtype == object:
            # columns of different types; pandas knows that its missing values are NaN, NumPy does not
            is_frame = hasattr(X, "columns") and hasattr(X, "to_numpy")
            matrix = X.to_numpy(np.float64, na_value=np.nan) if is_frame else matrix.astype(np.float64)
    except TypeError as error:
        raise TypeError(f"{name} must be numbers: {error}") from error  # scikit-learn expects TypeError here
    except ValueError as error:
        raise InputError(f"{name} cannot be read as a matrix of numbers: {error}") from error
    if matrix.dtype.kind == "c":
        raise InputError(f"Complex data not supported: {name} has dtype {matrix.dtype}", "take real parts or moduli")
    if matrix.dtype.kind not in "fiub":
        raise InputError(f"{name} has dtype {matrix.dtype}; descriptors must be real numbers")
    if matrix.ndim != 2:
        hint = "Reshape your data: X.reshape(1, -1) for one item, X.reshape(-1, 1) for one number per item"
        raise InputError(f"{name} has shape {matrix.shape}; expected two dimensions, one row per item", hint)
    if len(matrix) == 0:
        raise InputError(f"{name} is empty: 0 sample(s) (shape={matrix.shape}) while a minimum of 1 is required")
    if matrix.shape[1] == 0:
        raise InputError(f"{name} has 0 feature(s) (shape={matrix.shape}) while a minimum of 1 is required.")
    return matrix


def from_tensor(X: Any) -> Any:
    """A torch tensor as an array, wherever it lies and whatever tracks its gradient; anything else as it is.

    Recognised by its methods, so that torch is not imported by those who search with NumPy arrays.
    """
    if not hasattr(X, "detach"):
        return X
    tensor = X.detach().cpu()
    is_known = not str(tensor.dtype).startswith(("torch.bfloat16", "torch.float8"))
    return (tensor if is_known else tensor.float()).numpy()
