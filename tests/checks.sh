# tests/checks.sh - for scripts that check commands: sourced first, it leaves the script in an empty folder, $work, that goes
# with it. Each check says what it expected; the script goes on after a failure and ends with finish_checks.
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0

fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
# run EXPECTED_EXIT_CODE COMMAND...: output in files out and err
run() {
  expected=$1; shift
  "$@" >out 2>err </dev/null
  code=$?
  [ "$code" = "$expected" ] || { fail "expected exit code $expected, found $code: $*"; sed 's/^/    /' err | head -n 8; }
}
says() { grep -q -e "$1" out || { fail "expected '$1' on standard output"; head -n 8 out; }; }
complains() { grep -q -e "$1" err || { fail "expected '$1' on standard error"; head -n 8 err; }; }
silent() { [ ! -s out ] || fail "expected nothing on standard output"; }
finish_checks() { [ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }; }
