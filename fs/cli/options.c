/* SPDX-License-Identifier: MIT */
/*
 * Parses the command line: getopt's tables and --help are made from the rows of option_table.c, and
 * the operands are SOURCE and MOUNTPOINT. Each word of the -o list is one of our own options
 * (option_table.c), a run option of a kind of jobs (run_options.c), or a generic option of
 * mount(8).
 */
#include "fs/cli/options.h"

#include <errno.h>
#include <getopt.h>
#include <sys/stat.h>

#include "fs/cli/option_table.h"
#include "fs/cli/refuse.h"
#include "fs/cli/run_options.h"
#include "fs/cli/source.h"
#include "spec/base/error.h"
#include "spec/base/mem.h"
#include "spec/kinds/kinds.h"

static void set_defaults(struct options *o)
{
	mode_t mask = umask(0);

	umask(mask);
	*o = (struct options){
		.cancel = OPTIONS_CANCEL_OWN,
		.log_level = DIAG_INFO,
		.grace_ms = 10 * 1000,
		.gpus = UINT64_MAX,
		.spool_limit = UINT64_C(10) << 30,
		.history_keep = INT64_C(7) * 86400,
		.uid = getuid(),
		.gid = getgid(),
		.umask = mask,
		.source = text_copy(""),
		.state = text_copy(""),
		.archive = text_copy(""),
		.kubeconfig = text_copy(""),
		.as = text_copy(""),
		.selector = text_copy(""),
		.backend = text_copy(""),
		.context = text_copy(""),
		.namespace = text_copy(""),
		.mount_options = text_copy(""),
	};
	spec_kinds_init(&o->kinds);
}

/* --- generic options of mount(8), accepted so that kxfs works in fstab --- */

/* Options that are passed to the kernel. */
static const char *const generic_kernel[] = {
	"async", "atime", "dirsync", "exec", "noatime", "noexec", "sync",
};

/* Options that are accepted without an effect. */
static const char *const generic_ignored[] = {
	"auto",	      "comment",     "defaults",   "dev",	    "diratime",
	"fsname",     "group",	     "lazytime",   "loud",	    "_netdev",
	"noauto",     "nodev",	     "nodiratime", "nofail",	    "nogroup",
	"nolazytime", "noowner",     "norelatime", "nostrictatime", "nosuid",
	"nouser",     "nousers",     "owner",	   "relatime",	    "rw",
	"silent",     "strictatime", "subtype",	   "suid",	    "user",
	"users",
};

static bool has_word(const char *const *words, size_t n, const char *word)
{
	for (size_t i = 0; i < n; i++)
		if (streq(words[i], word))
			return true;
	return false;
}

/*
 * Set the generic option WORD, which is NAME or NAME=VALUE. Return false if there is no such
 * option.
 */
static bool set_generic(struct options *o, const char *word, const char *name)
{
	const char *old = o->mount_options;

	if (strncasecmp(word, "x-", 2) == 0)
		return true;
	if (streq(word, "rw"))
		o->read_only = false;
	if (!has_word(generic_kernel, array_size(generic_kernel), name))
		return has_word(generic_ignored, array_size(generic_ignored), name);
	text_set(&o->mount_options, "%s%s%s", old, old[0] ? "," : "", name);
	return true;
}

/* Refuse WORD, an unknown option; NEAR (or NULL) is the suggestion. */
static int refuse_option(const char *word, const char *dashes, const char *near, char **ret_text)
{
	return refuse(-EINVAL, ret_text, "%s: unknown option; %s%s%s%skxfs --help lists all", word,
		      near ? "did you mean " : "", near ? dashes : "", near ? near : "",
		      near ? "? " : "");
}

/* --- the list of -o --- */

