"""Runs programs; a failure is an exception with a message that says what was run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Failure(Exception):
    """What went wrong, as the person who runs the script is told."""


def call(command, what=None, environment=None, timeout=600):
    """The output of a program, errors among it; a Failure if it does not end well. `environment`
    is added to that of the script."""
    command = [str(word) for word in command]
    what = what or os.path.basename(command[0])
    merged = dict(os.environ, **(environment or {}))
    try:
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, env=merged, timeout=timeout, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        raise Failure(f"{what} needs {command[0]}, which is not there")
    except subprocess.TimeoutExpired:
        raise Failure(f"{what}: no end after {timeout} s: {' '.join(command)}")
    if result.returncode != 0:
        tail = result.stdout.strip()[-3000:]
        raise Failure(f"{what} ended with code {result.returncode}: {' '.join(command)}\n{tail}")
    return result.stdout


def find_pipewright():
    """The program from PATH, or of this repository's build."""
    path = shutil.which("pipewright") or ROOT / "build/tools/pipewright/pipewright"
    if not os.path.exists(path):
        raise Failure("expects a build: run tools/setup first")
    return str(path)


def exit_with(main):
    """Ends the script with what `main` returns, or with the message of a Failure."""
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit(f"error: {failure}")
