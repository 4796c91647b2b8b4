// A respondent's device in plain JavaScript, written from docs/project/question_format.md and not from the Rust code:
// both must do the same. It needs WebCrypto, and nothing else.

class Refusal extends Error {
  constructor(name, rule) {
    super(rule);
    this.name = name;
  }
}

function check(holds, name, rule) {
  if (!holds) throw new Refusal(name, rule);
}

// JSON -------------------------------------------------------------------------------------------------

/** Numbers keep their text: 1.0 is no integer. */
class Numeral {
  constructor(text) {
    this.text = text;
  }
}

const ESCAPES = { '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

/** Reads a text strictly; objects become Maps, whose `text` is what was written. */
function parse(name, text) {
  let at = 0;
  const fail = () => {
    throw new Refusal(name, `no JSON from ${at}`);
  };
  const match = (pattern) => {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found === null) return null;
    at += found[0].length;
    return found[0];
  };
  const space = () => match(/[ \t\n\r]*/y);
  const take = (letter) => text[at] === letter && (at++, true);
  const string = () => {
    const raw = match(/"(?:[^"\\\u0000-\u001f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"/y) ?? fail();
    const value = raw.slice(1, -1).replace(/\\(?:u(.{4})|(.))/g, (_, unit, letter) =>
      unit === undefined ? ESCAPES[letter] : String.fromCharCode(parseInt(unit, 16)),
    );
    // A half of a pair is no character, and none can become one by standing beside another escape.
    if (/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(value)) fail();
    return value;
  };
  const value = (depth) => {
    space();
    if (depth > 64) fail();
    if (text[at] === '"') return string();
    if (text[at] === "{") {
      const start = at++;
      const object = new Map();
      space();
      if (!take("}")) {
        do {
          space();
          const key = string();
          space();
          if (object.has(key) || object.size === 1000 || !take(":")) fail();
          object.set(key, value(depth + 1));
          space();
        } while (take(","));
        if (!take("}")) fail();
      }
      object.text = text.slice(start, at);
      return object;
    }
    if (take("[")) {
      const list = [];
      space();
      if (take("]")) return list;
      do {
        list.push(value(depth + 1));
        space();
      } while (take(","));
      if (!take("]")) fail();
      return list;
    }
    const word = match(/true|false|null/y);
    if (word !== null) return { true: true, false: false, null: null }[word];
    return new Numeral(match(/-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y) ?? fail());
  };
  const whole = value(0);
  space();
  if (at !== text.length) fail();
  return whole;
}

/** A text as JSON in ASCII. */
function quote(text) {
  return JSON.stringify(text).replace(
    /[\u007f-\uffff]/g,
    (unit) => "\\u" + unit.charCodeAt(0).toString(16).padStart(4, "0"),
  );
}

const object = (value, name) => (check(value instanceof Map, name, "no object"), value);
const list = (value, name) => (check(Array.isArray(value), name, "no list"), value);
const text = (value, name) => (check(typeof value === "string", name, "no text"), value);
const flag = (value, name) => (check(typeof value === "boolean", name, "no flag"), value);

function number(value, name) {
  check(value instanceof Numeral && Number.isFinite(Number(value.text)), name, "no finite number");
  return Number(value.text);
}

function integer(value, name) {
  check(value instanceof Numeral && /^-?[0-9]+$/.test(value.text), name, "no integer");
  const whole = BigInt(value.text);
  check(whole >= 0n && whole < 1n << 63n, name, "no integer in range");
  return whole;
}

const numbers = (value, name) => list(value, name).map((entry) => number(entry, name));

function fields(map, whole, needed, allowed = []) {
  for (const name of map.keys()) check(needed.includes(name) || allowed.includes(name), whole, `unknown ${name}`);
  for (const name of needed) check(map.has(name), whole, `no ${name}`);
}

const HIDDEN =
  /[\u0000-\u001f\u007f-\u00a0\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/u;

function words(value, name, longest, lines = false) {
  const length = [...text(value, name)].length;
  check(length >= 1 && length <= longest, name, "wrong length");
  check(!HIDDEN.test(lines ? value.replaceAll("\n", "") : value), name, "not printable");
  return value;
}

// Bytes ------------------------------------------------------------------------------------------------

const encode = (value) => new TextEncoder().encode(value);
const hex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const word = (bytes) => bytes.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
const sha256 = async (bytes) => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));

function unhex(value, count, name) {
  check(typeof value === "string" && value.length === 2 * count && /^[0-9a-f]*$/.test(value), name, "no digits");
  return Uint8Array.from(value.match(/../g), (pair) => parseInt(pair, 16));
}

async function isSigned(key, signature, message) {
  try {
    const owner = await crypto.subtle.importKey("raw", key, { name: "Ed25519" }, false, ["verify"]);
    return await crypto.subtle.verify({ name: "Ed25519" }, owner, signature, message);
  } catch {
    return false;
  }
}

