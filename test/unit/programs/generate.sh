#!/bin/sh
# generate.sh OPT FOLDER FILE written|owner|all-reduce cpu|cuda: the files of a
# program of the step that is written in FILE, or of the one that its stages are
# unrolled to, in which the owner of a weight updates it, or all that hold it.
set -e
opt=$1 folder=$2 file=$3 target=$5
rm -rf "$folder"
mkdir -p "$folder"
if [ "$4" != written ]; then
  sed -e 's/ {pipe.all_reduced}//' -e '/^  pipe.step/,$d' "$file" > "$folder/input.mlir"
  echo '}' >> "$folder/input.mlir"
  set -- --pipewright-unrolled \
    "--pipewright-scheduled=policy=gpipe ranks=3 tied-weights=$4"
else
  cp "$file" "$folder/input.mlir"
  set -- --pipe-verify-unrolled --pipe-insert-transfers --pipe-verify-schedule
fi
streams=true
[ "$target" = cuda ] || streams=false
"$opt" "$folder/input.mlir" "$@" "--pipewright-allocated=assign-streams=$streams" \
  "--print-host=target=$target" -o /dev/null \
  > "$folder/all.txt"
awk -v folder="$folder" \
  '/^\/\/ ===== / { file = folder "/" $3; next } { print > file }' "$folder/all.txt"
