#!/usr/bin/python3
"""Judges lines of EVE by the schema that Suricata publishes: etc/schema.json of its sources.

    packaging/eve-test.py SCHEMA < eve.json

The status is 0 where all lines are valid, and 1 where one is not, which is printed with what is wrong
about it, or where there is none. It is 3 where Python's jsonschema is missing (Debian's
python3-jsonschema).
"""

import json
import sys

# What Suricata itself writes of live traffic (its user guide, "EVE JSON Format"); the schema is made
# from captures, and up to 7.0 it lacks both.
OF_LIVE_TRAFFIC = ["in_iface", "host"]


def main():
    try:
        import jsonschema
    except ImportError:
        print("no Python module jsonschema", file=sys.stderr)
        return 3
    with open(sys.argv[1], encoding="utf-8") as schema:
        schema = json.load(schema)
    judge = jsonschema.validators.validator_for(schema)(schema)
    count = 0
    for line in sys.stdin:
        event = json.loads(line)
        judged = {key: value for key, value in event.items() if key not in OF_LIVE_TRAFFIC}
        for error in judge.iter_errors(judged):
            print(f"{line}{'.'.join(map(str, error.path))}: {error.message}", file=sys.stderr)
            return 1
        count += 1
    print(f"{count} lines are valid", file=sys.stdout if count else sys.stderr)
    return 0 if count else 1


sys.exit(main())
