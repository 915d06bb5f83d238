// Check the proof of a pufferfish release, in a browser or in Node: check(release, proof, model) takes the texts of the
// files (model may be null) and returns {proved, says}.
//
// Written from docs/proofs/certificate.md, which has the theorem, and apart from check.py, so that a fault of one shows
// as a disagreement. It loads nothing, sends nothing, and decides nothing by a floating-point number: whole numbers
// (BigInt) and fractions of them only. Number is used for the places in lists.

"use strict";

const pufferfish = (() => {
  const ONE = 10n ** 30n; // the factor 1: factors are whole numbers over ONE, rounded up where more is asked
  const FINE = 10n ** 100n; // the probability 1: probabilities are whole numbers over FINE, rounded down
  const LEAST = 10n ** 80n; // the least probability above 0, which one unit is at most 10^-80 of
  const EXACT = FINE + 10n ** 20n; // so much larger the truth may be than a probability, over FINE, after one rounding

  class NotProved extends Error {}

  const need = (isTrue, why) => {
    if (isTrue !== true) throw new NotProved(why);
  };

  // -- 1. Reading: JSON with exact numbers, every key once and no other, every value of its type --------------------

  class Fraction {
    constructor(over, under = 1n) {
      need(under > 0n, "a fraction without a denominator");
      const common = gcd(over, under);
      this.over = over / common;
      this.under = under / common;
    }
    plus(other) { return new Fraction(this.over * other.under + other.over * this.under, this.under * other.under); }
    minus(other) { return new Fraction(this.over * other.under - other.over * this.under, this.under * other.under); }
    times(other) { return new Fraction(this.over * other.over, this.under * other.under); }
    by(other) {
      need(other.over !== 0n, "a division by 0");
      const sign = other.over < 0n ? -1n : 1n;
      return new Fraction(sign * this.over * other.under, sign * this.under * other.over);
    }
    size() { return new Fraction(size(this.over), this.under); }
    less(other) { return this.over * other.under < other.over * this.under; }
    is(other) { return this.over === other.over && this.under === other.under; }
    toString() { return this.under === 1n ? `${this.over}` : `${this.over}/${this.under}`; }
  }

  const size = (n) => (n < 0n ? -n : n);
  const gcd = (a, b) => {
    for (a = size(a), b = size(b); b; [a, b] = [b, a % b]);
    return a;
  };
  const ceil = (over, under) => (over + under - 1n) / under;
  const fraction = (value) => (value instanceof Fraction ? value : new Fraction(value));
  const ZERO = new Fraction(0n);
  const largest = (fractions) => fractions.reduce((most, one) => (most.less(one) ? one : most));
  const total = (fractions) => fractions.reduce((sum, one) => sum.plus(one), ZERO);

  const NUMBER = /(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?/y;

  const numberAt = (text, at) => { // a BigInt where it is written without point and exponent, else a Fraction; its end
    NUMBER.lastIndex = at;
    const found = NUMBER.exec(text);
    need(found !== null, `no value of JSON at ${at}`);
    const [all, sign, whole, part = "", exponent = "0"] = found;
    need(all.length < 400 && exponent.length < 5, "a number is out of range");
    const shift = BigInt(exponent.replace("+", "")) - BigInt(part.length), digits = BigInt(sign + whole + part);
    need(size(shift) < 800n, "a number is out of range");
    if (found[3] === undefined && found[4] === undefined) return [digits, at + all.length];
    const value = shift < 0n ? new Fraction(digits, 10n ** -shift) : new Fraction(digits * 10n ** shift);
    return [value, at + all.length];
  };

  const numberOf = (text) => {
    const [value, end] = numberAt(text, 0);
    need(end === text.length, `${text} is no number`);
    return fraction(value);
  };

  // Objects are Maps, for which no key has a meaning of its own; all others are what they are.
  const parsed = (text, what) => {
    let at = 0;
    const space = () => { while (at < text.length && " \t\n\r".includes(text[at])) at++; };
    const take = (sign) => {
      space();
      need(text[at] === sign, `the ${what} is no JSON at ${at}`);
      at++;
    };
    const next = (sign) => {
      space();
      const is = text[at] === sign;
      if (is) at++;
      return is;
    };
    const string = () => {
      const from = at;
      take('"');
      for (; at < text.length && text[at] !== '"'; at++) if (text[at] === "\\") at++;
      take('"');
      try {
        return JSON.parse(text.slice(from, at)); // one string, whose escapes the language reads
      } catch {
        throw new NotProved(`the ${what} is no JSON at ${from}`);
      }
    };
    const value = (depth) => {
      need(depth < 50, `the ${what} is too deep`);
      space();
      if (text[at] === '"') return string();
      if (next("[")) {
        const list = [];
        if (next("]")) return list;
        do list.push(value(depth + 1)); while (next(","));
        take("]");
        return list;
      }
      if (next("{")) {
        const map = new Map();
        if (next("}")) return map;
        do {
          space();
          need(text[at] === '"', `the ${what} is no JSON at ${at}`);
          const key = string();
          need(!map.has(key), `the ${what} has a key twice: ${key}`);
          take(":");
          map.set(key, value(depth + 1));
        } while (next(","));
        take("}");
        return map;
      }
      for (const [word, is] of [["true", true], ["false", false], ["null", null]]) {
        if (text.startsWith(word, at)) {
          at += word.length;
          return is;
        }
      }
      const [read, end] = numberAt(text, at);
      at = end;
      return read;
    };
    const found = value(0);
    space();
    need(at === text.length, `the ${what} goes on after its end`);
    return found;
  };

  // A schema is a function, an object of exactly these keys, a list of one schema for every entry, or the value itself.
  const unseen = () => true; // nothing is asked of it
  const later = () => true; // it is looked at where it is used
  const text = (value) => typeof value === "string";
  const bool = (value) => typeof value === "boolean";
  const integer = (value) => typeof value === "bigint";
  const whole = (value) => integer(value) && value >= 0n && value < 2n ** 63n;
  const loose = (value) => whole(value); // it only has to go with the rest
  const number = (value) => integer(value) || value instanceof Fraction;
  const any = (...schemas) => (value) => schemas.some((schema) => fits(value, schema));
  const maybe = (schema) => any(null, schema);

  const fits = (value, schema) => {
    if (typeof schema === "function") return schema(value);
    if (Array.isArray(schema)) return Array.isArray(value) && value.every((each) => fits(each, schema[0]));
    if (schema === null || typeof schema !== "object") return value === schema;
    const keys = Object.keys(schema);
    return value instanceof Map && value.size === keys.length
      && keys.every((key) => value.has(key) && fits(value.get(key), schema[key]));
  };

  const START = any("stationary", "any", [number], [[number]], [[[number]]], [[[[number]]]]);
  const KINDS = new Map(Object.entries({
    "Markov chains": { transition_matrix: [[number]], initial_distribution: START },
    "periodic Markov chains": {
      matrices: [[[number]]], initial_distribution: START, clock: maybe(text), step: maybe(text),
    },
    "Markov chains of higher order": { tensor: [later], initial_distribution: START },
    "chains with several kinds of stay": { exits: [[number]], stays: [[[number]]], initial_distribution: START },
    "Markov processes that forget": { steps: [whole], overlap: [number] },
  }));
  const WHETHER = { is: text, relative: bool }, STATES = { is: text, states: [text] };
  const VALUES = { is: text, values: later };
  const QUERIES = new Map(Object.entries({
    Histogram: WHETHER, CDF: WHETHER, Transitions: WHETHER, Switches: WHETHER, Count: STATES, Frequency: STATES,
    Sum: VALUES, Mean: VALUES,
  }));
  const LAW = "discrete Laplace, P(Z = z) ∝ exp(-|z| unit/scale)";
  const RELEASE = {
    format: "pufferfish-release", version: 4n, created: unseen, software: unseen, warnings: unseen,
    query: { kind: unseen, description: unseen, labels: [text], lipschitz: unseen, divided_by: maybe(whole) },
    values: unseen, noisy_values: [number], postprocessing: unseen, quantiles: unseen, accuracy_95: unseen,
    epsilon: number, delta: number, hides: text, promise: text, promises: unseen, not_promised: unseen,
    assumptions: unseen, checked: unseen, ledger: unseen, groups: null, subjects: null,
    noise: {
      law: LAW, scale: number, unit: number, noise_multiplier: unseen,
      measurements: maybe([{ states: [text], scale: number, sharpness: whole }]),
    },
    counted: { each: text, of: [text], adds: [[[[integer]]]], factors: null, scale: text },
    mechanism: { name: unseen, title: unseen, leakage: unseen, longest_chain: loose, witness: unseen, secrets: null },
    data: {
      base: unseen, subjects: unseen, chains: loose, records: loose, longest_chain: loose, lengths: [[loose]],
      places: unseen, rows: null, observed: null, steps: unseen, usual_step: unseen, clock_changes: unseen,
    },
    theta: {
      origin: unseen, states: [text], kind: text, names: unseen, chains: [KINDS.get("Markov chains")], members: [later],
    },
    calibration: {
      unit_scale: number, query: later, lengths: [[loose]], records: loose, places: unseen, settings: later,
    },
  };
  const BOUNDS = { future: [[[whole]]], past: [[[whole]]] };
  const MOVES = { ...BOUNDS, moves: BOUNDS };
  const PROOF = { format: "pufferfish-proof", version: 1n, digits: whole, members: [any(null, BOUNDS, MOVES)] };

  const fieldsUnseen = (schema, path = "") => {
    while (Array.isArray(schema)) [schema] = schema;
    if (schema === unseen || schema === loose) return [path];
    if (schema === null || typeof schema !== "object") return [];
    return Object.entries(schema).flatMap(([key, part]) => fieldsUnseen(part, path ? `${path}.${key}` : key));
  };

  const read = (content, schema, what) => {
    need(typeof content === "string", `the ${what} is no text`);
    const value = parsed(content, what);
    const odd = value instanceof Map ? Object.keys(schema).filter((key) => !fits(value.get(key), schema[key])) : [];
    need(fits(value, schema), `the ${what} is not one of the version and kinds that are covered`
      + (odd.length ? `, at ${odd.join(", ")}` : ""));
    return value;
  };

  const same = (one, other) => { // equal as JSON, with numbers by their value
    if (number(one) && number(other)) return fraction(one).is(fraction(other));
    if (Array.isArray(one))
      return Array.isArray(other) && one.length === other.length && one.every((each, i) => same(each, other[i]));
    if (one instanceof Map)
      return other instanceof Map && one.size === other.size
        && [...one].every(([key, each]) => other.has(key) && same(each, other.get(key)));
    return one === other;
  };

  // -- 2. Numbers: e^x; probabilities with their error --------------------------------------------------------------

  const exp = (x, upwards) => { // over ONE, for a fraction 0 <= x < 700: Taylor at x / 2^h <= 1/256, squared h times
    need(!x.less(ZERO) && x.less(new Fraction(700n)), "a loss is out of range");
    const by = upwards ? ceil : (over, under) => over / under;
    let h = 0n;
    while (x.over * 256n > x.under << h) h++;
    let term = FINE, value = FINE;
    for (let n = 1n; n <= 40n; n++) {
      term = by(term * x.over, (x.under << h) * n);
      value += term;
    }
    if (upwards) value += term; // what is left out is less than the last term
    for (let i = 0n; i < h; i++) value = by(value * value, FINE);
    return by(value * ONE, FINE);
  };
  const times = (...factors) => factors.reduce((product, factor) => ceil(product * factor, ONE));

  // A table has rows of probabilities, and a slack over FINE: the truth is at least what stands there, and at most
  // slack times it.
  const lawOf = (parts) => { // a list of fractions over its sum
    const values = parts.map(fraction);
    need(values.length > 0 && values.every((value) => value.over >= 0n), "a probability is below 0");
    const under = values.reduce((lcm, value) => (lcm / gcd(lcm, value.under)) * value.under, 1n);
    const weights = values.map((value) => value.over * (under / value.under));
    const sum = sumOf(weights);
    need(size(sum - under) * 10n ** 8n < under, "a row of probabilities does not sum to 1");
    return weights.map((weight) => large((weight * FINE) / sum, weight));
  };
  const large = (probability, truth) => {
    need(truth === 0n || probability >= LEAST, "a probability is too small to be covered");
    return probability;
  };
  const tableOf = (rows) => ({ rows: rows.map(lawOf), slack: EXACT });
  const slackOf = (...slacks) => slacks.reduce((product, slack) => ceil(product * slack, FINE));
  const product = (one, other) => ({
    rows: one.rows.map((row) => other.rows[0].map((_, z) => {
      const sum = row.reduce((found, entry, y) => (entry ? found + entry * other.rows[y][z] : found), 0n);
      return large(sum / FINE, sum);
    })),
    slack: slackOf(one.slack, other.slack, EXACT),
  });
  const identity = (k) => ({ rows: range(k).map((x) => range(k).map((y) => (x === y ? FINE : 0n))), slack: FINE });
  const sumOf = (row) => row.reduce((a, b) => a + b, 0n);
  const highest = (row) => row.reduce((a, b) => (a > b ? a : b));
  const range = (n) => Array.from({ length: n }, (_, i) => i);
  const columnsWithMass = (rows) => rows[0].map((_, y) => rows.some((row) => row[y] > 0n));

  // Cells that others do not lead to have nothing of it: all lead to those of the only closed class, these to no other.
  const stationary = (kernel) => {
    let follow = kernel.rows.map((row) => new Set(range(row.length).filter((y) => row[y] > 0n)));
    for (const _ of kernel.rows) follow = follow.map((some) => new Set([...some].flatMap((y) => [...follow[y], y])));
    const closed = range(follow.length).filter((y) => follow.every((some) => some.has(y)));
    need(closed.length > 0, "a chain has no single stationary law");
    const law = stationaryOf({ rows: closed.map((x) => closed.map((y) => kernel.rows[x][y])), slack: kernel.slack });
    const all = range(follow.length).map((x) => (closed.includes(x) ? law.rows[0][closed.indexOf(x)] : 0n));
    return { rows: [all], slack: law.slack };
  };

  const stationaryOf = (kernel) => { // one row; states are taken out one after another, with bounds from below and above
    const k = kernel.rows.length, low = kernel.rows.map((row) => [...row]);
    const high = kernel.rows.map((row) => row.map((entry) => ceil(entry * kernel.slack, FINE)));
    for (let n = k - 1; n > 0; n--) {
      const [least, most] = [low, high].map((rows) => sumOf(rows[n].slice(0, n)));
      need(least > 0n, "a chain has no single stationary law");
      for (let x = 0; x < n; x++) {
        low[x][n] = (low[x][n] * FINE) / most;
        high[x][n] = ceil(high[x][n] * FINE, least);
        for (let y = 0; y < n; y++) {
          low[x][y] += (low[x][n] * low[n][y]) / FINE;
          high[x][y] += ceil(high[x][n] * high[n][y], FINE);
        }
      }
    }
    const least = [FINE], most = [FINE];
    for (let n = 1; n < k; n++) {
      least.push(least.reduce((sum, mass, x) => sum + mass * low[x][n], 0n) / FINE);
      most.push(ceil(most.reduce((sum, mass, x) => sum + mass * high[x][n], 0n), FINE));
    }
    need(least.every((mass) => mass > 0n), "a chain has states that it leaves for ever, and no first law");
    return { rows: [least], slack: highest(least.map((mass, x) => ceil(most[x] * FINE, mass))) };
  };

  // -- 3. The inequality --------------------------------------------------------------------------------------------

  // Whether left·v <= 0 for all v > 0 with v(y) <= R(y,z) v(z): by moves, each of which lets left·v rise or stay.
  const covers = (left, moves) => {
    for (const [y, z, factor] of moves) {
      if (left[y] <= 0n || left[z] >= 0n) continue;
      const room = (-left[z] * ONE) / factor, moved = left[y] < room ? left[y] : room;
      left[y] -= moved;
      left[z] += ceil(moved * factor, ONE);
    }
    return left.every((rest) => rest <= 0n);
  };
  const movesOf = (factors) => // ascending, in order of y and z where factors are equal
    pairsOf(factors.length).map(([y, z]) => [y, z, factors[y][z]])
      .sort(([, , one], [, , other]) => (one < other ? -1 : one > other ? 1 : 0));
  const pairsOf = (k) => range(k).flatMap((x) => range(k).filter((y) => y !== x).map((y) => [x, y]));

  // Whether p ⊨ c q for two rows of a table, each over its own sum.
  const rowsCover = (p, q, slack, factor, moves) => {
    const ofP = sumOf(p) * ((factor * FINE ** 2n) / slack ** 2n), ofQ = sumOf(q) * ONE;
    return covers(p.map((entry, y) => entry * ofQ - q[y] * ofP), moves);
  };

  // For some pairs moves are named, [x, x', y, z, y, z, …]: they are made before all others.
  const holds = (step, moves, factors, goal, named = []) => {
    const first = new Map();
    for (const [x, other, ...ends] of named) {
      need(other !== undefined && ends.length % 2 === 0 && ends.every((end) => end < goal.length && step.before[end]),
        "a named move is none, or of a cell that no record has");
      const places = ends.map(Number);
      first.set(`${x},${other}`, range(places.length / 2).map((i) => [places[2 * i], places[2 * i + 1]])
        .map(([y, z]) => [y, z, y === z ? ONE : factors[y][z]]));
    }
    return pairsOf(goal.length).filter(([x, other]) => step.occurs[x] && step.occurs[other]).every(([x, other]) => {
      const all = [...(first.get(`${x},${other}`) ?? []), ...moves];
      return step.ofAnyLaw ? holdsForAnyLaw(step, all, goal[x][other], x, other)
        : rowsCover(step.rows[x], step.rows[other], step.slack, goal[x][other], all);
    });
  };

  // -- 4. Chains ----------------------------------------------------------------------------------------------------

  const backward = (law, kernel, apart = FINE) => { // row x: the law of the record before one in x
    const rows = kernel.rows.map((_, x) => law.rows[0].map((mass, y) => mass * kernel.rows[y][x]));
    const occurs = rows.map((row) => sumOf(row) > 0n), before = law.rows[0].map((mass) => mass > 0n);
    return { rows, slack: slackOf(law.slack, kernel.slack, apart), occurs, before };
  };
  const ofAnyLaw = (power, kernel) => {
    const next = product(power, kernel), starts = power.rows.map((now, m) => ({ now, next: next.rows[m] }));
    const chained = starts.flatMap((one, m) => starts.slice(m + 1).map((two) => mixtures(one, two)));
    return {
      ofAnyLaw: true, kernel: kernel.rows, slack: slackOf(power.slack, next.slack, kernel.slack),
      neighbours: [
        ...starts.map((one) => [one, one]),
        ...chained.flatMap((laws) => laws.slice(1).map((law, n) => [laws[n], law])),
        ...chained.flatMap((laws) => laws.slice(1, -1).map((law) => [law, law])),
      ],
      occurs: columnsWithMass(next.rows), before: columnsWithMass(power.rows),
    };
  };
  // Mixtures of two laws in equal steps: the fewer, the nearer these laws are and the more cells there are.
  const mixtures = (one, two) => {
    const most = BigInt(Math.max(1, Math.floor(16 / one.now.length)));
    const enough = (n) => one.now.every((a, y) => { // four times how far the larger is above the smaller is at most n
      const b = two.now[y], [small, large] = a < b ? [a, b] : [b, a];
      return small === 0n || 4n * (large - small) <= n * small;
    });
    let parts = 1n;
    while (parts < most && !enough(parts)) parts += 1n;
    const mix = (n) => (law, other) => law.map((a, y) => (parts - n) * a + n * other[y]);
    return range(Number(parts) + 1).map((n) => mix(BigInt(n)))
      .map((at) => ({ now: at(one.now, two.now), next: at(one.next, two.next) }));
  };

  // It suffices to look at laws that are neighbours between two rows of the power; or, pair by pair, at the formula for all laws of the record before.
  const holdsForAnyLaw = (step, moves, goal, x, other) => {
    const { kernel, neighbours, slack } = step, k = kernel.length;
    const byRows = neighbours.every(([{ now: one, next: c }, { now: two, next: d }]) => covers(range(k).map((y) => {
      const p = (d[other] * one[y] + c[other] * two[y]) * kernel[y][x];
      const q = (d[x] * one[y] + c[x] * two[y]) * kernel[y][other];
      return p * ONE * slack - q * goal * FINE;
    }), moves));
    // Where x and other come from one state only no pair says that at least 1 is told, so goal is asked.
    return byRows || goal >= ONE && moves.filter(([y, z]) => step.before[y] && step.before[z]).every(([y, z, s]) => {
      const over = kernel[y][x] * kernel[z][other], under = kernel[y][other] * kernel[z][x];
      if (over === 0n || goal >= s) return true; // such a pair tells nothing, or no more than s
      if (under === 0n) return false;
      const r = ceil(over * step.slack * step.slack * ONE, under * FINE * FINE); // in r and in s what is told rises
      if (r <= ONE) return true;
      const root = square(r * s), rest = ONE * (r + s); // (1 + rs + 2√(rs)) / (r + s + 2√(rs)) <= goal
      const most = ONE * ONE + r * s + 2n * ONE * (root + 1n), least = rest + 2n * ONE * root;
      return most * ONE <= goal * least;
    });
  };
  const square = (n) => { // the square root of a whole number, rounded down
    if (n < 2n) return n;
    let root = 1n << BigInt((n.toString(16).length * 4 + 2) >> 1), better = root;
    do [root, better] = [better, (better + n / better) >> 1n]; while (better < root);
    return root;
  };

  class Chain { // of cells, each of which has the states of m records; with one kernel for each phase
    constructor(kernels, cells, start) {
      while (Array.isArray(start) && Array.isArray(start[0])) start = start.flat();
      const given = Array.isArray(start);
      need(!given || start.length === cells.length, "a first law is of other states");
      this.law = given ? tableOf([start]) : null;
      this.start = !given ? start : kernels.length > 1 ? "any" : "given"; // a clock may begin at any phase
      const first = this.start === "given" ? this.law
        : this.start === "stationary" && kernels.length === 1 ? stationary(kernels[0]) : null;
      this.reached = first === null ? cells.map(() => true) : first.rows[0].map((mass) => mass > 0n);
      for (const _ of cells) // no record can be in the others
        for (const [x, y] of pairsOf(cells.length))
          if (this.reached[x] && kernels[0].rows[x][y] > 0n) this.reached[y] = true;
      need(this.start !== "stationary" || kernels.length > 1 || cells[0].length > 1 || this.reached.every((is) => is),
        "a chain leaves states for ever, and has no first law");
      this.cells = cells;
      this.kernels = kernels;
      this.phases = kernels.length;
      this.order = cells[0].length;
    }

    bound(rows, digits) { // of a proof: n stands for the factor 1 + n / 10^digits
      need([rows, ...rows].every((list) => list.length === this.cells.length), "a bound is of other states");
      need(rows.every((row, x) => row[x] === 0n), "a bound is not 0 from a state to itself");
      return rows.map((row) => row.map((n) => ONE + n * (ONE / 10n ** digits)));
    }

    // The laws of the records of the past's bounds; for any first law the powers that lead there.
    laws(bounds) {
      if (this.start === "any" && this.phases > 1) return range(bounds).map(() => identity(this.cells.length));
      const laws = [this.start === "any" ? identity(this.cells.length) : this.start === "given" ? this.law
        : stationary(this.kernels.slice(1).reduce(product, this.kernels[0]))];
      for (let i = 0; i < bounds - 1; i++) {
        const still = this.start === "stationary" && this.phases === 1;
        laws.push(still ? laws[0] : product(laws[i], this.kernels[i % this.phases]));
      }
      return laws;
    }

    // What leads from bound i of the past to the next one, or, if it is the last of a chain without a clock, to itself.
    back(laws, i, last) {
      const kernel = this.kernels[i % this.phases], law = laws[i];
      if (this.start === "any") {
        const step = ofAnyLaw(law, kernel);
        need(!last || step.before.every((mass, y) => mass === step.occurs[y]), "a state dies after the last bound");
        return step;
      }
      if (this.start === "stationary" || !last) return backward(law, kernel);
      const pi = stationary(kernel), [masses] = law.rows; // the laws to come lie between multiples of pi
      need([...masses, ...pi.rows[0]].every((mass) => mass > 0n), "a first law that has not reached every state at the last bound");
      const ratios = masses.map((mass, x) => new Fraction(mass, pi.rows[0][x]));
      const widest = largest(ratios.flatMap((one) => ratios.map((other) => one.by(other))));
      return backward(pi, kernel, slackOf(ceil(widest.over * FINE, widest.under), law.slack, pi.slack));
    }
  }

  const links = (bounds, records, phases) => { // which bound leads to which
    if (phases > 1) return range(bounds).map((i) => [i, (i + 1) % bounds]);
    const last = records > BigInt(bounds) ? [[bounds - 1, bounds - 1]] : []; // to itself
    return [...range(bounds - 1).map((i) => [i, i + 1]), ...last];
  };

  const proveChain = (chain, proof, claim) => {
    const of = (side) => proof.get(side).map((rows) => chain.bound(rows, claim.digits));
    const past = of("past"), future = of("future"), { phases, order } = chain;
    for (const { length } of [past, future])
      need(phases > 1 ? length === phases : length > 0 && BigInt(length) <= claim.longest,
        "a proof without bounds, with more than a series has records, or with other ones than a clock has phases");
    const record = claim.factors(order > 1), step = order > 1 ? ONE : exp(claim.step, true);
    const passes = (bound, place) => {
      const factors = bound.map((row, y) => row.map((factor, z) =>
        times(factor, record[chain.cells[y].at(place)][chain.cells[z].at(place)])));
      return [movesOf(factors), factors];
    };
    const goal = (bound) => bound.map((row) => row.map((factor) => (factor * ONE) / step));

    const forwards = chain.kernels.map((kernel) => ({ ...kernel, occurs: chain.reached, before: chain.reached }));
    const toFuture = links(future.length, claim.longest, phases), toPast = links(past.length, claim.longest, phases);
    const named = proof.get("moves") ?? new Map([["future", []], ["past", []]]);
    need(named.get("future").length <= toFuture.length && named.get("past").length <= toPast.length,
      "moves are named for more steps than there are");
    toFuture.forEach(([i, next], n) => need(
      holds(forwards[(phases - (next % phases)) % phases], ...passes(future[i], -1), goal(future[next]),
        named.get("future")[n]),
      `future bound ${next} does not follow from bound ${i}`));
    const laws = chain.laws(past.length);
    toPast.forEach(([i, next], n) => need(
      holds(chain.back(laws, i, i === next || phases > 1), ...passes(past[i], 0), goal(past[next]),
        named.get("past")[n]),
      `past bound ${next} does not follow from bound ${i}`));

    if (claim.records > 1n) return proveStretch(chain, past, future, claim);
    for (const i of range(past.length))
      for (const j of range(future.length))
        if (phases > 1 ? (i + j) % phases === 0 : BigInt(i + j) < claim.longest)
          need(tellsLittle(chain, laws[i], past[i], future[j], record, claim), "more than ε leaks");
  };

  // Whether at most ε is told of a record that begins its cell. After the end of a series are records nobody reads.
  const tellsLittle = (chain, law, past, future, record, claim) => {
    const occurs = columnsWithMass(law.rows), masses = chain.start === "stationary" ? law.rows[0] : null, rows = [];
    for (const x of range(claim.states.length)) { // the law of its cells, or, where it is not known, each cell alone
      const having = range(occurs.length).filter((c) => occurs[c] && chain.cells[c][0] === x);
      for (const group of masses && having.length ? [having] : having.map((c) => [c]))
        rows.push([x, occurs.map((_, c) => (group.includes(c) ? (masses ? masses[c] : FINE) : 0n))]);
    }
    const others = range(chain.order).slice(1), slack = masses ? law.slack : FINE;
    const factors = past.map((row, y) => row.map((factor, z) => times(factor, future[y][z],
      ...others.map((p) => record[chain.cells[y][p]][chain.cells[z][p]]))));
    const moves = movesOf(factors);
    return rows.every(([x, p]) => rows.every(([y, q]) => x === y || !claim.near[x][y]
      || rowsCover(p, q, slack, (claim.limit * ONE) / record[x][y], moves)));
  };

  const proveStretch = (chain, past, future, claim) => { // each term of the sum replaced by its largest
    const records = new Fraction(claim.records), m = new Fraction(BigInt(chain.order)), one = new Fraction(1n);
    const most = largest([ZERO, ...pairsOf(claim.states.length).filter(([x, y]) => claim.near[x][y])
      .map(([x, y]) => claim.losses[x][y])]);
    const twice = chain.order > 1 ? claim.step.plus(claim.step) : ZERO; // where each record pays both of its steps
    const beside = records.less(m) ? m.minus(records) : ZERO; // records of a cell outside the stretch: of any values
    const inner = chain.order > 1 ? ZERO : claim.step.times(records.minus(one));
    const loss = records.times(most.plus(twice)).plus(beside.times(claim.most.plus(twice))).plus(inner);
    need(!claim.epsilon.less(loss), "more than ε leaks");
    need(times(exp(loss, true), highest(past.flat(2)), highest(future.flat(2))) <= claim.limit, "more than ε leaks");
  };

  // A class that forgets: e^A = (1 - o) e^(nd) / (1 - o e^(nd)), o what laws may differ by after n steps.
  const proveForgetting = (model, claim) => {
    need(fits(model, KINDS.get("Markov processes that forget")), "a class that forgets is damaged");
    const steps = model.get("steps"), overlaps = model.get("overlap").map(fraction), d = claim.most.plus(claim.step);
    need(steps.length === overlaps.length, "a class that forgets has steps without an overlap");
    need(steps.every((n) => n > 0n), "steps to forget must be 1 or more");
    need(overlaps.every((overlap) => overlap.over > 0n && overlap.over <= overlap.under), "an overlap is out of range");
    const all = d.times(new Fraction(claim.records)).plus(claim.step), two = new Fraction(2n);
    need(steps.some((n, i) => {
      const nd = d.times(new Fraction(n)), apart = new Fraction(1n).minus(overlaps[i]);
      if (claim.epsilon.less(all.minus(d.times(two)))) return false;
      const grown = new Fraction(exp(nd, true), ONE), rest = new Fraction(1n).minus(apart.times(grown));
      if (!ZERO.less(rest)) return false;
      const a = overlaps[i].times(grown).by(rest); // e^A; 2A + all - 2d <= ε
      const told = a.times(a).times(new Fraction(exp(all, true), exp(d.times(two), false)));
      return !new Fraction(claim.limit, ONE).less(told);
    }), "more than ε leaks");
  };

  // -- 5. The release -----------------------------------------------------------------------------------------------

  const PHASES = new Map([["hour", [24n, 3600n]], ["weekday", [7n, 86400n]], ["weekday-hour", [168n, 3600n]]]);
  const SECONDS = { s: 1n, min: 60n, h: 3600n, d: 86400n };

  const squareTable = (rows, k) => {
    need(rows.length === k && rows.every((row) => row.length === k), "a matrix is of other states");
    return tableOf(rows);
  };

  const chainOf = (kind, model, k) => {
    need(KINDS.has(kind) && fits(model, KINDS.get(kind)) && model.has("initial_distribution"),
      `${kind} are damaged, or not covered`);
    const start = model.get("initial_distribution"), states = range(k).map((x) => [x]);
    if (kind === "Markov chains") return new Chain([squareTable(model.get("transition_matrix"), k)], states, start);
    if (kind === "periodic Markov chains") {
      const kernels = model.get("matrices").map((rows) => squareTable(rows, k));
      const clock = model.get("clock"), many = BigInt(kernels.length);
      const [phases, lasts] = clock === null ? [many, 1n] : PHASES.get(clock) ?? [0n, 1n];
      const long = /^([1-9][0-9]{0,5})(s|min|h|d)$/.exec(model.get("step") ?? "1s");
      need(many > 0n && phases === many && long !== null, "a clock has other matrices than phases, or an unknown step");
      const step = BigInt(long[1]) * SECONDS[long[2]];
      need(lasts % step === 0n, "a phase of a clock is no whole number of steps");
      return new Chain(kernels.flatMap((kernel) => range(Number(lasts / step)).map(() => kernel)), states, start);
    }
    if (kind === "Markov chains of higher order") return orderChain(model.get("tensor"), k, start);
    const exits = model.get("exits"), stays = model.get("stays");
    squareTable(exits, k);
    need(stays.length === k && stays.every((kinds) => kinds.length > 0 && kinds.every((each) => each.length === 2)),
      "stays are of other states");
    need(exits.every((row, x) => fraction(row[x]).over === 0n), "a state follows itself");
    const over = (list) => {
      const parts = list.map(fraction), sum = total(parts);
      const off = sum.minus(new Fraction(1n)).size();
      need(parts.every((part) => part.over >= 0n) && off.less(new Fraction(1n, 10n ** 8n)),
        "a probability is below 0, or a row of them does not sum to 1");
      return parts.map((part) => part.by(sum));
    };
    const leaves = exits.map(over), shares = stays.map((kinds) => over(kinds.map(([share]) => share)));
    const cells = stays.flatMap((kinds, x) => kinds.map(([, keep], i) => ({ x, i, keep: fraction(keep) })));
    const one = new Fraction(1n);
    need(cells.every(({ keep }) => keep.over >= 0n && keep.less(one)), "a stay goes on for ever");
    const rows = cells.map((c) => cells.map((d) => c === d ? c.keep
      : one.minus(c.keep).times(leaves[c.x][d.x]).times(shares[d.x][d.i])));
    return new Chain([tableOf(rows)], cells.map(({ x }) => [x]), start);
  };

  const orderChain = (tensor, k, start) => { // k^m rows, nested; a cell leads to those that begin with its last m - 1
    let cells = range(k).map((x) => [x]), rows = tensor;
    const isRow = (list) => Array.isArray(list) && list.length === k && list.every(number);
    need(rows.length === k, "a tensor is of other states");
    while (!rows.every(isRow)) {
      need(rows.every((part) => Array.isArray(part) && part.length === k) && rows.length * k <= 10_000,
        "a tensor is of other states, or too large");
      rows = rows.flat();
      cells = cells.flatMap((cell) => range(k).map((x) => [...cell, x]));
    }
    return new Chain([tableOf(cells.map((c, i) => cells.map((d) =>
      c.slice(1).every((x, j) => x === d[j]) ? rows[i][d.at(-1)] : 0n)))], cells, start);
  };

  const membersOf = (theta) => {
    const chains = theta.get("chains"), members = theta.get("members");
    need((chains.length > 0) !== (members.length > 0), "theta has no members, or of two kinds");
    if (theta.get("kind") !== "mixed chains") return [...chains, ...members].map((model) => [theta.get("kind"), model]);
    const named = { kind: text, model: later };
    need([...chains, ...members].every((member) => fits(member, any(named, { ...named, origin: later }))),
      "a member of theta is damaged");
    return members.map((member) => [member.get("kind"), member.get("model")]);
  };

  // What a query adds: whole numbers for each output and state, or each output and step; its unit and its labels.
  const asked = (query, states) => {
    const kind = query.get("is"), one = new Fraction(1n), bit = (isTrue) => (isTrue ? 1n : 0n);
    if (kind === "Transitions" || kind === "Switches") {
      const steps = states.flatMap((x) => states.map((y) => [x, y]));
      if (kind === "Switches")
        return [[steps.map(([x, y]) => bit(x !== y))], one, [query.get("relative") ? "switch-rate" : "switches"]];
      const labels = steps.map(([x, y]) => `${x} → ${y}`);
      return [steps.map((step) => steps.map((other) => bit(step === other))), one, labels];
    }
    if (kind === "Histogram") return [states.map((x) => states.map((y) => bit(x === y))), one, states];
    if (kind === "CDF") {
      const cuts = states.slice(0, -1);
      return [cuts.map((_, x) => states.map((_, y) => bit(y <= x))), one, cuts.map((x) => `up to ${x}`)];
    }
    if (kind === "Count" || kind === "Frequency") {
      const chosen = query.get("states"), some = new Set(chosen);
      need(some.size > 0 && some.size === chosen.length && some.size < states.length
        && chosen.every((state) => states.includes(state)), "the query counts other states");
      return [[states.map((state) => bit(some.has(state)))], one, [chosen.join("+")]];
    }
    let values = query.get("values");
    if (values instanceof Map) {
      const map = values.get("map");
      need(values.size === 1 && map instanceof Map, "the query's values are damaged");
      need([...map.keys()].every((key) => key === "*" || states.includes(key)), "the query has values of other states");
      values = states.map((state) => map.get(state) ?? map.get("*"));
    }
    need(fits(values, [number]) && values.length === states.length, "the query has no value for each state");
    const parts = values.map(fraction);
    const over = parts.reduce((found, part) => gcd(found, part.over), 0n);
    need(over > 0n, "the query's values are all 0");
    const unit = new Fraction(over, parts.reduce((lcm, part) => (lcm / gcd(lcm, part.under)) * part.under, 1n));
    return [[parts.map((part) => part.by(unit).over)], unit, [kind.toLowerCase()]];
  };

  const thousands = (n) => `${n}`.replace(/\B(?=(\d{3})+$)/g, ",");

  const near = (one, other) => // one number, but for the last digits of a double
    !other.size().by(new Fraction(2n ** 50n)).less(one.minus(other).size());

  // Whether fixed sums of what got noise, and the public number of records, give every output.
  const determined = (outputs, measured) => {
    const basis = [];
    const rest = (row) => {
      for (const [pivot, base] of basis) {
        const share = row[pivot].by(base[pivot]);
        row = row.map((entry, x) => entry.minus(base[x].times(share)));
      }
      return row;
    };
    for (const row of [...measured, outputs[0].map(() => 1n)]) {
      const left = rest(row.map(fraction)), pivot = left.findIndex((entry) => entry.over !== 0n);
      if (pivot >= 0) basis.push([pivot, left]);
    }
    return outputs.every((row) => rest(row.map(fraction)).every((entry) => entry.over === 0n));
  };

  class Claim { // what a release promises
    constructor(release) {
      const made = release.get("calibration"), query = release.get("query");
      this.release = release;
      this.states = release.get("theta").get("states");
      this.epsilon = fraction(release.get("epsilon"));
      need(ZERO.less(this.epsilon) && fraction(release.get("delta")).is(ZERO), "epsilon must be above 0, and delta 0");
      need(this.states.length > 1 && new Set(this.states).size === this.states.length,
        "states must be two or more, and different");
      this.limit = exp(this.epsilon, false);
      this.query = made.get("query");
      this.kind = this.query instanceof Map ? this.query.get("is") : "a function";
      need(QUERIES.has(this.kind) && fits(this.query, QUERIES.get(this.kind)), "the query is damaged, or not covered");
      this.ofSteps = this.kind === "Transitions" || this.kind === "Switches";
      this.lengths(release.get("data"), made, release.get("mechanism"));

      const [outputs, weight, labels] = asked(this.query, this.states);
      const relative = this.query.get("relative") ?? (this.kind === "Frequency" || this.kind === "Mean");
      need(query.get("divided_by") === (relative ? this.all : null), "it is divided by another number of records");
      need(same(query.get("labels"), labels), "the labels are not those of the query");
      need(release.get("noisy_values").length === outputs.length, "there are other values than the query has outputs");
      const measured = this.noise(release, made, relative ? weight.by(new Fraction(this.all)) : weight, outputs);
      this.moves(release.get("counted"), measured);
      this.sum = this.most.times(new Fraction(this.all)).plus(this.step.times(new Fraction(this.all - 1n)));
      this.hidden(made.get("settings"), release.get("data").get("base"));
    }

    lengths(data, made, mechanism) { // what is said in two places must agree; the longest of all counts
      for (const [part, longest] of [[data, data.get("longest_chain")], [made, mechanism.get("longest_chain")]]) {
        const chains = part.get("lengths");
        need(chains.length > 0 && chains.every((each) => each.length === 3), "lengths are damaged");
        need(longest > 0n && chains.every(([steps]) => steps <= longest) && chains.some(([steps]) => steps === longest),
          "the longest chain is not that of the lengths");
        need(sumOf(chains.map(([, seen, many]) => seen * many)) <= part.get("records"),
          "chains have more records than all");
      }
      const longest = [data, mechanism].map((part) => part.get("longest_chain"));
      this.longest = longest[0] > longest[1] ? longest[0] : longest[1];
      this.all = made.get("records");
      const records = data.get("records");
      need(records > 0n && records <= this.all, "the noise is for fewer records than were read");
      need(records <= data.get("chains") * this.longest, "there are more records than such chains have");
    }

    noise(release, made, unit, outputs) { // all that is said of the scale; what got noise
      const noise = release.get("noise"), parts = noise.get("measurements");
      const found = /^([1-9][0-9]{0,400})(?:\/([1-9][0-9]{0,400}))?$/.exec(release.get("counted").get("scale"));
      need(found !== null, "the scale is no fraction");
      this.scale = new Fraction(BigInt(found[1]), BigInt(found[2] ?? "1"));
      const stated = fraction(noise.get("scale"));
      const every = (parts ?? [noise]).map((each) => [fraction(each.get("scale")), each.get("sharpness") ?? 1n]);
      need(every.length > 0 && largest(every.map(([each]) => each)).is(stated),
        "the scale is not that of measurements");
      const exact = this.scale.times(unit);
      need(near(fraction(made.get("unit_scale")), this.scale) && near(fraction(noise.get("unit")), unit)
        && every.every(([each, sharpness]) => near(each.times(new Fraction(sharpness)), exact)),
        "two scales of the noise, or two units");
      need(release.get("noisy_values").map(fraction).every((value) => {
        const many = value.by(unit), below = many.over / many.under; // of the whole numbers around it the nearest one
        return [-1n, 0n, 1n].some((more) => near(value, unit.times(new Fraction(below + more))));
      }), "values are off the grid");
      if (parts === null) return outputs;
      need(!this.ofSteps, "measurements of steps are not covered");
      const measured = parts.map((each) => {
        const chosen = new Set(each.get("states"));
        need(chosen.size === each.get("states").length && [...chosen].every((state) => this.states.includes(state)),
          "a measurement is of other states");
        return this.states.map((state) => (chosen.has(state) ? each.get("sharpness") : 0n));
      });
      need(determined(outputs, measured), "the outputs do not follow from what was measured");
      return measured;
    }

    moves(counted, rows) { // the losses of a record from state to state, or of a step
      const columns = rows[0].map((_, x) => rows.map((row) => row[x]));
      const adds = columns.map((column) => column.flatMap((weight, j) => (weight === 0n ? [] : [[BigInt(j), weight]])));
      need(same(counted.get("adds"), [adds]) && counted.get("of").length === 0, "counted is not what the query counts");
      need(counted.get("each") === (this.ofSteps ? "step" : "record"), "counted counts something else than the query");
      const moved = columns.map((one) => columns.map((other) =>
        new Fraction(one.reduce((sum, weight, j) => sum + size(weight - other[j]), 0n)).by(this.scale)));
      const most = largest(moved.flat());
      this.losses = this.ofSteps ? this.states.map(() => this.states.map(() => ZERO)) : moved;
      [this.most, this.step] = this.ofSteps ? [ZERO, most] : [most, ZERO];
    }

    hidden(settings, base) { // by the settings; the release's own sentence must say the same
      const known = ["protect", "within", "max_quilt_length", "max_quilts", "support"]; // the last: how it was searched
      need(settings instanceof Map && [...settings.keys()].every((key) => known.includes(key)), "unknown settings");
      const protect = settings.has("protect") ? settings.get("protect") : 1n, within = settings.get("within") ?? null;
      need(fits(protect, any(whole, "subject")) && fits(within, maybe([[text]])), "a protection is not covered");
      need(within === null || (within.length > 0 && within.every((pair) => pair.length === 2 && pair[0] !== pair[1]
        && pair.every((state) => this.states.includes(state)))), "a pair is not one of two states");
      this.records = protect === "subject" ? this.longest : protect;
      need(this.records > 0n, "nothing is hidden");
      need(base === null || base instanceof Map && base.has("gaps"), "what was read is damaged");
      this.cut = base !== null && base.get("gaps") !== "unobserved";
      need(protect === 1n || !this.cut, "a stretch may go over gaps, which cut the chains here");
      this.near = this.states.map((x) => this.states.map((y) =>
        within === null || within.some((pair) => x !== y && pair.includes(x) && pair.includes(y))));
      const one = protect === 1n, all = protect === "subject";
      const what = one ? "any one record (the state of one subject at one time)"
        : all ? "the whole series of one subject" : `any stretch of ${thousands(protect)} steps in a row of one subject`;
      const every = one ? "record, every two values it can have"
        : `${all ? "subject" : "such stretch"}, every two courses it can take`;
      const changes = one ? "has one value as if it has another" : "takes one course as if it takes another";
      const literally = (words) => words.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
      const some = (within ?? []).slice(0, 4).map((pair) => pair.join(" or ")).join("; ");
      const named = some + (within !== null && within.length > 4 ? "; …" : "");
      const among = within === null ? ["", ""]
        : [literally(` that ${one ? "are" : "differ by"} pairs that are named (${named})`),
          literally(`, between these states only: ${named}`)];
      const lasts = "( \\([^()]*, where no step takes less than [^()]*\\))?";
      const hides = new RegExp(`^${literally(what)}${lasts}${among[1]}$`, "u").exec(this.release.get("hides"));
      need(hides !== null, "hides says something else than what is proved");
      const told = literally(what + (hides[1] ?? ""));
      const promise = new RegExp("^Whatever is released here is at most e\\^([0-9.e-]+)(?: ≈ ([0-9.e+]+))? times as "
        + `likely if ${told} ${changes}, for every ${every}${among[0]}, and every distribution in Θ, the records' `
        + "correlation with each other included\\.$", "u").exec(this.release.get("promise"));
      need(promise !== null && !numberOf(promise[1]).less(this.epsilon),
        "the promise says something else than what is proved");
      const limit = new Fraction(this.limit, ONE), about = promise[2] === undefined ? limit : numberOf(promise[2]);
      need(about.minus(limit).size().times(new Fraction(100n)).less(limit),
        "the promise says another factor than its epsilon");
      const pairs = within === null ? "" : within.map((pair) => pair.join(" or ")).join("; ");
      this.hides = `${what} ${changes}${pairs && `, between the values of these pairs: ${pairs}`}`;
    }

    factors(steps) { // of a record that goes from state to state, and of both of its steps where nothing else pays them
      const both = steps ? this.step.plus(this.step) : ZERO, known = new Map();
      const factor = (loss) => {
        const key = `${loss.over}/${loss.under}`;
        if (!known.has(key)) known.set(key, exp(loss.plus(both), true));
        return known.get(key);
      };
      return this.losses.map((row, x) => row.map((loss, y) => (x === y ? ONE : factor(loss))));
    }
  }

  const prove = (claim, proof) => {
    const members = membersOf(claim.release.get("theta")), brought = proof.get("members");
    claim.digits = proof.get("digits");
    need(claim.digits <= 18n && brought.length === members.length, "the proof is of other members of Θ");
    members.forEach(([kind, model], i) => {
      try {
        if (brought[i] !== null) proveChain(chainOf(kind, model, claim.states.length), brought[i], claim);
        else if (claim.epsilon.less(claim.sum)) {
          need(kind === "Markov processes that forget", "the losses of all records together are more than ε");
          proveForgetting(model, claim);
        }
      } catch (error) {
        throw error instanceof NotProved ? new NotProved(`theta[${i}]: ${error.message}`) : error;
      }
    });
  };

  const check = (release, proof, model = null) => {
    try {
      const claim = new Claim(read(release, RELEASE, "release")), theta = claim.release.get("theta");
      prove(claim, read(proof, PROOF, "proof"));
      if (model !== null) {
        const given = parsed(model, "model");
        need(given instanceof Map && [...theta].every(([key, part]) => given.has(key) && same(part, given.get(key))),
          "Θ is not that of the model");
      }
      const many = theta.get("chains").length + theta.get("members").length;
      const whose = model === null ? "as the release says; name a model to compare them with" : "those of the model";
      const cut = claim.cut ? ", where gaps cut a series into independent ones" : "";
      const epsilon = claim.epsilon.under === 1n ? `${claim.epsilon}` : `(${claim.epsilon})`;
      return { proved: true, says: `PROVED: this release of ${claim.kind}, by itself, is at most e^${epsilon} `
        + `times as likely if ${claim.hides}; under every member of Θ, ${many} of ${theta.get("kind")} (${whose}), `
        + `in series of at most ${claim.longest} steps, with ${claim.all} records in all${cut}; `
        + `by noise of the law ${LAW}, scale/unit = ${claim.scale}.\n`
        + "NOT CHECKED: that such noise was drawn, once, and added to the true numbers; the table, how it was read, "
        + `and whether Θ describes it; other releases of the same records; ${fieldsUnseen(RELEASE).join(", ")}.` };
    } catch (error) {
      const why = error instanceof NotProved ? error.message : `a file is not what it must be: ${error}`;
      return { proved: false, says: `NOT PROVED: ${why}` };
    }
  };

  return { check };
})();

if (typeof module !== "undefined") module.exports = pufferfish;
