"""Bad inputs of the command line."""

from bad_case import Case

SCHEMA = "schema pub.csv --label income"
PRIVACY = "--epsilon 20 --delta 1e-3"
HOW = f"--schema schema.json --estimator naive-bayes {PRIVACY}"
MEMBERS = f"{HOW} --members 30"
LABEL = f"label priv.csv pub.csv {MEMBERS}"
PLAN = "parity plan --d 10 --alpha .1 --epsilon 1"
TRANSFER = (
    "transfer priv.csv wider.csv --schema schema.json --agents-epsilon 1 --epsilon 1 --delta 1e-6"
)
ROUNDS = "--kappa .1 --eta 1 --rounds 5"
ADAPT = "adapt priv.csv pub.csv --schema schema.json --method descent --steps 5"
RANDOMIZE = "local randomize --question question.json"
COLLECT = "local collect --question question.json"
NO_SCHEMA = "schema is (no|other) JSON, but it must be what hdp-fast schema .* wrote"
ONE_LABEL = "all 100 answers are one label, '<=50K'"
NO_CLASS = "but it must be a class with fit and predict"


def row(number, done, words, end, *said, given=""):
    return Case(number, done, words, end, said, given)


def labels(file, how=MEMBERS):
    return f"label {file} pub.csv {how}"


def with_schema(file):
    return LABEL.replace("schema.json", file)


def with_epsilon(value):
    return LABEL.replace("--epsilon 20", f"--epsilon {value}")


def with_delta(value):
    return LABEL.replace("--delta 1e-3", f"--delta {value}")


def with_estimator(name):
    return LABEL.replace("naive-bayes", name)


