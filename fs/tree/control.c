/* SPDX-License-Identifier: MIT */
/* The directory .kxfs/: info, metrics, log, help, and the hidden .live/changes. */
#include <errno.h>

#include "backend/base/diag.h"
#include "backend/base/print.h"
#include "fs/tree/job_ref.h"
#include "fs/tree/tree.h"
#include "fs/vfs/park.h"
#include "fs/vfs/text.h"
#include "spec/base/mem.h"
#include "spec/base/time.h"

/* A test compares the file names in this text with the tree. */
static const char help_text[] =
	"submit/                 copy an AppDef here (*.yaml, *.yml, *.json) to run it\n"
	"  NAME                  the file as it was written\n"
	"  NAME.job              link to the job of the last accepted write\n"
	"  NAME.error            why the last write of NAME was refused\n"
	"dryrun/                 NAME becomes the manifest; nothing is launched\n"
	"jobs/ID/                one directory per job; rmdir or rm -r cancels the job\n"
	"  state                 one word: PENDING, RUNNING, SUCCEEDED, FAILED, CANCELLED, ...\n"
	"  status                everything that kxfs knows about the job, as YAML\n"
	"  status.json           the same as JSON\n"
	"  why                   why the job does not run, or why it failed; empty if all is well\n"
	"  usage                 what the job requested and used: time, CPU, memory, as YAML\n"
	"  manifest.yaml         the object in the cluster; of a local job, what was submitted\n"
	"  app.yaml              the submitted file, if known\n"
	"  events                in a cluster: events of the job and its pods, one per line\n"
	"  ctl                   write suspend, resume, restart, queue NAME ...; read: possible actions\n"
	"  log                   output of all replicas; each line begins with the replica's name\n"
	"  stamped               like log, with a time before each line; awk '$1 >= \"2026-11-22T04:35\"'\n"
	"  live/wait             a read waits until the job ends, and returns its state\n"
	"  live/follow           like log, but a read waits for more output until the job ends\n"
	"  logs/ROLE-K.log       links to the logs of all replicas\n"
	"  ROLE-K/               one directory per replica\n"
	"    state, status, usage  those of this replica\n"
	"    log                 the replica's output, byte for byte; tail -f works\n"
	"    stamped             like log, with a time before each line\n"
	"    log.0, log.1, ...   output of earlier attempts, oldest first\n"
	"    CONTAINER.log       in a cluster: output of another container of the replica's pod\n"
	"    pod                 in a cluster: the name of the replica's pod\n"
	"    live/follow         like log, but a read waits for more output until the replica ends\n"
	"history/ID/             jobs that are no longer in jobs/; rm -r removes a job for good\n"
	"archive                 link to -o archive=DIR: copies of finished jobs\n"
	"queues/NAME/status      capacity and jobs of a queue (Volcano, Kueue, local:)\n"
	"list, list.jsonl        all jobs: as a table, and as one line per job like status.json;\n"
	"                        history/ has these files, too\n"
	"live/changes            one line per job, SYNC, then one per change; reads wait for more\n"
	".kxfs/                  info (shows problems of the connection), metrics, help, log of kxfs\n"
	"\n"
	"Reading a file in live/ can take as long as a job. Only live/ lists these files, so that `cat *` and\n"
	"grep -r end. You can also open them without live/: jobs/ID/wait, jobs/ID/follow, changes.\n"
	"\n"
	"  cp app.yaml submit/ && grep -qx SUCCEEDED submit/app.yaml.job/wait && echo done\n"
	"\n"
	"Manuals: kxfs(1), kxfs-layout(5), kxfs-submit(7), kxfs-status(5), appdef(5).\n";

static int control_text(const struct tree *t, void (*write)(const struct tree *, FILE *),
			char **ret, size_t *ret_len)
{
	FILE *out = text_stream(ret, ret_len);

	write(t, out);
	text_stream_close(out);
	return 0;
}

/*
 * Return the text for .kxfs/info on whether /proc shows the processes that write in submit/. If
 * kxfs is process 1, it runs in a container with its own pid namespace, and can't see them.
 */
