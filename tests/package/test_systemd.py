# SPDX-License-Identifier: MIT
"""The units under a real systemd, the first process of a Debian root: system units, and those of a
user's systemd."""

import pytest
from test_packages import built

PRELUDE = r"""
PS4='$(date +%T) + '
dpkg -i /kx/kxfs_*.deb
useradd --create-home --uid 1000 me
ln -sf ../proc/self/mounts /etc/mtab # fusermount3 reads it
until_true() {
	local -
	set +x
	for i in {1..600}; do "$@" && return; sleep 0.2; done
	return 1
}
fails() {
	! "$@"
}
mounted() {
	grep -q " $mnt .* - $1 " /proc/self/mountinfo
}
job() { # NAME COMMAND
	printf 'name: %s\nroles:\n- {name: main, image: none, entrypoint: sh, args: [-c, "%s"]}\n' "$1" "$2"
}
WAITS='echo begun; until test -e /kx/go; do sleep 0.1; done'
"""

# systemctl and the owner's programs, and the mount point with its instance.
SYSTEM = """
ctl() { systemctl "$@"; }
me() { "$@"; }
mnt=/mnt/kx instance=kxfs@mnt-kx.service
"""
# As user@1000.service runs it, but without PAM, which needs D-Bus.
USER = """
mkdir -p /run/user/1000
chown me: /run/user/1000
cat > /etc/systemd/system/user-systemd.service <<'END'
[Service]
User=me
Type=notify
Environment=XDG_RUNTIME_DIR=/run/user/1000
ExecStart=/lib/systemd/systemd --user
Delegate=yes
KillMode=mixed
END
systemctl start user-systemd.service
me() { setpriv --reuid=me --regid=me --clear-groups env HOME=/home/me XDG_RUNTIME_DIR=/run/user/1000 "$@"; }
ctl() { me systemctl --user "$@"; }
mnt=$(echo ~me)/kx instance=kxfs@home-me-kx.service
"""

LIFE = r"""
me mkdir $mnt
cd /home/me

# It mounts; a job runs on when the daemon dies, and the next one has it.
ctl start $instance
job first "$WAITS" | me tee $mnt/submit/first.yaml > /dev/null
until_true me grep -qx begun $mnt/submit/first.yaml.job/main-0/log
kill -KILL $(ctl show -P MainPID $instance)
tried_again() { test $(ctl show -P NRestarts $instance) -gt 0; }
until_true tried_again
until_true ctl is-active $instance
test "$(me cat $mnt/submit/first.yaml.job/state)" = RUNNING
touch /kx/go
test "$(me cat $mnt/submit/first.yaml.job/wait)" = SUCCEEDED
ctl stop $instance
fails mounted fuse.kxfs

# A mount of another kxfs is there. The start fails, and takes nothing away, also when it is tried again, and stopped.
rm /kx/go
me kxfs -o state=$(echo ~me)/other local: $mnt
job other "$WAITS" | me tee $mnt/submit/other.yaml > /dev/null
until_true me grep -qx begun $mnt/submit/other.yaml.job/main-0/log
fails ctl start $instance
until_true tried_again
ctl stop $instance
mounted fuse.kxfs
test "$(me cat $mnt/submit/other.yaml.job/state)" = RUNNING
touch /kx/go
test "$(me cat $mnt/submit/other.yaml.job/wait)" = SUCCEEDED
umount $mnt
until_true fails grep -qsx kxfs /proc/[0-9]*/comm

# Another file system is there.
mount -t tmpfs foreign $mnt
touch $mnt/file
fails ctl start $instance
until_true tried_again
ctl stop $instance
mounted tmpfs
test "$(ls $mnt)" = file
umount $mnt
"""

# How services write job files: the settings of a service, and of its timer.
WRITES = r"""
mkdir /mnt/kx
systemctl start kxfs@mnt-kx.service
cd /mnt/kx/submit
write_unit() { # NAME LINE...
	local name=$1
	shift
	printf '%s\n' '[Service]' Type=oneshot "$@" > /run/systemd/system/$name.service
	systemctl daemon-reload
}
count() { ls -d /mnt/kx/jobs/* | wc -l; }
check() { # NAME STATUS: it launches one job of a file that is right, and none of a file that is wrong, and has STATUS then
	local before=$(count)
	job $1 true > /kx/app.yaml
	systemctl start $1.service
	until_true test -L $1.yaml.job
	test "$(cat $1.yaml.job/wait)" = SUCCEEDED
	cmp $1.yaml /kx/app.yaml
	test $(count) = $((before + 1)) -a ! -e $1.yaml.error
	rm $1.yaml.job
	echo nonsense: 1 > /kx/app.yaml
	if systemctl start $1.service; then test $2 = 0; else test $2 = 1; fi
	until_true grep nonsense $1.yaml.error
	test $(count) = $((before + 1)) -a ! -e $1.yaml.job
}
write_unit cp 'ExecStart=/bin/cp /kx/app.yaml /mnt/kx/submit/cp.yaml'
write_unit shell 'ExecStart=/bin/sh -c "cat /kx/app.yaml > /mnt/kx/submit/shell.yaml"'
write_unit confined 'ExecStart=/bin/sh -c "cat /kx/app.yaml > /mnt/kx/submit/confined.yaml"' ProtectSystem=strict PrivateTmp=yes \
	ReadWritePaths=/mnt/kx/submit
write_unit two 'ExecStart=/bin/cp /kx/app.yaml /mnt/kx/submit/.two' 'ExecStart=/bin/mv /mnt/kx/submit/.two /mnt/kx/submit/two.yaml'
write_unit file 'ExecStart=/bin/cat /kx/app.yaml' StandardOutput=truncate:/mnt/kx/submit/file.yaml
write_unit input ExecStart=/bin/cat StandardInput=file:/kx/app.yaml StandardOutput=truncate:/mnt/kx/submit/input.yaml
for name in cp two file input; do check $name 1; done
for name in shell confined; do check $name 0; done # dash does not look at what its last close returns

# A timer starts it.
write_unit timed 'ExecStart=/bin/cp /kx/app.yaml /mnt/kx/submit/timed.yaml'
printf '%s\n' '[Timer]' OnActiveSec=0 AccuracySec=1ms > /run/systemd/system/timed.timer
systemctl daemon-reload
job timed true > /kx/app.yaml
before=$(count)
systemctl start timed.timer
until_true test -L timed.yaml.job
test "$(cat timed.yaml.job/wait)" = SUCCEEDED
test $(count) = $((before + 1))

# cron and at, which have their daemons.
echo '* * * * * root rm /kx/armed && cp /kx/app.yaml /mnt/kx/submit/cron.yaml' > /etc/cron.d/kxfs
touch /kx/armed
systemctl start cron atd
echo 'cat /kx/app.yaml > /mnt/kx/submit/at.yaml' | at now
for name in at cron; do
	until_true test -L $name.yaml.job
	test "$(cat $name.yaml.job/wait)" = SUCCEEDED
done
test $(count) = $((before + 3))
cd /
systemctl stop kxfs@mnt-kx.service
"""


@pytest.mark.parametrize("owner", [SYSTEM, USER], ids=["system", "user"])
def test_unit(packages, full, booted, owner):
    booted(full, PRELUDE + owner + LIFE, built(packages, "kxfs_*.deb"))


def test_services_write_job_files(packages, full, booted):
    booted(full, PRELUDE + WRITES, built(packages, "kxfs_*.deb"))