COMMANDS = [
    row(1, "a file that is not there", labels("nope.csv"), 2,
        "can't read nope.csv: No such file"),
    row(2, "semicolons", labels("semicolon.csv"), 2,
        "column = 'age', .* 1 column that semicolon.csv names: did you mean --delimiter ';'"),
    row(3, ".tsv", labels("priv.tsv"), 0),
    row(4, ".txt", labels("priv.txt"), 2, "delimiter must be given for priv.txt"),
    row(5, ".CSV", labels("PRIV.CSV"), 0),
    row(6, "lines that end in CRLF", labels("crlf.csv"), 0),
    row(7, "a byte order mark", labels("bom.csv"), 0),
    row(8, "Latin-1", labels("latin.csv"), 2, "latin.csv: it must be .* in UTF-8"),
    row(9, "UTF-16", labels("utf16.csv"), 2, "utf16.csv: it must be .* in UTF-8"),
    row(10, "no header", labels("headless.csv"), 2,
        "line 1 of headless.csv must name every column.* columns 1 and 3", "is there no header"),
    row(11, "a header that repeats a name", labels("twice.csv"), 2,
        "line 1 of twice.csv must name .* differently: columns 1 and 3 have one name"),
    row(12, "a row that is too short", labels("ragged.csv"), 2,
        "line 102 of ragged.csv must have 5 values, 3 found"),
    row(13, "an empty file", labels("empty.csv"), 2, "empty.csv is empty"),
    row(14, "a header and no row", labels("header.csv"), 2,
        "header.csv must have a column and at least one row"),
    row(15, "ten records", labels("ten.csv", HOW), 3, "PRIVATE has 10 rows, but 80 members",
        "1 member of about 10 would fit", "more records help"),
    row(16, "cells that are empty", labels("missing.csv"), 0),
    row(17, "one label only", labels("one_class.csv"), 0, ONE_LABEL),
    row(18, "labels unlike the schema's", labels("unlike.csv"), 0, ONE_LABEL),
    row(19, "a column is missing", labels("no_age.csv"), 2,
        "column = 'age', .* 4 columns that no_age.csv names"),
    row(19, "a public column is missing", f"label priv.csv no_age.csv {MEMBERS}", 2,
        "column = 'age', .* 4 columns that no_age.csv names"),
    row(20, "a column more", labels("extra.csv"), 0),
    row(21, "spaces around names and cells", labels("spaced.csv"), 0),
    row(22, "names in capitals", labels("capitals.csv"), 2,
        "column = 'age', .* 5 columns that capitals.csv names$"),
    row(22, "names in capitals, public", f"label priv.csv capitals.csv {MEMBERS}", 2,
        "capitals.csv names: did you mean 'AGE'"),
    row(23, ".gz that is none", labels("plain.csv.gz"), 2,
        "plain.csv.gz: it must be a whole table .*nothing that gzip wrote"),
    row(24, ".gz that is cut", labels("cut.csv.gz"), 2,
        "cut.csv.gz: it must be a whole table .*it ends too early"),
    row(25, ".parquet that is none", labels("bad.parquet"), 2,
        "bad.parquet: it must be a whole .parquet file"),
    row(26, ".npz that is none", labels("bad.npz"), 2,
        "bad.npz: it must be a whole .npz file, a zip, of plain numbers"),
    row(27, "a NUL in a cell", labels("nul.csv"), 0),
    row(28, "a folder", labels("folder.csv"), 2, "can't read folder.csv: Is a directory"),
    row(29, "- where a column is appended", f"label priv.csv - {MEMBERS}", 2,
        "PUBLIC is the standard input, but then --output must be given"),
    row(30, "/dev/stdin", labels("/dev/stdin"), 2, "got /dev/stdin: did you mean -"),
    row(31, "one file twice", labels("pub.csv"), 0,
        "pub.csv is protected and public at once: what is written of it is not protected"),
    row(32, "a schema that is no JSON", with_schema("no_json.json"), 2,
        f"no_json.json: {NO_SCHEMA}"),
    row(33, "a schema of {}", with_schema("braces.json"), 2, f"braces.json: {NO_SCHEMA}"),
    row(34, "a schema that is not there", with_schema("nope.json"), 2,
        "can't read nope.json: No such file"),
    row(35, "a private table as the schema", with_schema("ten.csv"), 2, f"ten.csv: {NO_SCHEMA}$"),
    row(36, "epsilon 0", with_epsilon(0), 2, "--epsilon = 0.0, .* finite and above 0"),
    row(37, "epsilon -1", with_epsilon(-1), 2, "--epsilon = -1.0, .* finite and above 0"),
    row(38, "epsilon abc", with_epsilon("abc"), 2, "--epsilon: invalid float value: 'abc'"),
    row(39, "epsilon inf", with_epsilon("inf"), 2, "--epsilon = inf, .* finite and above 0"),
    row(40, "epsilon nan", with_epsilon("nan"), 2, "--epsilon = nan, .* finite and above 0"),
    row(41, "epsilon 1e6", with_epsilon("1e6"), 2, "epsilon = 1000000, .* from 0.001 to 1000"),
    row(42, "delta 0", with_delta(0), 2, "--delta = 0.0, .* strictly between 0 and 1"),
    row(43, "delta 1", with_delta(1), 2, "--delta = 1.0, .* strictly between 0 and 1"),
    row(44, "delta .1", with_delta(".1"), 0, "delta = 0.1 is above 1 / n = 0.0017"),
    row(45, "epsilon .01", with_epsilon(".01").replace("1e-3", "1e-6"), 2,
        "epsilon = 0.01, but no table of up to .* for so many answers"),
    row(45, "epsilon .3 and hazards", with_epsilon(".3") + " --table hazard", 1,
        "members = 30, .* into bottom with probability 0.998", "a larger epsilon"),
    row(46, "estimator xgboost", with_estimator("xgboost"), 2,
        "--estimator = 'xgboost', .* one of logistic, .* or a class as package.module.Class"),
    row(47, "estimator no.such.Class", with_estimator("no.such.Class"), 2,
        "--estimator = 'no.such.Class', but it must be a class that can be imported"),
    row(48, "estimator os.system", with_estimator("os.system"), 2, f"'os.system', {NO_CLASS}"),
    row(49, "estimator sys.exit", with_estimator("sys.exit"), 2, f"'sys.exit', {NO_CLASS}"),
    row(50, "one class", f"{LABEL} --classes '>50K'", 2,
        "classes = .* must hold 2 to 256 different labels"),
    row(51, "wrong classes", f"{LABEL} --classes low,high", 2,
        "column 'income' holds something else, but every row must hold one of --classes"),
    row(52, "one member", labels("priv.csv", f"{HOW} --members 1"), 0,
        "members = 1, but even a unanimous vote of them is flipped with probability 0.500"),
    row(53, "no member", labels("priv.csv", f"{HOW} --members 0"), 2,
        "members = 0, but it must be an integer from 1 to 16777216"),
    row(54, "more members than records", labels("priv.csv", f"{HOW} --members 100000"), 3,
        "X has 600 records, but 100,000 members need one each", "take members = 60"),
    row(55, "fewer queries than rows", f"{LABEL} --queries 10", 2,
        "--queries = 10, but PUBLIC has 100 rows"),
    row(56, "no unstable query", f"{LABEL} --max-unstable 0", 2,
        "max_unstable = 0, but it must be an integer from 1"),
    row(57, "an output that is there", f"{LABEL} --output there.csv", 2,
        "got there.csv, which is there: --force replaces it"),
    row(58, "an output in no folder", f"{LABEL} --output nowhere/out.csv", 2,
        "output must be in an existing directory, got nowhere/out.csv"),
    row(59, "output -", f"{LABEL} --output -", 2, "--output - must go with --record FILE"),
    row(60, "output /dev/stdout", f"{LABEL} --output /dev/stdout", 2,
        "--output = '/dev/stdout', but it must end in .csv"),
    row(61, "a budget that is not there", f"{LABEL} --budget nope.budget", 2,
        "nope.budget', but it must be a budget file", "hdp-fast budget FILE --epsilon E"),
    row(62, "a table as the budget", f"{LABEL} --budget ten.csv", 2,
        "ten.csv', but it must be a budget file"),
    row(63, "no such column of ids", f"{LABEL} --ids whose", 2,
        "column = 'whose', .* 5 columns that priv.csv names"),
    row(64, "ages as ids", f"{LABEL} --ids age", 0),
    row(65, "another label than the schema's", f"{LABEL} --label gender", 2,
        "--label = 'gender', but the schema's label is 'income', unless there are --classes"),
    row(66, "an option that is none", f"{LABEL} --foo", 2, "unrecognized arguments: --foo"),
    row(66, "options cut short", LABEL.replace("epsilon", "eps").replace("estimator", "est"), 0),
    row(67, "schema: a value that never occurs", f"{SCHEMA} --positive '>50k'", 2,
        "positive = '>50k', but column 'income' .* never holds it: did you mean '>50K'"),
    row(68, "schema: above on texts", f"{SCHEMA} --above 5", 2,
        "column 'income' .* holds no numbers, but texts such as '.*': name them as positive"),
    row(69, "schema: above every number", "schema pub.csv --label age --above 1000", 2,
        r"above = 1000.0, but column 'age' .* numbers from \d+ to 90, so that no row has label 1"),
    row(70, "adapt: no positive label is public",
        f"adapt wrong_label.csv priv.csv --schema schema.json {PRIVACY}", 2,
        "column 'income' of SOURCE makes no row a positive one"),
    row(71, "schema: a label misspelt", "schema pub.csv --label incme --positive x", 2,
        "column = 'incme', .* did you mean 'income'"),
    row(72, "schema: bounds turned round", "schema pub.csv --label age --label-bounds 90 17", 2,
        "low = 90 and high = 17, but low must be below high"),
    row(73, "schema: one bound", "schema pub.csv --label age --label-bounds 90", 2,
        "--label-bounds: expected 2 arguments"),
    row(74, "schema: 1000 cuts", f"{SCHEMA} --positive '>50K' --cuts 1000", 0),
    row(74, "schema: no cuts", f"{SCHEMA} --positive '>50K' --cuts 0", 2,
        "cuts = 0, but it must be at least 1"),
    row(75, "d as 1e4", PLAN.replace("--d 10", "--d 1e4"), 0),
    row(76, "d below 1", PLAN.replace("--d 10", "--d -1"), 2, "d = -1, .* at least 1"),
    row(77, "alpha .6", PLAN.replace("--alpha .1", "--alpha .6"), 2,
        "alpha = 0.6, but it must lie strictly between 0 and 0.5"),
    row(78, "alpha 5%", PLAN.replace("--alpha .1", "--alpha 5%"), 2,
        "--alpha: invalid float value: '5%'"),
    row(79, "a method misspelt", f"{PLAN} --method lop", 2,
        "--method: invalid choice: 'lop' .* did you mean 'loop'"),
    row(80, "d = 10^9", PLAN.replace("--d 10", "--d 1000000000"), 0),
    row(81, "parity: a table of words", "parity learn words.csv --epsilon 1", 2,
        "line 2, column 1 of words.csv must be 0 or 1$"),
    row(82, "parity: .npz without X", "parity learn no_x.npz --epsilon 1", 2,
        "no_x.npz must hold X and y, or X_packed, ncols and y"),
    row(83, "parity: .npy without labels", "parity learn bits.npy --epsilon 1", 2,
        "labels must be given for bits.npy"),
    row(84, "parity: arrays of objects", "parity learn objects.npz --epsilon 1", 2,
        "can't read X in objects.npz: it must be a whole array of plain numbers"),
    row(85, "parity: ten records", "parity learn ten.npz --epsilon 1", 0,
        "X has 10 records for 30 unknown bits: no error below 1/2", "an error of 0.1 needs 717"),
    row(86, "parity: no record", "parity learn none.npz --epsilon 1", 0,
        "X has 0 records for 20 unknown bits: no error below 1/2", "an error of 0.1 needs 515"),
    row(87, "parity: a fifth of the labels wrong", "parity learn noisy.npz --epsilon 1", 1,
        "nothing was released", "noise, are the likely cause"),
    row(88, "parity: labels in the table and in a file",
        "parity learn bits.csv --labels labels.npy --epsilon 1", 0,
        "bits.csv ends in a column that is named like a label, and is taken for a feature"),
    row(89, "a budget overspent", "parity learn bits.npz --epsilon 1 --budget half.budget", 3,
        "limit epsilon = 0.5 .*epsilon = 0.5 .* remain, but epsilon = 1.0 .* was requested"),
    row(90, "another epsilon for a budget", "budget full.budget --epsilon 2", 2,
        "epsilon = 2.0, but the budget in the file has 1.0"),
    row(91, "a budget of -1", "budget new.budget --epsilon -1", 2,
        "epsilon = -1.0, but it must be finite and above 0"),
    row(92, "transfer: too few agents", f"{TRANSFER} --alpha .1 {ROUNDS}", 3,
        "TARGET has 600 agents, but the plan needs 11,024", "fewer --rounds or --schedule final"),
    row(93, "transfer: no kappa", f"{TRANSFER} --alpha .1", 2,
        "--chi2, or --kappa and --rounds must be given: kappa .1, eta 1 and rounds 10 are a start"),
    row(94, "transfer: alpha .2", f"{TRANSFER} --alpha .2 {ROUNDS}", 2,
        r"alpha = 0.2 .* 3 alpha \+ opt = 0.6: it must be below .5"),
    row(94, "transfer: alpha .3", f"{TRANSFER} --alpha .3 {ROUNDS}", 2,
        r"alpha = 0.3 .* 3 alpha \+ opt = 0.9: it must be below .5"),
    row(95, "adapt without delta", f"{ADAPT} --epsilon 1", 2,
        "--delta must be given: it is the privacy of the private file"),
    row(96, "adapt: wrong labels in the public file",
        f"adapt unlike.csv priv.csv --schema schema.json {PRIVACY}", 2,
        "column 'income' of SOURCE makes no row a positive one"),
    row(97, "adapt: wrong labels in the private file",
        f"adapt priv.csv unlike.csv --schema schema.json --method descent --steps 5 {PRIVACY}", 0),
    row(98, "adapt: ten rows of TARGET, one release",
        "adapt priv.csv ten.csv --schema schema.json --seed 1 --epsilon .1 --delta 1e-6",
        0,
        "n = 10 target records, but at epsilon = 0.1"),
    row(98, "adapt: ten rows of TARGET",
        f"{ADAPT.replace('pub', 'ten')} --seed 1 --epsilon .1 --delta 1e-6",
        0,
        "alpha_ = .* is the share of the source"),
    row(99, "a value that is no number", f"{RANDOMIZE} abc", 2, "a value is no number"),
    row(99, "a value that is nan", f"{RANDOMIZE} nan", 2, "a value is no number, but all must be$"),
    row(99, "a line of many that is nan", f"{RANDOMIZE} --many", 2, "a value is no number",
        given="1\nnan\n"),
    row(100, "no value", RANDOMIZE, 2, "there is no value: give VALUE"),
    row(101, "a value out of range", f"{RANDOMIZE} 1e9", 0),
    row(102, "a mean without bounds", "local estimate priv.csv --column age --epsilon 1", 2,
        "the following arguments are required: --low, --high"),
    row(103, "lines of another question", f"{COLLECT} other.jsonl", 1,
        r"0 of 200 lines were accepted \(wrong_question 200\): --question must be the very file"),
    row(104, "lines that are none", f"{COLLECT} garbage.jsonl", 1,
        r"0 of 3 lines were accepted \(malformed 3\): .* that hdp-fast local randomize wrote"),
    row(105, "no lines", f"{COLLECT} empty.jsonl", 1, "0 lines were read"),
    row(106, "a question that is there",
        "local question mean pay --low 0 --high 9 --epsilon 2 --output question.json", 2,
        "got question.json, which is there: --force replaces it"),
]  # fmt: skip
