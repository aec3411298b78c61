"""`gradnet index`: from a file of vectors to a fitted collection."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from gradnet.cli.terminal import progress_bars, say, show_json
from gradnet.collection.ids import check_ids
from gradnet.collection.writer import check_target
from gradnet.config import PAPER
from gradnet.errors import GradNetError
from gradnet.formats import read_vectors
from gradnet.graph.trust import LittleToLearnWarning


def index(
    source: Annotated[
        Path, typer.Argument(metavar="FILE", help="Vectors: .npy, .npz, .parquet, .h5, .mat, .fvecs or .csv.")
    ],
    collection: Annotated[
        Path, typer.Argument(metavar="COLLECTION", help="The collection directory to make, or to replace.")
    ],
    preprocess: Annotated[
        str | None, typer.Option(help="unit (rows to length 1), center (mean removed first) or none.")
    ] = None,
    n_neighbors: Annotated[
        int | None, typer.Option(help="Neighbours of each item in the graph; else 30.")
    ] = None,
    graph: Annotated[
        str | None, typer.Option(help="mutual (both ends list each other) or union (either does).")
    ] = None,
    max_steps: Annotated[
        int | None, typer.Option(help="Most training steps; else as many as the size asks for.")
    ] = None,
    n_components: Annotated[int | None, typer.Option(help="Most dimensions of the learned features.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda.")] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="The same seed gives the same collection.")
    ] = 0,
    paper: Annotated[
        bool, typer.Option("--paper", help="Start from the paper's settings: much slower.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was fitted as JSON.")] = False,
) -> None:
    """Learn features for the vectors in FILE and write them as a collection.

    Ids come from the file where it has them (an array `ids` or `names`, a column `id`), else they are
    positions. A collection that exists is replaced in one step when the new one is complete.
    A setting that is left out keeps the default of GradNet.
    """
    vectors = read_vectors(source)
    check_target(collection)  # now, since fitting may take long
    check_ids(vectors.ids, len(vectors.rows))
    from gradnet.methods.gradnet import GradNet  # imports torch: not before the file is known to be good

    given = {
        "preprocess": preprocess,
        "n_neighbors": n_neighbors,
        "graph": graph,
        "max_steps": max_steps,
        "n_components": n_components,
        "device": device,
    }
    settings: dict[str, Any] = {
        **(PAPER if paper else {}),
        **{k: v for k, v in given.items() if v is not None},
    }
    model = GradNet(**settings, random_state=seed)
    with progress_bars() as listener, warnings.catch_warnings():
        warnings.simplefilter("ignore", LittleToLearnWarning)  # said below, in a plain sentence
        _fit(model, vectors.rows, listener)
        saved = model.save(collection, vectors.ids)
    if sentence := model.trust_.warning():
        typer.echo(f"note: {sentence}", err=True)
    if as_json:
        show_json({"collection": str(collection), **saved.info})
        return
    facts = saved.info
    say(
        f"{collection}: {facts['items']} items, "
        f"{facts['dimension']} dimensions in, {facts['feature_dimension']} out, "
        f"{facts['edges']} edges, {facts['steps']} steps in {facts['seconds']:.1f} s"
    )
    say(f"search it with: gradnet search {collection} QUERY")


def _fit(model: Any, rows: Any, listener: Any) -> None:
    try:
        model.fit(rows, listener=listener)
    except GradNetError as error:
        if "n_neighbors" in error.problem:
            raise type(error)(
                error.problem, error.hint.replace("set n_neighbors to", "give --n-neighbors")
            ) from error
        raise