// Hypotheses and scores --------------------------------------------------------------------------------

const truth = (holds) => (holds ? 1 : 0);
const clip = (value) => (Number.isFinite(value) ? Math.min(Math.max(value, 0), 1) : 0);
const isFinite = (record) => record.every(Number.isFinite);
const isBits = (record) => record.every((x) => x === 0 || x === 1);
const all = Symbol("all columns");

/** The inner product of a row, shrunk to a norm, with weights: eight sums side by side. */
function products(row, weights) {
  const [inner, squared] = [new Array(8).fill(0), new Array(8).fill(0)];
  row.forEach((x, i) => {
    inner[i % 8] += x * weights[i];
    squared[i % 8] += x * x;
  });
  return [inner, squared].map((s) => s[0] + s[4] + (s[2] + s[6]) + (s[1] + s[5] + (s[3] + s[7])));
}

function shrunkProduct(row, weights, bound) {
  const [inner, squared] = products(row, weights);
  const score = inner * Math.min(bound / Math.sqrt(squared), 1);
  return squared >= 2 ** -1022 && Number.isFinite(score) ? score : 0;
}

/** A model: `fits(d)`; `value(record)`, null where there is none; `columns`, those that it needs. */
const ofAll = (d, value) => ({ fits: (width) => width === d, columns: all, value });

function ofBits(places, value) {
  const fits = (width) => places.every((place) => place < BigInt(width));
  return { fits, columns: places.map(Number), value: (record) => (isBits(record) ? value(record) : null) };
}

function literals(map) {
  const features = list(map.get("features"), "features").map((entry) => integer(entry, "features"));
  const values = list(map.get("values"), "values").map((entry) => Number(integer(entry, "values")));
  check(values.every((value) => value <= 1), "values", "no bit");
  check(features.length === values.length, "values", "another number");
  return [features, (record) => features.filter((place, i) => record[Number(place)] === values[i]).length];
}

function weightsOf(value) {
  const weights = numbers(value, "weights");
  check(weights.length > 0, "weights", "none");
  return weights;
}

function additive(map) {
  fields(map, "additive", ["kind", "cuts", "weights", "bias"]);
  const cuts = list(map.get("cuts"), "cuts").map((entry) => numbers(entry, "cuts"));
  const weights = list(map.get("weights"), "weights").map((entry) => numbers(entry, "weights"));
  const bias = number(map.get("bias"), "bias");
  check(cuts.length > 0 && cuts.length === weights.length, "cuts", "another number");
  cuts.forEach((places, j) => {
    check(places.length === weights[j].length, "weights", "another number");
    check(places.every((place, i) => i === 0 || places[i - 1] <= place), "cuts", "they fall");
  });
  const sums = weights.map((steps) => steps.reduce((run, step) => [...run, run.at(-1) + step], [0]));
  const score = (record) =>
    cuts.reduce(
      (sum, places, j) => (places.length ? sum + sums[j][places.filter((place) => place <= record[j]).length] : sum),
      bias,
    );
  return ofAll(cuts.length, score);
}

function readShift(map) {
  const [knots, shifts] = [numbers(map.get("knots"), "knots"), numbers(map.get("shifts"), "shifts")];
  check(knots.every((knot, i) => i === 0 || knots[i - 1] < knot), "knots", "they do not increase");
  check(knots.length === shifts.length, "shifts", "another number");
  return (score) => {
    if (!knots.length) return 0;
    const i = knots.filter((knot) => knot <= score).length - 1;
    if (i < 0) return shifts[0];
    if (i === knots.length - 1 || knots[i] === score) return shifts[i];
    const slope = (shifts[i + 1] - shifts[i]) / (knots[i + 1] - knots[i]);
    let shift = slope * (score - knots[i]) + shifts[i];
    if (Number.isNaN(shift)) shift = slope * (score - knots[i + 1]) + shifts[i + 1];
    return Number.isNaN(shift) && shifts[i] === shifts[i + 1] ? shifts[i] : shift;
  };
}

const mapped = (model, make) => ({
  ...model,
  value: (record) => {
    const value = model.value(record);
    return value === null ? null : make(value);
  },
});

