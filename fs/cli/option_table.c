/* SPDX-License-Identifier: MIT */
/* The options of kxfs, and the parsers of their values. */
#include "fs/cli/option_table.h"

#include <errno.h>

#include "backend/base/print.h"
#include "fs/cli/commands.h"
#include "spec/base/mem.h"
#include "spec/base/time.h"

/* --- numbers --- */

struct unit {
	char letter;
	uint64_t factor;
};

static int parse_quantity(const char *text, int base, const struct unit *units, uint64_t min,
			  uint64_t max, uint64_t *ret)
{
	size_t digits = strspn(text, base == 8 ? "01234567" : "0123456789");
	uint64_t factor = 1;
	uint64_t v;

	if (!digits)
		return -EINVAL;
	if (text[digits]) {
		while (units->letter && units->letter != text[digits])
			units++;
		if (!units->letter || text[digits + 1])
			return -EINVAL;
		factor = units->factor;
	}
	errno = 0;
	v = strtoull(text, NULL, base);
	if (errno || __builtin_mul_overflow(v, factor, &v) || v < min || v > max)
		return -ERANGE;
	*ret = v;
	return 0;
}

/* Set *RET to a time span such as "30s", in s. Return 0, -EINVAL, or -ERANGE if it is above MAX. */
static int parse_time(const char *text, int64_t max, int64_t *ret)
{
	if (!spec_time_span_parse(text, ret))
		return -EINVAL;
	return *ret > max ? -ERANGE : 0;
}

static int parse_number(const char *text, int base, uint64_t min, uint64_t max, uint64_t *ret)
{
	static const struct unit none[] = {{0}};

	return parse_quantity(text, base, none, min, max, ret);
}

#define SETTER(fn)                                                                                 \
	static int fn(struct options *o, const struct option_def *def, const char *value,          \
		      char **ret_text)

static void *field_of(struct options *o, const struct option_def *def)
{
	return (char *)o + def->field;
}

static int bad_value(const struct option_def *def, const char *value, const char *wanted,
		     char **ret_text)
{
	return refuse(-EINVAL, ret_text, "-o %s=%s: not %s", def->name, value, wanted);
}

SETTER(set_on)
{
	*(bool *)field_of(o, def) = true;
	return 0;
}

SETTER(set_text)
{
	text_set(field_of(o, def), "%s", value);
	return 0;
}

/* The daemon changes its working directory, so the path must be absolute. */
SETTER(set_archive)
{
	if (*value != '/')
		return bad_value(def, value, "an absolute path", ret_text);
	return set_text(o, def, value, ret_text);
}

/* Set an enum, whose values ARG lists in order, as in "own|all|none". */
SETTER(set_choice)
{
	size_t len = strlen(value);
	unsigned i = 0;

	for (const char *word = def->arg; word; word = strchr(word, '|'), i++) {
		word += *word == '|';
		if (len > 0 && strcspn(word, "|") == len && strncmp(word, value, len) == 0) {
			*(unsigned *)field_of(o, def) = i;
			return 0;
		}
	}
	return bad_value(def, value, def->arg, ret_text);
}

SETTER(set_help)
{
	o->action = OPTIONS_HELP;
	return 0;
}

SETTER(set_version)
{
	o->action = OPTIONS_VERSION;
	return 0;
}

SETTER(set_dry_run)
{
	o->action = OPTIONS_DRY_RUN;
	return set_text(o, def, value, ret_text);
}

SETTER(set_check_kind)
{
	o->action = OPTIONS_CHECK_KIND;
	return set_text(o, def, value, ret_text);
}

/* Read the kinds now: SOURCE, which is parsed later, may name one of them. */
SETTER(set_kinds)
{
	return kind_files_add(&o->kinds, value, ret_text);
}

SETTER(set_list_sources)
{
	o->action = OPTIONS_LIST_SOURCES;
	return 0;
}

/* Set *RET to VALUE, at most MAX. WORDS describe valid values in the error message. */
static int set_number(const struct option_def *def, const char *value, int base, uint64_t max,
		      const char *words, unsigned *ret, char **ret_text)
{
	uint64_t v;

	if (parse_number(value, base, 0, max, &v) < 0)
		return bad_value(def, value, words, ret_text);
	*ret = (unsigned)v;
	return 0;
}

SETTER(set_uid)
{
	return set_number(def, value, 10, UINT32_MAX - 1, "a user ID (a number)", &o->uid,
			  ret_text);
}

SETTER(set_gid)
{
	return set_number(def, value, 10, UINT32_MAX - 1, "a group ID (a number)", &o->gid,
			  ret_text);
}

SETTER(set_umask)
{
	return set_number(def, value, 8, 0777, "an octal number up to 777", &o->umask, ret_text);
}

SETTER(set_grace)
{
	int64_t v;

	if (parse_time(value, 3600, &v) < 0)
		return bad_value(def, value, "a time from 0s to 1h, like 30s or 2m", ret_text);
	o->grace_ms = (unsigned)v * 1000;
	return 0;
}

SETTER(set_jobs)
{
	if (parse_number(value, 10, 1, UINT32_MAX, &o->jobs) < 0)
		return bad_value(def, value, "a number of jobs, at least 1", ret_text);
	return 0;
}

