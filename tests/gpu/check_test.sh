#!/bin/sh
# check.sh with small models on the emulated device: it passes; with too little time, and when it is killed, there is a
# report of what was found until then.
#
#     check_test.sh CHECK.SH BUILD FOLDER
set -eu
fail() {
  echo "FAILED: $*" >&2
  exit 1
}
# in_report TEXT
in_report() { grep -q -e "$1" "$folder/report.json" || fail "the report lacks $1: $(cat "$folder/report.json")"; }
# checks: how many the report has, when it is well formed
checks() { "$folder/check_tool" report "$folder/report.json" || fail "no report: $(cat "$folder/report.json")"; }

"$1" prepare "$2" "$3" small
folder=$(cd "$3" && pwd)

CHECK_SECONDS=3600 "$folder/check.sh" run "$folder" "$folder/copy.json" || fail "$(cat "$folder/report.json")"
[ "$(checks)" -ge 20 ] || fail "only $(checks) checks"
in_report '"passed": true, "complete": true'
in_report '"check": "step_time.10", "passed": true'
in_report '"check": "memory", "passed": true'
cmp "$folder/report.json" "$folder/copy.json"
all=$(checks)

code=0
CHECK_SECONDS=0 "$folder/check.sh" run "$folder" >/dev/null 2>&1 || code=$?
[ $code = 1 ] || fail "exit code $code without any time"
checks >/dev/null
in_report '"passed": false, "complete": true'
in_report '"check": "model.gpt2", "passed": false, .*no time left'

CHECK_SECONDS=3600 "$folder/check.sh" run "$folder" >/dev/null 2>&1 &
process=$!
for _ in $(seq 600); do
  sleep 0.2
  ! grep -q '"check": "tests.operators"' "$folder/report.json" 2>/dev/null || break
done
kill -9 $process
wait $process 2>/dev/null || true
in_report '"complete": false'
[ "$(checks)" -ge 1 ] && [ "$(checks)" -lt "$all" ] || fail "$(checks) checks when killed"
