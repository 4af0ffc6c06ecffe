# no_room.sh FOLDER PROGRAM: trains with checkpoints on a file system that is full until the first warning.
mount -t tmpfs -o size=1m tmpfs "$1" || exit 1
head -c 900000 /dev/zero > "$1/filler"
"$2" --data text:/usr/share/common-licenses/GPL-3 --init seed:1 --steps 3 --checkpoint "$1/saved" > "$1.out" 2> "$1.err" &
until grep -q "tried again" "$1.err" || ! kill -0 $!; do sleep 0.1; done
rm "$1/filler"
wait $!
echo "status $?" >> "$1.err"
cat "$1.err"
ls "$1/saved"
