"""The rules that keep the tree readable: layers, `unsafe`, imports, sections of docstrings."""

import ast
import importlib
import inspect
import pkgutil
import re
import sys
from pathlib import Path

import pytest

import hdp_fast

ROOT = Path(__file__).parents[1]
CORE = ROOT / "rust" / "core" / "src"
GLUE = ROOT / "rust" / "py" / "src"
PACKAGE = ROOT / "python" / "hdp_fast"

# A module may import from its own line and from those above it.
LAYERS = [
    {"error", "params", "memory"},
    {"noise", "simd", "run", "pool"},
    {"gf2", "linear", "score", "sgd", "accounting", "weights"},
    {"parity", "local", "stability", "adaptation"},
]
RANK = {module: rank for rank, modules in enumerate(LAYERS) for module in modules}

# Modules of the Python package that the mechanisms must not know.
TOOLS = {"bench", "blocks", "cli", "demo", "files", "plotting", "reference", "schema", "tables"}
TOOLS |= {"_adapt_command", "_appended", "_estimators", "_label_command", "_logistic", "_output"}
TOOLS |= {"_scaled_features", "_table_commands"}
TOOLS |= {"_answers", "_collect_command", "_local_command", "_questions", "_reading", "_reports"}
SECTIONS = ("Raises:", "Cost:", "Source:")
GUARANTEED = {
    "adaptation.ConvexAdaptation",
    "adaptation.ConvexAdaptation.fit",
    "adaptation.NonConvexAdaptation",
    "adaptation.NonConvexAdaptation.fit",
    "adaptation.NonConvexAdaptation.predict",
    "adaptation.NonConvexAdaptation.scores",
    "adaptation.PrivateDiscrepancyMinimisation",
    "adaptation.PrivateDiscrepancyMinimisation.fit",
    "adaptation.TargetSGD",
    "adaptation.TargetSGD.fit",
    "accounting.basic_composition",
    "accounting.delta",
    "accounting.epsilon",
    "accounting.gaussian_delta",
    "accounting.gaussian_epsilon",
    "accounting.gaussian_mu",
    "accounting.largest_rate",
    "accounting.largest_rounds",
    "accounting.optimal_composition",
    "accounting.pure_epsilon",
    "accounting.renyi_divergence",
    "accounting.renyi_epsilon",
    "accounting.replace_one",
    "accounting.smallest_noise",
    "accounting.zcdp_epsilon",
    "accounting.zcdp_rho",
    "adaptation.release_discrepancy",
    "adaptation.selection_epsilon",
    "adaptation.tune",
    "audit.lower_bound",
    "budget.Budget",
    "budget.Budget.parallel",
    "budget.Parallel.part",
    "labels.PrivateLabeler",
    "labels.PrivateLabeler.fit",
    "labels.PrivateLabeler.label",
    "labels.PrivateLabeler.load",
    "labels.PrivateLabeler.plan",
    "labels.PrivateLabeler.save",
    "labels.PrivateLearner",
    "labels.PrivateLearner.fit",
    "labels.PrivateLearner.predict",
    "labels.plan_answers",
    "labels.plan_learning",
    "labels.SoftLabeler",
    "labels.SoftLabeler.fit",
    "labels.SoftLabeler.load",
    "labels.SoftLabeler.plan",
    "labels.SoftLabeler.save",
    "labels.SoftLabeler.score",
    "learners.DoublingLearner",
    "learners.DoublingLearner.learn",
    "learners.ExponentialLearner",
    "learners.ExponentialLearner.learn",
    "learners.ExponentialLearner.learn_indices",
    "learners.ExponentialLearner.paper_sample_size",
    "learners.ExponentialLearner.sample_size",
    "learners.PrivateSGD",
    "learners.PrivateSGD.calibrated",
    "learners.PrivateSGD.composition",
    "learners.PrivateSGD.guarantees",
    "learners.PrivateSGD.learn",
    "learners.PrivateSGD.learn_weighted",
    "learners.PrivateSGD.records_needed",
    "learners.vc_sample_size",
    "local.Agents",
    "local.Agents.ask",
    "local.Agents.ask_several",
    "local.Agents.test",
    "local.MaskedParityAgents",
    "local.MaskedParityAgents.ask",
    "local.MaskedParityAgents.test",
    "local.BinaryResponse",
    "local.CuratorOracle",
    "local.CuratorOracle.query",
    "local.FrequencyAggregate.frequencies",
    "local.FrequencyAggregate.interval",
    "local.Gaussian",
    "local.Gaussian.printed",
    "local.HadamardResponse",
    "local.KaryResponse",
    "local.Laplace",
    "local.LocalSQOracle",
    "local.LocalSQOracle.batch",
    "local.LocalSQOracle.query",
    "local.MeanAggregate.estimate",
    "local.Piecewise",
    "local.Randomizer.agents_needed",
    "local.Randomizer.sample",
    "local.RemoteAgents",
    "local.RemoteAgents.test",
    "local.SimulatedEntry",
    "local.SimulatedEntry.apply",
    "local.best_randomizer",
    "local.learn_by_descent",
    "local.learn_by_votes",
    "local.learn_masked_parity",
    "local.learn_masked_parity_weakly",
    "local.masked_parity_agents",
    "local.plan_simulation",
    "local.randomized_response",
    "local.records_needed",
    "local.simulate_local",
    "local.simulate_sq",
    "local.votes_needed",
    "noise.bernoulli",
    "noise.bernoulli_exp",
    "noise.discrete_gaussian",
    "noise.discrete_laplace",
    "noise.exponential_mechanism",
    "noise.geometric",
    "noise.permute_and_flip",
    "noise.poisson_mask",
    "noise.uniform_integers",
    "noise.weighted_draws",
    "parity.learn",
    "parity.transfer",
    "stability.AboveThreshold",
    "stability.AboveThreshold.answer",
    "stability.GaussianSession",
    "stability.GaussianSession.answer",
    "stability.GaussianVote",
    "stability.GaussianVote.design",
    "stability.GaussianVote.session",
    "stability.HazardTable",
    "stability.HazardTable.design",
    "stability.HazardTable.session",
    "stability.OnlineQueryRelease",
    "stability.OnlineQueryRelease.answer",
    "stability.Session",
    "stability.Session.answer",
    "stability.Session.answer_ones",
    "stability.Session.answer_scores",
    "stability.StableRelease",
    "stability.StableRelease.release",
    "stability.VoteTable",
    "stability.VoteTable.design",
    "stability.VoteTable.session",
    "stability.laplace_scale",
    "stability.plan",
    "transfer.SubsampleTestReweigh",
    "transfer.SubsampleTestReweigh.fit",
    "transfer.SubsampleTestReweigh.resume",
    "transfer.plan",
    "weights.DenseWeights",
    "weights.DenseWeights.draw",
}

