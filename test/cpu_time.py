"""lit's format for tests of commands, with the processor time that each one took.

The report of `lit -o FILE` then has a metric `cpu` in seconds for each of these tests.
Elapsed time says little on a machine that does other work beside. `tools/checks/times`
prints a table of both.
"""

import resource

import lit.formats
import lit.Test


def _time_of_children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class TimedShTest(lit.formats.ShTest):
    def execute(self, test, lit_config):
        # lit's workers are processes that run one test at a time, so what the
        # processes that ended meanwhile have used belongs to this test.
        before = _time_of_children()
        result = super().execute(test, lit_config)
        if not isinstance(result, lit.Test.Result):
            result = lit.Test.Result(*result)
        result.addMetric("cpu", lit.Test.RealMetricValue(_time_of_children() - before))
        return result
