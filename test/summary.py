# Counts what lit wrote with --output: names the tests that were skipped, and why, and those that failed, with the end of what
# they printed, since a log may be cut in its middle; says "N passed, N failed".
#
#   summary.py RESULTS.json
import json
import sys

PASSED = {"PASS", "FLAKYPASS", "XFAIL"}
SKIPPED = {"UNSUPPORTED", "SKIPPED", "EXCLUDED"}
LINES = 30  # of a failed test's output


def main():
    try:
        with open(sys.argv[1]) as file:
            tests = json.load(file)["tests"]
    except (OSError, ValueError, KeyError) as error:
        print(f"the test run left no results: {error}")
        print("0 passed, 1 failed")
        return 1
    passed = [test["name"] for test in tests if test["code"] in PASSED]
    skipped = {test["name"]: test.get("output", "").strip() for test in tests if test["code"] in SKIPPED}
    failed = [test for test in tests if test["code"] not in PASSED | SKIPPED]
    if not passed and not failed:
        failed = [{"name": "no test ran at all", "code": "FAIL"}]
    print(f"{len(skipped)} skipped" + (":" if skipped else ""))
    for name, reason in sorted(skipped.items()):
        print(f"  {name}" + (f" ({reason.splitlines()[0]})" if reason else ""))
    for test in sorted(failed, key=lambda test: test["name"]):
        print(f"{test['code'].lower()}: {test['name']}")
        for line in test.get("output", "").strip().splitlines()[-LINES:]:
            print(f"    {line}")
    print(f"{len(passed)} passed, {len(failed)} failed")
    return 1 if failed else 0


sys.exit(main())
