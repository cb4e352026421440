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
	# The list is one of the files.
	files=$(cat "$1/$list")
	cd "$1"
	printf '%s\n' "$files" | while read -r file; do
		rm -f "$file"
	done
	# Directories that nobody else uses.
	printf '%s\n' "$files" | sed 's|/[^/]*$||' | sort -ru | while read -r dir; do
		rmdir -p "$dir" 2>/dev/null || :
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
case $prefix in
*[[:space:]]*)
	echo "install.sh: $prefix: systemd would take this for two words" >&2
	exit 2
	;;
esac
mkdir -p "$prefix"
prefix=$(readlink -f "$prefix")
case $1 in
--remove) remove "$prefix" ;;
*) install "$prefix" ;;
esac
