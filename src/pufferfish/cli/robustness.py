"""``pufferfish robustness``: how much more leaks to an adversary whose belief is outside of a model."""

from dataclasses import dataclass

from pufferfish._base.words import at_most
from pufferfish.cli.messages import say
from pufferfish.cli.options import argument, command, option, parse_lengths
from pufferfish.cli.print import progress
from pufferfish.data.steps import same_step
from pufferfish.errors import ParameterError
from pufferfish.fit.model_file import chains_of, read_model
from pufferfish.mechanisms.mechanism import as_epsilon
from pufferfish.robustness import robustness


@dataclass(frozen=True, kw_only=True)
class RobustnessOptions:
    """Which belief is compared with which model."""

    model: str = argument("MODEL")
    belief: str = argument("BELIEF")
    length: tuple[str, ...] = option(
        "Steps of one chain, unobserved ones included; repeat, or N1,N2,….", "N", required=True
    )
    epsilon: float | None = option("Privacy parameter ε under MODEL; its value under BELIEF is printed.")


@command("robustness", RobustnessOptions)
def robustness_command(options: RobustnessOptions) -> None:
    """How much more leaks if an adversary's BELIEF is outside of MODEL: ε + 2Δ (Theorem 2.4).

    \b
    Example:
      pufferfish robustness model.json belief.json --length 10 --epsilon 1
    """
    epsilon = None if options.epsilon is None else as_epsilon(options.epsilon)
    paths = (options.model, options.belief)
    model = chains_of(read_model(options.model), options.model, among=True)
    belief = chains_of(read_model(options.belief), options.belief)
    if model.bins != belief.bins:
        raise ParameterError(
            f"{options.model} and {options.belief} have different bins, so their states mean different things"
        )
    if model.step is not None and belief.step is not None and not same_step(model.step, belief.step):
        raise ParameterError(f"transitions of {options.model} take {model.step}, of {options.belief} {belief.step}")
    with progress("comparing belief and model"):
        distance = robustness(model.theta, belief.theta, parse_lengths(options.length))
    origins = [model.theta.origin, belief.theta.origin]
    if origins[0] == origins[1]:  # two models that say the same of themselves are told apart by their files
        origins = [f"{path}, {origin}" for path, origin in zip(paths, origins, strict=True)]
    say(f"Θ: {origins[0]}; belief: {origins[1]}")
    if distance.reason is not None:
        nothing = "Privacy under Θ promises nothing under this belief: use a Θ that contains it, or one like it"
        return say(f"Δ is infinite: {distance.reason}", nothing)
    say(f"Δ = {at_most(distance, 6)}")
    if distance.secret is not None:
        say(f"decided by: {distance.secret} ({distance.direction})")
    say(f"closest member of Θ: number {distance.theta} (from 0); worst belief: number {distance.belief}")
    if epsilon is None:
        more = at_most(2 * distance, 6)
        say(f"what is ε-private under Θ leaks at most ε + 2Δ = ε + {more} to this belief")
    else:
        effective = at_most(distance.effective_epsilon(epsilon), 6)
        private = f"what is private at ε = {at_most(epsilon)} under Θ"
        say(f"{private} leaks at most ε + 2Δ = {effective} to this belief")
