# no_room.sh FOLDER PROGRAM bytes|inodes|older [OPTIONS]: trains with checkpoints on a file system that has no room for the last one, until the first
# warning: a filler takes the bytes or the inodes, or older checkpoints do.
folder=$1 program=$2 mode=$3
shift 3
mount -t tmpfs -o "size=$([ "$mode" = older ] && echo 600k || echo 1m),nr_inodes=64" tmpfs "$folder" || exit 1
filler=$folder/filler
mkdir "$filler"
case $mode in
bytes) head -c 900000 /dev/zero > "$filler/0" ;;
inodes)
  i=0
  while touch "$filler/$i" 2> /dev/null; do i=$((i + 1)); done
  rm "$filler/0" "$filler/1" ;; # for the folder, and a mark in it
older) filler=$folder/saved/step-1 ;;
esac
: > "$folder.err"
"$program" --data text:/usr/share/common-licenses/GPL-3 --init seed:1 --steps 3 --checkpoint "$folder/saved" "$@" > "$folder.out" 2> "$folder.err" &
until grep -q "tried again" "$folder.err" || ! kill -0 $!; do sleep 0.1; done
rm -r "$filler"
wait $!
echo "status $?" >> "$folder.err"
cat "$folder.err"
ls "$folder/saved"
