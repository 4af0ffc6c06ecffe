# equal.sh BEFORE.mlir AFTER.mlir FUNCTION...: each function computes in both files the same.
set -e
before=$1 after=$2
shift 2
partita-opt "$before" -o "$after.plain"
for f in "$@"; do
  {
    grep '^module' "$after.plain"
    sed -n "/func.func @$f(/,/^  }/p" "$after.plain"
    sed -n "/func.func @$f(/,/^  }/p" "$after" | sed "s/@$f(/@${f}_after(/"
    echo "}"
  } >"$after.$f"
  partita-interp "$after.$f" --equal "$f,${f}_after"
done
