"""``noisewise``: where the program begins, and where errors become a message and an exit code.

Little is imported here: an interrupt must be understood while the libraries still load.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

from noisewise.cli.interrupts import watched


def run() -> None:
    """Run the program.

    Exit codes: 0 done, 1 refused (message on stderr), 2 wrong usage, 130 interrupted.
    """
    with watched():
        _run()


def _run() -> None:
    from noisewise.artifact import NoisewiseError
    from noisewise.cli.console import say
    from noisewise.cli.verbs import app

    speak = _shell_words(sys.argv[1:])

    def warn(message: Warning | str, *_: object, **__: object) -> None:
        # Without the line of code, which says nothing to whoever runs a command.
        say(f"warning: {speak(str(message))}", "yellow")

    with warnings.catch_warnings():
        warnings.showwarning = warn
        # Ours are for the person at the terminal: each once, whatever Python was told to do.
        warnings.filterwarnings("default", category=UserWarning)
        try:
            app(prog_name="noisewise")
        except NoisewiseError as error:
            say(f"error: {speak(str(error))}", "red")
            sys.exit(1)


def _shell_words(arguments: list[str]) -> Callable[[str], str]:
    """Return the translation of messages for the command that these arguments ask for."""
    import typer

    from noisewise.cli.messages import command_flags, translate
    from noisewise.cli.verbs import app

    return lambda message: translate(message, command_flags(typer.main.get_command(app), arguments))
