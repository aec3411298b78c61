"""The verbs, put together."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from manifind import __version__
from manifind.cli.compare import compare
from manifind.cli.data import data_app
from manifind.cli.demo import demo
from manifind.cli.evaluate import evaluate
from manifind.cli.export import export
from manifind.cli.index import index
from manifind.cli.info import info
from manifind.cli.publish import publish
from manifind.cli.remove import remove
from manifind.cli.reproduce import reproduce
from manifind.cli.search import search
from manifind.cli.serve import serve
from manifind.cli.tune import tune
from manifind.text import visible

# Of click, which some versions of typer contain and others import.
_UsageError: Any = typer.BadParameter.__base__


class _Verbs(TyperGroup):
    """The verbs; what is wrong with a command line is shown as every other text is."""

    def make_context(self, *arguments: Any, **named: Any) -> Any:
        with _visible_mistakes():
            return super().make_context(*arguments, **named)

    def invoke(self, ctx: Any) -> Any:
        with _visible_mistakes():
            return super().invoke(ctx)


@contextmanager
def _visible_mistakes() -> Iterator[None]:
    try:
        yield
    except _UsageError as error:
        error.message = visible(_without_addresses(error.message))
        raise


def _without_addresses(message: str) -> str:
    """A message without what may be the address of a database, which may hold a password."""
    from manifind.stores.address import looks_like_address

    for argument in sys.argv[1:]:
        value = argument.partition("=")[2] if argument.startswith("--") else argument
        if looks_like_address(value):
            for form in (value, repr(value)[1:-1]):
                message = message.replace(form, "***")
    return message


app = typer.Typer(
    cls=_Verbs,
    help="Better image retrieval from descriptors: learns the manifold without labels, then searches it.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",  # paragraphs of a docstring are filled, not cut where the source is
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _verb in (demo, index, search, serve, remove, tune, info, export, publish, evaluate, compare, reproduce):
    app.command()(_verb)
app.add_typer(data_app, name="data")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"manifind {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Better image retrieval from descriptors: learns the manifold without labels, then searches it."""
