# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Completion of kxfs(1) for bash: source it, or copy it to
# /usr/share/bash-completion/completions/kxfs. Words and values are those of kxfs --help.

_kxfs_words() {
	# The last word of a comma-separated list: an option, or the value of one.
	local list=$1 before word
	word=${list##*,}
	before=${list%"$word"}
	case $word in
	cancel=*) mapfile -t COMPREPLY < <(compgen -P "${before}cancel=" -W "own all none" -- "${word#*=}") ;;
	capture=*) mapfile -t COMPREPLY < <(compgen -P "${before}capture=" -W "own all none" -- "${word#*=}") ;;
	log_level=*) mapfile -t COMPREPLY < <(compgen -P "${before}log_level=" -W "error warning info debug" -- "${word#*=}") ;;
	state=*) mapfile -t COMPREPLY < <(compgen -P "${before}state=" -d -- "${word#*=}") ;;
	kubeconfig=*) mapfile -t COMPREPLY < <(compgen -P "${before}kubeconfig=" -f -- "${word#*=}") ;;
	*=*) COMPREPLY=() ;;
	*)
		mapfile -t COMPREPLY < <(compgen -P "$before" -W "state= kubeconfig= as= selector= capture= cancel= grace= linger spool_limit= history_keep= ro
			allow_other uid= gid= umask= log_level= queue= service_account= priority_class= image_repo=
			reserved_millicpu= reserved_memmb= efa_device_count= no_annotations quiet validate_spec
			image_secret= coscheduler_name= priority_class_name= network= priority=" -- "$word")
		;;
	esac
	compopt -o nospace
}

_kxfs() {
	# COMP_WORDS is split at '=' and ':' too; the words as they were typed are not.
	local line=${COMP_LINE:0:COMP_POINT} cur prev
	local -a words
	read -ra words <<<"$line"
	[[ $line == *[[:space:]] ]] && words+=("")
	cur=${words[-1]}
	prev=${words[-2]-}
	if [[ $prev == -o ]]; then
		_kxfs_words "$cur"
		# Readline replaces only what follows the last '=' or ':'.
		local head=${cur%"${cur##*[=:]}"}
		COMPREPLY=("${COMPREPLY[@]#"$head"}")
	elif [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "-f -d -h --help -V --version -o --dry-run=" -- "$cur")
	elif [[ " ${words[*]::${#words[@]}-1} " =~ \ (local|volcano|mcad|appwrapper): ]]; then
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -d -- "$cur")
	else
		mapfile -t COMPREPLY < <(compgen -W "local: volcano: mcad: appwrapper:" -- "$cur")
		# "local:" is three words to readline when it splits at ':'.
		[[ $COMP_WORDBREAKS == *:* && $cur == *:* ]] && COMPREPLY=("${COMPREPLY[@]#*:}")
	fi
}
complete -F _kxfs kxfs
