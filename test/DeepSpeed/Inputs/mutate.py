#!/usr/bin/python3
"""Wrong configurations, made of right ones; and whether each was refused as it must be.

    mutate.py make DIR        writes 200 files, and DIR.json: what must be said of each
    mutate.py check DIR ERR   ERR is what 'partita config --each DIR' wrote to stderr: one message a file, in order

Each mutation knows the line that the message must name, and a part of its text.
"""
import json
import os
import random
import re
import sys

COUNT = 200

BASES = [
    """{
  "train_batch_size": 16,
  "train_micro_batch_size_per_gpu": 4,
  "gradient_accumulation_steps": 2,
  "steps_per_print": 100,
  "gradient_clipping": 0.5,
  "optimizer": {
    "type": "AdamW",
    "params": {
      "lr": 3e-5,
      "betas": [0.8, 0.999],
      "eps": 1e-8,
      "weight_decay": 3e-7
    }
  },
  "scheduler": {
    "type": "WarmupLR",
    "params": {
      "warmup_min_lr": 0,
      "warmup_max_lr": 3e-5,
      "warmup_num_steps": 500
    }
  },
  "zero_optimization": {
    "stage": 2,
    "offload_optimizer": {
      "device": "cpu",
      "pin_memory": true
    },
    "allgather_bucket_size": 5e7,
    "reduce_bucket_size": 5e7,
    "overlap_comm": true,
    "contiguous_gradients": true
  },
  "wall_clock_breakdown": false
}
""",
    """{
  // bfloat16 at stage 3
  "train_micro_batch_size_per_gpu": "auto",
  "gradient_accumulation_steps": 2,
  "bf16": {
    "enabled": true
  },
  "fp16": {
    "enabled": false,
    "loss_scale": 0,
    "loss_scale_window": 1000,
    "hysteresis": 2,
    "min_loss_scale": 1
  },
  "zero_optimization": {
    "stage": 3,
    "offload_param": {
      "device": "none"
    },
    "stage3_prefetch_bucket_size": "auto",
    "stage3_param_persistence_threshold": 1e4,
    "stage3_gather_16bit_weights_on_model_save": true
  },
  "csv_monitor": {
    "enabled": true,
    "job_name": "run"
  },
  "zero_allow_untested_optimizer": true
}
""",
]

KEY = re.compile(r'^( *)"([a-z0-9_]+)": (.*?)(,?)$')


def keys(lines):
    """(line, indent, key, value, comma) of every key with a value on its line."""
    for number, line in enumerate(lines):
        match = KEY.match(line)
        if match:
            yield (number, *match.groups())


def typo(lines, rng):
    number, indent, key, value, comma = rng.choice([k for k in keys(lines) if len(k[2]) > 3])
    at = rng.randrange(1, len(key))
    wrong = rng.choice([key[:at] + key[at + 1:], key[:at] + "q" + key[at:], key[:at] + "-" + key[at + 1:]])
    lines[number] = f'{indent}"{wrong}": {value}{comma}'
    return number, "unknown key"


def nonsense(lines, rng):
    number = rng.randrange(1, len(lines) - 1)
    if not KEY.match(lines[number]):
        return None
    lines.insert(number, f'"nobody_knows_{rng.randrange(100)}": 1,')
    return number, "unknown key"


NOT_NULL = ["stage", "eps", "lr", "betas", "enabled", "hysteresis", "wall_clock_breakdown", "device"]


def wrong_type(lines, rng):
    number, indent, key, value, comma = rng.choice(list(keys(lines)))
    if value in ("{", '"auto"'):
        return None
    wrong = rng.choice(['{"a": 1}', "[1, 2, 3]", '"seven"' if value[0] != '"' else "7"] + (["null"] if key in NOT_NULL else []))
    lines[number] = f'{indent}"{key}": {wrong}{comma}'
    return number, "there is no optimizer|there is no schedule" if wrong == '"seven"' and key == "type" else "expected "


def out_of_bounds(lines, rng):
    number, indent, key, value, comma = rng.choice(list(keys(lines)))
    if not re.match(r"^[0-9.e+-]+$", value):
        return None
    lines[number] = f'{indent}"{key}": {rng.choice(["-3", "-0.5", "-1e9"])}{comma}'
    return number, "expected (an integer|a number)"


def duplicate(lines, rng):
    number, indent, key, value, comma = rng.choice(list(keys(lines)))
    if value == "{":
        return None
    lines.insert(number, f'{indent}"{key}": {value},')
    return number + 1, "is given twice"


def truncated(lines, rng):
    del lines[rng.randrange(2, len(lines) - 1):]
    return None, "is not closed"


def torn(lines, rng):
    """A bracket, a quote or a colon is gone."""
    number, indent, key, value, comma = rng.choice([k for k in keys(lines) if k[3] != "{"])
    lines[number] = rng.choice([f'{indent}"{key}: {value}{comma}', f'{indent}"{key}" {value}{comma}',
                                f'{indent}"{key}": {value} {value},'])
    return number, "expected|quote"


