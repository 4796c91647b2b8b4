"""The way from RemoteAgents to people: a study, whose server hands out stages, takes answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

from .._support import progress
from .._support.validate import instance, positive
from ..exceptions import NeverAsked
from .store import PublishedStage
from .study import Study

# Pairs of an id and a report.
Replies = list[tuple[str, int]]


class SurveyServer:
    """Reaches real agents through a study, for `local.RemoteAgents(server.ask, ...)`.

    Each question, or stage of them, is signed and written to the study; `hdp-fast survey serve`
    hands it out, in this process or in another one, and takes the answers. The wait ends when
    everybody has answered, or at the deadline, which counts from the publication: a new process
    waits only for what is left of it. Then the stage is closed, and whoever comes later is told so.
    All that was confirmed to anybody by then counts.

    The answers come at once, in the order of their random ids, so that nobody's state tells when
    each of them came. `RemoteAgents` should therefore have no `deadline` of their own: what is
    interrupted before has no answers yet.

    A study belongs to one `RemoteAgents`, and to its `state`, which may be `study.path /
    "agents.db"`. A stage that a state has begun goes out once, whatever dies when; one that never
    went out goes to the same people.

    Args:
        study: The study.
        deadline: Seconds, counted from the publication of a stage, after which it is closed, above
            0.
        poll: Seconds between two looks at the study, above 0.

    Raises:
        ParameterError: An argument breaks its rule.

    Guarantee:
        Each report is pure epsilon-DP for its person, with the epsilon of the study, if the device
        randomizes it. Nobody is asked twice. Whether and when a device answers is visible.

    Examples:
        >>> from hdp_fast import collection, local
        >>> study = collection.Study.create(
        ...     "study", asker="City of Example", epsilon=1.0, people=300, url="https://example.org"
        ... )
        >>> server = collection.SurveyServer(study, deadline=0.05)
        >>> way = {"collect": server.collect, "state": study.path / "agents.db"}
        >>> agents = local.RemoteAgents(
        ...     server.ask, epsilon=1.0, count=300, response_rate=0.001, **way
        ... )
        >>> agents.ask(local.Query.label(), 100).size  # nobody serves the study: nobody answers
        0
        >>> study.counts(), study.stages()[0].closed
        ({'invited': 100, 'answered': 0}, True)
    """

    def __init__(self, study: Study, *, deadline: float, poll: float = 1.0):
        self._study = instance("study", study, Study, "a Study")
        self._deadline, self._poll = positive("deadline", deadline), positive("poll", poll)

    async def ask(
        self, hypothesis: str, count: int, *, number: int | None = None
    ) -> AsyncIterator[Replies]:
        """Publishes a question or a stage, and yields the answers when it is closed.

        Args:
            hypothesis: The hypothesis, the query or the stage as JSON.
            count: Number of people to invite.
            number: Number of the question, which RemoteAgents pass.

        Yields:
            For each answer a random id and the report.

        Raises:
            ParameterError: The stage cannot be published: the study has one of this number, its
                people were invited before, or there are not so many. No one is invited.
        """
        stage = self._study.publish(hypothesis, count, number=number)
        text = "stage %s: published for %s people, closes in %g s"
        progress.log_stage(text, stage.number, stage.count, self._deadline)
        yield await self._wait(stage, self._deadline)

    async def collect(
        self, hypothesis: str, count: int, *, number: int | None = None
    ) -> AsyncIterator[Replies]:
        """Yields the answers to what was published before, when it is closed. No one is invited.

        It is what RemoteAgents call about a question that was interrupted.

        Args:
            hypothesis: The hypothesis, the query or the stage as JSON.
            count: Not used, because the people are those who were invited.
            number: Number of the question, which RemoteAgents pass. None takes the last one that
                asks this.

        Yields:
            For each answer a random id and the report. Nothing, if no one was invited, and no
            number is passed.

        Raises:
            NeverAsked: The study has no stage of this number.
        """
        try:
            stage = self._study.find(hypothesis, number=number)
        except NeverAsked:
            if number is not None:
                raise
            return
        # A clock that was set back must not make the wait longer than it was meant to be.
        age = max(0.0, time.time() - stage.published)
        yield await self._wait(stage, max(0.0, self._deadline - age))

    async def _wait(self, stage: PublishedStage, seconds: float) -> Replies:
        """The answers to a stage, by the clock of this process, which no one can set."""
        end = time.monotonic() + seconds
        if not stage.closed:
            with progress.bar(stage.count, "answers", progress.can_show()) as bar:
                shown = 0
                while (left := end - time.monotonic()) > 0:
                    answered = self._study.counts(stage.number)["answered"]
                    bar.set_description(f"stage {stage.number}, {progress.say_time(left)} left")
                    bar.update(answered - shown)
                    shown = answered
                    if answered >= stage.count:
                        break
                    await asyncio.sleep(min(self._poll, left))
            self._study.close(stage.number)
        answers = self._study.answers(stage.number)
        text = "stage %s: closed, %s of %s have answered"
        progress.log_stage(text, stage.number, len(answers), stage.count)
        return answers
