"""The commands put together, and how they end."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from streamlake import StreamlakeError, __version__
from streamlake.cli import terminal
from streamlake.cli.append import append
from streamlake.cli.bridge import bridge
from streamlake.cli.clean_log import clean_log
from streamlake.cli.create import create
from streamlake.cli.demo import demo
from streamlake.cli.history import history
from streamlake.cli.notices import tell_warnings
from streamlake.cli.optimize import optimize
from streamlake.cli.pipes import EXIT_PIPE_CLOSED
from streamlake.cli.tail import tail

EXIT_ERROR = 1
EXIT_INTERRUPTED = 130


class Commands(TyperGroup):
    """The group of all commands: the one place where errors become messages and exit codes."""

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]  # noqa: ANN401 - as its base
        """Run the chosen command."""
        try:
            return super().invoke(ctx)
        except StreamlakeError as error:
            if ctx.params.get("debug"):
                raise
            terminal.say_error(error)
            raise typer.Exit(EXIT_ERROR) from error
        except KeyboardInterrupt as error:
            raise typer.Exit(EXIT_INTERRUPTED) from error
        except BrokenPipeError as error:
            _forget_stdout()
            raise typer.Exit(EXIT_PIPE_CLOSED) from error


app = typer.Typer(
    name="streamlake",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _show_version(*, wanted: bool) -> None:
    if wanted:
        terminal.say(f"streamlake {__version__}")
        raise typer.Exit


@app.callback()
def options(
    *,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """A Delta Lake table as a message bus: append to it, tail it, bridge Kafka into it."""
    del debug, version  # the first is read by Commands, the second by its callback
    tell_warnings()


for _command in (create, append, tail, history, optimize, clean_log, bridge, demo):
    app.command(_command.__name__.replace("_", "-"))(_command)


def main() -> None:
    """Run the command line of this process, and exit."""
    app()


def _forget_stdout() -> None:
    """Let the interpreter flush what is left to nowhere as it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
