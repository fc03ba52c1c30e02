"""The program `agentkit` and `python -m agentkit`: the command line, and Ctrl-C before and after it.

To load the command line takes a third of a second, and Python's end takes a moment. `agentkit.cli.main` decides what
Ctrl-C does in between. Before and after, it ends the process as any other program: by the signal, without a traceback.
So this file imports nothing of the command line until that is settled.
"""

from __future__ import annotations

import sys


def main() -> int:
    """Run one command with the arguments of this process.

    Returns:
        The exit status; 130 after Ctrl-C.
    """
    try:
        import signal

        pressed = signal.getsignal(signal.SIGINT)
        if pressed is signal.default_int_handler:  # else it is ignored, as in a background job of a shell
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        from agentkit import cli

        try:
            signal.signal(signal.SIGINT, pressed)
            return cli.main()
        finally:
            if pressed is signal.default_int_handler:
                signal.signal(signal.SIGINT, signal.SIG_DFL)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