/** A hypothesis: its value is a class. */
function readHypothesis(value, votes = false) {
  const map = object(value, "model");
  const kind = text(map.get("kind"), "kind");
  check(!(votes && ["vote", "softmax", "calibrated"].includes(kind)), kind, "it cannot vote");
  switch (kind) {
    case "conjunction": {
      fields(map, kind, ["kind", "features", "values", "complement"]);
      const [[places, count], complement] = [literals(map), flag(map.get("complement"), "complement")];
      return ofBits(places, (record) => truth((count(record) === places.length) !== complement));
    }
    case "parity": {
      fields(map, kind, ["kind", "features", "complement"]);
      const places = list(map.get("features"), "features").map((entry) => integer(entry, "features"));
      const start = truth(flag(map.get("complement"), "complement"));
      return ofBits(places, (record) => [...new Set(places)].reduce((sum, place) => sum ^ record[Number(place)], start));
    }
    case "at_least": {
      fields(map, kind, ["kind", "threshold", "features", "values"]);
      const [[places, count], threshold] = [literals(map), integer(map.get("threshold"), "threshold")];
      return ofBits(places, (record) => truth(BigInt(count(record)) >= threshold));
    }
    case "halfspace":
    case "linear": {
      fields(map, kind, ["kind", "weights", "bias"]);
      const [weights, bias] = [weightsOf(map.get("weights")), number(map.get("bias"), "bias")];
      const sum = (record) => weights.reduce((total, weight, j) => total + weight * record[j], 0);
      return ofAll(weights.length, (record) => truth(sum(record) + bias >= 0));
    }
    case "additive":
      return mapped(additive(map), (score) => truth(score >= 0));
    case "softmax": {
      const classes = readSoftmax(map);
      return ofAll(classes[0].length, (record) => {
        const scale = Math.max(...record.map(Math.abs)) || 1;
        const scores = classes.map((weights) => weights.reduce((sum, w, j) => sum + w * (record[j] / scale), 0));
        const odd = scores.findIndex(Number.isNaN);
        return odd >= 0 ? odd : scores.indexOf(Math.max(...scores));
      });
    }
    case "vote": {
      const voters = readVoters(map);
      return mapped(votesOf(voters), (votes) => truth(2 * votes > voters.length));
    }
    case "calibrated":
      return mapped(readScore(map), (score) => truth(score >= 0));
  }
  throw new Refusal("kind", `unknown hypothesis ${kind}`);
}

function readSoftmax(map) {
  fields(map, "softmax", ["kind", "weights"]);
  const classes = list(map.get("weights"), "weights").map(weightsOf);
  const even = classes.every((weights) => weights.length === classes[0].length);
  check(classes.length >= 2 && even, "weights", "no matrix");
  return classes;
}

function readVoters(map) {
  fields(map, "vote", ["kind", "hypotheses"]);
  const voters = list(map.get("hypotheses"), "hypotheses").map((entry) => readHypothesis(entry, true));
  check(voters.length > 0, "hypotheses", "none");
  return voters;
}

/** A model whose value is how many voters say 1. */
function votesOf(voters) {
  return {
    fits: (width) => voters.every((voter) => voter.fits(width)),
    columns: voters.some((voter) => voter.columns === all) ? all : voters.flatMap((voter) => voter.columns),
    value: (record) => {
      const votes = voters.map((voter) => voter.value(record));
      return votes.includes(null) ? null : votes.reduce((sum, vote) => sum + vote, 0);
    },
  };
}

function readScore(value, depth = 0) {
  const map = object(value, "model");
  const kind = text(map.get("kind"), "kind");
  const logOdds = (voters) =>
    mapped(votesOf(voters), (votes) => Math.log((votes + 0.5) / (voters.length - votes + 0.5)));
  switch (kind) {
    case "halfspace":
    case "linear": {
      fields(map, kind, ["kind", "weights", "bias"], ["norm_bound"]);
      const [weights, bias] = [weightsOf(map.get("weights")), number(map.get("bias"), "bias")];
      const bound = (map.get("norm_bound") ?? null) === null ? 1e30 : number(map.get("norm_bound"), "norm_bound");
      check(bound >= 1e-30 && bound <= 1e30, "norm_bound", "out of range");
      return ofAll(weights.length, (record) => shrunkProduct(record, weights, bound) + bias);
    }
    case "softmax": {
      const classes = readSoftmax(map);
      check(classes.length === 2, kind, "a score needs two classes");
      const weights = classes[1].map((weight, j) => weight - classes[0][j]);
      return ofAll(weights.length, (record) => shrunkProduct(record, weights, 1e30) + 0);
    }
    case "additive":
      return additive(map);
    case "statistics": {
      fields(map, kind, ["kind", "features", "weights"]);
      const [features, weights] = [readMap(map.get("features")), weightsOf(map.get("weights"))];
      check(weights.length === features.columns, "weights", "another number");
      return ofAll(features.inputs, (record) => shrunkProduct(features.map(record), weights, 1e30) + 0);
    }
    case "vote":
      return logOdds(readVoters(map));
    case "calibrated": {
      fields(map, kind, ["kind", "model", "knots", "shifts"]);
      check(depth < 10, "model", "too deep");
      const [inner, shift] = [readScore(map.get("model"), depth + 1), readShift(map)];
      return mapped(inner, (score) => score + shift(score));
    }
  }
  return logOdds([readHypothesis(map)]);
}

