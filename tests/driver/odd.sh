#!/bin/sh
# usage: odd.sh REPRISE
# Odd surroundings and odd models: pipes and full devices as outputs, closed streams, states that change places.
set -u
reprise=$1
. "$(dirname "$0")/../checks.sh"

cat >swap.rp <<'MODEL'
model Swap(x: [2, 2]) {
  param w: [2, 2] = constant(3)
  param u: [2, 2] = constant(5)
  state s: [] = constant(7)
  state t: [] = constant(9)
  state m: [2, 2] = zeros
  state n: [2, 2] = normal(1)
  a, b = s, t
  update s = b
  update t = a
  update m = transpose(m) + 1
  update n = transpose(n)
  output old_s=a, old_t=b, new_s=s, first=w[0, 0], w
  loss sum(w*u) + 0.0*sum(w*n)
}
train Swap { data x = constant(1); optimizer sgd(lr=0.5) }
MODEL

# ---- values are those from before the step, whatever is overwritten meanwhile ----
run 0 "$reprise" verify swap.rp; says "program against interpreter.*ok"
run 0 "$reprise" compile swap.rp -o swap
run 0 ./swap --steps 2 --poison --save swap.st
says '"loss":60\.0,.*"old_s":7\.0,"old_t":9\.0,"new_s":9\.0,"first":3\.0'
says '"loss":7\.0,.*"old_s":9\.0,"old_t":7\.0,"new_s":7\.0,"first":0\.5' # w = 3 - 5/2, u = 5 - 3/2
run 0 ./swap --print; says "grad.w .*= 5 5 5 5"; says "grad.u .*= 3 3 3 3"
sed 's/lr=0.5)/lr=0.5); accumulate 2/' swap.rp >twice.rp
run 0 "$reprise" verify twice.rp; says "program against interpreter.*ok"
run 0 "$reprise" compile twice.rp -o twice
run 0 ./twice --steps 1; says '"old_s":8\.0,"old_t":8\.0,"new_s":8\.0,"first":3\.0'

# ---- the loss is a parameter itself ----
printf 'model M(x: []) { param w: [] = constant(2)\n loss w }\ntrain M { data x = constant(1); optimizer sgd(lr=0.1) }\n' >bare.rp
run 0 "$reprise" verify bare.rp; says "finite differences: 1 element.*ok"

# ---- values that an input does not hold, numbers out of range ----
for line in 'u8[2]:300' 'u8[2]:-1' 'u8[2]:1.5' 'i32[2]:1e300' 'bool[2]:2' '[2]:1e300'; do
  printf 'model M(x: %s) {\n  param w: [2] = ones\n  loss sum(w*f32(x))\n}\ntrain M { data x = constant(%s); optimizer sgd(lr=1) }\n' \
    "${line%:*}" "${line#*:}" >constant.rp
  run 1 "$reprise" check constant.rp; complains "constant.rp:5:.*does not hold"
done
python3 -c 'print("model M(x: [4]) { " + "a."*100000 + "b = x\n loss mean(x) }")' >long.rp
run 1 "$reprise" check long.rp; complains "this path has more than 256 words"

# ---- outputs that are no files stay what they are ----
mkfifo pipe
run 4 "$reprise" compile swap.rp -o pipe; complains "not a regular file"
run 4 ./swap --steps 1 --save pipe; complains "not a regular file"
timeout 60 cat pipe >plan.json & # a reader
run 0 "$reprise" plan swap.rp -q --plan-out=pipe; wait
grep -q '"reprise-plan"' plan.json || fail "the plan did not go through the pipe"
[ -p pipe ] || fail "the pipe was replaced"

# ---- what cannot be printed is an error ----
if [ -c /dev/full ]; then
  for command in "check swap.rp" "plan swap.rp" "compile swap.rp -o again" --help; do
    "$reprise" $command >/dev/full 2>err </dev/null
    [ $? = 4 ] || fail "$command on a full device: expected exit code 4"
    complains "cannot write to standard output"
  done
fi
"$reprise" check swap.rp >&- 2>err </dev/null; [ $? = 4 ] || fail "closed standard output: expected exit code 4"
"$reprise" compile swap.rp --emit=c -o code.c <&- >&- 2>&-
"$reprise" compile swap.rp --emit=c -o open.c >/dev/null 2>&1 </dev/null
cmp -s code.c open.c || fail "closed streams: what is printed went into a file"
./swap --steps 2 --save closed.st --log closed.log <&- >&- 2>&-
cmp -s closed.st swap.st 2>/dev/null || [ ! -e closed.st ] || fail "closed streams: what is printed went into the weights"
finish_checks
