"""Rows of results: printed and written as they come, kept from an earlier run of the same, packed into one file. Standard library
only."""

import datetime
import json
import os
import pathlib
import tarfile

import gpu

ARCHIVE = "gpu-results.tar.gz"
KEPT = (".log", ".txt", ".csv", ".json", ".md")  # of the build folder, in the archive
MOST_BYTES = 8 << 20  # of one file in it: more is no log


def pack_results(build, out):
    """OUT/gpu-results.tar.gz: all that the build folder has of results, with matmuls/, as one file."""
    path = pathlib.Path(out) / ARCHIVE
    part = path.with_suffix(".part")
    with tarfile.open(part, "w:gz") as archive:
        for folder in (build, build / "matmuls"):
            for file in sorted(folder.glob("*")):
                if file.is_file() and file.suffix in KEPT and file.stat().st_size <= MOST_BYTES:
                    archive.add(file, file.relative_to(build))
    os.replace(part, path)
    return path


def unpack_results(path, build):
    """Into the build folder what such a file has, if that has no results of its own. False: it has."""
    if not path.exists() or (build / "results.json").exists():
        return False
    with tarfile.open(path) as archive:
        for member in archive.getmembers():
            if member.isfile() and not member.name.startswith(("/", "..")):
                archive.extract(member, build)
    return True


class Table:
    """Rows of (name, result, numbers)."""

    def __init__(self, build, out, revision):
        self.build, self.out, self.revision = build, out, revision
        self.path = build / "results.json"
        self.rows, self.device, self.versions, self.finished, self.before = [], {}, {}, False, {}

    def keep(self, state, versions):
        """What passed in an earlier run of the same revision, on the same GPU with the same driver, compiler and libraries, need
        not run again; what was measured with others is no result of this one. Returns whether the GPU and the driver are the
        same, or nothing was kept."""
        self.device, self.versions = dict(state), dict(versions)
        if not self.path.exists():
            return True
        try:
            text = json.loads(self.path.read_text())
            text["device"], text["revision"], text["rows"]
        except (ValueError, TypeError, KeyError) as error:
            print(f"{self.path}: damaged ({error!r}), not kept", flush=True)
            return True
        other = [word for word, key in (("GPU", "name"), ("driver", "driver_version")) if text["device"].get(key) != state.get(key)]
        same_gpu = not other
        before = text.get("versions", {})
        other += [name for name in versions if before.get(name) != versions[name]]
        other += ["revision"] if text["revision"] != self.revision else []
        if other:
            print(f"{self.path}: of another {' and '.join(other)}, not kept", flush=True)
        else:
            self.before = {row["name"]: row for row in text["rows"] if row["result"] == "passed"}
        return same_gpu

    def has_passed(self, name):
        """If it has, its row is one of this run's."""
        row = self.before.get(name)
        if row:
            self.rows.append({**row, "before": True})
            print(f"{'passed':8} {name:28} before: {row['numbers']}", flush=True)
        return bool(row)

    def add(self, name, problem, numbers="", seconds=None, skipped=False):
        result = "skipped" if skipped else "FAILED" if problem else "passed"
        text = "; ".join(each for each in (problem, numbers) if each)
        self.rows.append({"name": name, "result": result, "numbers": text, "seconds": seconds})
        print(f"{result:8} {name:28} {text}", flush=True)
        self.write()
        return not problem

    def write(self):
        """With the rows of earlier runs that this one does not come to: the next may."""
        names = {row["name"] for row in self.rows}
        rows = self.rows + [row for name, row in self.before.items() if name not in names]
        gpu.write_atomically(self.path, json.dumps({
            "date": datetime.datetime.now().isoformat(timespec="seconds"), "revision": self.revision,
            "finished": self.finished, "device": self.device, "versions": self.versions, "rows": rows}, indent=1))
        pack_results(self.build, self.out)

    def failed(self):
        return [row["name"] for row in self.rows if row["result"] == "FAILED"]

    def end(self):
        self.finished = True
        self.write()
        print("\n| name | result | numbers |\n|---|---|---|")
        for row in self.rows:
            print(f"| {row['name']} | {row['result']} | {row['numbers']} |")
        print(f"\n{self.out}/{ARCHIVE}: {len(self.rows) - len(self.failed())} of {len(self.rows)} without failure")