const SINE = [
  6.283185307179586, -41.34170224039976, 81.60524927607506, -76.70585975306139, 42.058693944897655,
  -15.09464257682299, 3.819952584848282, -0.7181223017785006, 0.10422916220813984, -0.012031585942120627,
  0.0011309237482517963,
];

function nearestEven(z) {
  const low = Math.floor(z);
  const rest = z - low;
  return rest < 0.5 ? low : rest > 0.5 ? low + 1 : low % 2 === 0 ? low : low + 1;
}

function cosine(turns) {
  const t = 0.25 - Math.abs(turns - nearestEven(turns));
  return SINE.reduceRight((sum, coefficient) => sum * (t * t) + coefficient) * t;
}

function readMap(value) {
  const map = object(value, "features");
  const NAMES = ["format", "version", "origin", "factor", "bounds", "matrix", "offset", "waves", "constant"];
  fields(map, "features", NAMES);
  const form = map.get("format") === "hdp_fast.feature_map" && integer(map.get("version"), "version") === 1n;
  check(form, "features", "another format");
  const within = (list, name) => (check(list.every((x) => Math.abs(x) <= 1e30), name, "too large"), list);
  const origin = within(numbers(map.get("origin"), "origin"), "origin");
  const factor = within(numbers(map.get("factor"), "factor"), "factor");
  const d = origin.length;
  check(d > 0 && factor.length === d && factor.every((x) => x >= 0), "factor", "no factors");
  const end = (value, none) => (value === null ? none : number(value, "bounds"));
  const pairs = map.get("bounds") === null ? null : list(map.get("bounds"), "bounds").map((pair) => list(pair, "bounds"));
  check(pairs === null || (pairs.length === d && pairs.every((pair) => pair.length === 2)), "bounds", "no pairs");
  const bounds = (pairs ?? origin.map(() => [null, null])).map(([low, high]) => [end(low, -Infinity), end(high, Infinity)]);
  check(bounds.every(([low, high]) => low <= high), "bounds", "low above high");
  const matrix = map.get("matrix") === null ? null : list(map.get("matrix"), "matrix").map((row) => numbers(row, "matrix"));
  let offset = map.get("offset") === null ? null : within(numbers(map.get("offset"), "offset"), "offset");
  check(matrix !== null || offset === null, "offset", "no matrix");
  if (matrix !== null) {
    const k = matrix[0]?.length ?? 0;
    check(k > 0 && matrix.length === d && matrix.every((row) => row.length === k), "matrix", "no matrix");
    matrix.forEach((row) => within(row, "matrix"));
    offset ??= new Array(k).fill(0);
    check(offset.length === k, "offset", "another number");
  }
  const [waves, constant] = [flag(map.get("waves"), "waves"), flag(map.get("constant"), "constant")];
  const unit = constant ? 47453132 : 2 ** 26;
  const features = (record) => {
    let row = record.map((x, j) => {
      const [low, high] = bounds[j];
      const raised = x >= low ? x : low;
      return ((raised > high ? high : raised) - origin[j]) * factor[j];
    });
    if (matrix !== null) {
      row = row.reduce((sums, x, j) => sums.map((sum, c) => sum + x * matrix[j][c]), offset);
    }
    if (waves) row = [...row.map(cosine), ...row.map((z) => cosine(z - 0.25))];
    const squared = products(row, row)[1];
    const [norm, longest] = [Math.sqrt(squared), 1 - 2 ** -40];
    const scale = norm <= longest ? unit : unit * (longest / norm);
    row = row.map((z) => Math.trunc(z * scale));
    const fits = products(row, row)[1] <= unit * unit && squared < Infinity;
    return [...row, ...(constant ? [unit] : [])].map((z) => (fits ? z / 2 ** 26 + 0 : 0));
  };
  const outputs = matrix === null ? d : offset.length;
  return { inputs: d, columns: outputs * (waves ? 2 : 1) + truth(constant), map: features };
}

/** A model of a term `wrong`, which may be statistics. */
function readModel(value) {
  const kind = object(value, "model").get("kind");
  return kind === "statistics" ? mapped(readScore(value), (score) => truth(score > 0)) : readHypothesis(value);
}

/** The value about a record of finite entries that fits; null for others. */
const valueOf = (model, record) => (model.fits(record.length) && isFinite(record) ? model.value(record) : null);
const mistake = (model, [record, label]) => truth(valueOf(model, record) !== label);

// Queries ----------------------------------------------------------------------------------------------

function interval(map, name) {
  const [low, high] = [number(map.get("low"), "low"), number(map.get("high"), "high")];
  check(low < high && Number.isFinite(high - low), name, "no interval");
  return [low, high];
}

