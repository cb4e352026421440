#!/bin/sh
# SPDX-License-Identifier: MIT
# Put kxfs in place from the unpacked archive, or take it away again. bin/kxfs also works where it is unpacked.
#
#	./install.sh PREFIX		install below PREFIX, like /usr/local
#	./install.sh --remove PREFIX	remove what that has installed
set -eu

here=$(dirname "$(readlink -f "$0")")
list=share/doc/kxfs/files

usage() {
	sed -n 's/^# \{0,1\}//; 3,6p' "$0" >&2
	exit 2
}

remove() {
	[ -f "$1/$list" ] || {
		echo "install.sh: $1/$list is not there: nothing was installed there" >&2
		exit 1
	}
	while read -r file; do
		rm -f "$1/$file"
	done <"$1/$list"
	# Directories that nobody else uses.
	sed 's|/[^/]*$||' "$1/$list" | sort -ru | while read -r dir; do
		(cd "$1" && rmdir -p "$dir") 2>/dev/null || :
	done
}

install() {
	while read -r file; do
		mkdir -p "$1/$(dirname "$file")"
		rm -f "$1/$file"
		cp -P -p "$here/$file" "$1/$file"
	done <"$here/$list"
	for kind in system user; do
		sed "s|^ExecStart=/usr/local/|ExecStart=$1/|" "$here/lib/systemd/$kind/kxfs@.service" \
			>"$1/lib/systemd/$kind/kxfs@.service"
	done
	echo "Installed below $1: $("$1/bin/kxfs" --version | head -n 1)"
	[ "$1" = /usr ] || echo "For mount -t kxfs and fstab, as root: ln -s $1/sbin/mount.kxfs /sbin/"
}

case ${1-} in
--remove) [ $# = 2 ] || usage ;;
-* | '') usage ;;
*) [ $# = 1 ] || usage ;;
esac
for prefix; do :; done
mkdir -p "$prefix"
prefix=$(readlink -f "$prefix")
case $1 in
--remove) remove "$prefix" ;;
*) install "$prefix" ;;
esac
