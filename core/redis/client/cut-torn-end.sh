#!/bin/sh
# Takes an unfinished write off the end of Redis' append-only file, then runs the command given, if there is one:
#
#   sh cut-torn-end.sh FOLDER redis-server --dir FOLDER --aof-load-truncated no ...
#
# A crash may tear a write off anywhere. By itself Redis 7.0 cuts the file after the last whole command, even inside of MULTI: what
# is left of the transaction joins the next one, and the start after this one applies it (valkey-io/valkey#4342).
# Other damage is left to Redis, and so is damage before a whole transaction, which was acknowledged.
set -eu

files=$1/appendonlydir
shift

# $1: a manifest that names one part, and beside it a link to the part. Without a manifest, redis-check-aof takes a part for one as
# soon as a line of a value begins with "file".
cut_torn_end() {
  if found=$(redis-check-aof "$1"); then return; fi
  case $found in *'format error'*) return ;; esac
  whole=$(echo "$found" | sed -n 's/.*ok_up_to=\([0-9]*\),.*/\1/p')
  # A line that is torn after "EXEC" is none.
  if (tail -c "+$((whole + 1))" "$2" && echo .) | grep -aq "^EXEC$(printf '\r')$"; then return; fi
  echo y | redis-check-aof --fix "$1"
}

# Only the last part is written to, and reading the others takes as long as loading them.
last=$(sed -n 's/^file \(.*\) seq [0-9]* type i$/\1/p' "$files/appendonly.aof.manifest" 2> /dev/null | tail -n 1)
if [ -n "$last" ] && [ -s "$files/$last" ] && command -v redis-check-aof > /dev/null; then
  alone=$(mktemp -d)
  (
    trap 'rm -r "$alone"' EXIT
    ln -s "$(cd "$files" && pwd)/$last" "$alone/$last"
    echo "file $last seq 1 type i" > "$alone/manifest"
    cut_torn_end "$alone/manifest" "$alone/$last"
  )
fi
[ $# -eq 0 ] || exec "$@"
