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
manifest=$files/appendonly.aof.manifest

# $1: the part, $2: a manifest that names it alone. Without one, redis-check-aof takes a part for a manifest as soon as a line of a
# value begins with "file".
cut_torn_end() {
  if found=$(redis-check-aof "$2"); then return; fi
  case $found in *'format error'*) return ;; esac
  whole=$(echo "$found" | sed -n 's/.*ok_up_to=\([0-9]*\),.*/\1/p')
  # A line that is torn after "EXEC" is none.
  if (tail -c "+$((whole + 1))" "$1" && echo .) | grep -aq "^EXEC$(printf '\r')$"; then return; fi
  echo y | redis-check-aof --fix "$2"
}

if [ -f "$manifest" ] && command -v redis-check-aof > /dev/null; then
  # Only the last part is written to, and reading the others takes as long as loading them.
  last=$files/last-part.manifest
  grep ' type i$' "$manifest" | tail -n 1 > "$last"
  part=$files/$(cut -d ' ' -f 2 "$last")
  if [ -f "$part" ] && [ -s "$part" ]; then cut_torn_end "$part" "$last"; fi
  rm "$last"
fi
[ $# -eq 0 ] || exec "$@"