/** A term: `fits(d)`, `answer([features, label])`, and what it needs: `columns` and `label`. */
function readTerm(value) {
  const map = object(value, "terms");
  const kind = text(map.get("kind"), "kind");
  const names = (...names) => fields(map, kind, ["kind", ...names]);
  const ofModels = (models, label, answer) => ({
    fits: (width) => models.every((model) => model.fits(width)),
    columns: models.some((model) => model.columns === all) ? all : models.flatMap((model) => model.columns),
    label,
    answer,
  });
  const ofColumn = (answer) => {
    const column = integer(map.get("column"), "column");
    const place = Number(column);
    return {
      fits: (width) => column < BigInt(width),
      columns: [place],
      label: false,
      answer: ([record]) => answer(record[place] ?? NaN),
    };
  };
  switch (kind) {
    case "label":
      names();
      return { fits: () => true, columns: [], label: true, answer: ([, label]) => clip(label) };
    case "between": {
      names("column", "low", "high");
      const end = (name, none) => (map.get(name) === null ? none : number(map.get(name), name));
      const [low, high] = [end("low", -Infinity), end("high", Infinity)];
      check(low < high && (low > -Infinity || high < Infinity), kind, "no interval");
      return ofColumn((x) => truth(Number.isFinite(x) && low <= x && x < high));
    }
    case "value": {
      names("column", "low", "high");
      const [low, high] = interval(map, kind);
      return ofColumn((x) => clip((Math.min(Math.max(x, low), high) - low) / (high - low)));
    }
    case "score_above": {
      names("model", "threshold");
      const [score, threshold] = [readScore(map.get("model")), number(map.get("threshold"), "threshold")];
      return ofModels([score], false, ([record]) => truth((valueOf(score, record) ?? NaN) > threshold));
    }
    case "loss_saved": {
      names("model", "knots", "shifts", "low", "high");
      const [score, shift, [low, high]] = [readScore(map.get("model")), readShift(map), interval(map, kind)];
      return ofModels([score], true, ([record, label]) => {
        let saved = saveLoss(valueOf(score, record) ?? NaN, shift, clip(label));
        if (Number.isNaN(saved) || !Number.isFinite(label)) saved = 0;
        return (Math.min(Math.max(saved, low), high) - low) / (high - low);
      });
    }
    case "wrong": {
      names("model");
      const model = readModel(map.get("model"));
      return ofModels([model], true, (known) => mistake(model, known));
    }
    case "worse": {
      names("model", "other");
      const models = [readModel(map.get("model")), readModel(map.get("other"))];
      const answer = (known) => (1 + mistake(models[0], known) - mistake(models[1], known)) / 2;
      return ofModels(models, true, answer);
    }
    case "weighted": {
      names("queries");
      const pairs = list(map.get("queries"), "queries").map((pair) => {
        check(Array.isArray(pair) && pair.length === 2, "queries", "no pair");
        const weight = number(pair[1], "weight");
        check(weight >= 0 && weight <= 1, "weight", "out of range");
        return [readQuery(pair[0]), weight];
      });
      check(pairs.length > 0, "queries", "none");
      const queries = pairs.map(([query]) => query);
      const sum = (known) => pairs.reduce((total, [query, weight]) => total + weight * query.answer(known), 0);
      return ofModels(queries, queries.some((query) => query.label), (known) => clip(sum(known)));
    }
  }
  throw new Refusal("kind", `unknown term ${kind}`);
}

function saveLoss(score, shiftOf, label) {
  const shift = shiftOf(score);
  const moved = score + shift;
  const rise = score > 0 ? Math.max(shift, -score) : Math.max(moved, 0);
  const tail = (z) => Math.log1p(Math.exp(-Math.abs(z)));
  return label * shift - (rise + (tail(moved) - tail(score)));
}

function readQuery(value) {
  const map = object(value, "queries");
  fields(map, "query", ["kind", "terms"]);
  check(map.get("kind") === "query", "kind", "no query");
  const terms = list(map.get("terms"), "terms").map(readTerm);
  check(terms.length > 0, "terms", "none");
  return {
    fits: (width) => terms.every((term) => term.fits(width)),
    columns: terms.some((term) => term.columns === all) ? all : terms.flatMap((term) => term.columns),
    label: terms.some((term) => term.label),
    answer: (known) => terms.reduce((product, term) => product * term.answer(known), 1),
  };
}

/** A query, or whether a hypothesis is wrong: an answer about every record. */
function readInquiry(value) {
  const map = object(value, "hypothesis");
  if (map.get("kind") !== "query") {
    const model = readHypothesis(map);
    return { columns: model.columns, label: true, answer: (known) => mistake(model, known) };
  }
  const query = readQuery(map);
  return { ...query, answer: (known) => (query.fits(known[0].length) ? query.answer(known) : 0) };
}

// Form -------------------------------------------------------------------------------------------------

