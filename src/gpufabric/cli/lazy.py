"""The list of commands; the module of each is imported only when it is run or asked for help."""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple, cast

import typer
from typer.core import TyperCommand, TyperGroup

from gpufabric.core.errors import nearest
from gpufabric.core.text import _

__all__ = ["Entry", "LazyGroup", "entries"]


class Entry(NamedTuple):
    """Where a command is defined, and its first line of help."""

    module: str
    attribute: str
    summary: str


def entries() -> dict[str, Entry]:
    """Return the commands by name, in the order in which help lists them."""
    return {
        "advise": Entry(
            "advise", "advise", _("Ask eight questions and write the spec that they make.")
        ),
        "plan": Entry(
            "plan",
            "plan",
            _("Design all candidates of a spec, compare them, advise, write everything."),
        ),
        "design": Entry("design", "design", _("Design candidates of a spec and print the counts.")),
        "show": Entry("show", "show", _("Show what a fabric file holds.")),
        "simulate": Entry("simulate", "app", _("What a fabric delivers.")),
        "tune": Entry("tune", "app", _("Settings found by simulation.")),
        "export": Entry("export", "export", _("Write a fabric in the format of another tool.")),
        "catalog": Entry("catalog", "app", _("Devices, their numbers and their sources.")),
        "schema": Entry(
            "schema",
            "schema",
            _("Print the JSON Schema of a spec, fabric, plan, profile, faults or a device."),
        ),
    }


def _group_help() -> str:
    return _(
        "The RDMA network of a GPU cluster, from a question to a running, watched service.\n\n"
        "Exit codes: 0 fine, 1 findings, 2 wrong use or bad input, 3 a fault of gpufabric's own."
    )


def _option_help() -> dict[str, str]:
    """Return the help of the options of all commands, in the language in use."""
    return {
        "version": _("Show the version."),
        "lang": _("Language of messages and reports."),
        "debug": _("On a fault of gpufabric's own, show the traceback."),
    }


class LazyGroup(TyperGroup):
    """A group whose commands are imported by name, and whose help speaks the language in use."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.help = self.words()
        self._name_options()

    def _name_options(self) -> None:
        words = _option_help()
        for option in self.params:
            cast("Any", option).help = words.get(option.name or "", "")

    def entries(self) -> dict[str, Entry]:
        """Return the commands by name, in the order in which help lists them."""
        return entries()

    def words(self) -> str:
        """Return the help of the group."""
        return _group_help()

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - typer asks so
        """Return the names of all commands."""
        return list(self.entries())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command `cmd_name`, importing its module; fail where there is none."""
        entry = self.entries().get(cmd_name)
        if entry is None:
            what = _('there is no command "{name}". {remedy}').format(
                name=cmd_name, remedy=nearest(cmd_name, list(self.entries()))
            )
            ctx.fail(what.strip())
        assert entry is not None, "fail does not come back"
        self.commands[cmd_name] = _loaded(cmd_name, entry)
        return self.commands[cmd_name]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help of the group without importing any command."""
        self._name_options()
        listing = TyperGroup(
            name=self.name,
            commands={
                name: TyperCommand(name, help=entry.summary)
                for name, entry in self.entries().items()
            },
            params=self.params,
            help=self.words(),
            rich_markup_mode=self.rich_markup_mode,
        )
        listing.format_help(ctx, formatter)


def _loaded(name: str, entry: Entry) -> Any:
    found = getattr(importlib.import_module(f"gpufabric.cli.{entry.module}"), entry.attribute)
    if isinstance(found, typer.Typer):
        found.rich_markup_mode = None
        command: Any = typer.main.get_group(found)
    else:
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(name)(found)
        command = typer.main.get_command(single)
    command.name = name
    return command
