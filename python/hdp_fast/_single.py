"""Objects of which there is one: a copy could ask again what may be asked once."""

from __future__ import annotations

from typing import ClassVar, NoReturn, Self


class Single:
    """A copy is the very same object, and pickling raises."""

    _copied: ClassVar[str]

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} can't be pickled: a copy could {self._copied}")