function readForm(value) {
  const map = object(value, "form");
  fields(map, "form", ["inputs", "features", "label"]);
  const inputs = list(map.get("inputs"), "inputs").map((entry) => readInput(object(entry, "inputs")));
  check(inputs.length <= 1000, "inputs", "too many");
  check(new Set(inputs.map((input) => input.name)).size === inputs.length, "inputs", "a name comes twice");
  const features = list(map.get("features"), "features");
  check(features.length <= 100000, "features", "too many");
  const label = map.get("label");
  return {
    text: map.text,
    inputs,
    features: features.map((entry) => readPart(object(entry, "features"), inputs)),
    label: label === null ? null : readPart(object(label, "label"), inputs),
  };
}

function readInput(map) {
  const name = words(map.get("name"), "name of an input", 100);
  words(map.get("text"), "text of an input", 2000, true);
  if (map.get("kind") === "number") {
    fields(map, "input", ["name", "text", "kind", "low", "high"]);
    const [low, high] = interval(map, "input");
    return { name, low, high };
  }
  check(map.get("kind") === "choice", "kind", "unknown input");
  fields(map, "input", ["name", "text", "kind", "choices"]);
  const choices = list(map.get("choices"), "choices").map((entry) => {
    fields(object(entry, "choices"), "choice", ["value", "text"]);
    words(entry.get("text"), "text of a choice", 2000, true);
    return words(entry.get("value"), "value of a choice", 100);
  });
  check(choices.length >= 1 && choices.length <= 1000, "choices", "too few or many");
  check(new Set(choices).size === choices.length, "choices", "a value comes twice");
  return { name, choices };
}

function readPart(map, inputs) {
  const place = integer(map.get("input"), "input");
  check(place < BigInt(inputs.length), "input", "no input");
  const input = inputs[Number(place)];
  const part = (make) => ({ input: Number(place), make });
  if (input.choices !== undefined) {
    fields(map, "feature", ["input", "values"]);
    const values = list(map.get("values"), "values").map((value) => text(value, "values"));
    check(values.every((value) => input.choices.includes(value)), "values", "no choice");
    return part((choice) => truth(values.includes(choice)));
  }
  if (map.has("at_least")) {
    fields(map, "feature", ["input", "at_least"]);
    const least = number(map.get("at_least"), "at_least");
    return part((typed) => truth(typed >= least));
  }
  fields(map, "feature", ["input", "scale", "offset"]);
  const [scale, offset] = [number(map.get("scale"), "scale"), number(map.get("offset"), "offset")];
  return part((typed) => Math.min(Math.max(typed, input.low), input.high) * scale + offset);
}

function neededInputs(form, inquiry) {
  const columns = form.features.map((part, j) => [part, inquiry.columns === all || inquiry.columns.includes(j)]);
  const parts = [...columns, ...(form.label === null ? [] : [[form.label, inquiry.label]])];
  const places = parts.filter(([, needed]) => needed).map(([part]) => part.input);
  return form.inputs.map((_, place) => place).filter((place) => places.includes(place));
}

function typedNumber(value) {
  const trimmed = value.replace(/^ +| +$/g, "");
  return /^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$/.test(trimmed) ? Number(trimmed) : null;
}

function recordOf(form, inquiry, answers) {
  const typed = new Map();
  for (const place of neededInputs(form, inquiry)) {
    const { name, choices } = form.inputs[place];
    const answer = text(answers.get(name) ?? null, name);
    if (choices !== undefined) {
      check(choices.includes(answer), name, "no choice");
      typed.set(place, answer);
    } else {
      check(typedNumber(answer) !== null, name, "no number");
      typed.set(place, typedNumber(answer));
    }
  }
  const value = (part) => (typed.has(part.input) ? part.make(typed.get(part.input)) : 0);
  return [form.features.map(value), form.label === null ? NaN : value(form.label)];
}

// Questions --------------------------------------------------------------------------------------------

async function open(input) {
  const signed = text(input.get("signed") ?? null, "signed");
  check(encode(signed).length <= 2 ** 23, "signed", "too long");
  const envelope = object(parse("signed", signed), "signed");
  fields(envelope, "signed", ["format", "version", "question", "signature"]);
  const form = envelope.get("format") === "hdp_fast.signed" && integer(envelope.get("version"), "version") === 1n;
  check(form, "signed", "another format");
  const key = unhex(input.get("key"), 32, "key");
  const signature = unhex(envelope.get("signature"), 64, "signature");
  const question = text(envelope.get("question"), "question");
  check(await isSigned(key, signature, encode("hdp_fast.question\n" + question)), "signature", "another key's");
  return question;
}

