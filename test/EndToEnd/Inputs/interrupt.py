"""interrupt.py LOG CHECKPOINT COMMAND...: ends a run by SIGTERM after its third step, and prints the step that it saved."""
import os
import re
import signal
import subprocess
import sys
import time

log, checkpoint, command = sys.argv[1], sys.argv[2], sys.argv[3:]
command += ["--steps", "1000000", "--log", log, "--checkpoint", checkpoint]
process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
for _ in range(6000):
    if os.path.exists(log) and len(open(log).readlines()) > 3:
        break
    assert process.poll() is None, process.communicate()
    time.sleep(0.01)
process.send_signal(signal.SIGTERM)
out, err = process.communicate(timeout=120)
assert process.returncode in (-signal.SIGTERM, 128 + signal.SIGTERM), (process.returncode, err)
step = int(re.search(r"step (\d+) of 1000000, ended by SIGTERM", out)[1])
assert len(open(log).readlines()) == 1 + step, "the log has other steps than the checkpoint"
print(step)
