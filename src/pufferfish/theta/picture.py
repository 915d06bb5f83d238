"""The picture of a class of chains, as a figure: its transition probabilities, and how long states last."""

from typing import TYPE_CHECKING, Any

from pufferfish._draw.figure import figure_of
from pufferfish.errors import NotApplicableError
from pufferfish.theta.model_class import ModelClass, as_theta

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_model"]


def draw_model(theta: Any) -> "Figure":
    """Draw a class of chains: transition probabilities as a heat map, and how many records each state lasts.

    With a clock the second panel has the probability of staying by phase; of a class that only forgets, the picture
    has how much is forgotten. Of several members, and of a class between bounds, the picture has the least and the most
    of each number, and says so: it shows no estimate.

    Parameters
    ----------
    theta : model, sequence of models, or class
        The class Θ of chains.

    Returns
    -------
    matplotlib.figure.Figure
        Write it with its ``savefig``.

    Raises
    ------
    ParameterError
        If matplotlib is not installed.
    NotApplicableError
        If Θ is no class of chains; :func:`pufferfish.draw_network` draws networks.

    Examples
    --------
    A chain, and its picture::

        chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])
        pf.draw_model(chain).savefig("chain.png")
    """
    made = as_theta(theta)
    if isinstance(made, ModelClass):
        raise NotApplicableError(
            f"draw_model covers chains, and Θ is a class of {made.kind}"
            + (": draw_network draws networks" if made.networks else ", which has no picture: print it")
        )
    return figure_of(made._picture(), f"Θ: {made.origin}")
