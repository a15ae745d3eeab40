# SPDX-License-Identifier: Apache-2.0
#
# The first process of a host, in namespaces of its own, until systemd takes its place. It is told to go on when it is in its
# control groups and on its network.
#   $1 name, $2 address, $3 directory of programs, $4 mark, $5 what to do; the rest are control groups, like cgroup:memory.
# BOOT is this text.
set -eu
if [ "$5" = wait ]; then
	read -r go
	[ "$go" = go ]
	name=$1 address=$2 bin=$3 mark=$4
	shift 5
	# The roots of what it sees of control groups are those that it is in now.
	exec unshare --cgroup /bin/sh -c "$BOOT" boot "$name" "$address" "$bin" "$mark" boot "$@"
fi
name=$1 address=$2 bin=$3 mark=$4
shift 5
exec <&-

# Nothing that is mounted from here on is seen outside, and the disk goes with the host.
mount --make-rprivate /
hostname "$name"
root=/mnt
mount -t tmpfs -o mode=755 tmpfs "$root"
cd "$root"
mkdir -p dev etc/systemd/system home mnt opt/muster/bin proc root run srv sys tmp usr var/cache var/lib var/log/journal var/tmp .old
chmod 1777 tmp var/tmp
chmod 700 root

for path in /bin /sbin /lib /lib32 /lib64 /libx32; do
	if [ -L "$path" ]; then
		ln -s "$(readlink "$path")" ".$path"
	elif [ -d "$path" ]; then
		mkdir ".$path"
		mount --rbind "$path" ".$path"
		mount -o remount,bind,ro ".$path"
	fi
done
mount --rbind /usr usr
mount -o remount,bind,ro usr
# What the machine's owner installs is the host's own.
mount -t tmpfs -o mode=755 tmpfs usr/local
mkdir usr/local/bin usr/local/sbin
mount --bind "$bin" opt/muster/bin
mount -o remount,bind,ro opt/muster/bin

mount -t proc -o nosuid,nodev,noexec proc proc
# The kernel is everybody's: its settings are not the host's to change, except those of its own network.
for path in bus fs irq sys sysrq-trigger; do
	[ -e "proc/$path" ] || continue
	mount --rbind "proc/$path" "proc/$path"
	mount -o remount,bind,ro "proc/$path"
done
mount --bind proc/sys/net proc/sys/net
mount -o remount,bind,rw proc/sys/net
# What a kubelet sets, or insists on (pkg/kubelet/cm, setupKernelTunables), it finds in files of the host's own.
mkdir -p run/kernel
mount -t tmpfs -o nosuid,nodev,mode=755 tmpfs run
mkdir run/kernel run/lock
for setting in kernel/keys/root_maxbytes=25000000 kernel/keys/root_maxkeys=1000000 kernel/panic=10 kernel/panic_on_oops=1 \
	vm/overcommit_memory=1 vm/panic_on_oom=0; do
	[ -e "proc/sys/${setting%%=*}" ] || continue
	file=run/kernel/$(echo "${setting%%=*}" | tr / .)
	echo "${setting#*=}" >"$file"
	mount --bind "$file" "proc/sys/${setting%%=*}"
done
# A host that swaps would be one that kubeadm refuses; whether this one does is not its affair.
echo "Filename				Type		Size		Used		Priority" >run/kernel/swaps
[ ! -e proc/swaps ] || mount --bind run/kernel/swaps proc/swaps
# A container in a user namespace may mount proc only where one is seen without mounts over it (fs/namespace.c, mnt_already_visible).
mkdir run/kernel/proc
mount -t proc proc run/kernel/proc

mount -t sysfs -o nosuid,nodev,noexec sysfs sys
mount -o remount,bind,ro,nosuid,nodev,noexec sys
if [ "$1" = cgroup2 ]; then
	mount -t cgroup2 -o nosuid,nodev,noexec cgroup2 sys/fs/cgroup
