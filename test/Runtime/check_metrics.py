"""check_metrics.py LOG.csv FOLDER [--resumed STEP] [--breakdown]: a run's log and its event files agree. Event
files are decoded here according to the formats' descriptions, with an independent checksum; protoc, which knows
only the wire format, must read every event too."""

import argparse
import csv
import pathlib
import struct
import subprocess
import sys

parser = argparse.ArgumentParser()
parser.add_argument("log")
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("--samples", type=int, required=True, help="of a step")
parser.add_argument("--tokens", type=int, required=True, help="of a step")
parser.add_argument("--resumed", type=int, help="the step of the checkpoint that the second run began from")
parser.add_argument("--breakdown", action="store_true")
options = parser.parse_args()
KINDS = ["data", "forward", "backward", "update", "collectives", "transfers"]


def check(condition, *what):
    if not condition:
        sys.exit(" ".join(str(each) for each in what))


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(path):
    data, at = path.read_bytes(), 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        check(struct.unpack_from("<I", data, at + 8) == (masked_crc(data[at : at + 8]),), "check sum of a length")
        event = data[at + 12 : at + 12 + length]
        check(struct.unpack_from("<I", data, at + 12 + length) == (masked_crc(event),), "check sum of an event")
        yield event
        at += 16 + length


def fields(message):
    """Returns [(field, value)] of one message: integers, floats or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        elif key & 7 == 2:
            length = varint()
            yield key >> 3, message[at : at + length]
            at += length
        else:
            width = {1: "<d", 5: "<f"}[key & 7]
            yield key >> 3, struct.unpack_from(width, message, at)[0]
            at += struct.calcsize(width)


def scalars(path):
    """Returns {sample: {tag: value}}, and the sample from which the file continues."""
    found, begins, last = {}, None, 0
    for number, event in enumerate(records(path)):
        message = dict(fields(event))
        subprocess.run(["protoc", "--decode_raw"], input=event, check=True, stdout=subprocess.DEVNULL)
        check(message[1] >= last > -1, "events go back in time")
        last = message[1]
        if number == 0:
            check(message == {1: message[1], 3: b"brain.Event:2"}, "the first event has no version:", message)
        elif 7 in message:
            check(dict(fields(message[7])) == {1: 1}, "a session log that does not start")
            begins = message[2]
        else:
            values = [dict(fields(value)) for _, value in fields(message[5])]
            found[message[2]] = {value[1].decode(): value[2] for value in values}
    return found, begins


rows = list(csv.DictReader(open(options.log)))
files = sorted(options.folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)
check(all(path.name.startswith("events.out.tfevents.") for path in files), files)
check(len(files) == (2 if options.resumed else 1), files)
events, purged = scalars(files[0])
check(purged is None, "a fresh run has nothing to forget")
if options.resumed:
    later, purged = scalars(files[1])
    check(purged == options.resumed * options.samples + 1, "goes on from", purged)
    events = {sample: events[sample] for sample in events if sample < purged} | later
check(sorted(events) == [int(row["step"]) * options.samples for row in rows], "steps", sorted(events))


def same(row, column, event, tag, scale=1.0):
    tag = "Train/Samples/" + tag
    check((tag in event) == bool(row[column]), row["step"], column, repr(row[column]), tag, sorted(event))
    if row[column]:
        a, b = float(row[column]) * scale, event[tag]
        check(abs(a - b) <= 1e-6 * abs(a) + 0.51 * (scale != 1 or "per_second" in tag), row["step"], tag, a, b)


for row in rows:
    event = events[int(row["step"]) * options.samples]
    for column, tag in {"loss": "train_loss", "learning_rate": "lr", "gradient_norm": "gradient_norm",
                        "validation_loss": "validation_loss", "loss_scale": "loss_scale",
                        "tokens_per_second": "tokens_per_second",
                        "model_flops_per_second": "model_flops_per_second"}.items():
        same(row, column, event, tag)
    check(row["skipped_steps"] == "0", "skipped steps")
    if options.breakdown:
        times = [float(row[kind + "_seconds"]) for kind in KINDS]
        for kind in KINDS:
            same(row, kind + "_seconds", event, "elapsed_time_ms_" + ("step" if kind == "update" else kind), 1e3)
        # Rounded to microseconds, and to integer tokens per second.
        duration = options.tokens / max(float(row["tokens_per_second"]) - 0.5, 0.5)
        check(0 < sum(times) <= duration + 6e-6, row["step"], times, duration)
        check(min(times) >= 0, times)
if options.breakdown:
    for kind in KINDS[:5]:
        check(sum(float(row[kind + "_seconds"]) for row in rows) > 0, "no time for", kind)
print(f"{len(rows)} steps agree")
