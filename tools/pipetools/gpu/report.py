"""Markdown of what measure.py has recorded, in one run or in several."""

import statistics

from .measure import ALLOWED_OVERHEAD, TOOLS
from .programs import BIG

# Peak of dense bf16 products in TFLOP/s, for MFU: the vendor's data sheets. The
# first that is part of the card's name.
PEAKS = (("H100 PCIe", 756), ("H100 NVL", 835), ("H100", 989), ("GH200", 989), ("H200", 989),
         ("A100", 312))


def peak_of(card):
    return next((tflops for name, tflops in PEAKS if name in card), None)


def latest(records):
    """The last word on each check."""
    found = {}
    for record in records:
        found.pop((record["part"], record["program"]), None)
        found[record["part"], record["program"]] = record
    return list(found.values())


def differing_bits(records):
    """Programs of one cut that gave other bits than the first of it on that card."""
    first, failures = {}, []
    for record in records:
        if "bits" in record:
            other = first.setdefault((record["card"], record["cut"]), record)
            if other["bits"] != record["bits"]:
                failures.append(f"{record['program']}: other bits than {other['program']}")
    return failures


def versions_table(records):
    return [", ".join(f"{name} {version}" for name, version in record["versions"].items())
            for record in records if "versions" in record]


def predicted_text(seconds):
    return f"{1e3 * seconds:.1f}" if seconds else ""


def ways_table(records):
    lines = ["GPT-2 124M by other means, one run of each.", "",
             "| | ms a step | predicted ms | measured / predicted |", "|---|---|---|---|"]
    return lines + [
        f"| {record['way']} | {1e3 * record['seconds']:.1f} | {predicted_text(record['predicted'])} "
        f"| {record['seconds'] / record['predicted']:.2f} |"
        for record in records if "way" in record]


def libraries_table(records):
    lines = ["Cases that the test doubles of CUDA's libraries pass, on the real ones.", "",
             "| test | cases | agree | differ | left out |", "|---|---|---|---|---|"]
    for test in sorted({record["model"] for record in records}):
        verdicts = [record["verdict"] for record in records if record["model"] == test]
        reasons = sorted({verdict.partition(", ")[2] for verdict in verdicts
                          if verdict.startswith("left out")})
        lines.append(f"| {test} | {len(verdicts)} | {verdicts.count('agrees')} "
                     f"| {verdicts.count('differs')} | {', '.join(reasons) or 'none'} |")
    return lines


def agree_table(records):
    groups = {}
    for record in records:
        if "bits" in record:
            groups.setdefault((record["model"], record["precision"], record["allowed"]),
                              []).append(record)
    lines = ["| model | precision | programs | cuts | largest difference to the CPU target | allowed |",
             "|---|---|---|---|---|---|"]
    for (model, precision, allowed), group in sorted(groups.items()):
        largest = max(record["difference"] for record in group)
        cuts = len({record["cut"] for record in group})
        lines.append(f"| {model} | {precision} | {len(group)} | {cuts} | {largest:.1e} "
                     f"| {allowed:.1e} |")
    return lines + ["", "Each program was run three times, once with delays injected; programs of one "
                    "cut (model, stages, precision) are compared to the bit."]


def sanitize_table(records):
    lines = ["Complaints of compute-sanitizer about our kernels (and about those of NVIDIA's "
             "libraries, which are not ours).", "", "| program | " + " | ".join(TOOLS) + " |",
             "|---" * (1 + len(TOOLS)) + "|"]
    return lines + [f"| {record['program']} | " +
                    " | ".join(record["verdicts"][tool] for tool in TOOLS) + " |"
                    for record in records if "verdicts" in record]


def counters_table(records):
    lines = ["What ncu counts in a step of GPT-2 124M, by kernel: medians of its launches, shares "
             "of the card's peak.", "",
             "| kernel | launches | us | active warps | memory TB/s | of its peak |",
             "|---|---|---|---|---|---|"]
    for record in records:
        for name, counters in sorted(record.get("kernels", {}).items()):
            middle = {of: statistics.median(all_of) for of, all_of in counters.items()}
            lines.append(f"| `{name}` | {len(next(iter(counters.values())))} "
                         f"| {middle.get('nanoseconds', 0) / 1e3:.1f} "
                         f"| {middle.get('warps', 0):.0f} % | {middle.get('rate', 0) / 1e12:.2f} "
                         f"| {middle.get('memory', 0):.0f} % |")
    return lines


