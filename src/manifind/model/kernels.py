"""The kernels of `gpu`, in Triton's language; imported only where there is a GPU."""

# mypy: ignore-errors
import triton
import triton.language as tl


@triton.jit
def rows_times_dense(starts, indices, values, H, beside, out, width, ADDS: tl.constexpr, COLUMNS: tl.constexpr):
    """One row of the result, a block of its columns: the sum of the rows of H that the row names, each by its value.

    Added to the row of another matrix where there is one.
    """
    row = tl.program_id(0)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = column < width
    target = row.to(tl.int64) * width + column
    total = tl.zeros([COLUMNS], dtype=tl.float32)
    if ADDS:
        total += tl.load(beside + target, mask=inside, other=0.0)
    begin, end = tl.load(starts + row), tl.load(starts + row + 1)
    for at in range(begin, end):
        source = tl.load(indices + at)
        weight = tl.load(values + at)
        total += weight * tl.load(H + source * width + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + target, total, mask=inside)


@triton.jit
def two_orders(H, SH, both, n, self_weight, SIZE: tl.constexpr):
    """The messages of a layer before its weights: S H * H, and behind all of that S H + self_weight H."""
    at = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    inside = at < n
    h, sh = tl.load(H + at, mask=inside), tl.load(SH + at, mask=inside)
    tl.store(both + at, sh * h, mask=inside)
    tl.store(both + n + at, sh + self_weight * h, mask=inside)


@triton.jit
def two_orders_back(gradient, H, SH, dH, dSH, n, self_weight, SIZE: tl.constexpr):
    """The gradients of H and of S H from those of both orders."""
    at = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    inside = at < n
    h, sh = tl.load(H + at, mask=inside), tl.load(SH + at, mask=inside)
    second, first = tl.load(gradient + at, mask=inside), tl.load(gradient + n + at, mask=inside)
    tl.store(dSH + at, second * h + first, mask=inside)
    tl.store(dH + at, second * sh + self_weight * first, mask=inside)


@triton.jit
def activate_rows(Y, kept, unit, lengths, out, width, slope, scale, smallest, DROPS: tl.constexpr, WIDTH: tl.constexpr):
    """One row: LeakyReLU, divided by its length, entries dropped and the others scaled up."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, WIDTH)
    inside = column < width
    at = row * width + column
    y = tl.load(Y + at, mask=inside, other=0.0)
    u = tl.where(y > 0, y, y * slope)
    length = tl.maximum(tl.sqrt(tl.sum(u * u, axis=0)), smallest)
    u = u / length
    tl.store(unit + at, u, mask=inside)
    tl.store(lengths + row, length)
    if DROPS:
        keep = tl.load(kept + at, mask=inside, other=0)
        tl.store(out + at, tl.where(keep != 0, u * scale, 0.0), mask=inside)


@triton.jit
def activate_rows_back(
    gradient, kept, unit, lengths, dY, width, slope, scale, smallest, DROPS: tl.constexpr, WIDTH: tl.constexpr
):
    """The gradient of one row: what lies along the row is taken away, since its length is fixed."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, WIDTH)
    inside = column < width
    at = row * width + column
    g = tl.load(gradient + at, mask=inside, other=0.0)
    u = tl.load(unit + at, mask=inside, other=0.0)
    if DROPS:
        keep = tl.load(kept + at, mask=inside, other=0)
        g = tl.where(keep != 0, g * scale, 0.0)
    length = tl.load(lengths + row)
    d = (g - u * tl.sum(g * u, axis=0)) / length
    d = tl.where(length > smallest, d, 0.0)  # a row of zeros has no direction to turn
    tl.store(dY + at, tl.where(u > 0, d, d * slope), mask=inside)
