/* SPDX-License-Identifier: MIT */
/*
 * copy_make writes a job to the temporary directory DIR/NAMESPACE/.WRITER-UUID.tmp, and syncs all
 * files. WRITER is a hash of the host and the state directory. Then copy_finish renames this
 * directory to DIR/NAMESPACE/DAY/ID. If another kxfs process was faster, the rename fails, since
 * rename(2) can't replace a directory that has files.
 *
 * A crash leaves a temporary directory behind. The next start removes those of its own WRITER, and
 * those of another WRITER that are older than a day. Before kxfs removes the files of such a
 * directory, it gives the directory a new name. Otherwise another process might rename the
 * half-empty directory to a job's name.
 */
#include "backend/archive/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/base/diag.h"
#include "backend/base/disk.h"
#include "backend/base/file.h"
#include "backend/base/random.h"
#include "backend/output/output.h"
#include "spec/base/encode.h"
#include "spec/base/name.h"
#include "spec/base/time.h"
#include "spec/job/status.h"

#define MARK ".kxfs-archive"
/* A file in the state directory. It contains the path of the DIR that kxfs has marked. */
#define KNOWN	 "archive"
#define CHUNK	 ((size_t)256 << 10)
#define LONG_ID	 246 /* kxfs cuts a longer id to this length before it appends "~UID8" */
#define STALE_NS (86400 * NS_PER_S)

/* Return ERR. If ERR is negative and *WHY is NULL, set *WHY to a sentence about the error. */
static int explain(char **why, int err, const char *dir, const char *name)
{
	if (err < 0 && !*why)
		*why = text_print("%s%s%s: %s", dir, *name ? "/" : "", name, strerror(-err));
	return err;
}

/*
 * Both functions return ERR. If ERR is negative, they set C->why to a sentence about the file NAME.
 * there() is for a file in DIR, and also sets C->away. here() is for a file of the job in the state
 * directory.
 */
static int there(struct copy *c, int err, const char *name)
{
	c->away |= err < 0;
	atomic_store(&c->answered, loop_now_ms());
	return explain(&c->why, err, c->config->dir, name);
}

static int here(struct copy *c, int err, const char *name)
{
	return explain(&c->why, err, c->job->id, name);
}

/* --- DIR --- */

int copy_open(const char *dir, const char *state_dir, char **why)
{
	static const char text[] =
		"kxfs archives jobs in this directory and recognizes the directory by this "
		"file\n";
	/* With "/." at the end, disk_open accepts a DIR that is a symbolic link. */
	cleanup_free char *path = text_print("%s/.", dir);
	cleanup_free char *record = text_print("%s/" KNOWN, state_dir ? state_dir : ""),
			  *known = NULL;
	cleanup_fd int fd = disk_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
	int err = fd < 0 ? fd : disk_access(fd, MARK, F_OK);
	const bool lacks = err == -ENOENT && fd >= 0;
	size_t len = 0;

	if (err && !lacks)
		return explain(why, err, dir, "");
	if (!state_dir) {
		err = disk_mkdir(fd, ".kxfs-doctor");
		if (!err || err == -EEXIST)
			err = disk_rmdir(fd, ".kxfs-doctor");
		return err ? explain(why, err, dir, "") : take_fd(&fd);
	}
	if (file_read(record, PATH_MAX, &known, &len) == 0 && streq(known, dir) && lacks) {
		*why = text_print("%s has no " MARK
				  ", so this directory is not the archive that kxfs used last. "
				  "Mount the disk of that archive, or, to start a new archive "
				  "here, remove %s",
				  dir, record);
		return -ENODEV;
	}
	/*
	 * Sync DIR's mark before writing the file KNOWN. If a crash of the machine kept only KNOWN,
	 * kxfs would refuse DIR.
	 */
	err = lacks		  ? file_write(path, MARK, text, strlen(text))
	      : streq(known, dir) ? 0
				  : disk_sync(fd);
	if (!err && !streq(known, dir))
		err = file_write(state_dir, KNOWN, dir, strlen(dir));
	return err ? explain(why, err, dir, MARK) : take_fd(&fd);
}

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