def communicators_table(records):
    lines = ["Communicators of one rank, one after the other.", "",
             "| modules are loaded | seconds | MiB of the GPU's memory |", "|---|---|---|"]
    for record in records:
        if "communicators" in record:
            found = record["communicators"]
            seconds = ", ".join(f"{each:.2f}" for each in found["seconds"])
            taken = ", ".join(f"{each / 2**20:.0f}" for each in found["bytes"])
            lines.append(f"| {record['model'].removeprefix('communicators-')} | {seconds} | {taken} |")
    return lines


def overhead_table(records):
    lines = []
    for record in records:
        if "four" in record:
            one, four = statistics.median(record["one"]), statistics.median(record["four"])
            lines.append(
                f"{record['model']}: 4 ranks over cuda-local take **{four / one:.3f}** times as long as "
                f"1 rank ({1e3 * four:.1f} ms and {1e3 * one:.1f} ms a step, medians of "
                f"{len(record['one'])} runs in turn; at most {ALLOWED_OVERHEAD:.2f} is asked for).")
            if "predicted" in record:
                before, after = map(predicted_text, record["predicted"])
                lines.append(f"Predicted: {after} ms on 4 GPUs and {before} ms on 1; here all "
                             "ranks share one.")
            if "together" in record:
                lines.append(f"In a traced step, several of the 4 ranks have a task on the GPU for "
                             f"{100 * record['together']:.0f} % of the time in which any has.")
    return lines


def speed_table(records):
    lines = ["| model, micro-batches, bf16 | ours ms | predicted ms | PyTorch ms | PyTorch / ours "
             "| ours | PyTorch | MFU ours | MFU PyTorch |", "|---|---|---|---|---|---|---|---|---|"]
    notes, profiles = [], []
    for record in records:
        if "ours" not in record:
            continue
        _, unit, each, flops = BIG[record["model"]]
        peak = peak_of(record["card"])
        mine = statistics.median(record["ours"])
        medians = {way: statistics.median(seconds) for way, seconds in record["theirs"].items()
                   if seconds}
        other = min(medians.values(), default=None)
        rate = lambda s: f"{record['batch'] * each / s:.0f} {unit}/s" if s else ""
        share = lambda s: f"{record['batch'] * flops / s / peak / 1e12:.1%}" if s and peak else ""
        lines.append(f"| {record['model']}, {record['shape']} | {1e3 * mine:.1f} "
                     f"| {predicted_text(record.get('predicted'))} "
                     f"| {f'{1e3 * other:.1f}' if other else ''} "
                     f"| {f'**{other / mine:.2f}**' if other else ''} | {rate(mine)} | {rate(other)} "
                     f"| {share(mine)} | {share(other)} |")
        if medians:
            tried = ", ".join(f"{1e3 * seconds:.1f} ms{' with ' + way if way else ''}"
                             for way, seconds in medians.items())
            notes.append(f"{record['model']}: PyTorch {record['torch']} took {tried}")
        if record["no_peer"]:
            notes.append(f"{record['model']}: no PyTorch beside it: {record['no_peer']}")
        if not peak:
            notes.append(f"{record['model']}: no MFU: the peak of this card is not known")
        profiles += ["", f"Where a step of {record['model']} goes (`train --profile 3`):", "",
                     *record["profile"].splitlines()]
    return lines + [""] + notes + profiles


def failures_of(records):
    return [f"{record['part']} {record['program']}: {failure}" for record in latest(records)
            for failure in record["failures"]] + differing_bits(latest(records))


def report(records):
    records = latest(records)
    lines = []
    for card in sorted({record["card"] for record in records}):
        own = [record for record in records if record["card"] == card]
        dates = sorted({record["date"] for record in own})
        lines += [f"### {' to '.join(sorted({dates[0], dates[-1]}))}: {card}"]
        for part, table in (("versions", versions_table), ("libraries", libraries_table),
                            ("agree", agree_table), ("ways", ways_table),
                            ("sanitize", sanitize_table), ("overhead", overhead_table),
                            ("counters", counters_table), ("communicators", communicators_table),
                            ("speed", speed_table)):
            chosen = [record for record in own if record["part"] == part]
            if chosen:
                minutes = sum(record["minutes"] for record in chosen)
                lines += ["", f"**{part}**, checks: {len(chosen)}, minutes: {minutes:.0f}", "",
                          *table(chosen)]
    failures = failures_of(records)
    return "\n".join([*lines, "", f"{len(failures)} failed",
                      *("- " + failure.replace("\n", " / ") for failure in failures)]) + "\n"
