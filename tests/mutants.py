"""Faults put into the source on purpose: does `make test` notice each of them?

Run it by ``make mutants``, or for some of them ``python tests/mutants.py stale quilt``. Each fault is one changed line
in a copy of this folder; its doctests and the tests named beside it are run there as `make test` runs them. A fault
that survives means that a test is missing. This is for those who thin out tests, and no part of what continuous
integration runs.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).parent.parent


class Mutant(NamedTuple):
    """One line that is changed, and the tests that are to notice."""

    name: str
    file: str
    old: str
    new: str
    tests: str


MUTANTS = [
    Mutant(
        "stays: a step tells nothing between two kinds of stay of one state",
        "_core/propagation/chain.py",
        "return np.where(others, within, lifted)",
        "return lifted",
        "oracle/test_oracle_stays.py",
    ),
    Mutant(
        "stays: a first record's kind has the stationary law, whatever law is given",
        "_core/propagation/chain.py",
        "law = self._past.law(*places)",
        "law = None",
        "oracle/test_oracle_stays.py oracle/test_oracle_higher_order.py",
    ),
    Mutant(
        "rounding: a sum of fractions is rounded to nearest, not up",
        "_core/numbers/rounding.py",
        "return double if double == math.inf or Fraction(double) >= exact else math.nextafter(double, math.inf)",
        "return double",
        "unit/_core/numbers unit/ledger/test_ledger_sums.py",
    ),
    Mutant(
        "rounding: the next noise is taken on the wrong side of the level",
        "_core/numbers/rounding.py",
        "return Bracket(too_small, enough)",
        "return Bracket(enough, too_small)",
        "unit/_core/numbers unit/mechanisms",
    ),
    Mutant(
        "phi: what flows in is rounded down in the certificate",
        "_core/phi/certificate.py",
        "excess = (row[y] + into[y]) * (1 + rounding) - out[y] * (1 - rounding)",
        "excess = (row[y] + into[y]) * (1 - rounding) - out[y] * (1 + rounding)",
        "unit/_core/propagation oracle/test_oracle_propagation.py",
    ),
    Mutant(
        "phi: the bound of an arc is read the wrong way round",
        "_core/phi/certificate.py",
        "grows = math.exp(a[tail, head]) if a[tail, head] <= _EXPONENT else np.inf",
        "grows = math.exp(a[head, tail]) if a[head, tail] <= _EXPONENT else np.inf",
        "unit/_core/propagation oracle/test_oracle_propagation.py",
    ),
    Mutant(
        "phi: a walk passes on what arrived without the loss of the record",
        "_core/phi/certificate.py",
        "arrived = loss[y, z] if bound == 0.0 else np.nextafter(loss[y, z] + bound, np.inf)",
        "arrived = loss[y, z] if bound == 0.0 else bound",
        "unit/_core/propagation/test_walks.py",
    ),
    Mutant(
        "phi: a walk takes what is no number as a bound",
        "_core/phi/certificate.py",
        "most = max(most, np.inf if math.isnan(a[y, z]) else a[y, z])",
        "most = max(most, a[y, z])",
        "unit/_core/propagation/test_walks.py",
    ),
    Mutant(
        "propagation: the past of a given start is dropped",
        "_core/propagation/chain.py",
        "total = np.where(secrets, loss + before + after, -np.inf)",
        "total = np.where(secrets, loss + after, -np.inf)",
        "oracle/test_oracle_propagation.py",
    ),
    Mutant(
        "propagation: the kernel of the past is not turned round",
        "_core/propagation/past_and_future.py",
        "logs = self._steps.moved_on(before)[..., None, :] + self._log_into - here[..., :, None]",
        "logs = self._steps.moved_on(before)[..., None, :] + np.swapaxes(self._log_into, -1, -2) - here[..., :, None]",
        "oracle/test_oracle_propagation.py",
    ),
    Mutant(
        "two-state chains in an interval: the corner of chains that alternate is left out",
        "mechanisms/binary_interval.py",
        "for p in dict.fromkeys((theta.low, theta.high))]",
        "for p in (theta.high,)]",
        "oracle/test_oracle_binary_corners.py",
    ),
    Mutant(
        "two-state chains in an interval: under every law a corner's past knows its own",
        "mechanisms/_propagation_on_chains.py",
        "self._past = AnyPast(Steps(matrix), ages=False)",
        "pass",
        "oracle/test_oracle_binary_corners.py",
    ),
    Mutant(
        "propagation: every initial law, around a clock, with steps of another phase",
        "_core/propagation/past_and_future.py",
        "self._power = steps.moved_on(steps.matrices)  # by the phase that it leads to",
        "self._power = steps.matrices",
        "oracle/test_oracle_any_start.py",
    ),
    Mutant(
        "propagation: every initial law, but no mixtures of two states",
        "_core/phi/any_initial_law.py",
        "return laws, (np.append(alone, rows[:, :-1]), np.append(alone, rows[:, 1:]))",
        "return laws, (alone, alone)",
        "oracle/test_oracle_any_start.py",
    ),
    Mutant(
        "forgetting: the loss of the record itself is taken off twice",
        "_core/propagation/forgetting.py",
        "total = future + past - rounded",
        "total = future + past - 2 * rounded",
        "unit/_core/propagation/test_forgetting.py oracle/test_oracle_forgetting.py",
    ),
    Mutant(
        "forgetting: the losses of the records in between are left out",
        "_core/propagation/forgetting.py",
        "units = before[after] - before[i]",
        "units = before[i + 1] - before[i]",
        "unit/_core/propagation/test_forgetting.py oracle/test_oracle_forgetting.py",
    ),
    Mutant(
        "forgetting: the midst of a long stretch is held at its fixed point, whatever lies beside it",
        "_core/propagation/forgetting.py",
        "most = max(most, excess[j])",
        "most = held[i]",
        "unit/_core/propagation/test_forgetting.py",
    ),
    Mutant(
        "propagation on networks: a cluster forgets the losses that are at home in it",
        "_core/propagation/clusters.py",
        "every = (*self._at_home[cluster], *messages.values())",
        "every = (*messages.values(),)",
        "oracle/test_oracle_networks_by_clusters.py oracle/test_oracle_cluster_propagation.py",
    ),
    Mutant(
        "networks: a node with several parents never opens a path",
        "_core/networks/d_separation.py",
        "if several and self.below[current] & given else 0",
        "if False else 0",
        "unit/_core/networks oracle/test_oracle_markov_quilt.py",
    ),
    Mutant(
        "quilts: the secret pair is swapped on the left",
        "_core/quilts/influence.py",
        "self._ratios(a, support)[group.pairs[0], group.pairs[1]]",
        "self._ratios(a, support)[group.pairs[1], group.pairs[0]]",
        "unit/_core/quilts oracle/test_oracle_quilts.py golden/test_golden_chains.py",
    ),
    Mutant(
        "quilts: one end node of the nearby records is dropped",
        "_core/quilts/chain_search.py",
        "weight = problem.weight(node - a + 1, node + b - 1)",
        "weight = problem.weight(node - a + 2, node + b - 1)",
        "unit/_core/quilts oracle/test_oracle_quilts.py golden/test_golden_chains.py",
    ),
    Mutant(
        "laws: what rounding may cost is taken off a loss",
        "_core/laws/law.py",
        "return or_infinite(float(np.max(np.abs(first - second))) + first_error + second_error)",
        "return or_infinite(float(np.max(np.abs(first - second))) - first_error - second_error)",
        "unit/_core/laws unit/mechanisms/test_exact_loss.py oracle/test_oracle_wasserstein_inf.py",
    ),
    Mutant(
        "laws: answers above an output are left out of its likelihood",
        "_core/numbers/wide.py",
        "out[w], out_levels[w] = plus(out[w], out_levels[w], a, a_level)",
        "out[w] = out[w]",
        "unit/_core/laws unit/_core/numbers/test_wide.py golden/test_golden_general_framework.py",
    ),
    Mutant(
        "laws: where two laws begin is forgotten in the distance between them",
        "_core/laws/transport.py",
        "return max(0, int(np.max(needed - ends)) + offset), max(0, int(np.max(enough - ends)) + offset)",
        "return max(0, int(np.max(needed - ends))), max(0, int(np.max(enough - ends)))",
        "unit/_core/laws contract/test_law_mechanisms.py oracle/test_oracle_query_chains.py",
    ),
    Mutant(
        "GK16: the factor 2 is forgotten",
        "mechanisms/gk16.py",
        "return up(2 * factor * most)",
        "return up(factor * most)",
        "unit/mechanisms/test_gk16.py golden/test_golden_gk16.py",
    ),
    Mutant(
        "GK16: the last record has the influence of an inner one",
        "_core/gk16.py",
        "left[-1] = self.last[t if t < n else self.cycle + (t - self.cycle) % (n - self.cycle)]",
        "left[-1] = self.left[t if t < n else self.cycle + (t - self.cycle) % (n - self.cycle)]",
        "oracle/test_oracle_gk16.py unit/_core",
    ),
    Mutant(
        "GroupDP: one record too few",
        "mechanisms/engine.py",
        "largest, left = losses.largest[heaviest], losses.length.records",
        "largest, left = losses.largest[heaviest], losses.length.records - 1",
        "unit/mechanisms",
    ),
    Mutant(
        "places: local times are taken to say at which steps records are",
        "data/_count.py",
        "return 0 if self.zoned or self.layout.max_gap is None else slack_of(self._step)",
        "return 0",
        "oracle/test_oracle_clock_changes.py unit/data/test_time_zones.py",
    ),
    Mutant(
        "places: only the step before is charged for what clocks may have moved",
        "data/sequences.py",
        "start, stop = max(start - by, 0), min(stop + by, size)",
        "start, stop = max(start - by, 0), stop",
        "oracle/test_oracle_clock_changes.py unit/data/test_time_zones.py",
    ),
    Mutant(
        "record losses: a stale key, which does not say how long the stretches are",
        "queries/record_loss.py",
        "return self.length, self.of_observed, self.steps.tobytes(), content",
        "return self.length, self.of_observed, content",
        "unit/mechanisms unit/queries/test_queries.py unit/queries/test_query_records.py",
    ),
    Mutant(
        "record losses: divided by the noise they are rounded down",
        "queries/record_loss.py",
        "return np.where(value > 0, np.nextafter(value / divisor, np.inf), 0.0)",
        "return np.where(value > 0, np.nextafter(value / divisor, 0.0), 0.0)",
        "unit/mechanisms unit/queries/test_queries.py contract/test_mechanisms.py",
    ),
    Mutant(
        "ExactLaplace: stale laws, of another query",
        "mechanisms/one_query/law_mechanism.py",
        "if asked == key and key is not None), None)",
        "if key is not None), None)",
        "unit/mechanisms contract/test_law_mechanisms.py",
    ),
    Mutant(
        "ledger: what is checked is not what is written",
        "ledger/ledger.py",
        "after = max(self._leakage(settled, book.entries, charge), book.spent)",
        "after = max(self._leakage(settled, book.entries[1:], charge), book.spent)",
        "unit/ledger/test_ledger_sums.py",
    ),
    Mutant(
        "ledger: a spend inside of a spend is lost",
        "ledger/ledger.py",
        "if self._spending:  # on the same thread",
        "if False:  # on the same thread",
        "unit/ledger/test_ledger_refusals.py",
    ),
    Mutant(
        "ledger: an entry's digest is of that entry alone",
        "ledger/book.py",
        '    "previous",\n    "created",\n',
        '    "created",\n',
        "unit/ledger/test_ledger_chain.py",
    ),
    Mutant(
        "ledger: another Θ makes what was spent less",
        "ledger/ledger.py",
        "book.entries[number - 2].spent if number > 1 else 0.0",
        "0.0",
        "unit/ledger/test_ledger_changes.py",
    ),
    Mutant(
        "ledger: the Θ that a ledger began with charges for ever",
        "ledger/ledger.py",
        "        if change is None or change.theta is None:\n",
        "        if change is None or change.theta is None or self._first:\n",
        "unit/ledger/test_ledger_changes.py",
    ),
    Mutant(
        "ledger: a row of a database is digested without the row before it",
        "ledger/kept.py",
        'hashlib.sha256(f"{before}\\n{content}".encode())',
        'hashlib.sha256(f"{content}".encode())',
        "unit/ledger/test_ledger_databases.py",
    ),
    Mutant(
        "ledger: who spends from a database keeps nobody out",
        "ledger/kept.py",
        '("BEGIN IMMEDIATE",) if self.file is not None else _BEGUN',
        '("BEGIN",) if self.file is not None else _BEGUN',
        "unit/ledger/test_ledger_databases.py",
    ),
    Mutant(
        "ledger: an entry in a database is not committed",
        "ledger/kept.py",
        '            self._do(connection, "COMMIT")\n',
        "",
        "unit/ledger/test_ledger_databases.py",
    ),
    Mutant(
        "ledger: entries that another program added are not asked whether they follow",
        "ledger/book.py",
        "    book.check_chain(known)\n",
        "    book.check_chain(known) if not known else None\n",
        "unit/ledger/test_ledger_chain.py",
    ),
    Mutant(
        "verify: a record of another history of its ledger holds",
        "release/verify.py",
        "(entry.previous == booked.previous, ",
        "(True, ",
        "unit/release/test_together.py",
    ),
    Mutant(
        "verify: one release under two names is a fork",
        "release/verification.py",
        "contents.setdefault(encoded(release), ",
        "contents.setdefault(name.encode(), ",
        "unit/release/test_together.py",
    ),
    Mutant(
        "each subject: an interrupted release is finished with a ledger that it was not charged to",
        "release/store.py",
        "if record.table is not None and not charged_here:",
        "if False:",
        "unit/release/test_release_each.py",
    ),
    Mutant(
        "ledger: a stretch at the end of a window is not charged",
        "ledger/_chain_charges.py",
        "end[stop].add(i)",
        "end[stop - 1].add(i)",
        "unit/ledger/test_ledger_sums.py unit/ledger/test_ledger_base.py unit/ledger/test_ledger_places.py",
    ),
    Mutant(
        "ledger: steps are charged between the states of the release's model, in its order",
        "ledger/_chain_charges.py",
        "distance = _on_the_base(whole(unit_distance), groups)",
        "distance = _on_the_base(whole(unit_distance), None if isinstance(linear, StepQuery) else groups)",
        "oracle/test_oracle_ledger_states.py",
    ),
    Mutant(
        "ledger: steps are charged in the order of states of the release's model where it has as many",
        "ledger/_chain_charges.py",
        "distance = _on_the_base(whole(unit_distance), groups)",
        "distance = whole(unit_distance) if isinstance(linear, StepQuery) and step == 0 "
        "and len(unit_distance) == len(states) else _on_the_base(whole(unit_distance), groups)",
        "oracle/test_oracle_ledger_states.py",
    ),
    Mutant(
        "ledger: a window without a name is one of the first chain alone",
        "ledger/same_records.py",
        "return [(list(range(chains)), _steps(window))]",
        "return [([0], _steps(window))]",
        "unit/ledger/test_ledger_sums.py",
    ),
    Mutant(
        "ledger: records of a part of a chain are charged as if they were its first ones",
        "ledger/same_records.py",
        "return tuple(query_window if there == chain else ((0, there.steps),) for there in length)",
        "return tuple(query_window for there in length)",
        "unit/queries/test_query_records.py",
    ),
    Mutant(
        "tables that grow: a chain is taken to have begun long ago",
        "mechanisms/_propagation_on_chains.py",
        "        if all(chain.steps < FOR_EVER for chain in self.length):\n",
        "        if True:\n",
        "oracle/test_oracle_growing.py",
    ),
    Mutant(
        "tables that grow: a plan covers a row each time",
        "ledger/_series_charges.py",
        "                    late = left.hull[0] < reached  # else nothing of it was read before\n",
        "                    late = False\n",
        "unit/ledger/test_ledger_growing.py",
    ),
    Mutant(
        "tables that grow: a plan covers any noise",
        "ledger/_series_charges.py",
        "a * plan.scale <= b * charge.scale for row, planned",
        "True for row, planned",
        "unit/ledger/test_ledger_growing.py",
    ),
    Mutant(
        "tables that grow: of rows that nobody read some are left out",
        "ledger/_series_charges.py",
        "            times = [(origin + start * step, origin + stop * step) for start, stop in runs]\n",
        "            times = [(origin + start * step, origin + stop * step + step) for start, stop in runs]\n",
        "unit/ledger/test_ledger_growing.py",
    ),
    Mutant(
        "ledger: the sum of charges is rounded to nearest",
        "ledger/charges.py",
        "known[distances] = float_up(",
        "known[distances] = float(",
        "unit/ledger/test_ledger_sums.py",
    ),
    Mutant(
        "ledger: who is named pays for no release about everybody",
        "ledger/charges.py",
        "reads = np.ones((len(charges), places), dtype=np.bool_)",
        "reads = np.zeros((len(charges), places), dtype=np.bool_)",
        "unit/ledger/test_ledger_subjects.py oracle/test_oracle_ledger_subjects.py",
    ),
    Mutant(
        "each subject: what was drawn is drawn again after a crash",
        "release/store.py",
        "if begun is None or begun.table is None:",
        "if begun is None or begun.table is not begun:",
        "unit/release/test_release_each.py",
    ),
    Mutant(
        "noise: OpenDP need not confirm the loss",
        "release/noise.py",
        "if not measurement.map(lipschitz) <= lipschitz / scale:",
        "if False:",
        "statistical unit/release/test_release.py",
    ),
    Mutant(
        "data: a gap is rounded down",
        "data/_chains.py",
        "return max(2, ceil(Fraction(gap) / Fraction(step)))",
        "return max(2, int(Fraction(gap) / Fraction(step)))",
        "unit/data contract/test_engines.py",
    ),
    Mutant(
        "data: a number that is written otherwise is another state",
        "data/labels.py",
        "labels[cell] = cell if cell in exact else named.get(canonical, canonical)",
        "labels[cell] = cell if cell in exact else named.get(cell, canonical)",
        "unit/data",
    ),
    Mutant(
        "data: rows that are just near enough are cut apart",
        "data/_chains.py",
        "linked = ~apart.is_null() & (apart <= (1 if self.max_gap is None else self.max_gap))",
        "linked = ~apart.is_null() & (apart < (2 if self.max_gap is None else self.max_gap))",
        "unit/data contract/test_engines.py",
    ),
    Mutant(
        "theta: a tensor that ignores the oldest record forgets that any first records are any together",
        "theta/tuple_chains.py",
        'if isinstance(start, str) and start == "stationary" and np.all(self.tensor == oldest):',
        "if isinstance(start, str) and np.all(self.tensor == oldest):",
        "oracle/test_oracle_odd_classes.py oracle/test_oracle_higher_order.py",
    ),
    Mutant(
        "stays: where cells of one state differ, a stay ends",
        "data/public_counts.py",
        "rows.layout.runs(rows.in_states(), day)",
        "rows.layout.runs(rows.frame, day)",
        "unit/data/test_data_habits.py",
    ),
    Mutant(
        "forgetting: next to nothing is kept",
        "_core/propagation/forgetting.py",
        "share, then = 1.0 if p == pairs else float(keeps[p]), float(excess[after])",
        "share, then = 1.0 if p == pairs else float(keeps[p]) * 0.01, float(excess[after])",
        "contract/test_truth.py",
    ),
    Mutant(
        "verify: noise for fewer records than were read is let through",
        "release/prepare.py",
        "if not any(c.covers(chain) for c in calibrated):",
        "if not calibrated:",
        "contract/test_forgeries.py",
    ),
    Mutant(
        "verify: a promise is not compared with what follows",
        "release/check.py",
        "if stated == follows:",
        'if stated == follows or name == "promise":',
        "unit/release/test_verify.py",
    ),
    Mutant(
        "release: noise is proved for twice its epsilon",
        "release/prepare.py",
        "if not 0 <= leakage <= calibration.epsilon < math.inf:",
        "if not 0 <= leakage <= 2 * calibration.epsilon < math.inf:",
        "unit/release/test_release.py unit/ledger/test_ledger_refusals.py",
    ),
    Mutant(
        "release: a longer chain than the noise is for is let through",
        "theta/lengths.py",
        "other.steps <= self.steps and other.records <= self.records",
        "other.steps <= self.steps or other.records <= self.records",
        "unit/release/test_release.py unit/release/test_release_rows.py unit/ledger/test_ledger_refusals.py",
    ),
    Mutant(
        "release: any accepted word lets noise that hides everything through",
        "cli/release.py",
        'if "noise" in options.accept or inputs.begun:',
        "if options.accept or inputs.begun:",
        "unit/cli/test_cli_accept.py",
    ),
    Mutant(
        "release: any accepted word lets the table through that the model was fitted to",
        "release/prepare.py",
        'if fitted_here and "public" not in accept:',
        "if fitted_here and not accept:",
        "unit/cli/test_cli_accept.py",
    ),
    Mutant(
        "columns: what nodes of the border are given does not tie their parents together",
        "_core/propagation/cluster_columns.py",
        "near[node].update(self._tables[v][0])",
        "near[node].add(v), near[v].add(node)",
        "oracle/test_oracle_columns.py",
    ),
    Mutant(
        "columns: a column that follows a part loses its table",
        "_core/propagation/cluster_columns.py",
        "if set(own[0]).isdisjoint(inner):",
        "if own[0]:",
        "oracle/test_oracle_columns.py",
    ),
    Mutant(
        "columns: joint values that cannot occur are taken for others",
        "_core/propagation/cluster_columns.py",
        "return np.searchsorted(self._keys, np.ravel_multi_index(tuple(values.T), self._shape))",
        "return np.ravel_multi_index(tuple(values.T), self._shape) % len(self._keys)",
        "oracle/test_oracle_columns.py",
    ),
    Mutant(
        "columns: a part with clusters that are too large tells nothing",
        "_core/propagation/cluster_columns.py",
        "return np.full((1, 1), most) if self.sweep is None",
        "return np.zeros((1, 1)) if self.sweep is None",
        "oracle/test_oracle_columns.py",
    ),
    Mutant(
        "columns: only what leads to the columns is looked at, not what leads to the losses",
        "_core/propagation/cluster_columns.py",
        "needed = with_ancestors(self._tables, {*lossy, *self._columns})",
        "needed = with_ancestors(self._tables, self._columns)",
        "oracle/test_oracle_columns.py",
    ),
    Mutant(
        "columns: own losses of another order of the columns",
        "_core/propagation/cluster_columns.py",
        "places = [values[:, self._columns.index(v)] for v, _ in own]",
        "places = [values[:, i] for i, (v, _) in enumerate(own)]",
        "oracle/test_oracle_columns.py",
    ),
    Mutant(
        "columns: the first network decides",
        "mechanisms/propagation.py",
        "for theta in range(len(networks)):",
        "for theta in range(1):",
        "unit/mechanisms/test_protected_columns.py",
    ),
    Mutant(
        "columns: noise that is enough for the first network is not looked at again",
        "mechanisms/engine.py",
        "if not most[0] > 0 or not leakage(case, most[0])[0] <= epsilon:",
        "if not most[0] > 0:",
        "unit/mechanisms/test_protected_columns.py",
    ),
    Mutant(
        "certificates of networks: the clusters of a node need not hang together",
        "release/checker/check_networks.py",
        'need(hold - edges == 1, "a node is in no cluster, or its clusters do not hang together")',
        'need(hold, "a node is in no cluster, or its clusters do not hang together")',
        "contract/test_certificate_networks.py",
    ),
    Mutant(
        "certificates of networks: what cannot occur is a value too",
        "release/checker/check_networks.py",
        "for values, mass in law.items() if table.get(part(values))}",
        "for values, mass in law.items()}",
        "contract/test_certificate_networks.py",
    ),
    Mutant(
        "certificates of networks: losses go by the place of a node in each member",
        "release/checker/check_networks.py",
        "every = zip(claim.nodes, claim.factors())",
        "every = zip(self.states, claim.factors())",
        "contract/test_certificate_networks.py",
    ),
    Mutant(
        "certificates of networks: bounds on the nodes that are told of are left out",
        "release/checker/check_networks.py",
        "least = factor * ONE // over(*[bound.between(part(s), part(s_)) for part, bound in self.passed])",
        "least = factor",
        "contract/test_certificate_networks.py",
    ),
    Mutant(
        "certificates of networks: what is hidden is not asked",
        "release/checker/check_networks.py",
        'need(told.follow(dict.fromkeys(asked, claim.limit), named), "more than ε leaks")',
        "told.follow(dict.fromkeys(asked, claim.limit), named)",
        "contract/test_certificate_networks.py",
    ),
    Mutant(
        "certificates of clocks: what is before and after a record meets at another phase",
        "release/checker/check_more.py",
        "else (i + j) % self.phases == 0",
        "else (i - j) % self.phases == 0",
        "oracle/test_oracle_certificate.py",
    ),
    Mutant(
        "certificates of any first law: a state that only the start has tells nothing",
        "release/checker/check_more.py",
        "yield i, j, StepOfAnyLaw(kernel, alive[i], pairs, law)",
        "yield i, j, StepOfAnyLaw(kernel, alive[j], pairs, law)",
        "contract/test_certificate_forgeries.py",
    ),
]


def caught(mutant: Mutant, repository: Path) -> str:
    """Put a fault into a copy, and return the first test that fails with it and passes without; none is no text."""
    path = repository / "src" / "pufferfish" / mutant.file
    source = path.read_text()
    if source.count(mutant.old) != 1:
        raise SystemExit(f"{mutant.file} has the line of {mutant.name!r} {source.count(mutant.old)} times, expected 1")
    path.write_text(source.replace(mutant.old, mutant.new))
    try:
        failed = failing(
            [f"src/pufferfish/{mutant.file}", *(f"tests/{name}" for name in mutant.tests.split())], repository
        )
    finally:
        path.write_text(source)
    if failed and failing([failed], repository):
        raise SystemExit(f"{failed} fails without any fault: mend it first")
    return failed


def failing(tests: list[str], repository: Path) -> str:
    """Return the first of some tests that fails, or no text."""
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", "-rfE", "--no-header", "-p", "no:cacheprovider", *tests],
        cwd=repository,
        # bytecode is known by its source's size and second: two faults of one size may share both
        env=os.environ | {"PYTHONPATH": str(repository / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )
    if found.returncode not in (0, 1):
        raise SystemExit(f"the tests did not run\n{found.stdout}{found.stderr}")
    failed = [line for line in found.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]  # or not loaded
    return failed[0].split(" ", 1)[1].split(" - ")[0] if failed else ""


def main(*words: str) -> int:
    """Try all faults, or those whose names have one of some words; return how many survive."""
    survived = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(REPOSITORY, copy, ignore=shutil.ignore_patterns(".venv", ".git", "__pycache__", "demo"))
        for mutant in MUTANTS:
            if words and not any(word in mutant.name for word in words):
                continue
            start = time.monotonic()
            by = caught(mutant, copy)
            survived += not by
            seconds = time.monotonic() - start
            print(f"{'caught' if by else 'SURVIVED'} ({seconds:.0f} s): {mutant.name}{by and '; by ' + by}", flush=True)
    return survived


if __name__ == "__main__":
    sys.exit(min(main(*sys.argv[1:]), 1))
