"""What was measured, as a table for people, JSON for programs, and plots."""
import json
import os
import statistics

from . import machine, plot


def _number(value, digits=0):
    return "" if value is None else f"{value:,.{digits}f}"


def _middle(values):
    return statistics.median(values) if values else None


def _cells(row):
    big = row.median >= 1000
    return [row.name, _number(row.median, 0 if big else 2) + " " + row.unit,
            f"± {row.spread_percent:.0f} %" if len(row.values) > 1 else "",
            _number(row.ratio, 2), _number(_middle(row.p50_us)), _number(_middle(row.p99_us)),
            _number(_middle(row.cpu_us), 2), _number(row.calls, 2),
            (f"{row.errors} errors " if row.errors else "") + row.note]


HEAD = ["", "median", "spread", "svcd ÷ this", "p50 µs", "p99 µs", "CPU µs/op", "calls/op", ""]


def table(scenario):
    lines = [HEAD] + [_cells(row) for row in scenario.rows]
    used = [i for i in range(len(HEAD)) if i == 0 or any(line[i] for line in lines[1:])]
    widths = {i: max(len(line[i]) for line in lines) for i in used}
    out = [f"\n{scenario.title} ({scenario.name})"]
    for line in lines:
        cells = [line[i].ljust(widths[i]) if i in (0, len(HEAD) - 1) else line[i].rjust(widths[i])
                 for i in used]
        out.append("  " + "  ".join(cells).rstrip())
    for goal in scenario.goals:
        sign = "≥" if goal.at_least else "≤"
        mark = "reached" if goal.is_met else "MISSED "
        value = "nothing" if goal.value is None else f"{goal.value:,.2f}"
        out.append(f"  {mark} {goal.what}: {value} (to reach: {sign} {goal.limit:,g})")
    return "\n".join(out)


def write(directory, scenarios, options):
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, "results.json")
    content = {"machine": machine.describe(), "options": options,
               "scenarios": [scenario.as_json() for scenario in scenarios]}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1, ensure_ascii=False)
        file.write("\n")
    for scenario in scenarios:
        drawing = plot.bars(scenario)
        if drawing:
            name = os.path.join(directory, scenario.name + ".svg")
            with open(name, "w", encoding="utf-8") as file:
                file.write(drawing)
    return path
