# raise_export.sh MODEL.onnx FOLDER: raises the model, counts its ops, and runs it before and after.
set -e
dir=$2
partita import "$1" --dim batch=2 --dim sequence=12 -o $dir/import.mlir
partita-opt $dir/import.mlir -o $dir/before.mlir # without locations
partita-opt $dir/before.mlir -o $dir/after.mlir --pass-pipeline='builtin.module(canonicalize,cse,func.func(raise-layer-norm,raise-rms-norm,raise-activation,raise-rotate-half,raise-attention),canonicalize,cse)'
grep -o 'tx\.[a-z_]*' $dir/after.mlir | sort | uniq -c
# Both functions in one module, which share the parameters.
{
  sed '/^}/d' $dir/before.mlir
  sed -n '/func.func @forward/,/^  }/p' $dir/after.mlir | sed 's/@forward/@after/'
  echo '}'
} >$dir/both.mlir
cp "$1" $dir/
partita-interp $dir/both.mlir --equal forward,after --init file --tolerance 1e-6
echo agree
