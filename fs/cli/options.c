/* SPDX-License-Identifier: MIT */
/*
 * Parses the command line. option_table.c defines the tables of getopt and the text of --help. A
 * word of the -o list is an option of kxfs, a run option of a kind of jobs (as in TorchX), or a
 * generic option of mount(8).
 */
#include "fs/cli/options.h"

#include <errno.h>
#include <getopt.h>
#include <sys/stat.h>

#include "backend/base/print.h"
#include "fs/cli/option_table.h"
#include "spec/base/error.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/kinds/kinds.h"

#define RUN_OPTIONS_MAX 64 /* the most run options of all kinds together */

static void set_defaults(struct options *o)
{
	mode_t mask = umask(0);

	umask(mask);
	*o = (struct options){
		.cancel = OPTIONS_CANCEL_OWN,
		.log_level = DIAG_INFO,
		.grace = 10,
		.gpus = UINT64_MAX,
		.spool_limit = UINT64_C(10) << 30,
		.history_keep = 7 * 86400,
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

/* --- generic options of mount(8), for use in fstab --- */

/* kxfs passes the first GENERIC_KERNEL options to the kernel, and ignores the others. */
#define GENERIC_KERNEL 7
static const char *const generic[] = {
	"async",	 "atime",    "dirsync",	   "exec",	  "noatime",
	"noexec",	 "sync",     "auto",	   "comment",	  "defaults",
	"dev",		 "diratime", "fsname",	   "group",	  "lazytime",
	"loud",		 "_netdev",  "noauto",	   "nodev",	  "nodiratime",
	"nofail",	 "nogroup",  "nolazytime", "noowner",	  "norelatime",
	"nostrictatime", "nosuid",   "nouser",	   "nousers",	  "owner",
	"relatime",	 "rw",	     "silent",	   "strictatime", "subtype",
	"suid",		 "user",     "users",
};

/* Set the generic option WORD, which is NAME or NAME=VALUE. Return false if NAME is not one. */
static bool set_generic(struct options *o, const char *word, const char *name)
{
	const char *old = o->mount_options;
	size_t i = 0;

	if (strncasecmp(word, "x-", 2) == 0)
		return true;
	if (streq(word, "rw"))
		o->read_only = false;
	while (i < array_size(generic) && !streq(generic[i], name))
		i++;
	if (i < GENERIC_KERNEL)
		text_set(&o->mount_options, "%s%s%s", old, old[0] ? "," : "", name);
	return i < array_size(generic);
}

/* Refuse the option WORD. If NEAR is not NULL, suggest it, with dashes if WORD has them. */
static int refuse_option(const char *word, const char *near, char **ret_text)
{
	const char *dashes = near && strncmp(word, "--", 2) == 0 ? "--" : "";

	return refuse(-EINVAL, ret_text, "%s: unknown option; %s%s%s%skxfs --help lists all", word,
		      near ? "did you mean " : "", dashes, near ? near : "", near ? "? " : "");
}

/* --- run options, such as -o queue=research --- */

static const struct spec_option *run_option_find(const char *name)
{
	const struct spec_kind *kind = spec_kind_of_option(name);

	return kind ? spec_option_find(kind->options, name) : NULL;
}

/* VALUE is NULL if the option was given without a value. */
static int run_option_add(struct options *o, const struct spec_option *option, const char *value,
			  char **ret_text)
{
	if (!value && option->type != SPEC_OPTION_BOOL)
		return refuse(-EINVAL, ret_text, "-o %s needs a value: %s=VALUE", option->name,
			      option->name);
	o->args = mem_grow(o->args, o->n_args + 1, sizeof(*o->args));
	o->args[o->n_args++] =
		(struct spec_pair){text_copy(option->name), text_copy(value ? value : "true")};
	return 0;
}

/*
 * Return the kind whose definition of the run option NAME applies. A mount may show several kinds:
 * return the first of them that has the option. If none has it, or if the action is not a mount,
 * return the kind that SOURCE names, even if it lacks the option. If SOURCE names no kind, return
 * any kind that has the option.
 */
static const struct spec_kind *meant_kind(const struct options *o, const char *name)
{
	const struct spec_kind *kind = spec_kind_find(&o->kinds, o->backend);
	const struct spec_kind *meant;

	for (size_t i = 0;
	     o->action == OPTIONS_MOUNT && (meant = spec_kind_meant(&o->kinds, o->backend, i));
	     i++) {
		if (spec_option_find(meant->options, name))
			return meant;
	}
	return kind ? kind : spec_kind_of_option(name);
}

/*
 * If SOURCE names a kind, as in job:NAMESPACE, this kind must have all given run options. With
 * local:, the options of any kind are valid, because a dry run may convert a document for any kind.
 */
static int run_options_check(const struct options *o, char **ret_text)
{
	int r = 0;

	for (size_t i = 0; i < o->n_args && r == 0; i++) {
		const struct spec_kind *kind = meant_kind(o, o->args[i].key);

		r = spec_option_check(kind->name, kind->options, o->args[i].key, o->args[i].value,
				      ret_text);
	}
	return r;
}

/* Fill RET with at most MAX names of run options. Return their number. */
static size_t run_option_names(const struct spec_kinds *kinds, const char **ret, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < kinds->n; i++) {
		for (const struct spec_option *d = kinds->v[i]->options; d->name && n < max; d++)
			ret[n++] = d->name;
	}
	return n;
}

/* --- the list of -o --- */

static int unknown_word(const struct options *o, const char *word, char **ret_text)
{
	const char *words[OPTIONS_MAX + array_size(generic) + RUN_OPTIONS_MAX + 1];
	cleanup_free char *given = text_print("-o %s", word);
	size_t n = 0;

	if (streq(word, "remount"))
		return refuse(
			-EINVAL, ret_text,
			"-o remount: kxfs can't change the options of a mount; unmount it, and "
			"mount it again (local jobs continue if it was mounted with -o linger)");
	for (const struct option_def *d = option_table; d->help; d++)
		if (!d->letter)
			words[n++] = d->name;
	for (size_t i = 0; i < array_size(generic); i++)
		words[n++] = generic[i];
	n += run_option_names(&o->kinds, words + n, array_size(words) - 1 - n);
	words[n] = NULL;
	return refuse_option(given, spec_suggest(word, words), ret_text);
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

/* A backslash escapes a comma or a backslash in a value. */
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

const char *source_backend_at(const struct spec_kinds *kinds, size_t i)
{
	return i < kinds->n ? kinds->v[i]->name : i == kinds->n ? "local" : NULL;
}

/* Return a text such as "volcano:, job: and local:", malloc'ed. */
static char *backends_text(const struct spec_kinds *kinds)
{
	char *text = text_copy("");

	for (size_t i = 0; source_backend_at(kinds, i); i++)
		text_set(&text, "%s%s%s:", text,
			 i == 0				   ? ""
			 : source_backend_at(kinds, i + 1) ? ", "
							   : " and ",
			 source_backend_at(kinds, i));
	return text;
}

/* Return the backend with which TEXT begins, or NULL. */
static const char *find_backend(const struct spec_kinds *kinds, const char *text)
{
	const char *colon = strchr(text, ':'), *name;

	for (size_t i = 0; colon && (name = source_backend_at(kinds, i)); i++)
		if (strlen(name) == (size_t)(colon - text) &&
		    strncmp(name, text, strlen(name)) == 0)
			return name;
	return NULL;
}

/*
 * Refuse TEXT, a SOURCE without a known backend, if it looks like an unknown backend, or like a
 * backend without its colon. Return 0 if it may be a namespace.
 */
static int refuse_unknown(const struct spec_kinds *kinds, const char *text, char **ret_text)
{
	const char *colon = strchr(text, ':');
	cleanup_free char *word = mem_copy(text, colon ? (size_t)(colon - text) : strlen(text));
	const char *names[SPEC_MAX_KINDS + 2] = {NULL};
	cleanup_free char *all = backends_text(kinds);
	const char *near;

	for (size_t i = 0; (names[i] = source_backend_at(kinds, i)); i++)
		;
	near = spec_suggest(word, names);

	/* Accept a word that is only similar to a kind: "training" may be a namespace. */
	if (near && !colon && !streq(word, near))
		return 0;
	if (near)
		return refuse(-EINVAL, ret_text, "%s: unknown backend; did you mean %s: ?", text,
			      near);
	if (colon && !strchr(text, '/'))
		return refuse(-EINVAL, ret_text, "%s: unknown backend '%s'; backends are %s", text,
			      word, all);
	return 0;
}

/*
 * Parse SOURCE, [BACKEND:][CONTEXT/]NAMESPACE. The text before the first ':' is BACKEND only if
 * there is such a backend. CONTEXT ends at the last '/', because CONTEXT may contain ':' and '/'.
 */
static int set_source(struct options *o, const char *text, char **ret_text)
{
	const char *backend = find_backend(&o->kinds, text);
	const char *rest = backend ? text + strlen(backend) + 1 : text;
	const char *slash = strrchr(rest, '/');
	int r;

	if (text[0] == '/')
		return refuse(-EINVAL, ret_text, "%s: a source can't begin with '/'%s", text,
			      o->action != OPTIONS_MOUNT
				      ? ""
				      : ". If a file has the name of a source, mount(8) replaces "
					"the source by the file's path; to prevent this, put a "
					"backend before the namespace, as in job:NAMESPACE");
	text_set(&o->backend, "%s", backend ? backend : "");
	text_set(&o->context, "%.*s", slash ? (int)(slash - rest) : 0, rest);
	text_set(&o->namespace, "%s", slash ? slash + 1 : rest);
	if (streq(o->backend, "local") && *rest)
		return refuse(-EINVAL, ret_text, "%s: nothing may follow local:", text);
	if (!backend) {
		r = refuse_unknown(&o->kinds, text, ret_text);
		if (r < 0)
			return r;
	}
	if (o->namespace[0] && !spec_name_is_label(o->namespace))
		return refuse(-EINVAL, ret_text, "%s: '%s' can't be the name of a namespace", text,
			      o->namespace);
	return 0;
}

/* for each action: the most operands, and the usage */
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
	int r = 0;

	if (n > max)
		return refuse(-EINVAL, ret_text, "%s: too many arguments; %s", v[max],
			      operands[o->action].usage);
	if (o->action == OPTIONS_CHECK_KIND) {
		o->check_object = n > 0 ? text_copy(v[0]) : NULL;
		o->check_pods = n > 1 ? text_copy(v[1]) : NULL;
		return 0;
	}
	if ((o->action == OPTIONS_DOCTOR || o->action == OPTIONS_CAPTURE) && n == 1 &&
	    v[0][0] == '.')
		return refuse(
			-EINVAL, ret_text,
			"%s is a path, but the command %s takes a SOURCE. To mount the namespace "
			"%s, write a backend before its name: kxfs volcano:%s %s",
			v[0], v[-1], v[-1], v[-1], v[0]);
	if (o->action == OPTIONS_CAPTURE) {
		o->capture = OPTIONS_CAPTURE_ALL;
		o->foreground = true;
		text_set(&o->source, "%s", n == 1 ? v[0] : "the namespace of the kubeconfig");
	}
	if (o->action != OPTIONS_MOUNT && n == 1)
		r = set_source(o, v[0], ret_text);
	if (o->action == OPTIONS_CAPTURE && r == 0 && streq(o->backend, "local"))
		return refuse(-EINVAL, ret_text,
			      "local: kxfs capture supports only clusters, because a mount of "
			      "local: always stores the output; run kxfs local: MOUNTPOINT "
			      "instead");
	if (o->action != OPTIONS_MOUNT)
		return r;
	if (n == 0)
		return refuse(-EINVAL, ret_text,
			      "the mount point is missing: kxfs [OPTIONS] [SOURCE] MOUNTPOINT");
	if (n == 1 && find_backend(&o->kinds, v[0]))
		return refuse(-EINVAL, ret_text, "the mount point is missing: kxfs %s MOUNTPOINT",
			      v[0]);
	if (n == 2 && find_backend(&o->kinds, v[1]) && !find_backend(&o->kinds, v[0]))
		return refuse(-EINVAL, ret_text, "the source comes first: kxfs %s %s", v[1], v[0]);
	if (n == 2 && (streq(v[0], "umount") || streq(v[0], "unmount")))
		return refuse(
			-EINVAL, ret_text,
			"to unmount: fusermount3 -u %s; to mount the namespace %s, write a backend before "
			"its name: volcano:%s",
			v[1], v[0], v[0]);
	if (!v[n - 1][0])
		return refuse(-EINVAL, ret_text, "the name of the mount point is empty");
	if (n == 2)
		r = set_source(o, v[0], ret_text);
	if (r == 0 && o->archive[0] && o->capture == OPTIONS_CAPTURE_NONE &&
	    !streq(o->backend, "local"))
		return refuse(-EINVAL, ret_text,
			      "-o archive=%s with -o capture=none: kxfs archives only jobs whose "
			      "output it captures; leave one of the two options out",
			      o->archive);
	if (r < 0)
		return r;
	text_set(&o->source, "%s", n == 2 ? v[0] : "kxfs");
	text_set(&o->mountpoint, "%s", v[n - 1]);
	return 0;
}

/* --- mount.kxfs, the helper of mount(8) --- */

/* True if this program was called as the helper that mount(8) runs. */
static bool is_helper(const char *name)
{
	const char *slash = strrchr(name, '/');

	return streq(slash ? slash + 1 : name, "mount.kxfs");
}

/*
 * mount.kxfs SOURCE MOUNTPOINT [-sfnv] [-N NAMESPACE] [-t TYPE] [-o OPTIONS]. Some letters have
 * another meaning in kxfs.
 */
static const char helper_flags[] = ":sfnvN:t:o:";

/*
 * C is a result of getopt for helper_flags. If kxfs does not support this flag, return an error
 * text. Return NULL for supported flags, and for flags that kxfs can ignore.
 */
static const char *not_done(int c)
{
	switch (c) {
	case 'f':
		return "-f: kxfs does not support fake mounts";
	case 'N':
		return "-N: kxfs can't mount in another mount namespace; use nsenter(1)";
	case ':':
		return "-o needs a value";
	case '?':
		return "unknown option; mount.kxfs has the options of a mount helper, see mount(8)";
	default:
		return NULL;
	}
}

/* --- flags --- */

/* Refuse an argument that getopt could not parse. C is getopt's result: '?' or ':'. */
static int bad_flag(int c, char **argv, char **ret_text)
{
	const char *longs[OPTIONS_MAX + 1];
	const char *word = argv[optind - 1];
	char flag[] = {'-', (char)optopt, '\0'};
	const struct option_def *d = option_table;
	size_t n = 0;

	/* optopt is 0 after an unknown long option */
	while (d->help && (!optopt || d->letter != optopt))
		d++;
	if (d->help && d->name)
		return refuse(-EINVAL, ret_text, "--%s %s", d->name,
			      c == ':' ? "needs a value" : "takes no value");
	if (d->help)
		return refuse(-EINVAL, ret_text, "%s needs a value", flag);
	if (optopt)
		return refuse_option(flag, NULL, ret_text);
	for (d = option_table; d->help; d++)
		if (d->letter && d->name)
			longs[n++] = d->name;
	longs[n] = NULL;
	return refuse_option(word, spec_suggest(word + 2, longs), ret_text);
}

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

/* Set the options that flags give. After success, the operands follow in ARGV from optind. */
static int set_flags(struct options *o, int argc, char **argv, char **ret_text)
{
	const bool helper = argc > 0 && is_helper(argv[0]);
	struct option longs[OPTIONS_MAX + 1];
	char shorts[2 * OPTIONS_MAX + 2];
	int c, r = 0;

	getopt_tables(shorts, longs);
	optind = 0; /* restarts getopt */
	while ((c = helper ? getopt(argc, argv, helper_flags)
			   : getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		const struct option_def *d = option_table;

		if (helper && not_done(c))
			return refuse(-EINVAL, ret_text, "%s", not_done(c));
		if (c == '?' || c == ':')
			return bad_flag(c, argv, ret_text);
		if (helper && c != 'o')
			continue;
		while (d->letter != c)
			d++;
		r = d->set ? d->set(o, d, optarg, ret_text) : set_list(o, optarg, ret_text);
		if (r < 0 || o->action == OPTIONS_HELP || o->action == OPTIONS_VERSION)
			break;
	}
	return r;
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
	int r;

	*ret_text = NULL;
	set_defaults(ret);
	r = set_flags(ret, argc, argv, ret_text);
	if (r < 0)
		return r;
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

/* --- help --- */

static void help_row(FILE *out, const struct option_def *d)
{
	char head[64];

	if (d->letter && d->letter < OPTION_LONG_ONLY)
		snprintf(head, sizeof(head), "-%c%s%s%s%s", d->letter, d->name ? ", --" : "",
			 d->name ? d->name : "", d->arg ? " " : "", d->arg ? d->arg : "");
	else
		snprintf(head, sizeof(head), "%s%s%s%s", d->letter ? "--" : "", d->name,
			 d->arg ? "=" : "", d->arg ? d->arg : "");
	fprintf(out, "  %-35s %s\n", head, d->help);
	if (d->def)
		fprintf(out, "  %-35s (default %s)\n", "", d->def);
}

static void run_options_help(const struct spec_kinds *kinds, FILE *out)
{
	static const char *const types[] = {"=TEXT", "=NAME", "=N", "", "=TIME"};

	for (size_t i = 0; i < kinds->n; i++) {
		const struct spec_kind *kind = kinds->v[i];

		fprintf(out, "\nRun options (-o) of %s:\n", kind->name);
		for (const struct spec_option *d = kind->options; d->name; d++) {
			char head[64];

			if (d->refusal)
				continue;
			snprintf(head, sizeof(head), "%s%s", d->name, types[d->type]);
			fprintf(out, "  %-35s %s%s\n", head, d->help,
				d->required ? " (required)" : "");
		}
	}
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
		"Show batch jobs as a directory. To run a job: cp FILE MOUNTPOINT/submit/\n"
		"\n"
		"SOURCE is [BACKEND:][CONTEXT/]NAMESPACE of a Kubernetes cluster, or local: for\n"
		"jobs that run as processes of this machine; kxfs --list-sources prints the\n"
		"backends. Without a BACKEND, a mount shows all kinds of jobs that the cluster\n"
		"serves, and a dry run uses the scheduler that FILE names. Without a SOURCE,\n"
		"kxfs uses the current context of the kubeconfig and its namespace.\n"
		"\n"
		"Flags:\n");
	for (const struct option_def *d = option_table; d->help; d++)
		if (d->letter)
			help_row(out, d);
	fprintf(out, "\nOptions of -o:\n");
	for (const struct option_def *d = option_table; d->help; d++)
		if (!d->letter)
			help_row(out, d);
	run_options_help(&kinds, out);
	fprintf(out,
		"\n"
		"A size ends in K, M, G or T, a time in s, m, h or d. In a value, write \\, for\n"
		"a comma. kxfs also accepts the generic options of mount(8).\n"
		"See kxfs(1). To unmount: fusermount3 -u MOUNTPOINT\n");
}
