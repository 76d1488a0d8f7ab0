"""How the numbers were made: settings, seeds, machine, versions, time; and the time of the authors' way."""

from __future__ import annotations

import time
from typing import Any

from valuate.experiments.catalogue import EXPERIMENTS
from valuate.experiments.plan import Cell, runs_of
from valuate.experiments.results import Results
from valuate.experiments.store import Store
from valuate.experiments.tasks import TASKS
from valuate.report.parts import Entry, Section, Sentence, Table, number, span

Record = dict[str, Any]


def about(store: Store, results: Results) -> Section:
    """The closing section."""
    section = Section("about", "How it was run")
    section.sentences += [Sentence(text) for text in _circumstances(store, results)]
    section.tables.append(_time(store, results))
    section.tables += [_settings(name, cells) for name, cells in store.manifest["experiments"].items()]
    return section


def finished(store: Store, results: Results, name: str) -> tuple[int, int]:
    """How many runs of an experiment are finished, of how many; those too that are chosen by results, once they are."""
    cells = store.manifest["experiments"].get(name, [])
    keys = [(name, cell["name"], k) for cell in cells for k in range(cell["runs"])]
    then = EXPERIMENTS[name].then
    if then is not None and all(key in results for key in keys):
        more = then([Cell.from_dict(cell) for cell in cells], results)
        keys += [run.key for run in runs_of(name, more)]
    return sum(key in results for key in keys), len(keys)


def progress(store: Store, results: Results) -> list[str]:
    """What is missing: runs that are not finished, runs that failed, lines that could not be read."""
    out = []
    for name in store.manifest["experiments"]:
        have, wanted = finished(store, results, name)
        if have < wanted:
            out.append(f"{name}: {have} of {wanted} runs are finished; the same command goes on with the rest.")
    out += [f"{' '.join(map(str, key))} failed: {reason}" for key, reason in results.failed.items()]
    return out + store.notes


def _circumstances(store: Store, results: Results) -> list[str]:
    sessions = [record for record in store.records if record["kind"] == "session"]
    runs = results.all()
    scale, seed = store.manifest["scale"], store.manifest["seed"]
    out = [
        f"Scale {scale}; root seed {seed}. Every data set, run and scoring has a seed that is derived from the root "
        "and from what it is for; each record of <code>runs.jsonl</code> holds its own."
    ]
    for machine in _different([session["machine"] for session in sessions]):
        memory = f", {machine['memory_gigabytes']} GB of memory" if machine["memory_gigabytes"] else ""
        out.append(f"Machine: {machine['cpu']}, {machine['cores']} cores{memory}; {machine['system']}.")
    for versions in _different([run["versions"] for run in runs]):
        out.append("Versions: " + ", ".join(f"{name} {number}" for name, number in versions.items()) + ".")
    if sessions and runs:
        jobs = ", ".join(str(jobs) for jobs in _different([session["jobs"] for session in sessions]))
        began = time.strftime("%Y-%m-%d %H:%M", time.gmtime(sessions[0]["began"]))
        count = "one go" if len(sessions) == 1 else f"{len(sessions)} goes"
        out.append(
            f"Begun {began} UTC, made in {count} of {span(wall_seconds(store))} in all, with {jobs} processes"
            f"{_processor_time(runs)}."
        )
        out += _memory(runs, max(session["jobs"] for session in sessions))
    return out


def _processor_time(runs: list[Record]) -> str:
    """What the runs took of the processor: less than the time of all processes where others used it too."""
    spent = [run["seconds"].get("processor") for run in runs]
    return "" if None in spent else f" that used {span(sum(spent))} of one core's time"


def _memory(runs: list[Record], jobs: int) -> list[str]:
    """The most memory of a process, and of as many as ran side by side if all were at their most at one time."""
    peaks: dict[int, float] = {}
    for run in runs:
        process = run.get("process", 0)
        peaks[process] = max(peaks.get(process, 0.0), run["peak_megabytes"] or 0.0)
    largest = sorted(peaks.values(), reverse=True)[:jobs]
    if not largest or not largest[0]:
        return []
    together = f"; of {len(largest)} together, at most {number(sum(largest) / 1024, 2)} GB" if len(largest) > 1 else ""
    return [f"The most memory that one of the processes used: {number(largest[0] / 1024, 2)} GB{together}."]


def wall_seconds(store: Store) -> float:
    """Time from the beginning of each session to its last record."""
    total, began, last = 0.0, None, 0.0
    for record in store.records:
        if record["kind"] == "session":
            total += max(0.0, last - began) if began is not None else 0.0
            began = last = record["began"]
        elif record["kind"] in ("run", "end"):
            last = record.get("finished") or record.get("ended") or last
    return total + (max(0.0, last - began) if began is not None else 0.0)


