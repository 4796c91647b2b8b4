"""An instance of each class with rules of fields, by the name of the class."""

from hdp_fast import learners

EXAMPLES = {
    "SufficientStatistics": lambda: learners.SufficientStatistics(
        learners.FeatureMap.identity(2), classes=[0, 1]
    ),
}
