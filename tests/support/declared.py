"""Estimators for scikit-learn's own checks, which take what is public from the checks' labels."""

import numpy as np


class Declared:
    """Takes what the estimator must be told in public from the labels, for the test alone."""

    def fit(self, X, y, **passed):
        public = self.declare(X, np.asarray(y))
        kept = {name: getattr(self, name) for name in public}
        try:
            return super(Declared, self.set_params(**public)).fit(X, y, **passed)
        finally:
            self.set_params(**kept)

    def __sklearn_tags__(self):
        """A good score is impossible: noise at epsilon 1 hides what some dozen records tell."""
        tags = super().__sklearn_tags__()
        for part in (tags.classifier_tags, tags.regressor_tags):
            if part is not None:
                part.poor_score = True
        return tags


class DeclaredClasses(Declared):
    def declare(self, X, y):
        plain = y.ndim and y.dtype.kind in "iubOUf" and len(np.unique(y.astype(str))) < 9
        return {"classes": np.unique(y) if plain else [0, 1]}


class DeclaredTargets(Declared):
    def declare(self, X, y):
        return {"target_bounds": (-500.0, 500.0)}
