/* SPDX-License-Identifier: MIT */
/* The command line as users type it: what is accepted, and the exact text of each refusal. */
#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "fs/cli/options.h"
#include "tests/unit/unit.h"

#define MAX_WORDS 16

/* Parse TEXT after splitting it at spaces. "''" is an empty word. */
static int parse(const char *text, struct options *o, char **why)
{
	cleanup_free char *words = strdup(text);
	char *argv[MAX_WORDS] = {NULL}, *save = NULL;
	int argc = 0;

	for (char *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		assert_true(argc < MAX_WORDS - 1);
		argv[argc++] = streq(w, "''") ? w + 2 : w;
	}
	return options_parse(argc, argv, o, why);
}

static void show_text(FILE *f, const char *name, const char *value)
{
	if (value && *value)
		fprintf(f, ", %s=%s", name, value);
}

static void show_number(FILE *f, const char *name, uint64_t value, uint64_t default_)
{
	if (value != default_)
		fprintf(f, ", %s=%" PRIu64, name, value);
}

static void show_flag(FILE *f, const char *name, bool value)
{
	if (value)
		fprintf(f, ", %s", name);
}

/*
 * Return O as a text: ACTION SOURCE [BACKEND|CONTEXT|NAMESPACE], and each member that has not its
 * default value.
 */
static char *shown(const struct options *o)
{
	static const char *const actions[] = {
		[OPTIONS_MOUNT] = "mount",   [OPTIONS_DRY_RUN] = "dry run",
		[OPTIONS_DOCTOR] = "doctor", [OPTIONS_CAPTURE] = "capture",
		[OPTIONS_HELP] = "help",     [OPTIONS_VERSION] = "version",
	};
	/* "" is the default */
	static const char *const cancels[] = {"", "mine", "all", "none"};
	static const char *const captures[] = {"", "all", "none"};
	static const char *const levels[] = {"error", "warning", "", "debug"};
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	fputs(actions[o->action], f);
	if (o->action != OPTIONS_HELP && o->action != OPTIONS_VERSION) {
		fprintf(f, " %s [%s|%s|%s]", o->source, o->backend, o->context, o->namespace);
		show_text(f, "mountpoint", o->mountpoint);
		show_flag(f, "foreground", o->foreground);
		show_flag(f, "debug", o->debug);
		show_flag(f, "read_only", o->read_only);
		show_flag(f, "allow_other", o->allow_other);
		show_text(f, "cancel", cancels[o->cancel]);
		show_text(f, "log_level", levels[o->log_level]);
		show_text(f, "as", o->as);
		show_text(f, "capture", captures[o->capture]);
		show_text(f, "state", o->state);
		show_text(f, "archive", o->archive);
		show_number(f, "grace", o->grace, 10);
		show_number(f, "jobs", o->jobs, 0);
		show_number(f, "gpus", o->gpus, UINT64_MAX);
		show_number(f, "spool_limit", o->spool_limit, UINT64_C(10) << 30);
		show_number(f, "history_keep", o->history_keep, UINT64_C(7) * 86400);
		show_number(f, "uid", o->uid, getuid());
		show_number(f, "gid", o->gid, getgid());
		if (o->umask != 027)
			fprintf(f, ", umask=0%03" PRIo64, o->umask);
		show_text(f, "dry_run", o->dry_run);
		for (size_t i = 0; i < o->n_args; i++)
			show_text(f, o->args[i].key, o->args[i].value);
		show_text(f, "mount_options", o->mount_options);
	}
	fclose(f);
	return text;
}

