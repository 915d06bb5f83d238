"""``pufferfish compare``: the noise of every mechanism, before anything is spent."""

from pathlib import Path
from typing import Any

import click
from rich.table import Table

from pufferfish.cli.options import QUERY_HELP, parse_lengths, parse_query, table_options
from pufferfish.cli.printing import number, print_table, progress
from pufferfish.cli.tables import read_under
from pufferfish.cli.targets import check_picture
from pufferfish.comparison import Comparison, compare
from pufferfish.errors import ParameterError, printable
from pufferfish.files import check_writable
from pufferfish.mechanisms.mechanism import as_epsilon
from pufferfish.model_file import read_model
from pufferfish.report.plot import draw_noise, save_figure

__all__ = ["compare_command"]

_FACTORS = (0.1, 0.2, 0.5, 2.0, 5.0, 10.0)
"""At which multiples of ε ``compare --plot`` looks too."""


@click.command("compare")
@click.argument("model_path", metavar="MODEL", type=str)
@click.option("--length", "lengths", multiple=True, metavar="N", help="Records of one chain; repeat, or N1,N2,….")
@click.option("--table", type=click.Path(path_type=Path), help="Take the (public) lengths from a table instead.")
@table_options(required=False)
@click.option("--query", "query_text", default="histogram", show_default=True, metavar="QUERY", help=QUERY_HELP)
@click.option("--epsilon", required=True, type=float, help="Privacy parameter ε, above 0.")
@click.option("--plot", "plot_path", metavar="FILE", help="Draw the noise from ε/10 to 10 ε (.png, .svg, .pdf).")
def compare_command(
    model_path: str,
    lengths: tuple[str, ...],
    table: Path | None,
    query_text: str,
    epsilon: float,
    plot_path: str | None,
    **reading: Any,
) -> None:
    """Noise of every mechanism under MODEL, before anything is spent.

    \b
    Example:
      pufferfish compare model.json --length 5000 --query histogram --epsilon 1
    """
    epsilon = as_epsilon(epsilon)
    query = parse_query(query_text)
    if plot_path is not None:
        check_picture(plot_path)
        check_writable(plot_path)
    model = read_model(model_path)
    if (table is None) == (not lengths):
        raise ParameterError("give the chains' lengths by --length N, or a --table to take them from")
    if table is None:
        length: Any = parse_lengths(lengths)
    elif reading["state"] is None:
        raise ParameterError("--table needs --state: the column of states")
    else:
        length = read_under(table, model, reading).length
    with progress("comparing mechanisms"):
        rows = compare(model.theta, query, epsilon, length)
    click.echo(printable(f"{query_text} at ε = {epsilon:g}; Θ: {model.theta.origin}"))
    _print_comparison(rows)
    if plot_path is not None:
        with progress("comparing at other ε"):
            others = {e: compare(model.theta, query, e, length) for e in (epsilon * f for f in _FACTORS)}
        save_figure(draw_noise({epsilon: rows} | others), plot_path)
        click.echo(f"written: {plot_path}")


def _print_comparison(rows: Comparison) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("mechanism")
    for heading in ("scale", "noise multiplier", "expected L1 error", "/ lower bound", "seconds"):
        table.add_column(heading, justify="right")
    for row in rows:
        if row.reason is not None:
            table.add_row(row.title, "N/A", "", "", "", "")
        else:
            numbers = (row.scale, row.noise_multiplier, row.expected_l1_error)
            ratio = "" if row.over_lower_bound is None else f"{row.over_lower_bound:.4g}"
            table.add_row(row.title, *(number(v or 0.0) for v in numbers), ratio, f"{row.seconds:.2f}")
    print_table(table)
    lower = next((row.lower_bound for row in rows if row.lower_bound), None)
    if lower is not None:
        click.echo(f"lower bound: Laplace noise of a scale below {number(lower)} cannot give this guarantee")
    for row in rows:
        if row.reason is not None:
            click.echo(printable(f"{row.title}: N/A, {row.reason}"))
