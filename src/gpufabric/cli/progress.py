"""What is being done, on standard error while a person watches."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.text import Text

from gpufabric.report.side_by_side import terminal

__all__ = ["Progress"]


class Progress:
    """One line on standard error that says what is being done; silent where no person looks."""

    def __init__(self) -> None:
        console = terminal(is_error=True)
        self._status = console.status("") if console.is_terminal else None

    def __enter__(self) -> Self:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._status is not None:
            self._status.stop()

    def tell(self, what: str) -> None:
        """Show what is being done now."""
        if self._status is not None:
            self._status.update(Text(what))
