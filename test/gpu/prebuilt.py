"""Programs that test/gpu/pack --compile ARCH has compiled, so that no minute on a GPU goes to nvcc: one archive in the pack, with paths
from the pack's folder (programs/) and from the folder of builds (build/). Standard library only."""

import hashlib
import json
import lzma
import os
import pathlib
import sys
import tarfile
import tempfile

import gpu
from table import Table

ROOT = pathlib.Path(__file__).resolve().parents[2]
ARCHIVE = "prebuilt.tar.xz"


def write(out, architecture, content):
    """Compiles all that run compiles there, and packs it. The names of what did not compile."""
    sys.path.insert(0, str(ROOT / "bench/gpu"))
    import llmc
    import systems
    from builds import BENCHES, Pack, build_programs, build_unit, executable

    with tempfile.TemporaryDirectory() as folder:
        build = pathlib.Path(folder)
        pack = Pack(out, build, gpu.find_nvcc(), architecture, os.cpu_count(), 0)
        pack.build_seconds = 3600  # time on this machine is free
        table = Table(build, build, content["revision"])
        built = build_programs(pack, table, content["programs"], BENCHES)
        # The machine of the GPU may have another CPU.
        build_unit(pack, table, "HOST_ARCH=x86-64-v3")
        bench = systems.Bench(out, build, pack.nvcc, architecture, 0)
        for make in (llmc.build, systems.build_gemm) if (out / "llm.c").exists() else (systems.build_gemm,):
            program, said = make(bench)
            table.add(f"build: {make.__module__}", "" if program else said)
        # A window wider than several programs: the runtime, which is in each, is packed once.
        filters = [{"id": lzma.FILTER_LZMA2, "preset": 2, "dict_size": 64 << 20}]
        with lzma.open(out / ARCHIVE, "wb", filters=filters) as file, tarfile.open(fileobj=file, mode="w") as archive:
            for path in [build / "unit/unit_tests", build / "llm.c/train_gpt2cu", build / "llm.c/name.txt",
                         *(build / name for name in (*BENCHES, "gemm_ceiling"))]:
                if path.exists():
                    archive.add(path, pathlib.Path("build") / path.relative_to(build))
            for name in built - set(BENCHES):
                path = executable(pack, name)
                archive.add(path, path.relative_to(out))
                path.unlink()
        return table.failed()


def is_empty(folder):
    """Has nothing compiled?"""
    with tarfile.open(folder / ARCHIVE) as archive:
        return not archive.getnames()


def is_for(folder, architecture):
    """Has the pack there what it wants built, for such a GPU?"""
    return (folder / ARCHIVE).exists() and json.loads((folder / "pack.json").read_text()).get("compiled") == architecture


def compiler(folder, architecture):
    """The version of nvcc that has compiled what is packed for such a GPU; nothing if nothing is."""
    return json.loads((folder / "pack.json").read_text()).get("nvcc", "") if is_for(folder, architecture) else ""


def unpack(pack):
    """Puts all of it where it would be built. False: it is for no such GPU."""
    if not is_for(pack.folder, pack.architecture):
        return False
    # What an earlier pack has left there is replaced.
    digest, mark = hashlib.sha256((pack.folder / ARCHIVE).read_bytes()).hexdigest(), pack.build / "prebuilt"
    same = mark.exists() and mark.read_text() == digest
    with tarfile.open(pack.folder / ARCHIVE) as archive:
        for member in archive.getmembers():
            first, _, rest = member.name.partition("/")
            target = pack.build / rest if first == "build" else pack.folder / member.name
            if member.isfile() and ".." not in member.name and not (same and target.exists()):
                target.parent.mkdir(parents=True, exist_ok=True)
                member.name = target.name
                archive.extract(member, target.parent)
    pack.build.mkdir(parents=True, exist_ok=True)
    mark.write_text(digest)
    # It was linked with libraries of another machine's folders.
    homes = [os.path.dirname(library.library) for library in (pack.cublas, pack.nccl, pack.cudnn) if library.home]
    os.environ["LD_LIBRARY_PATH"] = os.pathsep.join([*homes, *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])
    return True
