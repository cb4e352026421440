/* SPDX-License-Identifier: MIT */
/*
 * DIR/NAMESPACE/.WRITER-UUID.tmp becomes DIR/NAMESPACE/DAY/ID by one rename, when all of it is
 * synced. If another writer was faster, the rename fails, since a directory can't replace one that
 * has files. A temporary directory that a crash has left is renamed before it is removed, so that a
 * directory that becomes a job meanwhile is not removed.
 */
#include "backend/archive/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/base/disk.h"
#include "backend/base/file.h"
#include "backend/base/random.h"
#include "backend/output/output.h"
#include "spec/base/name.h"
#include "spec/base/sha256.h"
#include "spec/base/time.h"
#include "spec/job/status.h"

#define MARK	 ".kxfs-archive"
#define KNOWN	 "archive" /* in STATE: the DIR that has the mark */
#define CHUNK	 ((size_t)256 << 10)
#define LONG_ID	 246 /* so that "~UID8" fits into the name of a file */
#define STALE_NS (86400 * NS_PER_S)

static int say(char **why, int err, const char *dir, const char *name)
{
	if (err < 0 && !*why)
		*why = text_print("%s%s%s: %s", dir, *name ? "/" : "", name, strerror(-err));
	return err;
}

/* Return ERR, after recording an error of NAME in DIR (there), or of the job's output (here). */
static int there(struct copy *c, int err, const char *name)
{
	c->away |= err < 0;
	atomic_store(c->answered, loop_now_ms());
	return say(&c->why, err, c->config->dir, name);
}

static int here(struct copy *c, int err, const char *name)
{
	return say(&c->why, err, c->job->id, name);
}

/* --- DIR --- */

static int mark(int at)
{
	static const char text[] =
		"kxfs archives jobs in this directory; it is known by this file\n";
	cleanup_fd int fd = disk_open(at, MARK, O_WRONLY | O_CREAT | O_EXCL);
	int err = fd < 0 ? fd : file_write_all(fd, text, strlen(text));

	if (!err)
		err = disk_chmod(fd, "", 0644);
	if (!err)
		err = disk_sync(fd);
	return err == -EEXIST ? 0 : err;
}

int copy_open(const char *dir, const char *state_dir, char **why)
{
	cleanup_free char *path = text_print("%s/.", dir); /* DIR may be a symbolic link */
	cleanup_free char *record = text_print("%s/" KNOWN, state_dir ? state_dir : ""),
			  *known = NULL;
	cleanup_fd int fd = disk_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
	int err = fd < 0 ? fd : disk_access(fd, MARK, F_OK);
	const bool lacks = err == -ENOENT && fd >= 0;
	size_t len = 0;

	if (err && !lacks)
		return say(why, err, dir, "");
	if (!state_dir) {
		err = disk_mkdir(fd, ".kxfs-doctor");
		if (!err || err == -EEXIST)
			err = disk_rmdir(fd, ".kxfs-doctor");
		return err ? say(why, err, dir, "") : take_fd(&fd);
	}
	if (file_read(record, PATH_MAX, &known, &len) == 0 && streq(known, dir) && lacks) {
		*why = text_print("%s is not the archive of the last start, because it has no " MARK
				  ": is it mounted? To use it as a new archive, remove %s",
				  dir, record);
		return -ENODEV;
	}
	err = lacks ? mark(fd) : 0;
	/* The mark survives a crash of the machine that the record survives. */
	if (!err && !streq(known, dir))
		err = disk_sync(fd);
	if (!err && !streq(known, dir))
		err = file_write(state_dir, KNOWN, dir, strlen(dir));
	return err ? say(why, err, dir, MARK) : take_fd(&fd);
}

/* Open the directory NAME in AT, and create it if needed. */
static int open_folder(struct copy *c, int at, const char *name)
{
	int err = disk_mkdir(at, name);

	if (!err)
		err = disk_chmod(at, name, 0755);
	if (!err)
		err = disk_sync(at);
	if (!err || err == -EEXIST)
		err = disk_open(at, name, O_RDONLY | O_DIRECTORY);
	return there(c, err, name);
}

static int open_namespace(struct copy *c)
{
	cleanup_fd int root = copy_open(c->config->dir, c->config->state_dir, &c->why);

	return root < 0 ? there(c, root, "") : open_folder(c, root, c->namespace);
}

