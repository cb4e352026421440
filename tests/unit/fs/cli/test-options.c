/* SPDX-License-Identifier: MIT */
/* The command line as users type it: what is accepted, and the exact text of each refusal. */
#include <errno.h>
#include <sys/stat.h>

#include "fs/cli/options.h"
#include "tests/unit/unit.h"

#define MAX_WORDS 16

struct line {
	char *words; /* memory for argv */
	char *argv[MAX_WORDS];
	int argc;
};

/* Split TEXT at spaces. "''" is an empty word. */
static void line_split(struct line *l, const char *text)
{
	char *save = NULL;

	*l = (struct line){.words = strdup(text)};
	for (char *w = strtok_r(l->words, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		assert_true(l->argc < MAX_WORDS - 1);
		l->argv[l->argc++] = streq(w, "''") ? w + 2 : w;
	}
}

static int parse(const char *text, struct options *o, char **why)
{
	struct line l;
	int r;

	line_split(&l, text);
	r = options_parse(l.argc, l.argv, o, why);
	free(l.words);
	return r;
}

static void assert_parsed(const char *text, struct options *o)
{
	char *why = NULL;
	int r = parse(text, o, &why);

	if (r < 0)
		fail_msg("%s: refused: %s", text, why);
	assert_null(why);
}

static const struct {
	const char *line;
	const char *why;
} refused[] = {
	/* operands */
	{"kxfs", "the mount point is missing: kxfs [OPTIONS] [SOURCE] MOUNTPOINT"},
	{"kxfs local:", "the mount point is missing: kxfs local: MOUNTPOINT"},
	{"kxfs local: ''", "the name of the mount point is empty"},
	{"kxfs local: /mnt/kx more",
	 "more: too many arguments; kxfs [OPTIONS] [SOURCE] MOUNTPOINT"},
	/* sources */
	{"kxfs local:x /mnt/kx", "local:x: nothing may follow local:"},
	{"kxfs local:a/b /mnt/kx", "local:a/b: nothing may follow local:"},
	{"kxfs local:/ /mnt/kx", "local:/: nothing may follow local:"},
	{"kxfs /data/ada/training /mnt/kx",
	 "/data/ada/training: a source can't begin with '/'. If a file has the name of a source, "
	 "mount(8) replaces the source by the file's path; to prevent this, put a backend before "
	 "the namespace, as in job:NAMESPACE"},
	{"kxfs volcano:Training /mnt/kx",
	 "volcano:Training: 'Training' can't be the name of a namespace"},
	{"kxfs lokal: /mnt/kx", "lokal:: unknown backend; did you mean local: ?"},
	{"kxfs local /mnt/kx", "local: unknown backend; did you mean local: ?"},
	{"kxfs --list-sources local:", "local:: too many arguments; kxfs --list-sources [OPTIONS]"},
	/* flags */
	{"kxfs -x local: /mnt/kx", "-x: unknown option; kxfs --help lists all"},
	{"kxfs local: /mnt/kx -o", "-o needs a value"},
	{"kxfs --hepl", "--hepl: unknown option; did you mean --help? kxfs --help lists all"},
	{"kxfs --frobnicate local: /m", "--frobnicate: unknown option; kxfs --help lists all"},
	{"kxfs -v local: /m", "-v: unknown option; kxfs --help lists all"},
	{"kxfs --foreground=x local: /m", "--foreground takes no value"},
	{"kxfs --list-sources=x", "--list-sources takes no value"},
	{"kxfs doctor --rbac=x", "--rbac takes no value"},
	{"kxfs --foreground -fx local: /m", "-x: unknown option; kxfs --help lists all"},
	{"kxfs --dry", "--dry-run needs a value"},
	/* words that somebody may try */
	{"kxfs /mnt/kx local:", "the source comes first: kxfs local: /mnt/kx"},
	{"kxfs umount /mnt/kx",
	 "to unmount: fusermount3 -u /mnt/kx; to mount the namespace umount, write a backend before its name: "
	 "volcano:umount"},
	{"kxfs -o remount,ro local: /m",
	 "-o remount: kxfs can't change the options of a mount; unmount it, and mount it again (local jobs continue if "
	 "it was mounted with -o linger)"},
	/* options of -o */
	{"kxfs -o stat=/x local: /m",
	 "-o stat: unknown option; did you mean state? kxfs --help lists all"},
	{"kxfs -o alow_other local: /m",
	 "-o alow_other: unknown option; did you mean allow_other? kxfs --help lists all"},
	{"kxfs -o noexce local: /m",
	 "-o noexce: unknown option; did you mean noexec? kxfs --help lists all"},
	{"kxfs -o frobnicate local: /m", "-o frobnicate: unknown option; kxfs --help lists all"},
	{"kxfs -o ro,frobnicate=3,rw local: /m",
	 "-o frobnicate: unknown option; kxfs --help lists all"},
	{"kxfs -o state local: /m", "-o state needs a value: state=DIR"},
	{"kxfs -o state= local: /m", "-o state needs a value: state=DIR"},
	{"kxfs -o ro=1 local: /m", "-o ro takes no value"},
	{"kxfs -o capture=mine local: /m", "-o capture=mine: not own|all|none"},
	{"kxfs -o cancel=al local: /m", "-o cancel=al: not own|mine|all|none"},
	{"kxfs -o log_level=loud local: /m", "-o log_level=loud: not error|warning|info|debug"},
	/* dry runs and run options */
	{"kxfs --dry-run", "--dry-run needs a value"},
	{"kxfs --dry-rum=f local:",
	 "--dry-rum=f: unknown option; did you mean --dry-run? kxfs --help "
	 "lists all"},
	{"kxfs --dry-run=f local: more",
	 "more: too many arguments; kxfs --dry-run=FILE [OPTIONS] [SOURCE]"},
	{"kxfs doctor volcano:a b", "b: too many arguments; kxfs doctor [OPTIONS] [SOURCE]"},
	{"kxfs doctor /mnt/kx", "/mnt/kx: a source can't begin with '/'"},
	{"kxfs capture volcano:a b", "b: too many arguments; kxfs capture [OPTIONS] [SOURCE]"},
	{"kxfs capture /mnt/kx", "/mnt/kx: a source can't begin with '/'"},
	{"kxfs capture ./kx",
	 "./kx is a path, but the command capture takes a SOURCE. To mount the namespace capture, "
	 "write a backend before its name: kxfs volcano:capture ./kx"},
	{"kxfs doctor ./kx",
	 "./kx is a path, but the command doctor takes a SOURCE. To mount the namespace doctor, "
	 "write a backend before its name: kxfs volcano:doctor ./kx"},
	{"kxfs capture local:",
	 "local: kxfs capture supports only clusters, because a mount of local: always stores the "
	 "output; run kxfs local: MOUNTPOINT instead"},
	{"kxfs --dry-run=f /mnt/kx", "/mnt/kx: a source can't begin with '/'"},
	{"kxfs --dry-run=f -o queue volcano:", "-o queue needs a value: queue=VALUE"},
	{"kxfs --dry-run=f -o queue=q mcad:",
	 "-o queue: mcad has no such run option; its run options are service_account, image_repo, image_secret, "
	 "coscheduler_name, priority_class_name, time_limit, network, priority, no_annotations"},
	{"kxfs --dry-run=f -o ttl=1d mcad:",
	 "-o ttl: no controller removes finished AppWrappers: leave ttl out, or use Volcano or "
	 "JobSet"},
	{"kxfs --dry-run=f -o time_limit=60 volcano:",
	 "-o time_limit: must be a time with its unit, like 90s, 30m, 4h or 2d, not \"60\""},
	{"kxfs --dry-run=f -o priority=high mcad:",
	 "-o priority: must be a whole number, not \"high\""},
	{"kxfs --dry-run=f -o prioritty=1 mcad:",
	 "-o prioritty: unknown option; did you mean priority? kxfs --help lists all"},
	{"kxfs -o priority=high local: /m", "-o priority: must be a whole number, not \"high\""},
	{"kxfs -o no_annotations=5 local: /m",
	 "-o no_annotations: must be true or false, not \"5\""},
	/* numbers */
	{"kxfs -o grace=-1 local: /m", "-o grace=-1: not a time from 0s to 1h, like 30s or 2m"},
	{"kxfs -o grace=2h local: /m", "-o grace=2h: not a time from 0s to 1h, like 30s or 2m"},
	{"kxfs -o grace=1.5s local: /m", "-o grace=1.5s: not a time from 0s to 1h, like 30s or 2m"},
	{"kxfs -o jobs=0 local: /m", "-o jobs=0: not a number of jobs, at least 1"},
	{"kxfs -o jobs=-1 local: /m", "-o jobs=-1: not a number of jobs, at least 1"},
	{"kxfs -o jobs=4294967296 local: /m",
	 "-o jobs=4294967296: not a number of jobs, at least 1"},
	{"kxfs -o jobs= local: /m", "-o jobs needs a value: jobs=N"},
	{"kxfs -o gpus=65 local: /m", "-o gpus=65: not a number of GPUs from 0 to 64"},
	{"kxfs -o gpus=-1 local: /m", "-o gpus=-1: not a number of GPUs from 0 to 64"},
	{"kxfs -o gpus=all local: /m", "-o gpus=all: not a number of GPUs from 0 to 64"},
	{"kxfs -o spool_limit=10GB local: /m",
	 "-o spool_limit=10GB: not a size of at least 1M, like 500M or 10G"},
	{"kxfs -o spool_limit=1K local: /m",
	 "-o spool_limit=1K: not a size of at least 1M, like 500M or 10G"},
	{"kxfs -o spool_limit=99999999999999999999 local: /m",
	 "-o spool_limit=99999999999999999999: not a size of at least 1M, like 500M or 10G"},
	{"kxfs -o spool_limit=18014398509481984K local: /m",
	 "-o spool_limit=18014398509481984K: not a size of at least 1M, like 500M or 10G"},
	{"kxfs -o history_keep=0x7d local: /m",
	 "-o history_keep=0x7d: not a time of at most 3650d, like 12h or 7d"},
	{"kxfs capture -o archive=here volcano:ns", "-o archive=here: not an absolute path"},
	{"kxfs -o archive=/a,capture=none volcano:ns /m",
	 "-o archive=/a with -o capture=none: kxfs archives only jobs whose output it captures; leave "
	 "one of the two options out"},
	{"kxfs -o uid=ada local: /m", "-o uid=ada: not a user ID (a number)"},
	{"kxfs -o uid=4294967295 local: /m", "-o uid=4294967295: not a user ID (a number)"},
	{"kxfs -o gid=+5 local: /m", "-o gid=+5: not a group ID (a number)"},
	{"kxfs -o umask=088 local: /m", "-o umask=088: not an octal number up to 777"},
	{"kxfs -o umask=1000 local: /m", "-o umask=1000: not an octal number up to 777"},
};

static void test_unknown_backend(void **state)
{
	static const char begin[] =
		"slurm:training: unknown backend 'slurm'; backends are volcano:, mcad:, ";
	struct options o;
	cleanup_free char *why = NULL;

	assert_int_not_equal(parse("kxfs slurm:training /mnt/kx", &o, &why), 0);
	assert_memory_equal(why, begin, strlen(begin));
	assert_non_null(strstr(why, ": and local:"));
	options_clear(&o);
}

static void test_refused(void **state)
{
	for (size_t i = 0; i < array_size(refused); i++) {
		struct options o;
		char *why = NULL;

		if (parse(refused[i].line, &o, &why) == 0)
			fail_msg("%s: not refused", refused[i].line);
		assert_string_equal(why, refused[i].why);
		options_clear(&o);
		free(why);
	}
}

/* The backend, context and namespace that SOURCE specifies. */
static void test_sources(void **state)
{
	static const char *const sources[][5] = {
		{"kxfs /m", "kxfs", "", "", ""},
		{"kxfs mcad:ctx/training /m", "mcad:ctx/training", "mcad", "ctx", "training"},
		{"kxfs training /m", "training", "", "", "training"},
		{"kxfs volcano:training /m", "volcano:training", "volcano", "", "training"},
		{"kxfs volcano: /m", "volcano:", "volcano", "", ""},
		{"kxfs volcano:arn:aws:eks:eu-1:12:cluster/x/training /m",
		 "volcano:arn:aws:eks:eu-1:12:cluster/x/training", "volcano",
		 "arn:aws:eks:eu-1:12:cluster/x", "training"},
		{"kxfs arn:aws:eks:eu-1:12:cluster/x/training /m",
		 "arn:aws:eks:eu-1:12:cluster/x/training", "", "arn:aws:eks:eu-1:12:cluster/x",
		 "training"},
	};

	for (size_t i = 0; i < array_size(sources); i++) {
		struct options o;

		assert_parsed(sources[i][0], &o);
		assert_string_equal(o.source, sources[i][1]);
		assert_string_equal(o.backend, sources[i][2]);
		assert_string_equal(o.context, sources[i][3]);
		assert_string_equal(o.namespace, sources[i][4]);
		assert_string_equal(o.mountpoint, "/m");
		options_clear(&o);
	}
}

static void test_defaults(void **state)
{
	mode_t mask = umask(027);
	struct options o;

	assert_parsed("kxfs local: /mnt/kx", &o);
	umask(mask);
	assert_int_equal(o.action, OPTIONS_MOUNT);
	assert_string_equal(o.source, "local:");
	assert_string_equal(o.backend, "local");
	assert_string_equal(o.context, "");
	assert_string_equal(o.namespace, "");
	assert_string_equal(o.mountpoint, "/mnt/kx");
	assert_false(o.foreground || o.debug || o.read_only || o.allow_other);
	assert_int_equal(o.cancel, OPTIONS_CANCEL_OWN);
	assert_int_equal(o.log_level, DIAG_INFO);
	assert_string_equal(o.state, "");
	assert_int_equal(o.grace, 10);
	assert_int_equal(o.jobs, 0);
	assert_true(o.gpus == UINT64_MAX);
	assert_int_equal(o.spool_limit, UINT64_C(10) << 30);
	assert_int_equal(o.history_keep, 7 * 86400);
	assert_int_equal(o.uid, getuid());
	assert_int_equal(o.gid, getgid());
	assert_int_equal(o.umask, 027);
	assert_string_equal(o.mount_options, "");
	options_clear(&o);
}

static void test_values(void **state)
{
	struct options o;

	assert_parsed("kxfs -f -o state=/s\\,t,cancel=all,,grace=2m local: -oro,allow_other,uid=7 "
		      "/m -o gid=8,umask=0077,log_level=error,spool_limit=500M,history_keep=0,"
		      "jobs=3,gpus=0",
		      &o);
	assert_true(o.foreground && o.read_only && o.allow_other);
	assert_false(o.debug);
	assert_string_equal(o.state, "/s,t");
	assert_int_equal(o.cancel, OPTIONS_CANCEL_ALL);
	assert_int_equal(o.grace, 120);
	assert_int_equal(o.jobs, 3);
	assert_int_equal(o.gpus, 0);
	assert_int_equal(o.uid, 7);
	assert_int_equal(o.gid, 8);
	assert_int_equal(o.umask, 077);
	assert_int_equal(o.log_level, DIAG_ERROR);
	assert_int_equal(o.spool_limit, UINT64_C(500) << 20);
	assert_int_equal(o.history_keep, 0);
	assert_string_equal(o.mountpoint, "/m");
	options_clear(&o);
	assert_parsed("kxfs capture -o archive=/a/b volcano:ns", &o);
	assert_string_equal(o.archive, "/a/b");
	options_clear(&o);
}

static void test_debug_wins(void **state)
{
	struct options o;

	assert_parsed("kxfs -d -o log_level=error local: /m", &o);
	assert_int_equal(o.log_level, DIAG_DEBUG);
	options_clear(&o);
}

/* If an option is repeated or contradicted, the last one counts, as with mount(8). */
static void test_last_wins(void **state)
{
	struct options o;

	assert_parsed("kxfs -o ro,cancel=none -o rw,cancel=own local: /m", &o);
	assert_false(o.read_only);
	assert_int_equal(o.cancel, OPTIONS_CANCEL_OWN);
	options_clear(&o);
	assert_parsed("kxfs -o cancel=none,cancel=mine local: /m", &o);
	assert_int_equal(o.cancel, OPTIONS_CANCEL_MINE);
	options_clear(&o);
}

/*
 * Options that mount.fuse3 and fstab pass are accepted. Only those that the kernel knows are passed
 * on.
 */
static void test_generic(void **state)
{
	struct options o;

	assert_parsed("kxfs local: /m -o rw,dev,suid,nodev,nosuid,exec,noexec,atime,noatime,"
		      "relatime,sync,async,dirsync,nofail,_netdev,user,users,nouser,noauto,auto,"
		      "defaults,owner,group,x-systemd.automount,x-a=b,comment=c,fsname=d,subtype=e,"
		      "user=ada",
		      &o);
	assert_string_equal(o.mount_options, "exec,noexec,atime,noatime,sync,async,dirsync");
	options_clear(&o);
}

static void test_help_and_version(void **state)
{
	static const struct {
		const char *line;
		enum options_action action;
	} lines[] = {
		{"kxfs -h", OPTIONS_HELP},
		{"kxfs --help", OPTIONS_HELP},
		{"kxfs -o ro --help volcano:x y z", OPTIONS_HELP},
		{"kxfs -V", OPTIONS_VERSION},
		{"kxfs --version", OPTIONS_VERSION},
		{"kxfs version", OPTIONS_VERSION},
		{"kxfs help", OPTIONS_HELP},
		{"kxfs help /mnt/kx", OPTIONS_MOUNT},
	};

	for (size_t i = 0; i < array_size(lines); i++) {
		struct options o;

		assert_parsed(lines[i].line, &o);
		assert_int_equal(o.action, lines[i].action);
		options_clear(&o);
	}
}

static void test_dry_run(void **state)
{
	struct options o;

	assert_parsed("kxfs --dry-run=a/b.yaml -o image_repo=a\\,b,no_annotations volcano:ctx/ns",
		      &o);
	assert_int_equal(o.action, OPTIONS_DRY_RUN);
	assert_string_equal(o.dry_run, "a/b.yaml");
	assert_string_equal(o.backend, "volcano");
	assert_string_equal(o.context, "ctx");
	assert_string_equal(o.namespace, "ns");
	assert_int_equal(o.n_args, 2);
	assert_string_equal(o.args[0].key, "image_repo");
	assert_string_equal(o.args[0].value, "a,b");
	assert_string_equal(o.args[1].key, "no_annotations");
	assert_string_equal(o.args[1].value, "true");
	options_clear(&o);
	assert_parsed("kxfs --dry-run f -o priority=1", &o);
	assert_string_equal(o.backend, "");
	assert_string_equal(o.namespace, "");
	assert_int_equal(o.n_args, 1);
	options_clear(&o);
}

static void test_doctor(void **state)
{
	struct options o;

	assert_parsed("kxfs doctor", &o);
	assert_int_equal(o.action, OPTIONS_DOCTOR);
	assert_string_equal(o.namespace, "");
	options_clear(&o);
	assert_parsed("kxfs doctor -o as=ada ctx/training", &o);
	assert_int_equal(o.action, OPTIONS_DOCTOR);
	assert_string_equal(o.context, "ctx");
	assert_string_equal(o.namespace, "training");
	assert_string_equal(o.as, "ada");
	options_clear(&o);
	assert_parsed("kxfs capture -o capture=own,queue=q volcano:training", &o);
	assert_int_equal(o.action, OPTIONS_CAPTURE);
	assert_int_equal(o.capture, OPTIONS_CAPTURE_ALL);
	assert_true(o.foreground);
	assert_null(o.mountpoint);
	assert_string_equal(o.namespace, "training");
	options_clear(&o);
	assert_parsed("kxfs volcano:doctor /mnt/kx", &o);
	assert_int_equal(o.action, OPTIONS_MOUNT);
	assert_string_equal(o.namespace, "doctor");
	options_clear(&o);
}

/* The arguments that mount(8) passes to its helper. */
static void test_mount_helper(void **state)
{
	static const struct {
		const char *line, *why;
	} wrong[] = {
		{"mount.kxfs local: /m -f", "-f: kxfs does not support fake mounts"},
		{"mount.kxfs local: /m -N /proc/1/ns/mnt",
		 "-N: kxfs can't mount in another mount namespace; use nsenter(1)"},
		{"mount.kxfs local: /m -o", "-o needs a value"},
		{"mount.kxfs local: /m -x",
		 "unknown option; mount(8) lists the options of mount helpers"},
		{"mount.kxfs -o rw -- -b /m", "-b: '-b' can't be the name of a namespace"},
		{"/mount.kxfs/kxfs local: /m -t kxfs", "-t: unknown option; kxfs --help lists all"},
	};
	struct options o;

	assert_parsed("/sbin/mount.kxfs a/b /m -snv -t kxfs -o ro,state=/s -o umask=77", &o);
	assert_string_equal(o.context, "a");
	assert_string_equal(o.namespace, "b");
	assert_string_equal(o.mountpoint, "/m");
	assert_string_equal(o.state, "/s");
	assert_int_equal(o.umask, 077);
	assert_true(o.read_only);
	options_clear(&o);
	for (size_t i = 0; i < array_size(wrong); i++) {
		cleanup_free char *why = NULL;

		assert_int_equal(parse(wrong[i].line, &o, &why), -EINVAL);
		assert_string_equal(why, wrong[i].why);
		options_clear(&o);
	}
}

static void test_help_text(void **state)
{
	cleanup_free char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	options_help(out);
	fclose(out);
	assert_non_null(
		strstr(text, "  -f, --foreground                    stay in the foreground\n"));
	assert_non_null(strstr(text, "  -V, --version                       print the version"));
	assert_non_null(strstr(text, "  cancel=own|mine|all|none            jobs that rm"));
	assert_non_null(strstr(text, "(default 7d)\n"));
	for (const char *line = text; *line; line = strchr(line, '\n') + 1)
		assert_true(strcspn(line, "\n") <= 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),		 cmocka_unit_test(test_unknown_backend),
		cmocka_unit_test(test_sources),		 cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_values),		 cmocka_unit_test(test_debug_wins),
		cmocka_unit_test(test_last_wins),	 cmocka_unit_test(test_generic),
		cmocka_unit_test(test_help_and_version), cmocka_unit_test(test_help_text),
		cmocka_unit_test(test_dry_run),		 cmocka_unit_test(test_doctor),
		cmocka_unit_test(test_mount_helper),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
