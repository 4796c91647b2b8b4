"""A made-up panel, and the town around it, as tables of text."""

import json

import numpy as np

SCHEMA = {
    "format": "hdp_fast.schema",
    "version": 1,
    "label": {"column": "bought", "positive": ["yes"]},
    "columns": {
        "age": {"kind": "number", "bounds": [18, 90]},
        "home": {"kind": "category", "values": ["own", "rent"]},
        "channel": {"kind": "category", "values": ["app", "phone", "shop"]},
        "visits": {"kind": "number", "bounds": [0, 30]},
    },
}


def write_tables(folder, panel=20_000, town=60_000, later=5_000):
    """Writes panel.csv, town.csv, later.csv without labels, and schema.json.

    The panel was found by an app, which only half of the town has. In the town fewer buy, at the
    same age and with the same visits.
    """
    for seed, (name, n) in enumerate((("panel", panel), ("town", town), ("later", later))):
        rng, in_panel = np.random.default_rng(seed), name == "panel"
        age = np.clip(rng.normal(40 if in_panel else 50, 14, n), 18, 90).round().astype(int)
        home = rng.choice(["own", "rent"], n, p=[0.4, 0.6] if in_panel else [0.6, 0.4])
        town = rng.choice(["app", "phone", "shop"], n, p=[0.5, 0.2, 0.3])
        channel = np.full(n, "app") if in_panel else town
        visits = np.clip(rng.poisson(9 if in_panel else 7, n), 0, 30)
        odds = 0.07 * (age - 45) + 1.5 * (home == "own") + 0.3 * (visits - 8)
        odds += 0.5 if in_panel else -1.0
        bought = np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), "yes", "no")
        columns = {"age": age, "home": home, "channel": channel, "visits": visits}
        if name != "later":
            columns["bought"] = bought
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    (folder / "schema.json").write_text(json.dumps(SCHEMA))
    return np.where(bought == "yes", 1, 0)