static int open_day(struct copy *c, int namespace)
{
	char day[32];

	spec_time_text(max_of(c->job->created, (int64_t)1), day);
	day[strlen("2026-11-28")] = '\0';
	return open_folder(c, namespace, day);
}

/* --- temporary directories --- */

/* All names of this writer begin with the same 13 characters. */
static void new_temp(const struct copy *c, char ret[64])
{
	char host[256] = "", writer[65], uuid[37] = "";
	cleanup_free char *who = NULL;

	(void)gethostname(host, sizeof(host) - 1);
	who = text_print("%s %s", host, c->config->state_dir);
	spec_sha256(who, strlen(who), writer);
	(void)!random_uuid(uuid);
	snprintf(ret, 64, ".%.12s-%s.tmp", writer, uuid);
}

static int remove_tree(int at, const char *name);

static int remove_one(void *data, int at, const char *name, unsigned char type)
{
	int err = disk_unlink(at, name);

	return err == -EISDIR || err == -EPERM ? remove_tree(at, name) : err;
}

static int remove_tree(int at, const char *name)
{
	int err = disk_list(at, name, remove_one, NULL);

	return err ? err : disk_rmdir(at, name);
}

/* Remove NAME if this writer has left it, or another one a day ago. */
static int clean_one(void *data, int at, const char *name, unsigned char type)
{
	const char *end = strrchr(name, '.');
	char mine[64];
	struct stat st;

	new_temp(data, mine);
	if (*name == '.' && streq(end, ".tmp") && disk_stat(at, name, &st) == 0 &&
	    (strncmp(name, mine, 14) == 0 ||
	     spec_time_of(st.st_mtim) < loop_time_ns() - STALE_NS) &&
	    disk_rename(at, name, at, mine) == 0)
		(void)remove_tree(at, mine);
	return 0;
}

/* --- the files of a job --- */

static int new_file(struct copy *c, int at, const char *name, mode_t mode)
{
	cleanup_fd int fd = disk_open(at, name, O_WRONLY | O_CREAT | O_EXCL);
	int err = fd < 0 ? fd : disk_chmod(fd, "", mode);

	return there(c, err ? err : take_fd(&fd), name);
}

static int put_text(struct copy *c, int at, const char *name, const char *text, size_t len,
		    mode_t mode)
{
	cleanup_fd int fd = new_file(c, at, name, mode);
	int err = fd < 0 ? fd : file_write_all(fd, text, len);

	return there(c, err ? err : disk_sync(fd), name);
}

/* Write the log KEY (NULL: the merged one), if it exists. */
static int put_log(struct copy *c, int at, const char *name, const char *key)
{
	cleanup_free char *chunk = mem_grow(NULL, CHUNK, 1);
	cleanup_log struct log *log = NULL;
	int err = output_log_kept(c->config->output, spec_job_key(c->job), key, &log);
	cleanup_fd int fd = -1;
	uint64_t off = 0;
	ssize_t n;

	if (err)
		return err == -ENOENT ? 0 : here(c, err, name);
	fd = new_file(c, at, name, 0644);
	if (fd < 0)
		return fd;
	while (!err && (n = log_read(log, chunk, CHUNK, off)) > 0) {
		err = *c->cancel ? -ECANCELED
				 : there(c, file_write_all(fd, chunk, (size_t)n), name);
		off += (uint64_t)n;
	}
	if (!err && n < 0)
		return here(c, (int)n, name);
	return err ? err : there(c, disk_sync(fd), name);
}

static int put_replica(struct copy *c, int at, const struct spec_replica *r)
{
	cleanup_fd int dir = spec_name_is_file(r->name) ? open_folder(c, at, r->name)
							: here(c, -EINVAL, "a replica's name");
	int err = min_of(dir, 0);
	size_t end;

	for (size_t first = 0; first < r->n_logs && !err; first = end) {
		end = spec_replica_logs_end(r, first);
		for (size_t i = first; i < end && !err; i++) {
			cleanup_free char *name =
				spec_log_file(r->logs[i].container, i - first, end - first);

			if (spec_name_is_file(name))
				err = put_log(c, dir, name, r->logs[i].key);
		}
	}
	return err ? err : there(c, disk_sync(dir), r->name);
}

