#!/usr/bin/python3
"""fake_pack.py DIR: a pack whose programs are scripts, and in DIR/bin an nvidia-smi and an nvcc that are: what test/gpu/run and
bench/gpu/compare do with results is seen without a GPU."""

import json
import pathlib
import sys

DRIVER = """#!/bin/sh
for word; do case $word in --query-gpu=*) fields=${word#--query-gpu=};; esac; done
answer=
for field in $(echo $fields | tr , ' '); do
  case $field in
    name) value='Fake GPU';; compute_cap) value=9.0;; driver_version) value=${FAKE_DRIVER:-580};; *) value=100;;
  esac
  answer="$answer${answer:+, }$value"
done
echo "$answer"
"""

# Whatever it compiles prints what gemm_ceiling prints.
NVCC = """#!/bin/sh
[ "$1" = --version ] && echo "Cuda compilation tools, release 13.0, V${FAKE_NVCC:-13.0.88}" && exit
while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done
echo "#!/bin/sh" > $out
echo "echo '{\\"milliseconds\\": 1.0, \\"tokens_per_second\\": 4000, \\"tflops\\": 1.0}'" >> $out
chmod +x $out
"""

PROGRAM = """#!/usr/bin/python3
import sys
words = sys.argv[1:]
with open(__file__ + ".runs", "a") as file:
    file.write(" ".join(words[-2:]) + "\\n")
if {broken}:
    sys.exit("not enough memory on the GPU")
if "--tune" not in words:
    with open(words[words.index("--log") + 1], "w") as file:
        file.write("loss,tokens_per_second\\n" + "1.5,2000\\n" * int(words[words.index("--steps") + 1]))
    print("memory 1,000 bytes less free on the GPU than before: 900 as announced, 100 by libraries")
"""

TINY = """#!/usr/bin/python3
import sys
words = sys.argv[1:]
open(__file__ + ".runs", "a").close()
with open(words[words.index("--log") + 1], "w") as file:
    file.write("loss,gradient_norm\\n" + "1.5,{norm}\\n" * int(words[words.index("--steps") + 1]))
open(words[words.index("--dump-parameters") + 1], "w").close()
print({said!r})
"""

LESS = "bytes less free on the GPU than before:"
SAYS = {  # what the tiny programs say of memory
    "good": f"1,500,000,000 {LESS} 1,000,000,000 as announced, 8,388,608 staging of collectives, 491,611,392 by libraries",
    "greedy": f"3,500,000,000 {LESS} 1,000,000,000 as announced, 2,500,000,000 by libraries",
    "less": f"900,000,000 {LESS} 1,000,000,000 as announced, -100,000,000 by libraries",
    "silent": "",
    "norms": f"1,500,000,000 {LESS} 1,000,000,000 as announced, 500,000,000 by libraries",
    "two_ranks": f"3,900,000,000 {LESS} 100,000,000 as announced, 3,800,000,000 by libraries",
    "two_greedy": f"6,500,000,000 {LESS} 100,000,000 as announced, 6,400,000,000 by libraries",
}

# With -ge it is faster, by FAKE_GE the most; more sequences than 100 are too many without recomputing.
LLMC = """#!/bin/sh
case "$*" in
  *-b?128*-r?0*) echo "out of memory"; exit 1;;
  *-ge?${FAKE_GE:-2}*) ms=50.0;;
  *-ge*) ms=80.0;;
  *) ms=100.0;;
esac
for i in $(seq 25); do echo "step $i/25 | loss 1.5 | $ms ms | 1 tok/s"; done
"""
LLMC_MAKEFILE = """ifneq ($(OS), Windows_NT)
  NVCC_LDFLAGS += -lnvidia-ml
endif
train_gpt2cu:
	grep -q managed llmc/cuda_utils.cuh && exit 1 || cp program $@
"""
LLMC_UTILS = """    if(err == cudaErrorMemoryAllocation) {
        cudaGetLastError(); // reset the error before the next API call
        cudaCheck_(cudaMallocManaged(out, bytes), file, line);
        cudaCheck_(cudaMemAdvise(*out, bytes, cudaMemAdviseSetPreferredLocation, cudaCpuDeviceId), file, line);
"""


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def main():
    folder = pathlib.Path(sys.argv[1])
    write(folder / "bin/nvidia-smi", DRIVER)
    write(folder / "bin/nvcc", NVCC)
    tiny = [{"name": name, "ranks": 2 if "two" in name else 1, "tolerance": "1e-4",
             **({"norms": "0.1"} if name == "norms" else {})} for name in SAYS]
    write(folder / "pack.json", json.dumps({"revision": "r1", "programs": tiny}))
    write(folder / "runtime/cuda/Makefile", "all:\n")
    for program in tiny:
        name, mesh = program["name"], [{"axis": "dp", "size": program["ranks"]}]
        write(folder / "programs" / name / "manifest.json", json.dumps({"program": name, "mesh": mesh}))
        write(folder / "programs" / name / "Makefile", "all:\n")
        write(folder / "programs" / name / name, TINY.format(said=SAYS[name], norm=3 if name == "norms" else 2))
        write(folder / "expected" / f"{name}.csv", "loss,gradient_norm\n" + "1.5,2\n" * 8)
    write(folder / "llm.c/train_gpt2.cu", "")
    write(folder / "llm.c/Makefile", LLMC_MAKEFILE)
    write(folder / "llm.c/program", LLMC)
    write(folder / "llm.c/llmc/cuda_utils.cuh", LLMC_UTILS)
    write(folder / "llm.c/llmc/mfu.h", "#if __has_include(<nvml.h>)\n")
    for name in ["gpt2_124m_b128", "gpt2_124m_b128_selective", "gpt2_124m_b64", "gpt2_124m_b32", "llama_1b_b8",
                 "llama_1b_b8_selective", "llama_1b_b4"]:
        write(folder / "programs" / name / "manifest.json", json.dumps({"program": name}))
        write(folder / "programs" / name / name, PROGRAM.format(broken=name == "gpt2_124m_b64"))


if __name__ == "__main__":
    main()