static int unknown_word(const struct options *o, const char *word, char **ret_text)
{
	const char *words[OPTIONS_MAX + array_size(generic_kernel) + array_size(generic_ignored) +
			  RUN_OPTIONS_MAX + 1];
	cleanup_free char *given = text_print("-o %s", word);
	size_t n = 0;

	if (streq(word, "remount"))
		return refuse(
			-EINVAL, ret_text,
			"-o remount: a mount keeps the options that it has; unmount it, and mount with others "
			"(local jobs run on if it was mounted with -o linger)");
	for (const struct option_def *d = option_table; d->help; d++)
		if (!d->letter)
			words[n++] = d->name;
	for (size_t i = 0; i < array_size(generic_kernel); i++)
		words[n++] = generic_kernel[i];
	for (size_t i = 0; i < array_size(generic_ignored); i++)
		words[n++] = generic_ignored[i];
	n += run_option_names(&o->kinds, words + n, array_size(words) - 1 - n);
	words[n] = NULL;
	return refuse_option(given, "", spec_suggest(word, words), ret_text);
}

static int set_word(struct options *o, const char *word, char **ret_text)
{
	const char *eq = strchr(word, '=');
	cleanup_free char *name = mem_copy(word, eq ? (size_t)(eq - word) : strlen(word));
	const struct spec_option *run_option;

	for (const struct option_def *d = option_table; d->help; d++) {
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
	return set_generic(o, word, name) ? 0 : unknown_word(o, name, ret_text);
}

/* Set the options of LIST, which is split at commas; a comma within a value is written "\\,". */
static int set_list(struct options *o, const char *list, char **ret_text)
{
	cleanup_free char *word = mem_zero(strlen(list) + 1);
	size_t n = 0;
	int r;

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

/* --- operands --- */

static int set_source(struct options *o, const char *text, char **ret_text)
{
	struct source s;
	int r = source_parse(&o->kinds, text, &s, ret_text);

	free(o->backend);
	free(o->context);
	free(o->namespace);
	o->backend = s.backend;
	o->context = s.context;
	o->namespace = s.namespace;
	return r;
}

/* The operands of a command: at most MAX. */
static const struct {
	int max;
	const char *usage;
} operands[] = {
	[OPTIONS_MOUNT] = {2, "kxfs [OPTIONS] [SOURCE] MOUNTPOINT"},
	[OPTIONS_CHECK_KIND] = {2, "kxfs --check-kind=FILE [OBJECT.json [PODS.json]]"},
	[OPTIONS_DRY_RUN] = {1, "kxfs --dry-run=FILE [OPTIONS] [SOURCE]"},
	[OPTIONS_DOCTOR] = {1, "kxfs doctor [OPTIONS] [SOURCE]"},
	[OPTIONS_CAPTURE] = {1, "kxfs capture [OPTIONS] [SOURCE]"},
	[OPTIONS_LIST_SOURCES] = {0, "kxfs --list-sources [OPTIONS]"},
};

static int set_operands(struct options *o, int n, char **v, char **ret_text)
{
	const int max = operands[o->action].max;
	const bool is_command = o->action == OPTIONS_DOCTOR || o->action == OPTIONS_CAPTURE;
	int r = 0;

	if (n > max)
		return refuse(-EINVAL, ret_text, "%s: too many arguments; %s", v[max],
			      operands[o->action].usage);
	if (o->action == OPTIONS_CHECK_KIND) {
		o->check_object = n > 0 ? text_copy(v[0]) : NULL;
		o->check_pods = n > 1 ? text_copy(v[1]) : NULL;
		return 0;
	}
	if (is_command && n == 1 && (v[0][0] == '/' || v[0][0] == '.'))
		return refuse(
			-EINVAL, ret_text,
			"%s: is not a SOURCE, and %s is a command; to mount a namespace that is "
			"called %s, name its backend: kxfs volcano:%s %s",
			v[0], v[-1], v[-1], v[-1], v[0]);
	if (o->action == OPTIONS_CAPTURE) {
		o->capture = OPTIONS_CAPTURE_ALL;
		o->foreground = true;
		text_set(&o->source, "%s", n == 1 ? v[0] : "the namespace of the kubeconfig");
	}
	if (o->action != OPTIONS_MOUNT && n == 1)
		r = set_source(o, v[0], ret_text);
	if (o->action == OPTIONS_CAPTURE && r == 0 && streq(o->backend, "local"))
		return refuse(
			-EINVAL, ret_text,
			"local: needs no capture, since jobs on this machine keep all their output: mount it");
	if (o->action != OPTIONS_MOUNT)
		return r;
	if (n == 0)
		return refuse(-EINVAL, ret_text,
			      "the mount point is missing: kxfs [OPTIONS] [SOURCE] MOUNTPOINT");
	if (n == 1 && source_has_backend(&o->kinds, v[0]))
		return refuse(-EINVAL, ret_text, "the mount point is missing: kxfs %s MOUNTPOINT",
			      v[0]);
	if (n == 2 && source_has_backend(&o->kinds, v[1]) && !source_has_backend(&o->kinds, v[0]))
		return refuse(-EINVAL, ret_text, "the source comes first: kxfs %s %s", v[1], v[0]);
	if (n == 2 && (streq(v[0], "umount") || streq(v[0], "unmount")))
		return refuse(
			-EINVAL, ret_text,
			"to unmount: fusermount3 -u %s; to mount a namespace that is called %s, name its "
			"backend, like volcano:%s",
			v[1], v[0], v[0]);
	if (!v[n - 1][0])
		return refuse(-EINVAL, ret_text, "the mount point is empty");
	if (n == 2)
		r = set_source(o, v[0], ret_text);
	if (r == 0 && o->archive[0] && o->capture == OPTIONS_CAPTURE_NONE &&
	    !streq(o->backend, "local"))
		return refuse(
			-EINVAL, ret_text,
			"-o archive=%s with -o capture=none: only jobs whose output is captured are "
			"archived; leave one of the two out",
			o->archive);
	if (r < 0)
		return r;
	text_set(&o->source, "%s", n == 2 ? v[0] : "kxfs");
	text_set(&o->mountpoint, "%s", v[n - 1]);
	return 0;
}

/* --- flags --- */

/* Refuse an argument that getopt could not parse: C is "?" or ":". */
static int bad_flag(int c, char **argv, char **ret_text)
{
	const char *longs[OPTIONS_MAX + 1];
	const char *word = argv[optind - 1];
	char flag[] = {'-', (char)optopt, '\0'}, other[] = {(char)(optopt ^ ' '), '\0'};
	const struct option_def *d = option_table;
	size_t n = 0;

	if (optopt >= OPTION_LONG_ONLY)
		return refuse(-EINVAL, ret_text, "%s needs a value", word);
	if (c == ':')
		return refuse(-EINVAL, ret_text, "-%c needs a value", optopt);
	/* The user may mean the same letter in upper or lower case, as with -v. */
	while (d->help && d->letter != other[0])
		d++;
	if (optopt)
		return refuse_option(flag, "-", d->help ? other : NULL, ret_text);
	for (d = option_table; d->help; d++)
		if (d->letter && d->name)
			longs[n++] = d->name;
	longs[n] = NULL;
	return refuse_option(word, "--", spec_suggest(word + 2, longs), ret_text);
}

/* Fill getopt's own tables from the rows with a letter. */
static void getopt_tables(char *shorts, struct option *longs)
{
	*shorts++ = ':';
	for (const struct option_def *d = option_table; d->help; d++) {
		if (!d->letter)
			continue;
		if (d->letter < OPTION_LONG_ONLY)
			*shorts++ = (char)d->letter;
		if (d->letter < OPTION_LONG_ONLY && d->arg)
			*shorts++ = ':';
		if (d->name)
			*longs++ = (struct option){
				.name = d->name,
				.has_arg = d->arg ? required_argument : no_argument,
				.val = d->letter,
			};
	}
	*shorts = 0;
	*longs = (struct option){0};
}

int options_parse(int argc, char **argv, struct options *ret, char **ret_text)
{
	static const struct {
		const char *word;
		enum options_action action;
		bool has_operands;
	} commands[] = {
		{"doctor", OPTIONS_DOCTOR, true},
		{"capture", OPTIONS_CAPTURE, true},
		{"help", OPTIONS_HELP, false},
		{"version", OPTIONS_VERSION, false},
	};
	struct option longs[OPTIONS_MAX + 1];
	char shorts[2 * OPTIONS_MAX + 2];
	int c;
	int r;

	*ret_text = NULL;
	set_defaults(ret);
	getopt_tables(shorts, longs);
	optind = 0; /* so that getopt restarts, also in a second call */
	while ((c = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		const struct option_def *d = option_table;

		if (c == '?' || c == ':')
			return bad_flag(c, argv, ret_text);
		while (d->letter != c)
			d++;
		r = d->set ? d->set(ret, d, optarg, ret_text) : set_list(ret, optarg, ret_text);
		if (r < 0 || ret->action == OPTIONS_HELP || ret->action == OPTIONS_VERSION)
			return r;
	}
	if (ret->debug)
		ret->log_level = DIAG_DEBUG;
	for (size_t i = 0; i < array_size(commands) && ret->action == OPTIONS_MOUNT; i++)
		if (optind < argc && streq(argv[optind], commands[i].word) &&
		    (argc == optind + 1 || commands[i].has_operands)) {
			ret->action = commands[i].action;
			optind++;
		}
	if (ret->action == OPTIONS_HELP || ret->action == OPTIONS_VERSION)
		return 0;
	if (ret->rbac && ret->action != OPTIONS_DOCTOR)
		return refuse(
			-EINVAL, ret_text,
			"--rbac is an option of doctor: kxfs doctor --rbac [OPTIONS] [SOURCE]");
	r = set_operands(ret, argc - optind, argv + optind, ret_text);
	return r < 0 ? r : run_options_check(ret, ret_text);
}

void options_clear(struct options *o)
{
	spec_kinds_clear(&o->kinds);
	free(o->source);
	free(o->backend);
	free(o->context);
	free(o->namespace);
	free(o->mountpoint);
	free(o->state);
	free(o->archive);
	free(o->kubeconfig);
	free(o->as);
	free(o->selector);
	free(o->mount_options);
	free(o->dry_run);
	free(o->check_kind);
	free(o->check_object);
	free(o->check_pods);
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

	if (d->letter >= OPTION_LONG_ONLY)
		snprintf(head, sizeof(head), "--%s%s%s", d->name, d->arg ? "=" : "",
			 d->arg ? d->arg : "");
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
	struct spec_kinds kinds cleanup(spec_kinds_clear);

	spec_kinds_init(&kinds);
	fprintf(out,
		"Usage: kxfs [OPTIONS] [SOURCE] MOUNTPOINT\n"
		"       kxfs --dry-run=FILE [OPTIONS] [SOURCE]\n"
		"       kxfs --check-kind=FILE [OBJECT.json [PODS.json]]\n"
		"       kxfs doctor [OPTIONS] [SOURCE]\n"
		"       kxfs capture [OPTIONS] [SOURCE]\n"
		"Show batch jobs as a directory: cp FILE MOUNTPOINT/submit/ runs one.\n\n"
		"SOURCE is [BACKEND:][CONTEXT/]NAMESPACE of a Kubernetes cluster, or local: for jobs that\n"
		"run as processes of this machine; kxfs --list-sources prints the backends.\n"
		"Without a backend a mount shows what the cluster serves; without a SOURCE it uses the\n"
		"kubeconfig's current context and its namespace. Without a backend a dry run makes what\n"
		"FILE names as its scheduler.\n\n"
		"Flags:\n");
	for (const struct option_def *d = option_table; d->help; d++)
		if (d->letter)
			help_row(out, d);
	fprintf(out, "\nOptions of -o:\n");
	for (const struct option_def *d = option_table; d->help; d++)
		if (!d->letter)
			help_row(out, d);
	run_options_help(&kinds, out);
	fprintf(out, "\nSizes end in K, M, G or T, times in s, m, h or d. A comma in a value is\n"
		     "written \\, . The generic options of mount(8) are accepted too.\n"
		     "See kxfs(1). To unmount: fusermount3 -u MOUNTPOINT\n");
}