def headline(store: Store, results: Results) -> str:
    """The time of all runs beside that of the authors' way, in a sentence; empty where nothing was timed."""
    matrix = _matrix_seconds(store)
    runs = [run for run in results.all() if run["result"]]
    if not matrix or not runs:
        return ""
    ours = sum(run["seconds"]["clock"] for run in runs)
    return (
        f"Solving took {span(ours)} on the clock, added up over processes that ran at the same time; the authors' "
        f"way, by matrices of each row, would take about {span(_theirs(runs, matrix))} of one process by itself "
        "(estimated from a measured step)."
    )


def _theirs(runs: list[Record], matrix: dict[str, float]) -> float:
    return float(sum(run["result"]["row_visits"] * matrix.get(str(run["data"]["dim"]), 0.0) for run in runs))


def _time(store: Store, results: Results) -> Table:
    """What each experiment took, and what the authors' way would take for the same row visits."""
    matrix = _matrix_seconds(store)
    rows: list[list[Entry]] = []
    totals = [0.0] * 4
    for name in store.manifest["experiments"]:
        runs = [run for run in results.all() if run["experiment"] == name and run["result"]]
        if not runs:
            continue
        visits = sum(run["result"]["row_visits"] for run in runs)
        solving = sum(run["seconds"]["clock"] for run in runs)
        others = sum(run["seconds"][part] for run in runs for part in ("data", "solve", "score")) - solving
        theirs = _theirs(runs, matrix)
        totals = [a + b for a, b in zip(totals, (visits, solving, others, theirs), strict=True)]
        rows.append([name, len(runs), visits, span(solving), span(others), span(theirs) if matrix else None])
    if matrix:
        rows.append(["all", sum(int(str(row[1])) for row in rows), int(totals[0]), *(span(x) for x in totals[1:])])
    columns = ("Experiment", "Runs", "Row visits", "Solving", "Data, measuring, scoring", "Solving, the authors' way")
    return Table("time", "Time", columns, rows, _time_note(results, matrix))


def _time_note(results: Results, matrix: dict[str, float]) -> str:
    """Which runs and what time are meant, and where the authors' comes from."""
    constants = sum(run["result"] is None for run in results.all())
    out = [f"Runs that solve; left out: {constants} that compute the theory's constants."] if constants else []
    out.append(
        "Times are those on the clock, added up over processes that ran at the same time and had to share the machine."
    )
    if matrix:
        measured = ", ".join(f"{1e6 * seconds:.0f} &micro;s for {dim}" for dim, seconds in matrix.items())
        out.append(
            "The authors' way forms the matrices A_t and C_t of every row that it visits; one such gradient was "
            f"measured here, with none of these processes running ({measured} features), and multiplied by the row "
            "visits. That is an estimate, and from below: their inner step needs two gradients of a row, and nothing "
            "else of their programs is counted."
        )
    return " ".join(out)


def _matrix_seconds(store: Store) -> dict[str, float]:
    out: dict[str, float] = {}
    for record in store.records:
        if record["kind"] == "timing":
            out |= record["authors_way"]
    return dict(sorted(out.items(), key=lambda item: int(item[0])))


def _settings(name: str, cells: list[dict[str, Any]]) -> Table:
    columns = ("Cell", "Method", "Rows", "Runs", "Budget", "Start", "Discount", "Ridge", "Data")
    rows: list[list[Entry]] = []
    for cell in cells:
        task, data = TASKS[cell["data"]["task"]], cell["data"]
        budget = f"{cell['epochs']} epochs" if cell["epochs"] is not None else f"{cell['passes'] or 1:g} passes"
        rows.append(
            [
                cell["name"],
                _method(cell["method"]),
                data["rows"],
                cell["runs"],
                budget if cell["method"] else "",
                "zeros" if cell["start"] is None else f"U{cell['start']}",
                task.discount,
                f"{task.ridge if cell['ridge'] is None else cell['ridge']:g}",
                _data(data),
            ]
        )
    if len(rows) > MOST_ROWS:
        note = f"The first {MOST_ROWS} of {len(rows)} cells; <code>manifest.json</code> has them all."
        return Table(f"settings-{name}", EXPERIMENTS[name].title, columns, rows[:MOST_ROWS], note)
    return Table(f"settings-{name}", EXPERIMENTS[name].title, columns, rows)


#: Rows of a table of settings, at most.
MOST_ROWS = 60


def _method(method: dict[str, Any] | None) -> str:
    if method is None:
        return "constants"
    given = ", ".join(f"{name}={value}" for name, value in method.items() if name != "name" and value is not None)
    return f"{method['name']}({given})"


def _data(data: dict[str, Any]) -> str:
    words = ["action values" if data["pairs"] else "state values"]
    if data["limit"] is not None:
        words.append(f"limit {data['limit']}")
    words.append("new for every run" if data["fresh"] else f"{data['role']}, shared")
    return ", ".join(words)


def _different(values: list[Any]) -> list[Any]:
    """The values without repetitions, in order."""
    return [value for k, value in enumerate(values) if value not in values[:k]]
