/* SPDX-License-Identifier: MIT */
/*
 * Reading the command line. Flags are rows with a letter, words of the -o list are rows without
 * one; getopt's tables and --help are made from the rows. What is not in the table: generic_options.c,
 * run_options.c.
 */
#include "fs/options.h"

#include <errno.h>
#include <getopt.h>
#include <sys/stat.h>

#include "fs/generic_options.h"
#include "fs/quantity.h"
#include "fs/refuse.h"
#include "fs/run_options.h"
#include "fs/source.h"
#include "spec/error.h"

#define LONG_ONLY 256 /* above all letters */

struct option_def {
	int letter;	  /* of a flag, or LONG_ONLY; 0: a word of the -o list */
	const char *name; /* the word; of a flag its long name, NULL: none */
	const char *arg;  /* what follows, as --help names it; NULL: nothing */
	const char *def;  /* default, as --help shows it; NULL: not worth saying */
	const char *help;
	int (*set)(struct options *o, const struct option_def *def, const char *value,
		   char **ret_text);
};

#define SETTER(fn)                                                                                 \
	static int fn(struct options *o, const struct option_def *def, const char *value,          \
		      char **ret_text)

static int bad_value(const struct option_def *def, const char *value, const char *wanted,
		     char **ret_text)
{
	return refuse(-EINVAL, ret_text, "-o %s=%s: not %s", def->name, value, wanted);
}

static int replace(char **s, const char *value)
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
	return replace(&o->dry_run, value);
}

SETTER(set_state)
{
	(void)def, (void)ret_text;
	return replace(&o->state, value);
}

SETTER(set_kubeconfig)
{
	(void)def, (void)ret_text;
	return replace(&o->kubeconfig, value);
}

SETTER(set_as)
{
	(void)def, (void)ret_text;
	return replace(&o->as, value);
}