else
	mount -t tmpfs -o mode=755 tmpfs sys/fs/cgroup
	for options; do
		options=${options#cgroup:}
		directory=sys/fs/cgroup/${options#name=}
		mkdir "$directory"
		mount -t cgroup -o "nosuid,nodev,noexec,$options" cgroup "$directory"
		case $options in
		*,*) for controller in $(echo "$options" | tr , ' '); do ln -s "$options" "sys/fs/cgroup/$controller"; done ;;
		esac
	done
	# systemd mounts what controllers are missing, which would make hierarchies that this machine has not; here it cannot.
	mount -o remount,bind,ro sys/fs/cgroup
fi

mount -t tmpfs -o nosuid,mode=755 tmpfs dev
for device in "null 1 3" "zero 1 5" "full 1 7" "random 1 8" "urandom 1 9" "tty 5 0"; do
	set -- $device
	mknod -m 666 "dev/$1" c "$2" "$3"
done
# The kernel's log is everybody's, too: an empty one.
mknod -m 600 dev/kmsg c 1 3
mkdir dev/pts dev/shm dev/mqueue
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
mount -t tmpfs -o nosuid,nodev,mode=1777 tmpfs dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ln -s /proc/self/fd/0 dev/stdin
ln -s /proc/self/fd/1 dev/stdout
ln -s /proc/self/fd/2 dev/stderr
ln -s /run var/run

echo "$name" >etc/hostname
printf '127.0.0.1 localhost\n::1 localhost\n%s %s\n' "$address" "$name" >etc/hosts
tr -d - </proc/sys/kernel/random/uuid >etc/machine-id
printf 'passwd: files\ngroup: files\nhosts: files dns\n' >etc/nsswitch.conf
printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n' >etc/passwd
printf 'root:x:0:\ntty:x:5:\nnogroup:x:65534:\n' >etc/group
echo "# The VPC has no name server." >etc/resolv.conf
ln -s ../usr/lib/os-release etc/os-release
for path in ld.so.cache ld.so.conf protocols services; do
	[ ! -e "/etc/$path" ] || cp "/etc/$path" "etc/$path"
done
for path in alternatives ld.so.conf.d ssl; do
	[ ! -d "/etc/$path" ] || cp -a "/etc/$path" "etc/$path"
done
# systemctl enable must find no other machine's links; units for hardware, logins and the whole kernel are not wanted here.
ln -s /lib/systemd/system/multi-user.target etc/systemd/system/default.target
for unit in dbus.service dbus.socket systemd-logind.service getty.target systemd-firstboot.service systemd-binfmt.service \
	proc-sys-fs-binfmt_misc.automount sys-kernel-config.mount sys-kernel-debug.mount sys-kernel-tracing.mount dev-hugepages.mount \
	sys-fs-fuse-connections.mount systemd-modules-load.service kmod-static-nodes.service systemd-udevd.service systemd-udev-trigger.service \
	systemd-journald-audit.socket systemd-sysctl.service systemd-random-seed.service systemd-update-utmp.service; do
	ln -s /dev/null "etc/systemd/system/$unit"
done
# With control groups of version 1, systemd is not told here that a unit has none left but its main process: it waits, 90 s by itself.
mkdir -p etc/systemd/system.conf.d
printf '[Manager]\nDefaultTimeoutStopSec=5s\n' >etc/systemd/system.conf.d/host.conf
mkdir -p etc/systemd/journald.conf.d
printf '[Journal]\nStorage=volatile\nReadKMsg=no\nRateLimitIntervalSec=0\n' >etc/systemd/journald.conf.d/host.conf

pivot_root . .old
cd /
umount -l /.old
rmdir /.old
# Volumes that the kubelet mounts must be seen in containers that are there already.
mount --make-rshared /
exec env -i "$mark" container=other PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
	/lib/systemd/systemd --system --log-target=journal --show-status=no