/* Make a new name for a temporary directory: ".WRITER-UUID.tmp". WRITER has 12 characters. */
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

/* Remove NAME if it is an old temporary directory (see the head of the file). */
static int clean_one(void *data, int at, const char *name, unsigned char type)
{
	char temp[64];
	struct stat st;

	new_temp(data, temp);
	if (*name == '.' && streq(strrchr(name, '.'), ".tmp") && disk_stat(at, name, &st) == 0 &&
	    (strncmp(name, temp, 14) == 0 ||
	     spec_time_of(st.st_mtim) < loop_time_ns() - STALE_NS) &&
	    disk_rename(at, name, at, temp) == 0)
		(void)remove_tree(at, temp);
	return 0;
}

/* --- the files of a job --- */

static int new_file(struct copy *c, int at, const char *name, mode_t mode)
{
	cleanup_fd int fd = disk_open(at, name, O_WRONLY | O_CREAT | O_EXCL);
	int err = fd < 0 ? fd : disk_chmod(fd, "", mode);

	return there(c, err ? err : take_fd(&fd), name);
}

/* Write TEXT to the file NAME, and free TEXT. If TEXT is NULL, do nothing. */
static int put_text(struct copy *c, int at, const char *name, char *text, size_t len, mode_t mode)
{
	cleanup_free char *owned = text;
	cleanup_fd int fd = text ? new_file(c, at, name, mode) : -1;
	int err;

	if (fd < 0)
		return text ? fd : 0;
	err = file_write_all(fd, owned, len);
	return there(c, err ? err : disk_sync(fd), name);
}

/* The damage can't be repaired, so kxfs copies the rest of the job. */
static void report_damage(const struct copy *c, const char *name)
{
	diag(DIAG_WARNING, "%s: %s is damaged; kxfs archives the job without the damaged part",
	     c->job->id, name);
}

/* Copy the log KEY (NULL: the merged log) to the file NAME. Do nothing if there is no such log. */
static int put_log(struct copy *c, int at, const char *name, const char *key)
{
	cleanup_free char *chunk = mem_grow(NULL, CHUNK, 1);
	cleanup_log struct log *log = NULL;
	cleanup_fd int fd = -1;
	uint64_t off = 0;
	ssize_t n;
	int err;

	/*
	 * The output was removed, so write an empty merged log. Don't look for files: a power cut
	 * may have brought removed files back.
	 */
	if (c->job->dropped)
		return key ? 0 : put_text(c, at, name, text_copy(""), 0, 0644);
	err = output_log_kept(c->config->output, spec_job_key(c->job), key, LOG_PLAIN, &log);
	if (err)
		return err == -ENOENT ? 0 : here(c, err, name);
	fd = new_file(c, at, name, 0644);
	if (fd < 0)
		return fd;
	while (!err && (n = log_read(log, chunk, CHUNK, off)) > 0) {
		err = c->cancel ? -ECANCELED : there(c, file_write_all(fd, chunk, (size_t)n), name);
		off += (uint64_t)n;
	}
	/* If a file of the log is missing or damaged, keep the part that could be read. */
	if (!err && n == -EBADMSG)
		report_damage(c, name);
	else if (!err && n < 0 && n != -ENOENT)
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
	static const char *const texts[] = {"manifest.yaml", "app.yaml", "events"};
	const struct spec_job *job = c->job;
	char *uid = text_print("%s\n", job->uid), *text = NULL;
	const char *state = spec_status_state(job->state);
	size_t len = 0;
	mode_t mode = 0644;
	int err = put_text(c, at, "uid", uid, strlen(uid), mode);

	if (!err)
		err = put_text(c, at, "state", text_copy(state), strlen(state), mode);
	if (!err) {
		spec_status_yaml(job, &text, &len);
		err = put_text(c, at, "status", take_ptr(text), len, mode);
	}
	if (!err) {
		spec_status_json(job, &text, &len);
		err = put_text(c, at, "status.json", take_ptr(text), len, mode);
	}
	if (!err) {
		spec_status_why(job, 0, &text, &len);
		err = put_text(c, at, "why", take_ptr(text), len, mode);
	}
	for (size_t i = 0; i < array_size(texts) && !err; i++, mode = 0644) {
		err = c->config->text(c->config->data, job, texts[i], &text, &len, &mode);
		if (err == -EINVAL) {
			report_damage(c, texts[i]);
			err = 0;
		}
		err = here(c, err, texts[i]);
		if (!err)
			err = put_text(c, at, texts[i], take_ptr(text), len, mode);
	}
	if (!err)
		err = put_log(c, at, "log", NULL);
	for (size_t i = 0; i < job->n_replicas && !err; i++)
		err = put_replica(c, at, &job->replicas[i]);
	return err ? err : there(c, disk_sync(at), c->temp);
}

