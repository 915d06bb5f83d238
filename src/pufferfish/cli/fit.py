"""``pufferfish fit``: a model from public data."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import click
import numpy as np
from numpy.typing import NDArray

from pufferfish._base.checked import split_list
from pufferfish._base.view import counted, grid_lines
from pufferfish._base.words import names_of
from pufferfish._draw.figure import PICTURE, save_figure
from pufferfish.cli._tables import ChainReading, check_targets, opened
from pufferfish.cli.messages import as_options, say
from pufferfish.cli.options import WHOLE, accept_option, argument, command, flag, option, refuse_given, state_list
from pufferfish.cli.print import print_warnings, progress
from pufferfish.data import Sequences, read_sequences
from pufferfish.data.bins import bin_labels, parse_bins
from pufferfish.data.labels import OTHER, words_for_missing
from pufferfish.errors import DataError, ModelError, ParameterError
from pufferfish.fit.chain import SMOOTHING, check_confidence, fit_chain, fit_interval, fit_order, fit_periodic
from pufferfish.fit.defend import DefendedFit, fit_defend
from pufferfish.fit.forgetting import SMOOTHING as PAIRS, OverlapEstimate, fit_forgetting
from pufferfish.fit.left_out import MOST_KINDS, LeftOut
from pufferfish.fit.made_up import MadeUp, made_up, warnings_of_unseen
from pufferfish.fit.members import CALLED
from pufferfish.fit.model_file import BIF_FILE, MODEL, Model, is_bif, write_bif, write_model
from pufferfish.fit.network import CHOW_LIU, SMOOTHING as NETWORK_SMOOTHING, fit_network_to
from pufferfish.fit.stays import fit_stays, fit_stays_of_each
from pufferfish.fit.subjects import SubjectsFit, fit_each_subject
from pufferfish.mechanisms.network_picture import draw_network
from pufferfish.theta.chain_class import ChainClass
from pufferfish.theta.continua import ForgettingClass, IntervalChain
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.model_class import draw_model
from pufferfish.theta.periodic_chain import PeriodicChain
from pufferfish.theta.shown import main_grids
from pufferfish.theta.states import CLOCKS, phase_name

if TYPE_CHECKING:
    from pufferfish.data.spark import SparkFiles

# -- Options ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """What is fitted."""

    tables: tuple[str, ...] = argument("[TABLE]...")
    reading: ChainReading
    states: str | None = option(
        "The states, in order, or a file with one in each line [default: those in the table, sorted].", "A,B,…"
    )
    initial: Literal["stationary", "any"] | None = option(
        "Law of the first record: the stationary one, or every law at once.  [default: stationary]"
    )
    smoothing: float | None = option(
        f"Transitions added to every row, distributed like those of other rows or subjects [default: {SMOOTHING:g}]; "
        f"with --forgets: pairs of all subjects added to each subject [default: {PAIRS:g}]; with --arrows: rows added "
        f"to each row of a node's table, with the node's own shares [default: {NETWORK_SMOOTHING:g}]."
    )
    merge_rare: int | None = option(
        f"Make one state, {OTHER}, of all states that fewer than N transitions leave. Later, states that the model "
        f"does not know count as {OTHER} too.",
        "N",
        type=WHOLE,
    )
    confidence: float | None = option(
        "Instead of one chain, bounds that hold all transition probabilities with this confidence, such as 0.95.", "C"
    )
    forgets: tuple[str, ...] = option(
        "Instead of a chain, estimate how much habits overlap after this time (8min) or number of steps (8); may be "
        "repeated.",
        "LEN",
    )
    overlap: tuple[float, ...] = option(
        "With --forgets, state the overlap yourself, once for each --forgets; no TABLE is read.", "SHARE"
    )
    clock: str | None = option(
        "A transition matrix for each hour of the day, weekday, or hour of the week.", type=click.Choice(list(CLOCKS))
    )
    each_subject: bool = option(
        "A chain for each subject of the --subject column; the noise is then enough for everybody's habits."
    )
    arrows: str | None = option(
        'A network, from a table with one row per subject: arrows between columns, "smoke->lung, age->lung", a file '
        "with one arrow in each line, or chow-liu for the tree that fits best.",
        "ARROWS",
    )
    columns: str | None = option(
        "With --arrows, more columns, without arrows; with chow-liu those of the tree.", "A,B,…"
    )
    certain: str | None = option(
        "With --arrows, columns that follow from their parents with certainty, such as a logical OR: values that "
        "never occur are then impossible.",
        "A,B,…",
    )
    order: int | None = option(
        "Number of earlier records that each record depends on, instead of one.", "M", type=click.IntRange(min=2, max=6)
    )
    stays: bool = option("Several kinds of stay in each state, short and long; with --each-subject for each subject.")
    kinds: int | None = option(
        "With --stays, the number of kinds in each state [default: the number that predicts left-out days best].",
        "N",
        type=click.IntRange(min=1, max=MOST_KINDS),
    )
    defend: bool = option(
        "A class that can be defended: the kinds of model that left-out days demand, and everybody's own habits; "
        "prints how many people it covers."
    )
    cover: float | None = option("With --defend, cover this share of people, such as 0.99.", "SHARE")
    slower: float | None = option(
        "With --defend, add every member again with stays longer by this factor, such as 1.3.", "TIMES"
    )
    drop_slowest: bool = option("With --defend and --cover, leave out as many of the slowest people as --cover allows.")
    people: int | None = option("With --defend, the number of people in the release, all to be covered.", "M")
    accept: tuple[str, ...] = accept_option(
        smoothing="smoothing invents more than 5% of the model, or changes noise or stays by more than 10%"
    )
    output: str = option("Where the model is written, as JSON; a network as BIF, if so named.", "FILE", required=True)
    plot: str | None = option("Draw transitions and dwell times, or the network (.png, .svg, .pdf).", "FILE")
    overwrite: bool = option("Replace an earlier model.")

    def check(self) -> None:
        """Refuse options that do not go with each other."""
        if self.arrows is not None:
            network = "--arrows fits a network, whose table has one row per subject"
            refuse_given(self, _OF_CHAINS, f"{{}} is for chains, but {network}: leave out one of them")
            self.reading.of_rows()
            if not self.tables:
                raise ParameterError("give the TABLE of public data that the network's tables are counted from")
            return
        refuse_given(self, ("columns", "certain"), "{} is for networks: give --arrows, or leave it out")
        if self.forgets or self.overlap:
            probabilities = ("initial", "confidence", "clock", "each_subject", "order", "stays", "kinds")
            refuse_given(
                self, probabilities, "{} is for transition probabilities, which --forgets does not use: leave it out"
            )
            return
        if not self.tables:
            raise ParameterError("give the TABLE of public data; only --forgets with --overlap needs none")
        if self.reading.state is None:
            raise ParameterError("give --state: the column of states")
        if self.defend:
            chosen = ("initial", "smoothing", "confidence", "clock", "each_subject", "order", "stays")
            refuse_given(self, chosen, "--defend chooses the models itself: leave out {}")
        else:
            refuse_given(self, ("cover", "slower", "drop_slowest", "people"), "{} belongs to --defend: give both")
        if self.stays:
            refuse_given(self, _OF_ONE_MATRIX, "--stays does not work together with {0}: leave out {0}, or --stays")
        else:
            refuse_given(self, ("kinds",), "{} only works with --stays: give both")
        if self.confidence is not None:
            says = "--confidence gives bounds on one matrix: leave out --clock and --order"
            refuse_given(self, ("clock", "order"), says)
            if self.initial == "stationary":
                raise ParameterError("--confidence gives bounds for every initial law: leave out --initial stationary")
            allow = "because bounds allow transitions that never occur: leave it out"
            refuse_given(self, ("smoothing",), f"--confidence does not use {{}}, {allow}")
            check_confidence(self.confidence)
        if self.each_subject:
            says = "--each-subject gives every subject one matrix: leave out {}, or --each-subject"
            refuse_given(self, _OF_ONE_MATRIX, says)
            if self.reading.subject is None:
                raise ParameterError("give --subject, the column of subjects, for --each-subject")


_OF_ONE_MATRIX = ("confidence", "clock", "order")
_OF_CHAINS = ("states", "initial", "confidence", "forgets", "overlap", "clock", "each_subject", "order", "stays")
_OF_CHAINS += ("defend",)


# -- The work --------------------------------------------------------------------------------------------------------


@command("fit", FitOptions)
def fit_command(options: FitOptions) -> None:
    """Fit a Markov chain, bounds on one, how soon it forgets, or a network, to PUBLIC data; and write a model file.

    The model is part of what everybody is assumed to know: fit it to data that is already public, such as an
    earlier survey, never to the table it shall protect.

    \b
    Example:
      pufferfish fit survey-2019.csv --state activity --subject id --time minute --max-gap 1min --output model.json
      pufferfish fit survey-2019.csv --state activity --subject id --time minute --max-gap 1min --defend \\
        --output defended.json
      pufferfish fit survey-2019.csv --state activity --subject id --confidence 0.95 --output model.json
      pufferfish fit survey-2019.csv --state activity --subject id --each-subject --output model.json
      pufferfish fit survey-2019.csv --state activity --subject id --time minute --max-gap 1min --stays \\
        --output stays.json
      pufferfish fit --forgets 8 --overlap 0.43 --states sit,stand,walk --output model.json
      pufferfish fit survey-2019.csv --state activity --subject id --time minute --max-gap 1min --clock hour \\
        --output hourly.json
      pufferfish fit register.csv --arrows "smoke->lung, age->lung, lung->xray" --output patients.json
    """
    options.check()
    bif = options.arrows is not None and is_bif(options.output)
    targets = [("--output", options.output, BIF_FILE if bif else MODEL), ("--plot", options.plot, PICTURE)]
    check_targets(targets, inputs=options.tables, overwrite=options.overwrite)
    if options.reading.spark is not None and not options.tables:
        raise ParameterError("--spark needs a TABLE: give one, or leave out --spark")
    with opened(options.tables, options.reading) if options.tables else nullcontext() as table:
        states, merged = _merged(options, table, state_list(options.states))
        model, lines = _fit(options, table, states)
    if options.states is None:
        print_warnings(
            f"the state {word!r} looks like a word for a missing value, but is now a state of the model: if it means "
            "missing, leave such cells of the table empty, and fit again"
            for word in words_for_missing(model.theta.states)
        )
    networks = model.theta.networks
    figure = None if options.plot is None else draw_network(networks[0]) if networks else draw_model(model.theta)
    grids = main_grids(model.theta, model.step)
    (write_bif if bif else write_model)(model, options.output)
    if options.plot is not None:
        save_figure(figure, options.plot)
    say(lines[0])
    for grid in grids:
        click.echo("\n".join(grid_lines(grid)))
    say(*merged, *lines[1:], f"written: {', '.join(filter(None, (options.output, options.plot)))}")
    if bif:
        say("A BIF file does not hold what it was fitted to, so a release of that same table cannot be refused.")
    if model.fitted_on is not None:
        say("Treat this file as public from now on, and use it only for other data than the data it came from.")


_Table: TypeAlias = "str | list[str] | SparkFiles | None"
_Fit: TypeAlias = tuple[Model, list[str]]
"""The model, and what to say of it."""


def _fit(options: FitOptions, table: _Table, states: list[str] | None) -> _Fit:
    """Fit what is asked for."""
    if options.arrows is not None:
        return _network(options, table)
    if options.overlap or options.forgets:
        return _forgetting(options, table, states)
    if options.defend:
        return _defended(options, table, states)
    if options.stays:
        return _stays(options, table, states)
    return (_each_subject if options.each_subject else _one_model)(options, table, states)


# -- Rare states, and what is made up -------------------------------------------------------------------------------


def _merged(options: FitOptions, table: _Table, states: list[str] | None) -> tuple[list[str] | None, list[str]]:
    """Return the states, the rare ones as one, and what to say of it."""
    fewest, reading = options.merge_rare, options.reading
    if fewest is None:
        return states, []
    if table is None or reading.bins is not None:
        what = "--overlap needs no TABLE" if table is None else "use wider --bins to join bins"
        raise ParameterError(f"--merge-rare merges rare states of a TABLE, but {what}: leave it out")
    with progress("reading the table"):
        sequences = read_sequences(table, states=states, **reading.of_chains())
    left = dict(zip(sequences.states, sequences.transitions.sum(axis=1).tolist(), strict=True))
    rare = [state for state, number in left.items() if number < fewest and state != OTHER]
    if not rare:
        return states, [f"no state is left by fewer than {fewest:,} transitions: none is merged"]
    kept = [state for state in sequences.states if state not in rare and state != OTHER]
    if not kept:
        raise ParameterError(f"every state is left by fewer than {fewest:,} transitions: give a smaller --merge-rare")
    merged = f"{OTHER} stands for unknown states and for those that fewer than {fewest:,} transitions leave: "
    return [*kept, OTHER], [merged + _few(rare)]


def _few(names: Sequence[str]) -> str:
    return names_of(map(repr, names), 8)


def _lines_of_smoothing(made: MadeUp, sequences: Sequences, options: FitOptions) -> list[str]:
    """Return what to say of a fit that smoothing completed, refused where it makes up more than anybody accepts."""
    if not made.too_much or "smoothing" in options.accept:
        return made.sentences
    left = sequences.transitions.sum(axis=1)
    rare = [sequences.states[i] for i in np.argsort(left, kind="stable") if left[i] < made.merge_below]
    rare = [state for state in rare if state != OTHER]
    remedy = "use more data, a simpler model, or a smaller --smoothing"
    if rare and options.reading.bins is None and len(rare) < len(left):
        remedy = f"give --merge-rare {made.merge_below} ({_few(rare)}), {remedy}"
    elif rare and options.reading.bins is not None:
        remedy = f"use wider --bins ({_few(rare)}), {remedy}"
    raise ModelError(
        f"smoothing would invent too much: {made.too_much}; {remedy}; if you are sure, give --accept smoothing"
    )


# -- How soon a chain forgets (--forgets) ----------------------------------------------------------------------------


def _forgetting(options: FitOptions, table: _Table, states: list[str] | None) -> _Fit:
    if not options.forgets:
        raise ParameterError("--overlap and --forgets belong together: give both")
    if options.overlap:
        return _stated(options, table, states)
    if table is None:
        raise ParameterError("give the TABLE of public data to estimate the overlap from, or state it by --overlap")
    smoothing = PAIRS if options.smoothing is None else options.smoothing
    reading = options.reading.of_chains()
    with progress("reading the table"):
        estimate = fit_forgetting(table, forgets=list(options.forgets), smoothing=smoothing, states=states, **reading)
    print_warnings(estimate.sequences.warnings)
    model = Model.fitted(estimate.theta, estimate.sequences)
    lines = [line for overlap in estimate.estimates for line in _lines_of_forgetting(overlap, model.step)]
    lines.append(
        f"each subject's laws were given {estimate.smoothing:g} independent pairs of all subjects, because little "
        "data looks less forgetful than it is"
    )
    return model, lines


def _stated(options: FitOptions, table: _Table, states: list[str] | None) -> _Fit:
    """Return the model of overlaps that the user knows."""
    forgets, overlap, reading = options.forgets, options.overlap, options.reading
    if table is not None:
        raise ParameterError("--overlap and a TABLE both give the overlap: leave out one of them")
    if len(overlap) != len(forgets):
        raise ParameterError(f"--forgets is given {len(forgets)} times and --overlap {len(overlap)}: one for each")
    for name in (*reading.given, *(["smoothing"] if options.smoothing is not None else [])):
        if name not in ("bins", "step", "gaps"):
            raise ParameterError(f"{flag(name)} is for a TABLE, which --overlap does not read: leave it out")
    bins = None if reading.bins is None else parse_bins(reading.bins)
    if states is None and bins is None:
        raise ParameterError("give the --states of the records, such as sit,stand,walk, or --bins")
    from pufferfish.data.public_counts import as_steps  # here: it loads what reads tables

    steps = [as_steps(length, reading.step) for length in forgets]
    theta = ForgettingClass(steps, list(overlap), bin_labels(bins) if states is None and bins is not None else states)
    lines = [f"after {n} steps habits overlap by {share:g}, as stated" for n, share in theta.pairs]
    return Model(theta=theta, bins=bins, step=reading.step), lines


def _lines_of_forgetting(estimate: OverlapEstimate, step: str | None) -> list[str]:
    steps, whose = f"{estimate.steps:,} steps", ""
    if estimate.subject:
        whose = f"the least of {counted(estimate.subjects, 'subject')}, that of {estimate.subject!r}, "
    after = f"after {steps}{'' if step is None else f' of {step}'}"
    return [
        f"{after} habits overlap by {estimate.overlap:.4g}: {whose}about the state {steps} {estimate.direction}",
        f"  all taken together {estimate.pooled:.4g}, from {estimate.pairs:,} pairs of records",
    ]


# -- A network (--arrows) --------------------------------------------------------------------------------------------

_MOST_LINES = 8


def _network(options: FitOptions, table: _Table) -> _Fit:
    with progress("reading the table"):
        fit = fit_network_to(
            table,
            options.arrows,
            columns=None if options.columns is None else split_list(options.columns),
            smoothing=NETWORK_SMOOTHING if options.smoothing is None else options.smoothing,
            certainties=[] if options.certain is None else split_list(options.certain),
            **options.reading.of_rows(),
        )
    network = fit.theta.networks[0]
    lines = [
        f"network of {counted(len(network.nodes), 'column')} and {counted(len(network.edges), 'arrow')} "
        f"from {counted(fit.rows.records, 'row')}"
    ]
    if options.arrows == CHOW_LIU:
        lines.append(f"arrows: {', '.join(f'{parent}->{child}' for parent, child in network.edges)}")
    poor = sorted((of_node for of_node in fit.tables if of_node.few), key=lambda of_node: -of_node.few)
    for table_of in poor[:_MOST_LINES]:
        few = f"{table_of.few:,} of the {table_of.rows:,} rows of its table are counted from few data (below 10)"
        never = f"; {table_of.unseen:,} of them were never seen, and are the shares of all rows"
        lines.append(f"{table_of.node}: {few}{never if table_of.unseen else ''}")
    if len(poor) > _MOST_LINES:
        lines.append(f"and {counted(len(poor) - _MOST_LINES, 'more column')} with rows of few data")
    certain = sum(of_node.zeros for of_node in fit.tables)
    if certain:
        lines.append(f"{counted(certain, 'value')} of tables never occur and are treated as impossible: a strong claim")
    return Model.fitted(fit.theta, fit.rows), lines


# -- A chain for each subject (--each-subject) -----------------------------------------------------------------------


def _each_subject(options: FitOptions, table: _Table, states: list[str] | None) -> _Fit:
    with progress("reading the table"):
        fit = fit_each_subject(
            table,
            smoothing=SMOOTHING if options.smoothing is None else options.smoothing,
            initial=options.initial or "stationary",
            states=states,
            **options.reading.of_chains(),
        )
    print_warnings([*fit.sequences.warnings, *warnings_of_unseen(fit.sequences)])
    return Model.fitted(fit.theta, fit.sequences), _lines_of_subjects(fit, options)


def _lines_of_subjects(fit: SubjectsFit, options: FitOptions) -> list[str]:
    theta, subjects = fit.theta, fit.sequences.subjects
    alike = f"for {subjects:,} subjects: equal ones are kept once"
    whose = "one for each subject" if len(theta.chains) == subjects else alike
    chains, transitions = counted(len(theta.chains), "chain"), int(fit.sequences.transitions.sum())
    lines = [f"{chains} of {theta.k} states, {whose}, from {transitions:,} transitions"]
    if fit.made_up.smoothing:
        lines.append(
            f"the added transitions are those of all other subjects; {fit.mostly_others} "
            f"subject{' has' if fit.mostly_others == 1 else 's have'} a row with fewer transitions of its own"
        )
    lines += _lines_of_smoothing(fit.made_up, fit.sequences, options)
    return lines + _never_seen([chain.transition_matrix for chain in theta.chains])


# -- Stays of several kinds (--stays) --------------------------------------------------------------------------------


def _stays(options: FitOptions, table: _Table, states: list[str] | None) -> _Fit:
    sequences, initial = _read(options, table, states, daily=True), options.initial or "stationary"
    with progress("fitting stays"):
        left_out = None if options.kinds is not None else LeftOut(sequences)
        kinds = options.kinds if left_out is None else left_out.kinds
        if options.each_subject:
            chains = fit_stays_of_each(sequences, kinds=kinds, initial=initial)
        else:
            smoothing = 1.0 if options.smoothing is None else options.smoothing
            chains = [fit_stays(sequences, kinds=kinds, initial=initial, smoothing=smoothing)]
    several, transitions = counted(len(chains), "chain"), int(sequences.transitions.sum())
    of_whom = f", one for each of {sequences.subjects:,} subjects" if options.each_subject else ""
    lines = [f"{several} of {chains[0].k} states with several kinds of stay{of_whom}, from {transitions:,} transitions"]
    for kinds, gain in enumerate([] if left_out is None else left_out.of_kinds[1:], 2):
        likelier = f"{gain.nats:,.1f} nats likelier than {kinds - 1} (standard error {gain.error:,.1f})"
        lines.append(f"{kinds} kinds of stay make left-out days {likelier}")
    return Model.fitted(ChainClass(tuple(chains)), sequences), lines


# -- A class that can be defended (--defend) ---------------------------------------------------------------------------


def _defended(options: FitOptions, table: _Table, states: list[str] | None) -> _Fit:
    without: list[str] = []
    try:
        sequences = _read(options, table, states, daily=True, clock="hour")
    except (ParameterError, DataError) as error:  # hours need times, and records one step apart
        sequences = _read(options, table, states, daily=True)
        without = [f"hours of the day were not tried: {as_options(str(error))}"]
    with progress("searching for the models that days demand"):
        fit = fit_defend(
            sequences,
            cover=options.cover,
            slower=options.slower,
            drop_slowest=options.drop_slowest,
            people=1 if options.people is None else options.people,
        )
    return Model.fitted(fit.theta, sequences), [*defended_lines(fit), *without]


def defended_lines(fit: DefendedFit) -> list[str]:
    """Say what was tried, what is kept, who decides, and how many people that covers."""
    members = len(fit.theta.members)
    lines = [f"a class of {counted(members, 'chain')} of {fit.theta.k} states, from {fit.sequences.records:,} records"]
    lines.append(
        "noise: the least for a histogram at ε = 1 in a long series; leaks: the leakage of the noise for one chain of "
        "all"
    )
    for kind in fit.kinds:
        name = CALLED[kind.kind]
        if kind.reason is not None:
            lines.append(f"cannot be tried: {name}: {kind.reason}")
            continue
        gain = "" if kind.gain is None else f", {kind.gain.nats:,.0f} nats likelier (error {kind.gain.error:,.0f})"
        whose = "" if kind.decided_by is None else f" of {kind.decided_by}"
        word = "in" if kind.kept else "not demanded"
        lines.append(f"{word}: {name}: noise {kind.noise_multiplier:.4g}{whose}, leaks {kind.leakage:.3g}{gain}")
        if kind.kind == "own":
            middle, most = median(fit.by_chance), max(fit.by_chance)
            lines.append(
                f"by chance alone: if all lived by the chain of all, the largest own chain would need {middle:.4g} "
                f"(in {len(fit.by_chance)} simulations at most {most:.4g})"
            )
    between = ""
    if fit.between is not None:
        between = f"; its resampled days say {fit.between[0]:.4g} to {fit.between[1]:.4g} (10 and 90%)"
    lines.append(f"decides: {fit.decided_by}, noise {fit.noise_multiplier:.4g}{between}")
    return [*lines, fit.coverage.sentence]


# -- One chain, or bounds on one -------------------------------------------------------------------------------------

_NO_GAP = (
    "The table is read without --max-gap: neighbouring records count as one step, however long the time between them, "
    "and the length of the model's step is unknown."
)


def _read(options: FitOptions, table: _Table, states: list[str] | None, **how: Any) -> Sequences:
    """Read the table; warn of how it was read, and of states that it has not."""
    reading = options.reading
    with progress("reading the table"):
        sequences = read_sequences(table, states=states, **how, **reading.of_chains())
    loose = reading.time and not (reading.max_gap or options.clock)
    print_warnings([*sequences.warnings, *([_NO_GAP] if loose else []), *warnings_of_unseen(sequences)])
    return sequences


def _one_model(options: FitOptions, table: _Table, states: list[str] | None) -> _Fit:
    clock, order = options.clock, options.order
    sequences = _read(options, table, states, clock=clock, order=order or 1)
    smoothing = SMOOTHING if options.smoothing is None else options.smoothing
    initial = options.initial or "stationary"
    observed = int(sequences.transitions.sum())
    counted = f"from {observed:,} transitions between {sequences.records:,} records"
    theta: ChainClass | IntervalChain
    if clock is not None:
        periodic = fit_periodic(sequences, initial=initial, smoothing=smoothing)
        theta, lines = ChainClass((periodic,)), _of_clock(periodic, sequences, counted)
    elif order is not None:
        higher = fit_order(sequences, initial=initial, smoothing=smoothing)
        line = f"chain of {higher.k} states, each record depends on the {higher.order} before it, {counted}"
        theta, lines = ChainClass((higher,)), [line, *_never_seen([higher.tensor])]
    elif options.confidence is not None:
        theta = fit_interval(sequences, options.confidence)
        return Model.fitted(theta, sequences), _of_bounds(theta, counted)
    else:
        chain = fit_chain(sequences, initial=initial, smoothing=smoothing)
        theta, lines = ChainClass((chain,)), _of_chain(chain, counted)
    with progress("what smoothing invents"):
        made = made_up(sequences, smoothing=smoothing, initial=initial)
    return Model.fitted(theta, sequences), [*lines, *_lines_of_smoothing(made, sequences, options)]


def _of_clock(chain: PeriodicChain, sequences: Sequences, counted: str) -> list[str]:
    assert chain.clock is not None
    assert sequences.transitions_by_phase is not None
    transitions = sequences.transitions_by_phase.sum(axis=(1, 2))
    word, fewest = CLOCKS[chain.clock].word, int(transitions.argmin())
    lines = [
        f"{chain.phases} matrices of {chain.k} states, one for each {word}, one record every {chain.step}, {counted}",
        f"fewest transitions: {int(transitions[fewest]):,}, at {phase_name(chain.clock, fewest)}",
    ]
    unseen = [phase_name(chain.clock, phase) for phase, seen in enumerate(transitions) if seen == 0]
    if unseen:
        names = ", ".join([*unseen[:4], *["…"] * (len(unseen) > 4)])
        nothing = f"nothing was observed in {len(unseen)} of {chain.phases} phases ({names})"
        lines.append(f"{nothing}: they are treated like the others")
    return lines + _never_seen([chain.matrices], f" at their {word}")


def _of_chain(chain: MarkovChain, counted: str) -> list[str]:
    lines = [f"chain of {chain.k} states {counted}"]
    if chain.is_irreducible:
        _ = chain.pi_min  # a law too extreme to be computed is refused before anything is written
    else:
        lines.append("reducible: not every state can be reached from every other")
    return lines + _never_seen([chain.transition_matrix])


def _of_bounds(theta: IntervalChain, counted: str) -> list[str]:
    width = theta.upper - theta.lower
    lines = [
        f"bounds on the transitions between {theta.k} states {counted}",
        f"half widths from {width.min() / 2:.3g} to {width.max() / 2:.3g}; matrices between them may follow each other",
    ]
    possible = int((theta.lower == 0).sum())
    if possible:
        lines.append(f"{possible} of {theta.k**2} transitions may be impossible: their lower bound is 0")
    return lines


def _never_seen(probabilities: Sequence[NDArray[np.float64]], where: str = "") -> list[str]:
    """Return the line about what a fit takes as impossible because nobody did it; none if there is nothing."""
    impossible = sum(int((p == 0).sum()) for p in probabilities)
    if not impossible:
        return []
    return [
        f"{impossible} of {sum(p.size for p in probabilities)} transitions never occur and are treated as "
        f"impossible{where}, a strong claim; leave out --smoothing 0 to avoid it"
    ]
