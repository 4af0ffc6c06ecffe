# headers.py ROOT...: one line "#include ..." for each header below the folders, as it is included from there.
import os
import sys

for root in sys.argv[1:]:
    names = [os.path.relpath(os.path.join(folder, name), root) for folder, _, files in os.walk(root) for name in files
             if name.endswith(".h")]
    assert names, root
    print(*(f'#include "{name}"' for name in sorted(names)), sep="\n")