SETTER(set_selector)
{
	(void)def, (void)ret_text;
	return replace(&o->selector, value);
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

static int set_list(struct options *o, const struct option_def *def, const char *list,
		    char **ret_text);

static const struct option_def table[] = {
	{'f', NULL, NULL, NULL, "stay in the foreground", set_foreground},
	{'d', NULL, NULL, NULL, "add debug messages", set_debug},
	{'h', "help", NULL, NULL, "print this and exit", set_help},
	{'V', "version", NULL, NULL, "print the version and exit", set_version},
	{LONG_ONLY, "dry-run", "FILE", NULL, "print the manifest that FILE (-: stdin) would make",
	 set_dry_run},
	{'o', NULL, "OPTION[,OPTION]...", NULL, "options of the mount, see below", set_list},

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
};

static int suggest(const char *word, char **ret_text)
{
	const char *words[array_size(table) + GENERIC_OPTIONS_MAX + RUN_OPTIONS_MAX + 1];
	const char *near;
	size_t n = 0;

	for (size_t i = 0; i < array_size(table); i++)
		if (!table[i].letter)
			words[n++] = table[i].name;
	n += generic_option_names(words + n, array_size(words) - 1 - n);
	n += run_option_names(words + n, array_size(words) - 1 - n);
	words[n] = NULL;
	near = spec_suggest(word, words);
	return refuse(-EINVAL, ret_text, "-o %s: unknown option%s%s%s; kxfs --help lists all", word,
		      near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static int set_word(struct options *o, const char *word, char **ret_text)
{
	const char *eq = strchr(word, '=');
	cleanup_free char *name = strndup(word, eq ? (size_t)(eq - word) : strlen(word));
	const struct spec_option *run_option;
	int r;

	if (!name)
		return -ENOMEM;
	for (size_t i = 0; i < array_size(table); i++) {
		const struct option_def *d = &table[i];

		if (d->letter || !streq(d->name, name))
			continue;
		if (d->arg && (!eq || !eq[1]))
			return refuse(-EINVAL, ret_text, "-o %s needs a value: %s=%s", name, name,
				      d->arg);
		if (!d->arg && eq)
			return refuse(-EINVAL, ret_text, "-o %s takes no value", name);
		return d->set(o, d, eq ? eq + 1 : NULL, ret_text);
	}
	run_option = run_option_find(name);
	if (run_option)
		return run_option_add(o, run_option, eq ? eq + 1 : NULL, ret_text);
	r = generic_option_set(o, word, name);
	return r == -ENOENT ? suggest(name, ret_text) : r;
}

/* The list is split at commas; a comma that belongs to a value is written "\,". */
static int set_list(struct options *o, const struct option_def *def, const char *list,
		    char **ret_text)
{
	cleanup_free char *word = malloc(strlen(list) + 1);
	size_t n = 0;
	int r;

	(void)def;
	if (!word)
		return -ENOMEM;
	for (const char *p = list;; p++) {
		if (*p == '\\' && (p[1] == ',' || p[1] == '\\')) {
			word[n++] = *++p;
			continue;
		}
		if (*p && *p != ',') {
			word[n++] = *p;
			continue;
		}
		word[n] = 0;
		r = n ? set_word(o, word, ret_text) : 0;
		if (r < 0 || !*p)
			return r;
		n = 0;
	}
}

static int set_defaults(struct options *o)
{
	mode_t mask = umask(0);

	umask(mask);
	*o = (struct options){
		.cancel = OPTIONS_CANCEL_OWN,
		.log_level = DIAG_INFO,
		.grace_ms = 10 * 1000,
		.spool_limit = UINT64_C(10) << 30,
		.history_keep = INT64_C(7) * 86400,
		.uid = getuid(),
		.gid = getgid(),
		.umask = mask,
		.source = strdup(""),
		.state = strdup(""),
		.kubeconfig = strdup(""),
		.as = strdup(""),
		.selector = strdup(""),
		.backend = strdup(""),
		.context = strdup(""),
		.namespace = strdup(""),
		.mount_options = strdup(""),
	};
	return o->source && o->state && o->kubeconfig && o->as && o->selector && o->backend &&
			       o->context && o->namespace && o->mount_options
		       ? 0
		       : -ENOMEM;
}

static int set_source(struct options *o, const char *text, char **ret_text)
{
	struct source s;
	int r = source_parse(text, &s, ret_text);

	if (r == 0 && o->action == OPTIONS_MOUNT)
		r = source_check_served(&s, text, ret_text);
	free(o->backend);
	free(o->context);
	free(o->namespace);
	o->backend = s.backend;
	o->context = s.context;
	o->namespace = s.namespace;
	return r;
}

/* The operands of a dry run: [SOURCE]. */
static int set_dry_operands(struct options *o, int n, char **v, char **ret_text)
{
	if (n > 1)
		return refuse(-EINVAL, ret_text,
			      "%s: too many words; kxfs --dry-run=FILE [OPTIONS] [SOURCE]", v[1]);
	return n == 1 ? set_source(o, v[0], ret_text) : 0;
}

/* Without a backend: what a cluster serves, of what this version can mount. */
static int default_backend(struct options *o)
{
	return o->backend[0] ? 0 : replace(&o->backend, "volcano");
}

/* The operands: [SOURCE] MOUNTPOINT. */
static int set_operands(struct options *o, int n, char **v, char **ret_text)
{
	int r = 0;

	if (n == 0)
		return refuse(-EINVAL, ret_text,
			      "the mount point is missing: kxfs [OPTIONS] [SOURCE] MOUNTPOINT");
	if (n == 1 && source_has_backend(v[0]))
		return refuse(-EINVAL, ret_text, "the mount point is missing: kxfs %s MOUNTPOINT",
			      v[0]);
	if (n > 2)
		return refuse(-EINVAL, ret_text,
			      "%s: too many words; kxfs [OPTIONS] [SOURCE] MOUNTPOINT", v[2]);
	if (!v[n - 1][0])
		return refuse(-EINVAL, ret_text, "the mount point is empty");
	if (n == 2)
		r = set_source(o, v[0], ret_text);
	if (r < 0)
		return r;
	if (replace(&o->source, n == 2 ? v[0] : "volcano:") < 0)
		return -ENOMEM;
	r = default_backend(o);
	return r < 0 ? r : replace(&o->mountpoint, v[n - 1]);
}

/* What getopt could not read: "?" or ":" as C says. */
static int bad_flag(int c, char **argv, char **ret_text)
{
	const char *longs[array_size(table) + 1];
	const char *word = argv[optind - 1];
	const char *near = NULL;
	size_t n = 0;

	if (optopt >= LONG_ONLY)
		return refuse(-EINVAL, ret_text, "%s needs a value", word);
	if (c == ':')
		return refuse(-EINVAL, ret_text, "-%c needs a value", optopt);
	if (optopt)
		return refuse(-EINVAL, ret_text, "-%c: unknown option; kxfs --help lists all",
			      optopt);
	for (size_t i = 0; i < array_size(table); i++)
		if (table[i].letter && table[i].name)
			longs[n++] = table[i].name;
	longs[n] = NULL;
	near = spec_suggest(word + 2, longs);
	return refuse(-EINVAL, ret_text, "%s: unknown option%s%s%s; kxfs --help lists all", word,
		      near ? "; did you mean --" : "", near ? near : "", near ? "?" : "");
}

/* Fill getopt's own tables from the rows that have a letter. */
static void getopt_tables(char *shorts, struct option *longs)
{
	*shorts++ = ':';
	for (size_t i = 0; i < array_size(table); i++) {
		if (!table[i].letter)
			continue;
		if (table[i].letter < LONG_ONLY)
			*shorts++ = (char)table[i].letter;
		if (table[i].letter < LONG_ONLY && table[i].arg)
			*shorts++ = ':';
		if (table[i].name)
			*longs++ = (struct option){
				.name = table[i].name,
				.has_arg = table[i].arg ? required_argument : no_argument,
				.val = table[i].letter,
			};
	}
	*shorts = 0;
	*longs = (struct option){0};
}

int options_parse(int argc, char **argv, struct options *ret, char **ret_text)
{
	struct option longs[array_size(table) + 1];
	char shorts[2 * array_size(table) + 2];
	int c;
	int r;

	*ret_text = NULL;
	r = set_defaults(ret);
	if (r < 0)
		return r;
	getopt_tables(shorts, longs);
	optind = 0; /* starts anew, also in a second call */
	while ((c = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		const struct option_def *d = table;

		if (c == '?' || c == ':')
			return bad_flag(c, argv, ret_text);
		while (d->letter != c)
			d++;
		r = d->set(ret, d, optarg, ret_text);
		if (r < 0 || ret->action == OPTIONS_HELP || ret->action == OPTIONS_VERSION)
			return r;
	}
	if (ret->debug)
		ret->log_level = DIAG_DEBUG;
	if (ret->action == OPTIONS_DRY_RUN)
		r = set_dry_operands(ret, argc - optind, argv + optind, ret_text);
	else
		r = set_operands(ret, argc - optind, argv + optind, ret_text);
	return r < 0 ? r : run_options_check(ret, ret_text);
}

void options_clear(struct options *o)
{
	free(o->source);
	free(o->backend);
	free(o->context);
	free(o->namespace);
	free(o->mountpoint);
	free(o->state);
	free(o->kubeconfig);
	free(o->as);
	free(o->selector);
	free(o->mount_options);
	free(o->dry_run);
	for (size_t i = 0; i < o->n_args; i++) {
		free(o->args[i].key);
		free(o->args[i].value);
	}
	free(o->args);
	*o = (struct options){0};
}

static void help_row(FILE *out, const struct option_def *d)
{
	char head[64];

	if (d->letter == LONG_ONLY)
		snprintf(head, sizeof(head), "--%s=%s", d->name, d->arg);
	else if (d->letter)
		snprintf(head, sizeof(head), "-%c%s%s%s%s", d->letter, d->name ? ", --" : "",
			 d->name ? d->name : "", d->arg ? " " : "", d->arg ? d->arg : "");
	else
		snprintf(head, sizeof(head), "%s%s%s", d->name, d->arg ? "=" : "",
			 d->arg ? d->arg : "");
	fprintf(out, "  %-35s %s\n", head, d->help);
	if (d->def)
		fprintf(out, "  %-35s (default %s)\n", "", d->def);
}

void options_help(FILE *out)
{
	fprintf(out,
		"Usage: kxfs [OPTIONS] [SOURCE] MOUNTPOINT\n"
		"       kxfs --dry-run=FILE [OPTIONS] [SOURCE]\n"
		"Show batch jobs as a directory: cp FILE MOUNTPOINT/submit/ runs one.\n\n"
		"SOURCE is [volcano:][CONTEXT/]NAMESPACE (Volcano jobs of a Kubernetes cluster; "
		"by\n"
		"default the kubeconfig's current context and its namespace), or local: (jobs run\n"
		"as processes of this machine). Dry runs also take mcad:NAMESPACE, and by default\n"
		"what FILE names as scheduler.\n\n"
		"Flags:\n");
	for (size_t i = 0; i < array_size(table); i++)
		if (table[i].letter)
			help_row(out, &table[i]);
	fprintf(out, "\nOptions of -o:\n");
	for (size_t i = 0; i < array_size(table); i++)
		if (!table[i].letter)
			help_row(out, &table[i]);
	run_options_help(out);
	fprintf(out, "\nSizes end in K, M, G or T, times in s, m, h or d. A comma in a value is\n"
		     "written \\, . The generic options of mount(8) are accepted too.\n"
		     "See kxfs(1). To unmount: fusermount3 -u MOUNTPOINT\n");
}