pytestmark = pytest.mark.skipif(not CORE.is_dir(), reason="needs the source tree")


def code(path):
    """A Rust file without comments."""
    return re.sub(r"//.*", "", path.read_text())


@pytest.mark.parametrize("path", sorted(CORE.rglob("*.rs")), ids=lambda path: str(path.name))
def test_rust_imports_only_from_lower_layers(path):
    stem = path.relative_to(CORE).parts[0].removesuffix(".rs")
    if stem == "lib":
        return
    for imported in re.findall(r"\bcrate::\{?(\w+)", code(path)):
        assert RANK[imported] <= RANK[stem], f"{stem} must not import {imported}"


def test_every_core_module_has_a_layer():
    modules = {path.name.removesuffix(".rs") for path in CORE.iterdir()}
    assert modules - {"lib"} == set(RANK)


def test_unsafe_stands_only_under_simd():
    elsewhere = [path for path in (ROOT / "rust").rglob("*.rs") if path.parent != CORE / "simd"]
    assert elsewhere
    assert [path for path in elsewhere if re.search(r"\bunsafe\b", code(path))] == []


def test_core_knows_no_python_and_one_file_of_the_glue_knows_numpy():
    manifest = (ROOT / "rust" / "core" / "Cargo.toml").read_text()
    assert not re.search(r"\b(pyo3|numpy)\b", manifest)
    naming = [path.name for path in GLUE.glob("*.rs") if re.search(r"\bnumpy::", code(path))]
    assert naming == ["array.rs"]


def imports(path):
    """Names of this package's modules that a Python file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            yield from [node.module.split(".")[0]] if node.module else [a.name for a in node.names]
        elif isinstance(node, ast.Import):
            names = (alias.name.split(".") for alias in node.names)
            yield from (parts[1] for parts in names if parts[0] == "hdp_fast" and parts[1:])


def test_mechanisms_do_not_import_tools():
    for path in PACKAGE.glob("*.py"):
        if path.stem not in TOOLS | {"__main__"}:
            assert TOOLS.isdisjoint(imports(path)), path.name


def test_reference_imports_nothing_of_the_package():
    for path in (PACKAGE / "reference").glob("*.py"):
        names = {alias for alias in imports(path) if not (path.parent / f"{alias}.py").exists()}
        assert not names, path.name


def public_callables():
    modules = ["accounting", "adaptation", "audit", "budget", "gf2", "labels", "learners", "local"]
    modules += ["noise", "parity", "record", "schema", "stability", "tables", "transfer", "weights"]
    for module in modules:
        space = importlib.import_module(f"hdp_fast.{module}")
        for name in getattr(space, "__all__", ["PrivacyRecord"]):
            value = getattr(space, name)
            yield f"{module}.{name}", value
            if inspect.isclass(value):
                yield from methods(f"{module}.{name}", value)


def methods(prefix, kind):
    for name, value in vars(kind).items():
        plain = getattr(value, "__func__", value)
        if not name.startswith("_") and inspect.isroutine(plain):
            yield f"{prefix}.{name}", plain


PUBLIC = dict(public_callables())


@pytest.mark.parametrize(("name", "value"), PUBLIC.items(), ids=PUBLIC)
def test_public_docstrings_have_their_sections(name, value):
    text = inspect.getdoc(value) or ""
    assert text, f"{name} has no docstring"
    if inspect.isclass(value) and name not in GUARANTEED:
        assert "Attributes:" in text or name.startswith("gf2.")
        return
    wanted = [*SECTIONS, "Guarantee:"] if name in GUARANTEED else SECTIONS
    assert [section for section in wanted if section not in text] == [], name


def test_every_module_says_what_it_is_for():
    for module in pkgutil.walk_packages(hdp_fast.__path__, "hdp_fast."):
        if module.name not in {"hdp_fast._core", "hdp_fast.__main__"}:
            assert importlib.import_module(module.name).__doc__, module.name


def test_runtime_depends_on_numpy_alone():
    allowed = {"numpy", "hdp_fast", *sys.stdlib_module_names}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Import):
                assert {alias.name.split(".")[0] for alias in node.names} <= allowed, path.name
            elif isinstance(node, ast.ImportFrom) and not node.level:
                assert node.module.split(".")[0] in allowed, path.name
