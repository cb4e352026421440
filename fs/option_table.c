/* SPDX-License-Identifier: MIT */
/* All options of kxfs itself, and how the value of each is read. */
#include "fs/option_table.h"

#include <errno.h>

#include "fs/quantity.h"
#include "fs/refuse.h"

#define SETTER(fn)                                                                                 \
	static int fn(struct options *o, const struct option_def *def, const char *value,          \
		      char **ret_text)

static int bad_value(const struct option_def *def, const char *value, const char *wanted,
		     char **ret_text)
{
	return refuse(-EINVAL, ret_text, "-o %s=%s: not %s", def->name, value, wanted);
}

int option_replace(char **s, const char *value)
{
	char *copy = strdup(value);

	if (!copy)
		return -ENOMEM;
	free(*s);
	*s = copy;
	return 0;
}

/* The index of VALUE in WORDS, or -EINVAL. */
static int choose(const struct option_def *def, const char *value, const char *const *words,
		  char **ret_text)
{
	for (int i = 0; words[i]; i++)
		if (streq(words[i], value))
			return i;
	return bad_value(def, value, def->arg, ret_text);
}

SETTER(set_foreground)
{
	(void)def, (void)value, (void)ret_text;
	o->foreground = true;
	return 0;
}

SETTER(set_debug)
{
	(void)def, (void)value, (void)ret_text;
	o->debug = true;
	return 0;
}

SETTER(set_help)
{
	(void)def, (void)value, (void)ret_text;
	o->action = OPTIONS_HELP;
	return 0;
}

SETTER(set_version)
{
	(void)def, (void)value, (void)ret_text;
	o->action = OPTIONS_VERSION;
	return 0;
}

SETTER(set_dry_run)
{
	(void)def, (void)ret_text;
	o->action = OPTIONS_DRY_RUN;
	return option_replace(&o->dry_run, value);
}

SETTER(set_state)
{
	(void)def, (void)ret_text;
	return option_replace(&o->state, value);
}

SETTER(set_kubeconfig)
{
	(void)def, (void)ret_text;
	return option_replace(&o->kubeconfig, value);
}

SETTER(set_as)
{
	(void)def, (void)ret_text;
	return option_replace(&o->as, value);
}

SETTER(set_selector)
{
	(void)def, (void)ret_text;
	return option_replace(&o->selector, value);
}

SETTER(set_capture)
{
	static const char *const words[] = {"own", "all", "none", NULL};
	int i = choose(def, value, words, ret_text);

	if (i >= 0)
		o->capture = (enum backend_capture)i;
	return min_of(i, 0);
}

SETTER(set_cancel)
{
	static const char *const words[] = {"own", "all", "none", NULL};
	int i = choose(def, value, words, ret_text);

	if (i >= 0)
		o->cancel = (enum options_cancel)i;
	return min_of(i, 0);
}

SETTER(set_log_level)
{
	static const char *const words[] = {"error", "warning", "info", "debug", NULL};
	int i = choose(def, value, words, ret_text);

	if (i >= 0)
		o->log_level = (enum diag_level)i;
	return min_of(i, 0);
}

SETTER(set_read_only)
{
	(void)def, (void)value, (void)ret_text;
	o->read_only = true;
	return 0;
}

SETTER(set_allow_other)
{
	(void)def, (void)value, (void)ret_text;
	o->allow_other = true;
	return 0;
}

SETTER(set_uid)
{
	uint64_t v;

	if (quantity_number(value, 10, 0, UINT32_MAX - 1, &v) < 0)
		return bad_value(def, value, "a number of a user", ret_text);
	o->uid = (uid_t)v;
	return 0;
}

SETTER(set_gid)
{
	uint64_t v;

	if (quantity_number(value, 10, 0, UINT32_MAX - 1, &v) < 0)
		return bad_value(def, value, "a number of a group", ret_text);
	o->gid = (gid_t)v;
	return 0;
}

SETTER(set_umask)
{
	uint64_t v;

	if (quantity_number(value, 8, 0, 0777, &v) < 0)
		return bad_value(def, value, "an octal number up to 777", ret_text);
	o->umask = (mode_t)v;
	return 0;
}

SETTER(set_grace)
{
	uint64_t v;

	if (quantity_time(value, 0, 3600, &v) < 0)
		return bad_value(def, value, "a time from 0s to 1h, like 30s or 2m", ret_text);
	o->grace_ms = (unsigned)v * 1000;
	return 0;
}

SETTER(set_spool_limit)
{
	if (quantity_size(value, UINT64_C(1) << 20, UINT64_C(1) << 60, &o->spool_limit) < 0)
		return bad_value(def, value, "a size from 1M, like 500M or 10G", ret_text);
	return 0;
}

SETTER(set_history_keep)
{
	uint64_t v;

	if (quantity_time(value, 0, UINT64_C(3650) * 86400, &v) < 0)
		return bad_value(def, value, "a time up to 3650d, like 12h or 7d", ret_text);
	o->history_keep = (int64_t)v;
	return 0;
}

const struct option_def option_table[] = {
	{'f', NULL, NULL, NULL, "stay in the foreground", set_foreground},
	{'d', NULL, NULL, NULL, "add debug messages", set_debug},
	{'h', "help", NULL, NULL, "print this and exit", set_help},
	{'V', "version", NULL, NULL, "print the version and exit", set_version},
	{OPTION_LONG_ONLY, "dry-run", "FILE", NULL,
	 "print the manifest that FILE (-: stdin) would make", set_dry_run},
	{'o', NULL, "OPTION[,OPTION]...", NULL, "options of the mount, see below", option_set_list},

	{0, "state", "DIR", "~/.local/state/kxfs/KEY; root: /var/lib/kxfs/KEY",
	 "where submit/, local jobs, output and history are kept", set_state},
	{0, "kubeconfig", "FILE", "$KUBECONFIG or ~/.kube/config", "how to reach the cluster",
	 set_kubeconfig},
	{0, "as", "USER", NULL, "impersonate this user of the cluster", set_as},
	{0, "selector", "LABELS", NULL, "show only jobs with these labels", set_selector},
	{0, "capture", "own|all|none", "own", "whose output is captured before it is read",
	 set_capture},
	{0, "cancel", "own|all|none", "own", "whose jobs rm -r may cancel", set_cancel},
	{0, "grace", "TIME", "10s", "from SIGTERM to SIGKILL when a job is ended", set_grace},
	{0, "spool_limit", "SIZE", "10G", "bytes of output kept on disk", set_spool_limit},
	{0, "history_keep", "TIME", "7d", "how long cancelled jobs stay in history/",
	 set_history_keep},
	{0, "ro", NULL, NULL, "mount read-only: nothing can be submitted or cancelled",
	 set_read_only},
	{0, "allow_other", NULL, NULL, "let other users in, with permissions checked",
	 set_allow_other},
	{0, "uid", "N", "who mounts", "owner of the files", set_uid},
	{0, "gid", "N", "who mounts", "group of the files", set_gid},
	{0, "umask", "OCTAL", "of who mounts", "permissions that the files do not have", set_umask},
	{0, "log_level", "error|warning|info|debug", "info", "which messages to keep and print",
	 set_log_level},
	{0},
};

_Static_assert(array_size(option_table) <= OPTIONS_MAX + 1, "rows above OPTIONS_MAX");