def indivisible(lines, rng):
    number = next((k[0] for k in keys(lines) if k[2] == "train_batch_size"), None)
    if number is None:
        return None
    lines[number] = f'  "train_batch_size": {rng.choice([7, 15, 17, 24, 128])},'
    return number, "is not train_micro_batch_size_per_gpu 4 x gradient_accumulation_steps 2 x dp 2 = 16"


def illegal(lines, rng):
    """A line more, which does not go with the others; or one that asks for what is not there."""
    block, line, said = rng.choice([
        ("", '"fp16_": {},', "unknown key"),
        ("", '"sparse_gradients": true,', "do not go with ZeRO"),
        ("", '"amp": {"enabled": true},', "Apex"),
        ("", '"gradient_allreduce_op": "sum",', "mean loss"),
        ("", '"pipeline": {"stages": 2},', "but the mesh has no axis pp"),
        ("", '"sequence_parallel_size": 2,', "cp=2"),
        ("", '"tensor_parallel": {"autotp_size": 4},', "but the mesh"),
        ("", '"elasticity": {"enabled": true},', "one mesh"),
        ("", '"wandb": {"enabled": true},', "switched on"),
        ("", '"curriculum_learning": {"enabled": true},', "switched on"),
        ("", '"sparse_attention": {"mode": "bigbird", "attention": "unidirectional"},', "does not pass on"),
        ("", '"activation_checkpointing": {"partition_activations": true},', "without --recompute"),
        ("", '"data_types": {"param_dtype": "bf16"},', "master weights"),
        ("zero_optimization", '"zero_quantized_gradients": true,', "no ZeRO"),
        ("zero_optimization", '"mics_shard_size": 4,', "fsdp"),
        ("zero_optimization", '"zenflow": {"topk_ratio": 0.1},', "ZenFlow"),
        ("zero_optimization", '"legacy_stage1": true,', "removed"),
        ("zero_optimization", '"offload_states": "cpu",', "unknown key"),
        ("params", '"max_grad_norm": 1.0,', "but gradient_clipping is 0.5|is not a parameter of|unknown key"),
        ("params", '"amsgrad": true,', "AMSGrad|is not a parameter of|unknown key"),
        ("params", '"momentum": 0.9,', "is not a parameter of|unknown key"),
    ])
    number = next((k[0] for k in keys(lines) if k[2] == block), 0 if not block else None)
    if number is None:
        return None
    lines.insert(number + 1, line)
    return number + 1, said


def two_types(lines, rng):
    number = next((k[0] for k in keys(lines) if k[2] == "bf16"), None)
    if number is None:
        return None
    at = next(i for i in range(number, len(lines)) if lines[i].strip() == '"enabled": false,')
    lines[at] = '    "enabled": true,'
    return number + 1, "both enabled"


def bad_bytes(lines, rng):
    number = rng.randrange(1, len(lines) - 1)
    lines[number] += "  # \udcff"
    return number, "UTF-8"


MUTATIONS = [typo, typo, typo, nonsense, wrong_type, wrong_type, wrong_type, out_of_bounds, duplicate, duplicate,
             truncated, torn, torn, indivisible, illegal, illegal, illegal, two_types, bad_bytes]


def make(folder):
    rng = random.Random(6)
    os.makedirs(folder)
    expected, seen = [], set()
    while len(expected) < COUNT:
        lines = rng.choice(BASES).splitlines()
        mutation = rng.choice(MUTATIONS)
        done = mutation(lines, rng)
        text = "\n".join(lines) + "\n"
        if done is None or text in seen:
            continue
        seen.add(text)
        line, said = done
        name = f"{len(expected):03}_{mutation.__name__}.json"
        with open(os.path.join(folder, name), "w", errors="surrogateescape") as file:
            file.write(text)
        expected.append({"file": name, "line": None if line is None else line + 1, "said": said})
    with open(folder + ".json", "w") as file:
        json.dump(expected, file)


def check(folder, errors):
    with open(folder + ".json") as file:
        expected = json.load(file)
    with open(errors, errors="replace") as file:
        said = re.findall(r"^(\S+):(\d+):(\d+): error: (.*)$", file.read(), re.M)
    wrong = 0
    for want in expected:
        found = [each for each in said if os.path.basename(each[0]) == want["file"]]
        good = len(found) == 1 and (want["line"] is None or int(found[0][1]) == want["line"])
        if not good or not re.search(want["said"], found[0][3]):
            print(f"{want}: {found}")
            wrong += 1
    print(f"{len(expected)} wrong configurations, {len(expected) - wrong} refused by one message at the right place")
    return 1 if wrong or len(said) != len(expected) else 0


if __name__ == "__main__":
    sys.exit(make(sys.argv[2]) if sys.argv[1] == "make" else check(sys.argv[2], sys.argv[3]))
