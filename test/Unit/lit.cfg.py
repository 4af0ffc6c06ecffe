# The gtest programs: whatever in build/bin ends in Tests or _tests.
import os

import lit.formats

config.name = "partita-unit"
config.test_exec_root = os.path.join(config.partita_build, "bin")
config.test_source_root = config.test_exec_root
config.test_format = lit.formats.GoogleTest("", "Tests")
config.test_format.test_suffixes = {"Tests", "_tests"}
config.environment["OPENBLAS_NUM_THREADS"] = "1"