static const struct {
	const char *line;
	const char *shown;
} accepted[] = {
	/* the defaults, and sources */
	{"kxfs local: /mnt/kx", "mount local: [local||], mountpoint=/mnt/kx"},
	{"kxfs /m", "mount kxfs [||], mountpoint=/m"},
	{"kxfs mcad:ctx/training /m", "mount mcad:ctx/training [mcad|ctx|training], mountpoint=/m"},
	{"kxfs training /m", "mount training [||training], mountpoint=/m"},
	{"kxfs volcano:arn:aws:eks:eu-1:12:cluster/x/training /m",
	 "mount volcano:arn:aws:eks:eu-1:12:cluster/x/training "
	 "[volcano|arn:aws:eks:eu-1:12:cluster/x|training], mountpoint=/m"},
	{"kxfs arn:aws:eks:eu-1:12:cluster/x/training /m",
	 "mount arn:aws:eks:eu-1:12:cluster/x/training "
	 "[|arn:aws:eks:eu-1:12:cluster/x|training], mountpoint=/m"},
	/* values */
	{"kxfs -f -o state=/s\\,t,cancel=all,,grace=2m local: -oro,allow_other,uid=7 /m -o "
	 "gid=8,umask=0077,log_level=error,spool_limit=500M,history_keep=0,jobs=3,gpus=0",
	 "mount local: [local||], mountpoint=/m, foreground, read_only, allow_other, "
	 "cancel=all, log_level=error, state=/s,t, grace=120, jobs=3, gpus=0, "
	 "spool_limit=524288000, history_keep=0, uid=7, gid=8, umask=0077"},
	{"kxfs -d -o log_level=error local: /m",
	 "mount local: [local||], mountpoint=/m, debug, log_level=debug"},
	/* If an option is repeated or contradicted, the last one counts, as with mount(8). */
	{"kxfs -o ro,cancel=none -o rw,cancel=own,cancel=mine local: /m",
	 "mount local: [local||], mountpoint=/m, cancel=mine"},
	/*
	 * Options that mount.fuse3 and fstab pass are accepted. Only those that the kernel knows are
	 * passed on.
	 */
	{"kxfs local: /m -o rw,dev,suid,nodev,nosuid,exec,noexec,atime,noatime,relatime,sync,"
	 "async,dirsync,nofail,_netdev,user,users,nouser,noauto,auto,defaults,owner,group,"
	 "x-systemd.automount,x-a=b,comment=c,fsname=d,subtype=e,user=ada",
	 "mount local: [local||], mountpoint=/m, mount_options=exec,noexec,atime,noatime,sync,"
	 "async,dirsync"},
	/* the arguments that mount(8) passes to its helper */
	{"/sbin/mount.kxfs a/b /m -snv -t kxfs -o ro,state=/s -o umask=77",
	 "mount a/b [|a|b], mountpoint=/m, read_only, state=/s, umask=0077"},
	/* other actions */
	{"kxfs -h", "help"},
	{"kxfs -o ro --help volcano:x y z", "help"},
	{"kxfs help", "help"},
	{"kxfs help /mnt/kx", "mount help [||help], mountpoint=/mnt/kx"},
	{"kxfs -V", "version"},
	{"kxfs --version", "version"},
	{"kxfs version", "version"},
	{"kxfs --dry-run=a/b.yaml -o image_repo=a\\,b,no_annotations volcano:ctx/ns",
	 "dry run  [volcano|ctx|ns], dry_run=a/b.yaml, image_repo=a,b, no_annotations=true"},
	{"kxfs --dry-run f -o priority=1", "dry run  [||], dry_run=f, priority=1"},
	{"kxfs doctor", "doctor  [||]"},
	{"kxfs doctor -o as=ada ctx/training", "doctor  [|ctx|training], as=ada"},
	{"kxfs volcano:doctor /mnt/kx",
	 "mount volcano:doctor [volcano||doctor], mountpoint=/mnt/kx"},
	{"kxfs capture -o archive=/a/b,capture=own,queue=q volcano:training",
	 "capture volcano:training [volcano||training], foreground, capture=all, archive=/a/b,"
	 " queue=q"},
};

