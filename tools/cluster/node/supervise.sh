#!/bin/sh
# Restarts one program of a node when it ends, as a service manager does.
# usage: supervise.sh NAME CGROUP PROGRAM [ARGUMENT…]   (output goes to /run/kf/log/NAME.log)
name=$1
cgroup=$2
shift 2
for file in /sys/fs/cgroup/"$cgroup"/cgroup.procs /sys/fs/cgroup/*/"$cgroup"/cgroup.procs; do
  if [ -e "$file" ]; then echo 0 >"$file"; fi
done
exec >>"/run/kf/log/$name.log" 2>&1 </dev/null
while :; do
  "$@" &
  echo $! >"/run/kf/pids/$name"
  wait $!
  echo "$(date -Is) $name ended with exit code $?, starts again in 1 s"
  sleep 1
done