function readRandomizer(value) {
  const map = object(value, "randomizer");
  const name = text(map.get("randomizer") ?? null, "randomizer");
  const epsilon = () => {
    const epsilon = number(map.get("epsilon"), "epsilon");
    check(epsilon >= 1e-9, "epsilon", "too small");
    return epsilon;
  };
  const margin = 1 - 2 ** -45;
  if (name === "BinaryResponse") {
    fields(map, name, ["randomizer", "epsilon", "bounds"]);
    const bounds = numbers(map.get("bounds"), "bounds");
    check(bounds.length === 2 && bounds[0] < bounds[1], "bounds", "no interval");
    check(Number.isFinite(bounds[1] - bounds[0]), "bounds", "no interval");
    const advantage = BigInt(Math.floor((Math.tanh(Math.min(epsilon(), 60) / 2) / 2) * margin * 2 ** 64));
    const half = 1n << 63n;
    return { map, epsilon: epsilon(), bounds, keep: half + (advantage < half ? advantage : half - 1n) };
  }
  check(name === "KaryResponse", "randomizer", `unknown ${name}`);
  fields(map, name, ["randomizer", "k", "epsilon"]);
  const k = integer(map.get("k"), "k");
  check(k >= 2n && k <= 1n << 31n, "k", "out of range");
  const odds = Math.expm1(Math.min(epsilon(), 60)) * (1 / Number(k));
  return { map, epsilon: epsilon(), k, keep: BigInt(Math.floor((odds / (1 + odds)) * margin * 2 ** 64)) };
}

function readQuestion(source) {
  const map = object(parse("question", source), "question");
  const form = map.get("format") === "hdp_fast.question" && integer(map.get("version"), "version") === 2n;
  check(form, "question", "another format");
  const optional = ["study", "asker", "text", "form", "categories", "hypothesis"];
  fields(map, "question", ["format", "version", "id", "kind", "randomizer"], optional);
  const some = (name, read) => (map.has(name) ? read(map.get(name)) : null);
  const randomizer = readRandomizer(map.get("randomizer"));
  const question = {
    id: words(map.get("id"), "id", 100),
    kind: text(map.get("kind"), "kind"),
    study: some("study", (value) => words(value, "study", 100)),
    asker: some("asker", (value) => words(value, "asker", 200)),
    text: some("text", (value) => words(value, "text", 2000, true)),
    form: some("form", readForm),
    hypothesis: some("hypothesis", (value) => text(value, "hypothesis")),
    categories: some("categories", (value) => readCategories(value, randomizer)),
    randomizer,
  };
  const { kind, hypothesis } = question;
  const binary = randomizer.bounds !== undefined;
  check(["mean", "stage", "frequency"].includes(kind) && binary === (kind !== "frequency"), "kind", "unknown");
  const unit = binary && randomizer.bounds[0] === 0 && randomizer.bounds[1] === 1;
  check(hypothesis === null || unit, "hypothesis", "another randomizer");
  check(kind !== "stage" || hypothesis !== null, "hypothesis", "none");
  return question;
}

function readCategories(value, randomizer) {
  const texts = list(value, "categories").map((entry) => text(entry, "categories"));
  check(texts.every((entry) => entry && entry.trim() === entry), "categories", "spaces");
  check(new Set(texts).size === texts.length && texts.length <= 10000, "categories", "twice");
  check(randomizer.k === BigInt(texts.length), "categories", "another number");
  return texts;
}

/** What the person of this number is asked. */
async function readAsked(question, number) {
  if (question.hypothesis === null) return null;
  const map = object(parse("hypothesis", question.hypothesis), "hypothesis");
  const stage = text(map.get("kind"), "kind") === "stage";
  check(stage === (question.kind === "stage"), "kind", "a stage or not");
  if (!stage) return { place: null, queries: 1, query: map, inquiry: readInquiry(map) };
  fields(map, "stage", ["kind", "key", "first", "count", "queries", "shares"]);
  const key = unhex(map.get("key"), 16, "key");
  const [first, count] = [integer(map.get("first"), "first"), integer(map.get("count"), "count")];
  check(first > 0n && count > 0n && first + count < 1n << 63n, "stage", "no people");
  const queries = list(map.get("queries"), "queries");
  const shares = list(map.get("shares"), "shares").map((share) => integer(share, "shares"));
  check(shares.length >= 1 && shares.length <= 10000 && shares.length === queries.length, "shares", "another number");
  const sum = shares.reduce((total, share) => total + share, 0n);
  check(shares.every((share) => share > 0n) && sum < 1n << 53n, "shares", "out of range");
  check(number !== null && number >= first && number < first + count, "number", "another person");
  const bytes = new DataView(new ArrayBuffer(8));
  bytes.setBigUint64(0, number);
  const hash = await sha256(new Uint8Array([...encode("hdp_fast.stage"), ...key, ...new Uint8Array(bytes.buffer)]));
  let mark = (word(hash.subarray(0, 8)) * sum) >> 64n;
  const place = shares.findIndex((share) => (mark < share ? true : ((mark -= share), false)));
  const inquiries = queries.map(readInquiry);
  return { place, queries: queries.length, query: queries[place], inquiry: inquiries[place] };
}