static void test_accepted(void **state)
{
	mode_t mask = umask(027);

	for (size_t i = 0; i < array_size(accepted); i++) {
		struct options o;
		cleanup_free char *why = NULL, *text = NULL;

		if (parse(accepted[i].line, &o, &why) < 0)
			fail_msg("%s: refused: %s", accepted[i].line, why);
		assert_null(why);
		text = shown(&o);
		assert_string_equal(text, accepted[i].shown);
		options_clear(&o);
	}
	umask(mask);
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
	{"kxfs --foreground=x local: /m", "--foreground takes no value"},
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
	{"kxfs -o ro,frobnicate=3,rw local: /m",
	 "-o frobnicate: unknown option; kxfs --help lists all"},
	{"kxfs -o state local: /m", "-o state needs a value: state=DIR"},
	{"kxfs -o state= local: /m", "-o state needs a value: state=DIR"},
	{"kxfs -o ro=1 local: /m", "-o ro takes no value"},
	{"kxfs -o capture=mine local: /m", "-o capture=mine: not own|all|none"},
	{"kxfs -o cancel=al local: /m", "-o cancel=al: not own|mine|all|none"},
	{"kxfs -o log_level=loud local: /m", "-o log_level=loud: not error|warning|info|debug"},
	/* dry runs and run options */
	{"kxfs --dry-run=f local: more",
	 "more: too many arguments; kxfs --dry-run=FILE [OPTIONS] [SOURCE]"},
	{"kxfs doctor volcano:a b", "b: too many arguments; kxfs doctor [OPTIONS] [SOURCE]"},
	{"kxfs doctor /mnt/kx", "/mnt/kx: a source can't begin with '/'"},
	{"kxfs capture ./kx",
	 "./kx is a path, but the command capture takes a SOURCE. To mount the namespace capture, "
	 "write a backend before its name: kxfs volcano:capture ./kx"},
	{"kxfs capture local:",
	 "local: kxfs capture supports only clusters, because a mount of local: always stores the "
	 "output; run kxfs local: MOUNTPOINT instead"},
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
	{"kxfs -o no_annotations=5 local: /m",
	 "-o no_annotations: must be true or false, not \"5\""},
	/* numbers */
	{"kxfs -o grace=-1 local: /m", "-o grace=-1: not a time from 0s to 1h, like 30s or 2m"},
	{"kxfs -o grace=1.5s local: /m", "-o grace=1.5s: not a time from 0s to 1h, like 30s or 2m"},
	{"kxfs -o grace=2h local: /m", "-o grace=2h: not a time from 0s to 1h, like 30s or 2m"},
	{"kxfs -o jobs=0 local: /m", "-o jobs=0: not a number of jobs, at least 1"},
	{"kxfs -o jobs=4294967296 local: /m",
	 "-o jobs=4294967296: not a number of jobs, at least 1"},
	{"kxfs -o gpus=65 local: /m", "-o gpus=65: not a number of GPUs from 0 to 64"},
	{"kxfs -o gpus=-1 local: /m", "-o gpus=-1: not a number of GPUs from 0 to 64"},
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
	/* the arguments that mount(8) passes to its helper */
	{"mount.kxfs local: /m -f", "-f: kxfs does not support fake mounts"},
	{"mount.kxfs local: /m -N /proc/1/ns/mnt",
	 "-N: kxfs can't mount in another mount namespace; use nsenter(1)"},
	{"mount.kxfs local: /m -o", "-o needs a value"},
	{"mount.kxfs local: /m -x",
	 "unknown option; mount.kxfs has the options of a mount helper, see mount(8)"},
	{"mount.kxfs -o rw -- -b /m", "-b: '-b' can't be the name of a namespace"},
	{"/mount.kxfs/kxfs local: /m -t kxfs", "-t: unknown option; kxfs --help lists all"},
};

static void test_refused(void **state)
{
	for (size_t i = 0; i < array_size(refused); i++) {
		struct options o;
		char *why = NULL;

		if (parse(refused[i].line, &o, &why) != -EINVAL)
			fail_msg("%s: not refused", refused[i].line);
		assert_string_equal(why, refused[i].why);
		options_clear(&o);
		free(why);
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
		cmocka_unit_test(test_accepted),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_help_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