/* --- the job's directory --- */

/*
 * Return the name of JOB's directory, malloc'ed: the job's id. If SECOND is true, append "~" and
 * the first 8 characters of its uid. If another job in history/ had the same id, JOB's id already
 * has this suffix. Remove the suffix first, because the short name may be free in the archive.
 */
static char *name_of(const struct spec_job *job, bool second)
{
	cleanup_free char *mark = text_print("~%.8s", job->uid);
	size_t n = strlen(job->id);

	if (has_end(job->id, mark))
		n -= strlen(mark);
	return text_print("%.*s%s", (int)min_of(n, (size_t)(second ? LONG_ID : NAME_MAX)), job->id,
			  second ? mark : "");
}

/*
 * Return 0 if the name NAME is free in DAY. If NAME is a copy of this job, set C->found, and return
 * 0. Return -EEXIST if NAME is a copy of another job.
 */
static int check_name(struct copy *c, int day, const char *name)
{
	cleanup_free char *path = text_print("%s/uid", name), *uid = NULL;
	cleanup_free char *wanted = text_print("%s\n", c->job->uid);
	cleanup_fd int fd = disk_open(day, path, O_RDONLY);
	size_t len = 0;
	int err = fd < 0 ? fd : file_read_fd(fd, NAME_MAX, &uid, &len);

	if (!err && streq(uid, wanted))
		c->found = COPY_THERE;
	if (err)
		return err == -ENOENT ? 0 : there(c, err, path);
	return c->found ? 0 : -EEXIST;
}

/*
 * If DAY has a copy of the job, set C->found. Otherwise, if C has a temporary directory, rename it
 * to a free name in DAY. The temporary directory is in AT.
 */
static int place(struct copy *c, int at, int day)
{
	int err = -EEXIST;

	for (int second = 0; second < 2 && err == -EEXIST; second++) {
		cleanup_free char *name = name_of(c->job, second);

		err = check_name(c, day, name);
		if (err || c->found || !*c->temp)
			continue;
		err = disk_rename(at, c->temp, day, name);
		c->found = err ? COPY_ABSENT : COPY_RENAMED;
		/*
		 * Another process has just made NAME. When kxfs retries, check_name finds out
		 * whether NAME is a copy of this job.
		 */
		if (err == -EEXIST || err == -ENOTEMPTY)
			return -ECANCELED;
		return there(c, err ? err : disk_sync(day), name);
	}
	return err == -EEXIST ? there(c, err, c->job->id) : err;
}

int copy_make(struct copy *c)
{
	cleanup_fd int at = open_namespace(c), day = at < 0 ? at : open_day(c, at), temp = -1;
	int err = day < 0 ? day : place(c, at, day);

	if (at >= 0 && !c->cleaned)
		c->cleaned = disk_list(at, ".", clean_one, c) == 0;
	if (err || c->found)
		return err;
	new_temp(c, c->temp);
	temp = open_folder(c, at, c->temp);
	return temp < 0 ? temp : put_files(c, temp);
}

int copy_finish(struct copy *c, bool drop)
{
	cleanup_fd int at = open_namespace(c), day = at < 0 ? at : open_day(c, at);
	int err = day < 0 ? day : drop ? 0 : place(c, at, day);

	if (at >= 0 && c->found != COPY_RENAMED)
		(void)remove_tree(at, c->temp);
	return err;
}
