"""The schedules that `pipewright schedules` lists."""

import re
from dataclasses import dataclass

from .running import call

# What sets a schedule apart from those that round as gpipe does.
ALONE = ("two copies of the weights", "stale weights", "rounds gradients differently")


@dataclass(frozen=True)
class Schedule:
    name: str
    loops: int  # stages per rank
    trains: bool
    alone: bool  # whether it computes other gradients than most


def listed_schedules(pipewright="pipewright"):
    """In the order of the list."""
    schedules = []
    for entry in re.split(r"\n(?=\S)", call([pipewright, "schedules"], "the list of schedules")):
        name, _, rest = entry.partition(":")
        # They stand before the formulas.
        traits = rest.partition("\n  bubble:")[0]
        loops = re.search(r"(\d+) stages per rank", traits)
        schedules.append(Schedule(name.strip(), int(loops.group(1)) if loops else 1,
                                  "evaluation only" not in traits,
                                  any(trait in traits for trait in ALONE)))
    return schedules
