# Sourced by script tests: a work folder of their own, and a check of one command.
# Takes the program and the source folder; sets program, source, work and failed.
program=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

# expect CODE PATTERN COMMAND...: exit code, and a pattern in what was printed (stdout or stderr).
expect() {
    local code=$1 pattern=$2
    shift 2
    timeout 1800 "$@" >out 2>err
    local got=$?
    if [ "$got" -ne "$code" ] || ! grep -qE -- "$pattern" out err; then
        echo "FAIL: $*"
        echo "  exit $got, expected $code, pattern '$pattern'"
        head -5 out err
        failed=1
    fi
}
