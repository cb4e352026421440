/* SPDX-License-Identifier: MIT */
/*
 * Reads /proc/self/mountinfo. The mount of a path is found by a descriptor opened with O_PATH: its
 * fdinfo names the mount, and opening it does not access the file system.
 */
#include "fs/mount/mountinfo.h"

#include <errno.h>
#include <fcntl.h>

#include "spec/base/mem.h"

/* Replace "\040" and other escapes by their characters, in place. */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		unsigned c;

		if (*s == '\\' && sscanf(s + 1, "%3o", &c) == 1) {
			*to++ = (char)c;
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = 0;
}

/* Parse one line; return false if it is malformed. */
static bool parse_line(const char *line, struct mountinfo *ret)
{
	const char *tail = strstr(line, " - ");

	*ret = (struct mountinfo){0};
	if (sscanf(line, "%d %*d %u:%u %*s %ms", &ret->id, &ret->major, &ret->minor, &ret->path) !=
		    4 ||
	    !tail || sscanf(tail, " - %ms %ms", &ret->type, &ret->source) != 2) {
		mountinfo_clear(ret);
		return false;
	}
	unescape(ret->path);
	unescape(ret->source);
	return true;
}

/*
 * Find the row of mount ID. Return 0, -ENOENT, or another negative errno if the list can't be read.
 */
static int find(FILE *f, int id, struct mountinfo *ret)
{
	cleanup_free char *line = NULL;
	size_t size = 0;

	while (getline(&line, &size, f) > 0) {
		if (parse_line(line, ret) && ret->id == id)
			return 0;
		mountinfo_clear(ret);
	}
	return ferror(f) ? -EIO : -ENOENT;
}

static int mount_id(int fd)
{
	cleanup_file FILE *f = NULL;
	char path[64];
	char line[256];
	int id;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "mnt_id: %d", &id) == 1)
			return id;
	return -EIO;
}

int mountinfo_of(const char *path, struct mountinfo *ret)
{
	cleanup_fd int fd = open(path, O_PATH | O_CLOEXEC);
	cleanup_file FILE *f = NULL;
	int id;

	*ret = (struct mountinfo){0};
	if (fd < 0)
		return -errno;
	id = mount_id(fd);
	if (id < 0)
		return id;
	f = fopen("/proc/self/mountinfo", "re");
	if (!f)
		return -errno;
	return find(f, id, ret);
}

int mountinfo_process_has(int pid, const char *path, const char *type)
{
	cleanup_free char *name = text_print("/proc/%d/mountinfo", pid);
	cleanup_file FILE *f = fopen(name, "re");
	cleanup_free char *line = NULL;
	size_t size = 0;
	bool found = false;

	if (!f)
		return -EACCES;
	while (!found && getline(&line, &size, f) > 0) {
		cleanup_mountinfo struct mountinfo m;

		found = parse_line(line, &m) && streq(m.path, path) && streq(m.type, type);
	}
	return found ? 0 : ferror(f) ? -EIO : -ENOENT;
}

bool mountinfo_is_there(const struct mountinfo *m)
{
	struct mountinfo now = {0};
	cleanup_file FILE *f = NULL;
	bool same;
	int r;

	f = fopen("/proc/self/mountinfo", "re");
	if (!f)
		return true;
	r = find(f, m->id, &now);
	if (r < 0)
		return r != -ENOENT;
	same = m->id == now.id && m->major == now.major && m->minor == now.minor;
	mountinfo_clear(&now);
	return same;
}

void mountinfo_clear(struct mountinfo *m)
{
	free(m->path);
	free(m->type);
	free(m->source);
	*m = (struct mountinfo){0};
}
