#!/bin/sh
# Runs a script with the Python that GROVE_PYTHON names, else python3; without one the test is skipped.
python=${GROVE_PYTHON:-python3}
command -v "$python" >/dev/null 2>&1 || exit 77
exec "$python" "$@"
