"""compare_logs.py TOLERANCE LOG LOG... [--steps N] [--all]: logs have the same losses in all steps, relative to the first log's.

With tolerance 0 they have the same text, which is the same bits. --all compares all columns but those of times, which are not reproducible; --steps is
how many each must have."""
import argparse
import csv
import sys


def rows(path):
    """Returns the rows of a --log file without the columns of times."""
    with open(path, newline="") as file:
        return [{key: row[key] for key in row if not key.endswith(("_per_second", "_seconds"))} for row in csv.DictReader(file)]


def difference(first, other, tolerance):
    """Returns how far a row is off, relatively; exits if that is too much, it is of another step, or a value is missing."""
    worst = 0.0
    for key, value in first.items():
        its = other[key]
        if value == its:
            continue
        own, wrong = float(value or "nan"), key == "step" or tolerance == 0
        error = abs(own - float(its or "nan")) / abs(own) if own else float("inf")
        if wrong or not error <= tolerance:  # nor NaN
            sys.exit(f"step {first['step']}: {key} {value} and {its}" + ("" if wrong else f" differ by more than {tolerance:g}"))
        worst = max(worst, error)
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tolerance", type=float)
    parser.add_argument("logs", nargs="+")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    logs = [[row if options.all else {key: row[key] for key in ("step", "loss", "validation_loss")} for row in rows(path)] for path in options.logs]
    first = logs[0]
    for path, log in zip(options.logs, logs):
        if not log or len(log) != (options.steps or len(first)):
            sys.exit(f"{len(log)} steps in {path}, {options.steps or len(first)} expected")
    worst = max((difference(a, b, options.tolerance) for other in logs[1:] for a, b in zip(first, other)), default=0.0)
    print(f"{len(first)} steps equal, worst {worst:.1e}")


if __name__ == "__main__":
    main()
