"""The schedules that `pipewright schedules` lists."""

import json
from dataclasses import dataclass

from .running import call


@dataclass(frozen=True)
class Schedule:
    name: str
    loops: int  # stages per rank
    trains: bool
    alone: bool  # whether it computes other gradients than most


def listed_schedules(pipewright="pipewright"):
    """In the order of the list."""
    text = call([pipewright, "schedules", "--json"], "the list of schedules")
    return [Schedule(each["name"], each["stages_per_rank"], each["trains"],
                     each["copies"] > 1 or each["stale_weights"] or each["rounds_differently"])
            for each in json.loads(text)]
