#!/bin/sh
# Removes an unfinished write from the end of Redis' append-only file, then runs the command given, if there is one:
#
#   sh cut-torn-end.sh FOLDER redis-server --dir FOLDER --aof-load-truncated no ...
#
# A crash may cut a write short anywhere. If it does so within a command, Redis 7.0 removes that command alone, even inside of MULTI:
# what is left of the transaction joins the next one, and the start after this one applies it (valkey-io/valkey#4342).
# Zeros at the end, which a power cut leaves where a file has grown and its blocks were not written, go with the write that they belong
# to. Other damage is left to Redis, and so are damage before a whole transaction, which was acknowledged, and a file that cannot be
# examined: standard error says so. With `aof-load-truncated no`, Redis refuses a file that ends in the middle of a write.
set -eu

files=$1/appendonlydir
manifest=$files/appendonly.aof.manifest
shift

# Whether a transaction ends in what is read. A line without an end is none.
has_whole_transaction() {
  (cat && echo .) | LC_ALL=C sed -n '/^\*1.$/{n;/^\$4.$/{n;/^EXEC'"$(printf '\r')"'$/p;};}' | grep -q .
}

# Where a write is cut short something is missing. Here something else stands in its place.
is_format_error() {
  case $1 in *'format error'* | *'Expected prefix'* | *Unexpected* | *'got: '[1-9a-f]???*) return 0 ;; esac
  return 1
}

# Whether what follows the first $3 bytes of the part is zeros, or an unfinished write and then zeros. A whole write ends in no zero.
ends_in_zeros() {
  [ "$(tail -c 1 "$1/$2" | od -An -tx1 | tr -d ' ')" = 00 ] || return
  kept=$(tail -c "+$(($3 + 1))" "$1/$2" | od -An -v -tx1 | tr -s ' ' '\n' | awk 'NF { n++; if ($1 != "00") last = n } END { print last + 0 }')
  [ "$kept" -gt 0 ] || return 0
  tail -c "+$(($3 + 1))" "$1/$2" | head -c "$kept" > "$1/rest" && echo "file rest seq 1 type i" > "$1/rest.manifest" || return
  rest=$(redis-check-aof "$1/rest.manifest") && return 1
  if is_format_error "$rest"; then return 1; fi
}

# $1: a folder with a link to the part and a manifest that names it alone. Without a manifest, redis-check-aof takes a part for one as
# soon as a line of a value begins with "file". $2: the part.
cut_torn_end() {
  ln -s "$(CDPATH='' cd -- "$files" && pwd)/$2" "$1/$2" && echo "file $2 seq 1 type i" > "$1/manifest" || return
  found=$(redis-check-aof "$1/manifest") && return
  whole=$(printf '%s\n' "$found" | sed -n 's/.*ok_up_to=\([0-9]*\),.*/\1/p')
  [ -n "$whole" ] || return
  if is_format_error "$found"; then ends_in_zeros "$1" "$2" "$whole" || return; fi
  if tail -c "+$((whole + 1))" "$1/$2" | has_whole_transaction; then return 1; fi
  echo y | redis-check-aof --fix "$1/manifest"
}

examine() {
  # Only the last part is written to, and reading the others takes as long as loading them. Redis 8 adds fields after the type.
  last=$(sed -n 's/^file \(.*\) seq [0-9]* type i\( .*\)\{0,1\}$/\1/p' "$manifest" | tail -n 1)
  [ -n "$last" ] && [ -s "$files/$last" ] || return 0
  alone=$(mktemp -d) || return
  status=0
  cut_torn_end "$alone" "$last" || status=$?
  rm -r "$alone"
  return "$status"
}

if [ -f "$manifest" ] && ! examine; then
  echo "cut-torn-end: $files was left as it is: it is damaged, or cannot be examined" >&2
fi
[ $# -eq 0 ] || exec "$@"
