"""Helpers that the packages here share; none of them is public."""
