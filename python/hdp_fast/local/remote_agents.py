"""Real agents, reached through a function of the caller."""

from __future__ import annotations

import dataclasses
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np

from .._support.notes import keep_result, note, note_charge, require_allowed
from .._support.random_state import check_random_state
from .._support.types import Bits, RandomState
from .._support.validate import nonnegative_int, positive, probability_or_one, refuse
from ..exceptions import NeverAsked
from ..record import PrivacyRecord
from .estimation import record_of
from .inquiries import Inquiries, Inquiry
from .pool import AgentPool, Hypothesis, falls_short, no_answers, read_pairs
from .queries.query import Query
from .stages import Answered, outline, write
from .transports import receive

# What reaches people: called with a question and a number of them, and maybe with the number of
# the question, it returns replies in some form.
Transport = Callable[..., Any]


class RemoteAgents(AgentPool):
    """Real local agents, reached through a function; each is asked once, ever.

    No record ever reaches this object: it sends a question out and receives randomized bits. Of
    those asked, some may never answer, answer late, twice, or with garbage. The answers that arrive
    are used, everything else is dropped and counted, and no one is asked again in place of those
    who are missing. A copy of the object is the very same object, pickling raises, and so does a
    test in a forked child.

    The function `ask` may return its replies

    - as one batch: an array, a sequence, or a dict from ids to bits,
    - as an iterable without a length, such as a generator, that yields batches,
    - as a coroutine that returns either of these,
    - as an asynchronous iterator of batches.

    A reply is a report, or a pair (id, report): a bit, 0 or 1, about one question, and the integer
    `2 j + bit` about a Stage, whose question j was the agent's. An id is a text of at most 200
    characters that the agent's device draws at random. Replies with an id that came before are
    duplicates. Without ids, no one can see that a reply came twice. Whatever is no such reply is
    dropped, and so is every further one after all who were asked have answered. A coroutine runs in
    an event loop of its own.

    Args:
        ask: Called with a hypothesis, a query or a Stage as JSON and a number k >= 1. It asks k
            agents whom it has never asked before for the answer to the query, or whether the
            hypothesis is wrong about them, and returns the answers that it gets, each already
            randomized by the agent; those of a stage are the agents whose numbers it names. On an
            agent's side, true_answers computes the answer from the JSON, and randomized_response
            randomizes it; draw_reports does both, also for a stage. An answer that comes too late
            must not be returned as one to a later question. If it takes the keyword-only argument
            `number`, it is told the number of the question in the `state`, or None where there is
            no such file: by their numbers two questions of one text can be told apart, also by a
            new process.
        epsilon: Privacy parameter of the agents' randomizers, a finite number above 0.
        count: Number of agents, at least 0.
        collect: Called like `ask` about a question that was asked before and was interrupted, but
            not where others were asked after it: that one had ended. It returns what has arrived
            for it, in any of these forms, and asks no one. Replies with ids may come again. If it
            knows that the question never went out, it may raise NeverAsked; `ask` is then called
            for the same agents. None: only what was received before the interruption counts.
        deadline: Seconds after which no further answer to a question is awaited, above 0; None
            awaits the end of what `ask` returns. A coroutine is cancelled then. A function that
            blocks cannot be interrupted, but no further batch is asked of it.
        response_rate: Public share of those asked who will answer, in (0, 1]. Plans ask more agents
            accordingly.
        state: Path of a file, made with mode 0600 where it is missing, that holds who was asked and
            what was answered. Each question is on the disk before it goes out, and each batch
            before it is used: the same call after a crash goes on where it ended. One process at a
            time should use it. Never restore an older copy, with which people would be asked again.
            None keeps everything in memory.

    Raises:
        ParameterError: An argument is out of range or not callable, epsilon is so small that
            answers would be nothing but noise, or `state` has more agents who were asked than
            `count`.
        CheckpointError: `state` cannot be used, is damaged, or belongs to agents of another
            epsilon.

    Guarantee:
        Pure epsilon-DP for each agent, if the agents randomize their answers on their own devices
        by binary randomized response with this epsilon. This side cannot check whether they do.
        Whether and when an agent answers is visible and is not randomized: it must not depend on
        the record. A device that fails on its record should still send a randomized bit.

        Estimates from the answers assume that answers are missing at random: given the question,
        whether an agent answers is independent of its true answer. If it is not, they describe
        those who answer, and no interval shows the difference.

    Source:
        Warner 1965; Kohen and Sheffet 2022, Section 2.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import learners, local
        >>> def ask(text, k):  # in place of k phones, each with record (1, 0), 1
        ...     return local.draw_reports(text, [[1, 0]] * k, [1] * k, epsilon=1.0)[: k * 7 // 10]
        >>> agents = local.RemoteAgents(ask, epsilon=1.0, count=10_000, response_rate=0.7)
        >>> result = local.learn_by_votes(learners.Stumps(2), agents)
        >>> result.agents, 6_900 < agents.counts()["answered"] <= 7_000, agents.remaining
        (10000, True, 0)
    """

    def __init__(
        self,
        ask: Transport,
        *,
        epsilon: float,
        count: int,
        collect: Transport | None = None,
        deadline: float | None = None,
        response_rate: float = 1.0,
        state: str | os.PathLike[str] | None = None,
    ):
        if not callable(ask):
            refuse("ask", ask, "it must be callable")
        if collect is not None and not callable(collect):
            refuse("collect", collect, "it must be callable or None")
        super().__init__(nonnegative_int("count", count), epsilon)
        self._ask = _with_number(ask)
        self._collect = None if collect is None else _with_number(collect)
        # Agents of questions that were interrupted, and to which no answer has come.
        self._lost = 0
        self._deadline = None if deadline is None else positive("deadline", deadline)
        self._response_rate = probability_or_one("response_rate", response_rate)
        self._inquiries, self._has_state = Inquiries(state, self._epsilon), state is not None
        self._asked = self._inquiries.asked
        if self._asked > self._size:
            refuse("count", count, f"{self._asked:,} agents have been asked by the state")

    @property
    def response_rate(self) -> float:
        """The public share of those asked who are expected to answer."""
        return self._response_rate

    def counts(self) -> dict[str, int]:
        """Counts the agents who were asked and the replies; all of it is public.

        Returns:
            A dict with the keys "asked" (agents passed over included), "answered" (answers that
            count), "dropped" (replies that were no answer, or came after all had answered) and
            "duplicates" (replies whose id came before).
        """
        replies = self._inquiries
        return {
            "asked": self._asked,
            "answered": replies.answered,
            "dropped": replies.dropped,
            "duplicates": replies.duplicates,
        }

    @keep_result
    def ask(self, question: Query, count: int, *, random_state: RandomState = None) -> Bits:
        """Asks the next agents a query whose answer lies in [0, 1].

        The function `ask` of the pool gets the JSON of the query, which local.true_answers answers
        on an agent's side. A query that was interrupted is taken up by the same query, as a test
        is.

        Args:
            question: A Query, all models of which have a description.
            count: Number of agents to ask, at least 0. For 0, no one is called.
            random_state: Not used, because the agents draw their own random bits.

        Returns:
            The answers that arrived, in the order of their arrival, uint8 of shape (m,), m at most
            `count`. It is empty if no one has answered.

        Raises:
            AgentsExhausted: Fewer than `count` agents are left. No one is asked.
            ParameterError: The question is not a Query that JSON can carry, count or random_state
                is out of range, or the process is a forked child: then no one is asked.
            CheckpointError: The state cannot be written. If that is so before the question goes
                out, no one is asked.
            Exception: What the function `ask` itself raises. These agents stay spent, and what has
                arrived is kept.

        Guarantee:
            Pure epsilon-DP for each agent, if the agents use binary randomized response with this
            epsilon, and whether they answer does not depend on their records.

        Cost:
            The cost of the function `ask`. With a `state`, some milliseconds for each batch.

        Source:
            Warner 1965.
        """
        check_random_state(random_state)
        if not isinstance(question, Query):
            refuse("question", question, "it must be a local.Query, to be sent as JSON")
        return self._send(question.to_json(), nonnegative_int("count", count))

    @keep_result
    def ask_together(
        self, questions: Sequence[tuple[Any, int]], *, random_state: RandomState = None
    ) -> list[Answered]:
        """Asks the next agents several questions in one round, one of them each.

        The function `ask` of the pool gets a Stage, whose rule tells which question is whose by the
        agents' numbers: how many get one is near its `count`, and their sum is that of the counts.
        A stage that was interrupted is taken up by the same questions and numbers, as a test is.

        Args:
            questions: Pairs of what `ask` or `test` takes, and about how many agents it goes to.
            random_state: Not used, because the agents draw their own random bits.

        Returns:
            For each question how many agents had it, and the answers that arrived.

        Raises:
            AgentsExhausted: Fewer agents are left than the sum of the counts. No one is asked.
            ParameterError: The questions are no such pairs, JSON cannot carry one, or the process
                is a forked child: then no one is asked.
            CheckpointError: The state cannot be written. If that is so before the stage goes out,
                no one is asked.
            Exception: What the function `ask` itself raises. These agents stay spent, and what has
                arrived is kept.

        Guarantee:
            Pure epsilon-DP for each agent, if the agents use binary randomized response with this
            epsilon, and whether they answer does not depend on their records.

        Cost:
            The cost of the function `ask`: one round, however many questions there are.

        Source:
            Warner 1965.
        """
        check_random_state(random_state)
        return self._answer_script(questions, self._ask_stage)

    def _ask_stage(self, questions: list[tuple[Any, int]]) -> list[Answered]:
        asked = _describe_asked(questions)
        total = sum(count for _, count in asked)
        inquiry = self._settle(outline(asked), total) if asked else None
        if inquiry is None:
            return [Answered(0, no_answers()) for _ in questions]
        answers = iter(inquiry.stage(self._inquiries.key).split(inquiry.answers()))
        return [next(answers) if count else Answered(0, no_answers()) for _, count in questions]

    @keep_result
    def test(self, learned: Hypothesis, count: int, *, random_state: RandomState = None) -> Bits:
        """Asks the next agents whether a hypothesis is wrong about them.

        A test that was interrupted, by an error, Ctrl-C or the end of the process, is taken up by
        the same test: its answers are returned and no one is asked again; see `recall`. New agents
        are asked if not a single answer to it has arrived, unless others were asked something after
        it; where the first ones are missing then, later questions go to those who are left. With a
        `state`, a new process takes up the last test also if its answers had just been returned,
        since they may be lost.

        A UtilityWarning says when clearly fewer have answered than the response rate promises.

        Args:
            learned: A hypothesis with an attribute `hypothesis`, a dict that JSON can carry, for
                example a learners.ExponentialResult.
            count: Number of agents to ask, at least 0. For 0, the function `ask` is not called.
            random_state: Not used, because the agents draw their own random bits.

        Returns:
            The answers that arrived, in the order of their arrival, uint8 of shape (m,), m at most
            `count`, in which 1 stands for an error. It is empty if no one has answered.

        Raises:
            AgentsExhausted: Fewer than `count` agents are left. No one is asked.
            ParameterError: The hypothesis cannot be written as JSON, count or random_state is out
                of range, or the process is a forked child: then no one is asked.
            CheckpointError: The state cannot be written. If that is so before the question goes
                out, no one is asked.
            Exception: What `ask` itself raises. These agents stay spent, and what has arrived is
                kept.

        Guarantee:
            Pure epsilon-DP for each agent, if the agents use binary randomized response with this
            epsilon, and whether they answer does not depend on their records.

        Cost:
            The cost of `ask`. With a `state`, some milliseconds for each batch.

        Source:
            Kohen and Sheffet 2022, Algorithm 2.
        """
        check_random_state(random_state)
        return self._send(_to_json(learned), nonnegative_int("count", count))

    @keep_result
    def recall(self, learned: Hypothesis, count: int) -> Bits:
        """Returns what has arrived of answers that an interrupted question was waiting for.

        No one is asked. The function `collect`, if there is one, is called for further answers.

        Args:
            learned: The hypothesis of that test, or the Query that was asked.
            count: The number of agents of that question.

        Returns:
            The randomized answers, uint8 of shape (m,) with m at most count; empty if no such test
            was interrupted, or nothing has arrived.

        Raises:
            ParameterError: The hypothesis cannot be written as JSON, or the process is a forked
                child.
            CheckpointError: The state cannot be written.
            Exception: What `collect` itself raises; `recall` can be called again.

        Guarantee:
            The answers have been paid for by the test, and cost no one anything again.
        """
        text, wanted = _to_json(learned), nonnegative_int("count", count)
        try:
            inquiry = self._reopen(text, wanted)
            if inquiry is None:
                return no_answers()
            self._receive(inquiry, self._collect)
            return inquiry.answers().astype(np.uint8)
        except NeverAsked:
            return no_answers()

    @property
    def available(self) -> int:
        """Those who have not been asked, and those of questions that were interrupted."""
        script = self._script
        if script is not None and script.left is not None:
            return script.left.available
        return self.remaining + self._inquiries.open_agents

    def require(self, questions: Sequence[tuple[Any, int]]) -> None:
        """Refuses questions to more agents than are left, before anybody is asked one of them.

        Those that were interrupted, one by one or as this stage, need no new agents.

        Args:
            questions: Pairs of what `ask` or `test` takes, and a number of agents.

        Raises:
            AgentsExhausted: Fewer agents are left.
            ParameterError: questions is no sequence of such pairs, or JSON cannot carry one.
        """
        asked = _describe_asked(read_pairs(questions))
        stage = outline(asked), sum(count for _, count in asked)
        alone = [(write(query), count) for query, count in asked]
        self._require_left(min(map(self._inquiries.count_new, (alone, [stage]))))

    def keep_answers(self) -> AbstractContextManager[None]:
        """Keeps the answers to several questions until they are used together.

        A question counts as ended as soon as the next one goes out, and its answers are used then.
        In the block of this context manager questions stay open until all have been answered: after
        an error, or with a `state` after the end of the process, the same questions with the same
        numbers of agents take up the answers to those that were asked before, and ask only the
        rest.

        Returns:
            A context manager, in whose block the questions are asked.

        Examples:
            >>> from hdp_fast import local
            >>> way = lambda text, k: local.randomized_response([1] * k, epsilon=1.0)
            >>> agents = local.RemoteAgents(way, epsilon=1.0, count=100)
            >>> query = local.Query.label()
            >>> with agents.keep_answers():
            ...     sizes = [agents.ask(query, 30).size, agents.ask(query, 40).size]
            >>> sizes, agents.remaining
            ([30, 40], 30)
        """
        return self._inquiries.keep_all()

    def record(self, random_state: RandomState = None) -> PrivacyRecord:
        """States what protects each agent's answer, if the agents randomize as they should.

        Args:
            random_state: Not used, because the agents draw their own random bits.

        Returns:
            A PrivacyRecord whose rng is "the agents' own".
        """
        record = record_of("local.RemoteAgents", self._epsilon, None)
        return dataclasses.replace(record, rng="the agents' own")

    def _send(self, text: str, count: int) -> Bits:
        """The bits that answer an open question of this text and number, or else a new one."""
        inquiry = self._settle(text, count)
        return no_answers() if inquiry is None else inquiry.answers().astype(np.uint8)

    def _settle(self, text: str, count: int) -> Inquiry | None:
        """An open question of this text and number with its answers, or else a new one."""
        self._refuse_round()
        is_past = False
        while (inquiry := self._reopen(text, count)) is not None:
            collect = None if inquiry.is_past else self._collect
            self._receive(inquiry, collect, self._ask)
            if len(inquiry):
                return inquiry
            self._lost += inquiry.count
            is_past |= inquiry.is_past
        if is_past:
            # An earlier process went on although no one had answered.
            return None
        with self._hold():
            # No one else can be asked in place of those who were lost.
            missing = min(max(count - self.remaining, 0), self._lost)
            self._lost -= missing
            if count == missing:
                return None
            inquiry = self._begin(text, count - missing)
        self._receive(inquiry, self._ask)
        return inquiry

    def _reserve(self, count: int) -> int:
        start = self._asked
        with self._hold():
            self._begin("", nonnegative_int("count", count))
        return start

    def _begin(self, text: str, count: int) -> Inquiry:
        self._refuse_round()
        require_allowed()
        inquiry = self._inquiries.begin(text, count, self._size)
        self._asked = self._inquiries.asked
        if count:
            note_charge()
        return inquiry

    def _reopen(self, text: str, count: int) -> Inquiry | None:
        with self._hold():
            return self._inquiries.reopen(text, count)

    def _receive(
        self, inquiry: Inquiry, transport: Transport | None, ask: Transport | None = None
    ) -> None:
        """Adds to a question all answers that a transport brings.

        If it knows that no one was asked, `ask` asks these agents; without it the error goes on.
        """

        def take(replies: Any) -> bool:
            with self._hold():
                self._inquiries.add(inquiry, replies)
            return inquiry.room > 0

        def call(transport: Transport) -> None:
            number = inquiry.number if self._has_state else None
            text = inquiry.write(self._inquiries.key)
            way = partial(transport, text, inquiry.count, number=number)
            receive(way, self._deadline, take)

        if inquiry.count:
            # Its agents are spent already, also where an earlier process has spent them.
            note_charge()
        is_new = transport is self._ask
        with self._inquiries.keep(inquiry):
            if transport is not None and inquiry.room:
                try:
                    call(transport)
                except NeverAsked:
                    # Answers that came before say otherwise: this is not where they came from.
                    if not len(inquiry):
                        if ask is None or is_new:
                            raise
                        is_new = True
                        call(ask)
        if len(inquiry) or is_new:
            self._note_missing(inquiry)

    def _note_missing(self, inquiry: Inquiry) -> None:
        answers, rate = len(inquiry), self._response_rate
        if falls_short(answers, inquiry.count, rate):
            came = f"{answers:,} of {inquiry.count:,} agents have answered"
            rule = f"fewer than response_rate = {rate:g} promises: intervals are wider for it"
            note(f"{came}, {rule}; plan with a smaller rate")

    def __repr__(self) -> str:
        return self._describe("")


def _with_number(transport: Transport) -> Transport:
    """A function that is told the number of a question, whether the transport takes it or not."""
    try:
        parameter = inspect.signature(transport).parameters.get("number")
    except (TypeError, ValueError):
        # Some functions of compiled code have no signature.
        parameter = None
    if parameter is not None and parameter.kind is inspect.Parameter.KEYWORD_ONLY:
        return transport
    return lambda text, count, *, number: transport(text, count)


def _describe(question: Any) -> Mapping[str, Any]:
    """What devices are sent of a query or a hypothesis."""
    if isinstance(question, Query):
        question.to_json()  # refuses a model without a description
    description = getattr(question, "hypothesis", None)
    if not isinstance(description, Mapping):
        refuse("learned", question, "it must have an attribute hypothesis, a description for JSON")
    return description


def _describe_asked(
    questions: Sequence[tuple[Any, int]],
) -> list[tuple[Mapping[str, Any], int]]:
    """What devices are sent of those that somebody is asked; all of them must be described."""
    described = [(_describe(question), count) for question, count in questions]
    return [pair for pair in described if pair[1]]


def _to_json(learned: Any) -> str:
    return write(_describe(learned))
