"""The local model: people who each answer one randomized question, once.

Agents, RemoteAgents and MaskedParityAgents are pools of people, each of whom is asked once.
randomized_response and the randomizers turn a person's value into a report, and an Aggregate
estimates a mean or frequencies from the reports. learn_by_votes and learn_by_descent learn from
agents alone. A Query is a statistical query that JSON can carry, to simulated and to real agents,
and true_answers answers it on a device. A Stage is questions that go out together, one of which is
a person's. simulate_sq and LocalSQOracle run algorithms of statistical queries on agents;
simulate_local and SimulatedEntry run local randomizers on an oracle of statistical queries.
learn_masked_parity learns the class of concepts for which a second round of questions pays.
"""

from .._support.lazy import list_only
from .agents import Agents
from .descent import learn_by_descent
from .estimation import agents_needed, estimate_mean, largest_distortion, randomized_response
from .masked_parity.concepts import (
    MaskedParity,
    WeakMaskedParity,
    masked_parity_domain,
    uniform_examples,
)
from .masked_parity.learning import (
    MaskedParityNeeds,
    MaskedParityResult,
    learn_masked_parity,
    learn_masked_parity_weakly,
    masked_parity_agents,
)
from .masked_parity.oracles import EvasiveOracle, MaskedParityAgents
from .queries.curator import CuratorOracle, records_needed
from .queries.from_agents import LocalSQOracle, SQSimulationResult, agents_per_query, simulate_sq
from .queries.local_protocol import (
    SimulationPlan,
    SimulationResult,
    TransparentRandomizer,
    plan_simulation,
    simulate_local,
)
from .queries.oracles import EmpiricalOracle, ExactOracle, RealValued, SQOracle
from .queries.query import Query, true_answers
from .queries.simulated_entry import SimulatedEntry
from .randomizers.aggregates import Aggregate, Estimate
from .randomizers.base import Randomizer, randomizer_of
from .randomizers.bounded import BinaryResponse, Piecewise, best_randomizer
from .randomizers.designs import ProjectiveGeometryResponse, SubsetSelection, best_frequency
from .randomizers.frequency import FrequencyAggregate, KaryResponse
from .randomizers.mean import MeanAggregate
from .randomizers.noisy import GaussianRandomizer, LaplaceRandomizer, PaperAgents
from .remote_agents import RemoteAgents
from .stages import Answered, Stage, draw_reports
from .voting import VotingResult, learn_by_votes, votes_needed

__all__ = [
    "Agents",
    "Aggregate",
    "Answered",
    "BinaryResponse",
    "CuratorOracle",
    "EmpiricalOracle",
    "Estimate",
    "EvasiveOracle",
    "ExactOracle",
    "FrequencyAggregate",
    "GaussianRandomizer",
    "KaryResponse",
    "LaplaceRandomizer",
    "LocalSQOracle",
    "MaskedParity",
    "MaskedParityAgents",
    "MaskedParityNeeds",
    "MaskedParityResult",
    "MeanAggregate",
    "PaperAgents",
    "Piecewise",
    "ProjectiveGeometryResponse",
    "Query",
    "Randomizer",
    "RealValued",
    "RemoteAgents",
    "SQOracle",
    "SQSimulationResult",
    "SimulatedEntry",
    "SimulationPlan",
    "SimulationResult",
    "Stage",
    "SubsetSelection",
    "TransparentRandomizer",
    "VotingResult",
    "WeakMaskedParity",
    "agents_needed",
    "agents_per_query",
    "best_frequency",
    "best_randomizer",
    "draw_reports",
    "estimate_mean",
    "largest_distortion",
    "learn_by_descent",
    "learn_by_votes",
    "learn_masked_parity",
    "learn_masked_parity_weakly",
    "masked_parity_agents",
    "masked_parity_domain",
    "plan_simulation",
    "randomized_response",
    "randomizer_of",
    "records_needed",
    "simulate_local",
    "simulate_sq",
    "true_answers",
    "uniform_examples",
    "votes_needed",
]

__dir__ = list_only(__all__)