// The device -------------------------------------------------------------------------------------------

async function understand(input) {
  const source = await open(input);
  const study = text(input.get("study") ?? "", "study");
  const epsilon = number(input.get("epsilon"), "epsilon");
  const number_ = input.get("number") ?? null;
  const place = number_ === null ? null : integer(number_, "number");
  const question = readQuestion(source);
  const asked = await readAsked(question, place);
  check((question.study ?? "") === study, "study", "another study");
  check(question.randomizer.epsilon === epsilon, "epsilon", "another epsilon");
  return { question, asked, digest: hex((await sha256(encode(source))).subarray(0, 16)) };
}

function trueValue(question, value) {
  const trimmed = value.replace(/^ +| +$/g, "");
  if (question.categories !== null) {
    const place = question.categories.indexOf(trimmed);
    check(place >= 0, "value", "no category");
    return place;
  }
  if (question.randomizer.k !== undefined) {
    check(/^[0-9]+$/.test(trimmed) && BigInt(trimmed) < question.randomizer.k, "value", "no category");
    return Number(trimmed);
  }
  check(typedNumber(value) !== null, "value", "no number");
  return typedNumber(value);
}

function truthOf({ question, asked }, input) {
  const given = ["answers", "record", "value"].filter((name) => (input.get(name) ?? null) !== null);
  check(given.length === 1, "input", "one of answers, record, value");
  const source = input.get(given[0]);
  if (asked === null) {
    check(given[0] === "value", "value", "it is about a value");
    return trueValue(question, text(source, "value"));
  }
  check(given[0] !== "value", "value", "it is about a record");
  if (given[0] === "answers") {
    check(question.form !== null, "answers", "no form");
    return asked.inquiry.answer(recordOf(question.form, asked.inquiry, object(source, "answers")));
  }
  fields(object(source, "record"), "record", ["features"], ["label"]);
  const entry = (value) => (value === null ? NaN : number(value, "record"));
  const features = list(source.get("features"), "features").map(entry);
  return asked.inquiry.answer([features, entry(source.get("label") ?? null)]);
}

function report({ bounds, k, keep }, value, random) {
  const first = word(random(8));
  if (bounds !== undefined) {
    const ratio = (value - bounds[0]) / (bounds[1] - bounds[0]);
    const position = ratio > 0 ? Math.min(ratio, 1) : 0;
    const bit = truth(position === 1 || first < BigInt(Math.floor(position * 2 ** 64)));
    return word(random(8)) < keep ? bit : 1 - bit;
  }
  if (first < keep) return value;
  let drawn;
  do drawn = word(random(8));
  while (drawn >= (1n << 64n) - ((1n << 64n) % k));
  return Number(drawn % k);
}

async function guarded(source, work) {
  try {
    const input = object(parse("input", source), "input");
    return await work(input);
  } catch (error) {
    if (error instanceof Refusal) return { error: { name: error.name, rule: error.message } };
    throw error;
  }
}

const INVITATION = ["signed", "key", "study", "epsilon"];

/** What a person is shown; `source` is JSON. */
export function describe(source) {
  return guarded(source, async (input) => {
    fields(input, "input", INVITATION, ["number"]);
    const known = await understand(input);
    const { question, asked, digest } = known;
    const { id, kind, study, asker, categories, form, randomizer } = question;
    const plain = (map) => (map === null ? null : JSON.parse(map.text));
    return {
      ...{ study, asker, text: question.text, id, digest, kind, epsilon: randomizer.epsilon },
      keep: Number(randomizer.keep) / 2 ** 64,
      randomizer: plain(randomizer.map),
      categories,
      place: asked === null ? null : asked.place,
      queries: asked === null ? 0 : asked.queries,
      query: asked === null ? null : plain(asked.query),
      inputs: asked === null || form === null ? [] : neededInputs(form, asked.inquiry),
      form: plain(form),
    };
  });
}

/** The line that leaves; `random(n)` are n random bytes. */
export function answer(source, random) {
  return guarded(source, async (input) => {
    fields(input, "input", INVITATION, ["number", "answers", "record", "value"]);
    const known = await understand(input);
    const value = truthOf(known, input);
    const drawn = report(known.question.randomizer, value, random);
    const place = known.asked?.place ?? null;
    const sent = place === null ? drawn : 2 * place + drawn;
    const [name, id] = [quote(known.question.id), hex(random(16))];
    const head = `{"format":"hdp_fast.report","version":2,"question":${name},"digest":"${known.digest}"`;
    return { line: `${head},"report":${sent},"id":"${id}"}`, report: sent, truth: value };
  });
}
