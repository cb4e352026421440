/* SPDX-License-Identifier: MIT */
/*
 * Reading the command line: getopt's tables and --help are made from the rows of option_table.c, and
 * what is left over is SOURCE and MOUNTPOINT.
 */
#include "fs/options.h"

#include <errno.h>
#include <getopt.h>
#include <sys/stat.h>

#include "fs/option_table.h"
#include "fs/refuse.h"
#include "fs/run_options.h"
#include "fs/source.h"
#include "spec/error.h"

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
	if (option_replace(&o->source, n == 2 ? v[0] : "kxfs") < 0)
		return -ENOMEM;
	return option_replace(&o->mountpoint, v[n - 1]);
}

/* What getopt could not read: "?" or ":" as C says. */
static int bad_flag(int c, char **argv, char **ret_text)
{
	const char *longs[OPTIONS_MAX + 1];
	const char *word = argv[optind - 1];
	const char *near = NULL;
	size_t n = 0;

	if (optopt >= OPTION_LONG_ONLY)
		return refuse(-EINVAL, ret_text, "%s needs a value", word);
	if (c == ':')
		return refuse(-EINVAL, ret_text, "-%c needs a value", optopt);
	if (optopt)
		return refuse(-EINVAL, ret_text, "-%c: unknown option; kxfs --help lists all",
			      optopt);
	for (const struct option_def *d = option_table; d->help; d++)
		if (d->letter && d->name)
			longs[n++] = d->name;
	longs[n] = NULL;
	near = spec_suggest(word + 2, longs);
	return refuse(-EINVAL, ret_text, "%s: unknown option%s%s%s; kxfs --help lists all", word,
		      near ? "; did you mean --" : "", near ? near : "", near ? "?" : "");
}

/* Fill getopt's own tables from the rows that have a letter. */
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
	struct option longs[OPTIONS_MAX + 1];
	char shorts[2 * OPTIONS_MAX + 2];
	int c;
	int r;

	*ret_text = NULL;
	r = set_defaults(ret);
	if (r < 0)
		return r;
	getopt_tables(shorts, longs);
	optind = 0; /* starts anew, also in a second call */
	while ((c = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		const struct option_def *d = option_table;

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

	if (d->letter == OPTION_LONG_ONLY)
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
	fprintf(out, "Usage: kxfs [OPTIONS] [SOURCE] MOUNTPOINT\n"
		     "       kxfs --dry-run=FILE [OPTIONS] [SOURCE]\n"
		     "Show batch jobs as a directory: cp FILE MOUNTPOINT/submit/ runs one.\n\n"
		     "SOURCE is [BACKEND:][CONTEXT/]NAMESPACE of a Kubernetes cluster, where "
		     "BACKEND is volcano,\n"
		     "mcad or appwrapper (by default what the cluster serves; the kubeconfig's "
		     "current context\n"
		     "and its namespace), or local: (jobs run as processes of this machine). A dry "
		     "run makes by\n"
		     "default what FILE names as scheduler.\n\n"
		     "Flags:\n");
	for (const struct option_def *d = option_table; d->help; d++)
		if (d->letter)
			help_row(out, d);
	fprintf(out, "\nOptions of -o:\n");
	for (const struct option_def *d = option_table; d->help; d++)
		if (!d->letter)
			help_row(out, d);
	run_options_help(out);
	fprintf(out, "\nSizes end in K, M, G or T, times in s, m, h or d. A comma in a value is\n"
		     "written \\, . The generic options of mount(8) are accepted too.\n"
		     "See kxfs(1). To unmount: fusermount3 -u MOUNTPOINT\n");
}
