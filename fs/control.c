/* SPDX-License-Identifier: MIT */
/* MOUNT/.kxfs: info, metrics, log, help, and the hidden .live/changes. */
#include <errno.h>

#include "backend/diag.h"
#include "fs/control.h"
#include "fs/listing.h"
#include "fs/options.h"
#include "fs/park.h"
#include "fs/stream.h"
#include "fs/text.h"
#include "spec/status.h"

/* WRITE into a malloc'ed text. */
static int control_text(struct fs *fs, int (*write)(struct fs *, FILE *), char **ret,
			size_t *ret_len)
{
	FILE *out = open_memstream(ret, ret_len);
	int err;

	if (!out)
		return -errno;
	err = write(fs, out);
	if (fclose(out) && !err)
		err = -ENOMEM;
	if (err)
		free(take_ptr(*ret));
	return err;
}

static int control_write_info(struct fs *fs, FILE *out)
{
	char time[32];

	spec_time_text(fs->started, time);
	fprintf(out, "version: %s\n", KXFS_VERSION);
	fprintf(out, "pid: %d\n", (int)getpid());
	fprintf(out, "started: %s\n", time);
	fprintf(out, "submitter: '%s'\n", fs->submitter);
	return backend_info(fs->backend, out);
}

static int control_write_metrics(struct fs *fs, FILE *out)
{
	static const char *const kinds[PARK_N_KINDS] = {
		[PARK_READ] = "read",	[PARK_OPEN] = "open", [PARK_CLOSE] = "close",
		[PARK_WRITE] = "write", [PARK_DIR] = "dir",
	};

	fprintf(out,
		"# HELP kxfs_fuse_requests_total Requests of the kernel.\n"
		"# TYPE kxfs_fuse_requests_total counter\nkxfs_fuse_requests_total %llu\n",
		(unsigned long long)fs->requests);
	fprintf(out, "# HELP kxfs_parked_requests Requests of the kernel that wait.\n"
		     "# TYPE kxfs_parked_requests gauge\n");
	for (size_t i = 0; i < PARK_N_KINDS; i++)
		fprintf(out, "kxfs_parked_requests{kind=\"%s\"} %zu\n", kinds[i],
			park_count(fs->park, (enum park_kind)i));
	fprintf(out,
		"# HELP kxfs_streams Open blocking files.\n# TYPE kxfs_streams gauge\n"
		"kxfs_streams %zu\n",
		streams_count(fs));
	return backend_metrics(fs->backend, out);
}

static int control_info(struct fs *fs, struct node *node, char **ret, size_t *ret_len)
{
	(void)node;
	return control_text(fs, control_write_info, ret, ret_len);
}

static int control_metrics(struct fs *fs, struct node *node, char **ret, size_t *ret_len)
{
	(void)node;
	return control_text(fs, control_write_metrics, ret, ret_len);
}

static int control_log(struct fs *fs, struct node *node, char **ret, size_t *ret_len)
{
	(void)fs, (void)node;
	*ret = diag_text(ret_len);
	return *ret ? 0 : -ENOMEM;
}

static int control_help(struct fs *fs, struct node *node, char **ret, size_t *ret_len)
{
	(void)fs, (void)node;
	*ret = strdup(help_text);
	*ret_len = strlen(help_text);
	return *ret ? 0 : -ENOMEM;
}

#define CONTROL_TEXT(file, render_fn)                                                              \
	static const struct text_class file = {                                                    \
		.class =                                                                           \
			{                                                                          \
				.name = #file,                                                     \
				.mode = S_IFREG | 0644,                                            \
				.live = true,                                                      \
				.getattr = text_getattr,                                           \
				TEXT_OPS,                                                          \
			},                                                                         \
		.render = render_fn,                                                               \
	}

CONTROL_TEXT(control_info_text, control_info);
CONTROL_TEXT(control_metrics_text, control_metrics);
CONTROL_TEXT(control_log_text, control_log);
CONTROL_TEXT(control_help_text, control_help);

static void control_changes_open(struct fs *fs, fuse_req_t req, struct node *node,
				 struct fuse_file_info *fi)
{
	(void)node;
	stream_open(fs, req, &changes_stream, "", "", fi);
}

static const struct node_class control_changes_class = {
	.name = "changes",
	.mode = S_IFREG | 0644,
	.open = control_changes_open,
	STREAM_OPS,
};

static const struct node_entry_def control_live_table[] = {
	{"changes", &control_changes_class, false, NULL},
	{0},
};

static int control_live_lookup(struct fs *fs, struct node *dir, const char *name, struct node **ret)
{
	return node_lookup_static(fs, dir, control_live_table, name, ret);
}

static int control_live_list(struct fs *fs, struct node *dir, struct listing *l)
{
	return node_list_static(fs, dir, control_live_table, l);
}

static const struct node_class control_live_class = {
	.name = "control-live",
	.mode = S_IFDIR | 0755,
	.lookup = control_live_lookup,
	.list = control_live_list,
};

static const struct node_entry_def control_table[] = {
	{"info", &control_info_text.class, false, NULL},
	{"metrics", &control_metrics_text.class, false, NULL},
	{"log", &control_log_text.class, false, NULL},
	{"help", &control_help_text.class, false, NULL},
	{".live", &control_live_class, true, NULL},
	{0},
};

static int control_lookup(struct fs *fs, struct node *dir, const char *name, struct node **ret)
{
	return node_lookup_static(fs, dir, control_table, name, ret);
}

static int control_list(struct fs *fs, struct node *dir, struct listing *l)
{
	return node_list_static(fs, dir, control_table, l);
}

const struct node_class control_class = {
	.name = "control",
	.mode = S_IFDIR | 0755,
	.lookup = control_lookup,
	.list = control_list,
};
