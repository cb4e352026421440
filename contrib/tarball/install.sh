#!/bin/sh
# SPDX-License-Identifier: MIT
# Install kxfs from the unpacked archive, or remove it again. bin/kxfs also works without installation.
#
#	./install.sh PREFIX		install below PREFIX, like /usr/local
#	./install.sh --remove PREFIX	remove what was installed there
set -eu

here=$(dirname "$(readlink -f "$0")")
list=share/doc/kxfs/files
made=share/doc/kxfs/directories # directories that did not exist before

usage() {
	sed -n 's/^# \{0,1\}//; 3,6p' "$0" >&2
	exit 2
}

remove() {
	[ -f "$1/$list" ] || {
		echo "install.sh: $1/$list is not there: nothing was installed there" >&2
		exit 1
	}
	# The list itself is one of the files.
	files=$(cat "$1/$list")
	dirs=$(cat "$1/$made")
	cd "$1"
	printf '%s\n' "$files" "$made" | while read -r file; do
		rm -f "$file"
	done
	# Remove the directories that nobody else uses now.
	printf '%s\n' "$dirs" | sort -r | while read -r dir; do
		rmdir "$dir" 2>/dev/null || :
	done
}

# Print the directories below $1 that are missing.
missing() {
	while read -r dir; do
		while dir=$(dirname "$dir") && [ ! -d "$1/$dir" ]; do
			echo "$dir"
		done
	done <"$here/$list"
}

install() {
	version=$("$here/bin/kxfs" --version 2>&1) || {
		echo "install.sh: kxfs can't run here: it needs glibc 2.34 or newer; here is $(getconf GNU_LIBC_VERSION)" >&2
		exit 1
	}
	mkdir -p "$1"
	dirs=$(
		cat "$1/$made" 2>/dev/null || :
		missing "$1"
	)
	while read -r file; do
		mkdir -p "$1/$(dirname "$file")"
		rm -f "$1/$file"
		cp -P -p "$here/$file" "$1/$file"
	done <"$here/$list"
	for kind in system user; do
		sed "s|^ExecStart=/usr/local/|ExecStart=$1/|" "$here/lib/systemd/$kind/kxfs@.service" \
			>"$1/lib/systemd/$kind/kxfs@.service"
	done
	printf '%s\n' "$dirs" | sort -u >"$1/$made"
	echo "Installed below $1: $(printf '%s\n' "$version" | head -n 1)"
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
prefix=$(readlink -m "$prefix")
case $1 in
--remove) remove "$prefix" ;;
*) install "$prefix" ;;
esac