static int put_files(struct copy *c, int at)
{
	const struct archive_config *config = c->config;
	const struct spec_job *job = c->job;
	struct {
		const char *name;
		char *text;
		size_t len;
		mode_t mode;
	} files[] = {{.name = "uid", .text = text_print("%s\n", job->uid)},
		     {.name = "state", .text = text_copy(spec_status_state(job->state))},
		     {.name = "status"},
		     {.name = "status.json"},
		     {.name = "why"},
		     /* The order of enum archive_text. */
		     {.name = "manifest.yaml"},
		     {.name = "app.yaml"},
		     {.name = "events"}};
	int err = 0;

	files[0].len = strlen(files[0].text);
	files[1].len = strlen(files[1].text);
	spec_status_yaml(job, &files[2].text, &files[2].len);
	spec_status_json(job, &files[3].text, &files[3].len);
	spec_status_why(job, 0, &files[4].text, &files[4].len);
	for (size_t i = 0; i < array_size(files); i++) {
		files[i].mode = 0644;
		if (i >= 5 && !err)
			err = here(c,
				   config->text(config->data, job, (enum archive_text)(i - 5),
						&files[i].text, &files[i].len, &files[i].mode),
				   files[i].name);
		if (files[i].text && !err)
			err = put_text(c, at, files[i].name, files[i].text, files[i].len,
				       files[i].mode);
		free(files[i].text);
	}
	if (!err)
		err = put_log(c, at, "log", NULL);
	for (size_t i = 0; i < job->n_replicas && !err; i++)
		err = put_replica(c, at, &job->replicas[i]);
	return err ? err : there(c, disk_sync(at), c->temp);
}

/* --- the job's directory --- */

/*
 * Return ID, or (SECOND) ID~UID8. A job of the history may have that name already; here it gets its
 * own name if it can.
 */
static char *name_of(const struct spec_job *job, bool second)
{
	cleanup_free char *mark = text_print("~%.8s", job->uid);
	size_t n = strlen(job->id), tail = strlen(mark);

	if (n > tail && streq(job->id + n - tail, mark))
		n -= tail;
	return text_print("%.*s%s", (int)min_of(n, (size_t)(second ? LONG_ID : NAME_MAX)), job->id,
			  second ? mark : "");
}

/*
 * Find a free name in DAY for the job: *RET, malloc'ed. If the job is there, set C->there instead.
 */
static int find_name(struct copy *c, int day, char **ret)
{
	cleanup_free char *wanted = text_print("%s\n", c->job->uid);

	for (int second = 0; second < 2; second++) {
		cleanup_free char *name = name_of(c->job, second);
		cleanup_free char *path = text_print("%s/uid", name), *uid = NULL;
		cleanup_fd int fd = disk_open(day, path, O_RDONLY);
		size_t len = 0;
		int err = fd < 0 ? fd : file_read_fd(fd, NAME_MAX, &uid, &len);

		if (err == -ENOENT)
			*ret = take_ptr(name);
		c->there = !err && streq(uid, wanted);
		if (err || c->there)
			return err == -ENOENT ? 0 : there(c, err, path);
	}
	return there(c, -EEXIST, c->job->id);
}

int copy_make(struct copy *c)
{
	cleanup_fd int at = open_namespace(c), day = at < 0 ? at : open_day(c, at), temp = -1;
	cleanup_free char *name = NULL;
	int err = day < 0 ? day : find_name(c, day, &name);

	if (c->clean && at >= 0)
		(void)disk_list(at, ".", clean_one, c);
	if (err || c->there)
		return err;
	new_temp(c, c->temp);
	temp = open_folder(c, at, c->temp);
	return temp < 0 ? temp : put_files(c, temp);
}

int copy_finish(struct copy *c, bool drop)
{
	cleanup_fd int at = open_namespace(c), day = at < 0 || drop ? -1 : open_day(c, at);
	int err = at < 0 ? at : drop ? 0 : min_of(day, 0);

	/* If another writer was faster, that may be the same job, or another one of its name. */
	for (int tries = 3; !drop && !err && !c->there; tries--) {
		cleanup_free char *name = NULL;

		err = find_name(c, day, &name);
		if (err || c->there)
			break;
		err = disk_rename(at, c->temp, day, name);
		if (!err) {
			c->there = true;
			return there(c, disk_sync(day), name);
		}
		if ((err != -EEXIST && err != -ENOTEMPTY) || tries == 0)
			there(c, err, name);
		else
			err = 0;
	}
	if (at >= 0 && *c->temp)
		(void)remove_tree(at, c->temp);
	return err;
}
