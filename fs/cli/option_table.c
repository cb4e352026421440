/* SPDX-License-Identifier: MIT */
/* The options of kxfs, and the parsers of their values. */
#include "fs/cli/option_table.h"

#include <errno.h>

#include "backend/base/print.h"
#include "fs/cli/commands.h"
#include "spec/base/mem.h"
#include "spec/base/time.h"

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

/* Set an enum. ARG lists the words for its values in order, as in "own|all|none". */
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

/* In rows with this setter, FIELD is the action, not an offset. */
SETTER(set_action)
{
	o->action = (enum options_action)def->field;
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

/* --- numbers --- */

#define FIELD(name) offsetof(struct options, name)

enum number_form { DECIMAL, OCTAL, SIZE, TIME };

/* The numbers that an option accepts. WORDS describe them in error messages. */
static const struct number {
	size_t field;
	enum number_form form;
	uint64_t min, max;
	const char *words;
} numbers[] = {
	{FIELD(uid), DECIMAL, 0, UINT32_MAX - 1, "a user ID (a number)"},
	{FIELD(gid), DECIMAL, 0, UINT32_MAX - 1, "a group ID (a number)"},
	{FIELD(umask), OCTAL, 0, 0777, "an octal number up to 777"},
	{FIELD(grace), TIME, 0, 3600, "a time from 0s to 1h, like 30s or 2m"},
	{FIELD(jobs), DECIMAL, 1, UINT32_MAX, "a number of jobs, at least 1"},
	{FIELD(gpus), DECIMAL, 0, 64, "a number of GPUs from 0 to 64"},
	{FIELD(spool_limit), SIZE, UINT64_C(1) << 20, UINT64_C(1) << 60,
	 "a size of at least 1M, like 500M or 10G"},
	{FIELD(history_keep), TIME, 0, UINT64_C(3650) * 86400,
	 "a time of at most 3650d, like 12h or 7d"},
};

/* Set *RET to the number in TEXT; a TIME becomes seconds. Return false if TEXT is malformed. */
static bool parse_number(const char *text, enum number_form form, uint64_t *ret)
{
	static const char units[] = "KMGT";
	const size_t digits = strspn(text, form == OCTAL ? "01234567" : "0123456789");
	const char *unit = form == SIZE && text[digits] ? strchr(units, text[digits]) : NULL;
	const uint64_t factor = unit ? UINT64_C(1) << 10 * (unit - units + 1) : 1;
	int64_t seconds;

	if (form == TIME) {
		if (!spec_time_span_parse(text, &seconds))
			return false;
		*ret = (uint64_t)seconds;
		return true;
	}
	if (!digits || text[digits + (unit != NULL)])
		return false;
	errno = 0;
	*ret = strtoull(text, NULL, form == OCTAL ? 8 : 10);
	return !errno && !__builtin_mul_overflow(*ret, factor, ret);
}

SETTER(set_number)
{
	const struct number *n = numbers;
	uint64_t v;

	while (n->field != def->field)
		n++;
	if (!parse_number(value, n->form, &v) || v < n->min || v > n->max)
		return bad_value(def, value, n->words, ret_text);
	*(uint64_t *)field_of(o, def) = v;
	return 0;
}

/* --- the table --- */

const struct option_def option_table[] = {
	{'f', "foreground", NULL, NULL, "stay in the foreground", set_on, FIELD(foreground)},
	{'d', "debug", NULL, NULL, "add debug messages", set_on, FIELD(debug)},
	{'h', "help", NULL, NULL, "print this help and exit", set_action, OPTIONS_HELP},
	{'V', "version", NULL, NULL, "print the version and exit", set_action, OPTIONS_VERSION},
	{OPTION_DRY_RUN, "dry-run", "FILE", NULL,
	 "print the manifest for FILE (- for standard input)", set_dry_run, FIELD(dry_run)},
	{OPTION_CHECK_KIND, "check-kind", "FILE", NULL,
	 "check a kind file, and show how kxfs reads a job with it", set_check_kind,
	 FIELD(check_kind)},
	{OPTION_LIST_SOURCES, "list-sources", NULL, NULL,
	 "print the backends and contexts that SOURCE can name", set_action, OPTIONS_LIST_SOURCES},
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
	{0, "grace", "TIME", "10s", "time from SIGTERM to SIGKILL when kxfs ends a job", set_number,
	 FIELD(grace)},
	{0, "linger", NULL, NULL, "local jobs continue after unmounting", set_on, FIELD(linger)},
	{0, "jobs", "N", "no limit", "how many local jobs run at the same time; others wait",
	 set_number, FIELD(jobs)},
	{0, "gpus", "N", "all NVIDIA GPUs in /dev", "how many GPUs local jobs may use", set_number,
	 FIELD(gpus)},
	{0, "spool_limit", "SIZE", "10G", "limit of the output that kxfs stores on disk",
	 set_number, FIELD(spool_limit)},
	{0, "history_keep", "TIME", "7d", "how long jobs stay in history/", set_number,
	 FIELD(history_keep)},
	{0, "ro", NULL, NULL, "mount read-only: nothing can be submitted or cancelled", set_on,
	 FIELD(read_only)},
	{0, "allow_other", NULL, NULL, "let other users access the mount, with permission checks",
	 set_on, FIELD(allow_other)},
	{0, "uid", "N", "the user who mounts", "owner of the files", set_number, FIELD(uid)},
	{0, "gid", "N", "that of the user who mounts", "group of the files", set_number,
	 FIELD(gid)},
	{0, "umask", "OCTAL", "that of the user who mounts",
	 "permission bits to remove from all files", set_number, FIELD(umask)},
	{0, "log_level", "error|warning|info|debug", "info",
	 "lowest level of messages to log and print", set_choice, FIELD(log_level)},
	{0},
};

_Static_assert(array_size(option_table) <= OPTIONS_MAX + 1, "rows above OPTIONS_MAX");
_Static_assert(sizeof(enum options_capture) == sizeof(unsigned) &&
		       sizeof(enum options_cancel) == sizeof(unsigned) &&
		       sizeof(enum diag_level) == sizeof(unsigned),
	       "what set_choice writes");