static const char *control_writers(const struct tree *t)
{
	int unseen = atomic_load(&t->fs->unseen);

	if (unseen == ESRCH || (unseen == 0 && getpid() == 1))
		return CONTROL_OTHER_NAMESPACE;
	if (unseen)
		return "not seen: another user writes to submit/, and kxfs has no permission to "
		       "inspect processes of that user, so kxfs may launch a file each time that "
		       "user closes the file (see kxfs-submit(7)). To fix this, mount as root or "
		       "as that user";
	return "seen";
}

static void control_write_info(const struct tree *t, FILE *out)
{
	char time[32];

	spec_time_text(t->fs->started, time);
	fprintf(out, "version: %s\n", KXFS_VERSION);
	fprintf(out, "pid: %d\n", (int)getpid());
	fprintf(out, "started: %s\n", time);
	fprintf(out, "submitter: '%s'\n", t->submitter);
	fprintf(out, "writers: '%s'\n", control_writers(t));
	backend_info(t->backend, out);
}

static void control_write_metrics(const struct tree *t, FILE *out)
{
	static const char *const kinds[PARK_N_KINDS] = {
		[PARK_READ] = "read",	[PARK_OPEN] = "open", [PARK_CLOSE] = "close",
		[PARK_WRITE] = "write", [PARK_DIR] = "dir",   [PARK_DISK] = "disk",
	};

	const struct print_metric metrics[] = {
		{"fuse_requests_total", "counter", "FUSE requests from the kernel",
		 t->fs->requests},
		{"streams", "gauge", "Open files whose reads block", streams_count(t->fs)},
	};

	print_metrics(out, metrics, array_size(metrics));
	print_metric_head(out, "parked_requests", "gauge", "FUSE requests that wait for an event");
	for (size_t i = 0; i < PARK_N_KINDS; i++)
		fprintf(out, "kxfs_parked_requests{kind=\"%s\"} %zu\n", kinds[i],
			park_count(t->fs->park, (enum park_kind)i));
	backend_metrics(t->backend, out);
}

static int control_info(struct fs *fs, struct node *node, char **ret, size_t *ret_len)
{
	return control_text(tree_of(node), control_write_info, ret, ret_len);
}

static int control_metrics(struct fs *fs, struct node *node, char **ret, size_t *ret_len)
{
	return control_text(tree_of(node), control_write_metrics, ret, ret_len);
}

static int control_log(struct fs *fs, struct node *node, char **ret, size_t *ret_len)
{
	/* If the state directory was removed, log it now: users look for the reason here. */
	job_ref_state_is_gone(tree_of(node));
	*ret = diag_text(ret_len);
	return 0;
}

static int control_help(struct fs *fs, struct node *node, char **ret, size_t *ret_len)
{
	*ret = text_copy(help_text);
	*ret_len = strlen(help_text);
	return 0;
}

#define CONTROL_TEXT(file, render_fn)                                                              \
	static const struct text_class file = {                                                    \
		.class = {.name = #file, TEXT_OPS, .live = true, .getattr = text_getattr},         \
		.render = render_fn,                                                               \
	}

CONTROL_TEXT(control_info_text, control_info);
CONTROL_TEXT(control_metrics_text, control_metrics);
CONTROL_TEXT(control_log_text, control_log);
CONTROL_TEXT(control_help_text, control_help);

static const struct node_entry_def control_live_table[] = {
	{.name = "changes", .class = &changes_class},
	{0},
};

static const struct node_dir_class control_live_class = {
	.class = {.name = "control-live", NODE_DIR_OPS},
	.entries = control_live_table,
};

static const struct node_entry_def control_table[] = {
	{.name = "info", .class = &control_info_text.class},
	{.name = "metrics", .class = &control_metrics_text.class},
	{.name = "log", .class = &control_log_text.class},
	{.name = "help", .class = &control_help_text.class},
	{.name = ".live", .class = &control_live_class.class, .hidden = true},
	{0},
};

const struct node_dir_class control_class = {
	.class = {.name = "control", NODE_DIR_OPS},
	.entries = control_table,
};