SETTER(set_gpus)
{
	if (parse_number(value, 10, 0, 64, &o->gpus) < 0)
		return bad_value(def, value, "a number of GPUs from 0 to 64", ret_text);
	return 0;
}

SETTER(set_spool_limit)
{
	static const struct unit units[] = {
		{'K', UINT64_C(1) << 10},
		{'M', UINT64_C(1) << 20},
		{'G', UINT64_C(1) << 30},
		{'T', UINT64_C(1) << 40},
		{0},
	};

	if (parse_quantity(value, 10, units, UINT64_C(1) << 20, UINT64_C(1) << 60,
			   &o->spool_limit) < 0)
		return bad_value(def, value, "a size of at least 1M, like 500M or 10G", ret_text);
	return 0;
}

SETTER(set_history_keep)
{
	if (parse_time(value, INT64_C(3650) * 86400, &o->history_keep) < 0)
		return bad_value(def, value, "a time of at most 3650d, like 12h or 7d", ret_text);
	return 0;
}

#define FIELD(name) offsetof(struct options, name)

const struct option_def option_table[] = {
	{'f', "foreground", NULL, NULL, "stay in the foreground", set_on, FIELD(foreground)},
	{'d', "debug", NULL, NULL, "add debug messages", set_on, FIELD(debug)},
	{'h', "help", NULL, NULL, "print this help and exit", set_help, 0},
	{'V', "version", NULL, NULL, "print the version and exit", set_version, 0},
	{OPTION_DRY_RUN, "dry-run", "FILE", NULL,
	 "print the manifest for FILE (- for standard input)", set_dry_run, FIELD(dry_run)},
	{OPTION_CHECK_KIND, "check-kind", "FILE", NULL,
	 "check a kind file, and show how kxfs reads a job with it", set_check_kind,
	 FIELD(check_kind)},
	{OPTION_LIST_SOURCES, "list-sources", NULL, NULL,
	 "print the backends and contexts that SOURCE can name", set_list_sources, 0},
	{OPTION_RBAC, "rbac", NULL, NULL, "with doctor: print the Role that a mount needs", set_on,
	 FIELD(rbac)},
	{'o', NULL, "OPTION[,OPTION]...", NULL, "mount options, see below", NULL, 0},

	{0, "state", "DIR", "~/.local/state/kxfs/KEY; root: /var/lib/kxfs/KEY",
	 "directory for submit/, local jobs, output and history", set_text, FIELD(state)},
	{0, "archive", "DIR", NULL, "copy each finished job to DIR/NAMESPACE/DAY/ID", set_archive,
	 FIELD(archive)},
	{0, "kinds", "DIR", NULL, "also show jobs of the kinds that DIR/*.yaml describe", set_kinds,
	 0},
	{0, "kubeconfig", "FILE", "$KUBECONFIG or ~/.kube/config",
	 "file that describes how to reach the cluster", set_text, FIELD(kubeconfig)},
	{0, "as", "USER", NULL, "act as this user in the cluster (impersonation)", set_text,
	 FIELD(as)},
	{0, "selector", "LABELS", NULL, "show only jobs with these labels", set_text,
	 FIELD(selector)},
	{0, "mine", NULL, NULL, "show only jobs that this user submitted through kxfs", set_on,
	 FIELD(mine)},
	{0, "capture", "own|all|none", "own",
	 "jobs whose output kxfs stores even if nobody reads it", set_choice, FIELD(capture)},
	{0, "cancel", "own|mine|all|none", "own", "jobs that rm -r may cancel", set_choice,
	 FIELD(cancel)},
	{0, "grace", "TIME", "10s", "time from SIGTERM to SIGKILL when kxfs ends a job", set_grace,
	 0},
	{0, "linger", NULL, NULL, "local jobs continue after unmounting", set_on, FIELD(linger)},
	{0, "jobs", "N", "no limit", "how many local jobs run at the same time; others wait",
	 set_jobs, 0},
	{0, "gpus", "N", "all NVIDIA GPUs in /dev", "how many GPUs local jobs may use", set_gpus,
	 0},
	{0, "spool_limit", "SIZE", "10G", "limit of the output that kxfs stores on disk",
	 set_spool_limit, 0},
	{0, "history_keep", "TIME", "7d", "how long jobs stay in history/", set_history_keep, 0},
	{0, "ro", NULL, NULL, "mount read-only: nothing can be submitted or cancelled", set_on,
	 FIELD(read_only)},
	{0, "allow_other", NULL, NULL, "let other users access the mount, with permission checks",
	 set_on, FIELD(allow_other)},
	{0, "uid", "N", "the user who mounts", "owner of the files", set_uid, 0},
	{0, "gid", "N", "that of the user who mounts", "group of the files", set_gid, 0},
	{0, "umask", "OCTAL", "that of the user who mounts",
	 "permission bits to remove from all files", set_umask, 0},
	{0, "log_level", "error|warning|info|debug", "info",
	 "lowest level of messages to log and print", set_choice, FIELD(log_level)},
	{0},
};

_Static_assert(array_size(option_table) <= OPTIONS_MAX + 1, "rows above OPTIONS_MAX");
_Static_assert(sizeof(enum options_capture) == sizeof(unsigned) &&
		       sizeof(enum options_cancel) == sizeof(unsigned) &&
		       sizeof(enum diag_level) == sizeof(unsigned),
	       "what set_choice writes");
