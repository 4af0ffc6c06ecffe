# lit -D plugin=PLUGIN.so FOLDER: partita-opt and FileCheck are those of the PATH, and what lit writes goes beside the plugin.
import os

import lit.formats

plugin = lit_config.params["plugin"]
config.name = "plugin"
config.test_format = lit.formats.ShTest()
config.suffixes = [".mlir"]
config.test_exec_root = os.path.dirname(plugin)
config.substitutions.append(("%plugin", plugin))
