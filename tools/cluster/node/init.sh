#!/bin/sh
# Process 1 of a cluster's namespaces. Prepares the mounts that separate this node from the host and from other
# clusters, then only reaps orphans. When it ends, the kernel ends every process and removes every mount in it.
# usage: init.sh STATE-FOLDER NODE-NAME CGROUP   (the folder becomes /run/kf inside)
set -eu
state=$1
node=$2
cgroup=$3

# First, because this process can be found by its cgroup even if its pid was not recorded.
for file in /sys/fs/cgroup/"$cgroup"/cgroup.procs /sys/fs/cgroup/*/"$cgroup"/cgroup.procs; do
  if [ -e "$file" ]; then echo 0 >"$file"; fi
done

mount --make-rprivate /
# Programs write to these places under fixed names. If they were shared, one kubelet would remove another's logs and networks,
# and traces would stay on the host.
mkdir -p "$state/mounts/run"
mount -t tmpfs -o mode=755 tmpfs "$state/mounts/run"
mkdir -p "$state/mounts/run/kf" "$state/mounts/run/netns"
mount --bind "$state" "$state/mounts/run/kf"
mount -n --move "$state/mounts/run" /run
# The files of the host stay visible (there may be a checkout or a cache); writes go to memory.
for folder in lib log; do
  mkdir -p "/run/over/$folder/upper" "/run/over/$folder/work"
  mount -t overlay -o "lowerdir=/var/$folder,upperdir=/run/over/$folder/upper,workdir=/run/over/$folder/work" overlay "/var/$folder"
done
for folder in containerd etcd kubelet registry volumes; do
  mkdir -p "/var/lib/$folder" "/run/kf/data/$folder"
  mount --bind "/run/kf/data/$folder" "/var/lib/$folder"
done
# As on any node: mounts made by the container runtime must reach the kubelet's view.
mount --make-rshared /

echo "$node" >/proc/sys/kernel/hostname
touch /run/ready
cd /
while :; do
  sleep 1000000 &
  wait
done
