"""Questions and reports as files: the local model between machines.

A collector writes a Question. Each device reads it, randomizes its value and writes a line with its
report, which answer_once keeps, so that no one gets a second answer. The collector reads the lines
into a Collection, which estimates the mean or the frequencies; ExportedLines finds them in the
tables that survey tools export. A ReportFolder asks the people
behind local.RemoteAgents with such files.

A Study asks people who open a link: serve_survey hands out its questions and takes the answers, and
a SurveyServer asks them for local.RemoteAgents.
"""

from .._support.lazy import list_only
from .device import answer_once
from .endpoints import openapi
from .exports import ExportedLines
from .folder import ReportFolder
from .forms import form_of
from .questions import (
    Question,
    frequency_question,
    hypothesis_question,
    mean_question,
    read_question,
)
from .reports import Collection, hypothesis_line, read_collection, report_lines
from .server import survey_app
from .serving import serve_survey
from .store import PublishedStage
from .study import Study
from .survey_server import SurveyServer

__all__ = [
    "Collection",
    "ExportedLines",
    "PublishedStage",
    "Question",
    "ReportFolder",
    "Study",
    "SurveyServer",
    "answer_once",
    "form_of",
    "frequency_question",
    "hypothesis_line",
    "hypothesis_question",
    "mean_question",
    "openapi",
    "read_collection",
    "read_question",
    "report_lines",
    "serve_survey",
    "survey_app",
]

__dir__ = list_only(__all__)
