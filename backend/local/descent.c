/* SPDX-License-Identifier: MIT */
/*
 * descent_signal searches all of /proc, because it must not miss a process. descent_sample runs
 * every second, even if the machine has thousands of processes. So descent_sample reads only
 * /proc/PID/task/TID/children of each descendant, and may miss a process that starts or ends.
 */
#include "backend/local/descent.h"

#include <fcntl.h>
#include <signal.h>

#include "backend/base/file.h"
#include "backend/base/process.h"
#include "spec/base/mem.h"

#define SAMPLE_MAX   100000 /* processes in one sample */
#define CHILDREN_MAX (1u << 20)
#define ROLLUP_MAX   4096

struct process {
	pid_t pid, parent;
	bool wanted;
};

/* --- signals --- */

static size_t list_processes(struct process **ret)
{
	cleanup_dir DIR *proc = opendir("/proc");
	size_t n = 0;
	struct dirent *entry;

	*ret = NULL;
	while (proc && (entry = readdir(proc))) {
		char *end;
		long pid = strtol(entry->d_name, &end, 10);
		struct process_stat stat;

		/* Keep zombies: other threads of the process may still run. */
		if (*end || pid <= 1 || process_stat((pid_t)pid, &stat) < 0)
			continue;
		*ret = mem_more(*ret, n, sizeof(**ret));
		(*ret)[n++] = (struct process){.pid = (pid_t)pid, .parent = stat.parent};
	}
	return n;
}

static bool is_wanted(const struct process *all, size_t n, pid_t pid)
{
	for (size_t i = 0; i < n && pid > 1; i++) /* ALL lacks process 1 */
		if (all[i].pid == pid)
			return all[i].wanted;
	return false;
}

void descent_signal(pid_t root, int sig)
{
	cleanup_free struct process *all = NULL;
	size_t n = list_processes(&all);
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < n; i++) {
			if (all[i].wanted || all[i].pid == root ||
			    (all[i].parent != root && !is_wanted(all, n, all[i].parent)))
				continue;
			all[i].wanted = more = true;
			kill(all[i].pid, sig);
		}
	}
}

/* --- samples --- */

struct pids {
	pid_t *v;
	size_t n;
};

/* Read at most SIZE - 1 bytes of a file of /proc as text. Return the length, or -1 on an error. */
static ssize_t read_proc(const char *path, char *ret, size_t size)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n = fd < 0 ? -1 : 1;

	while (n > 0 && len < size - 1) {
		n = read(fd, ret + len, size - 1 - len);
		len += n > 0 ? (size_t)n : 0;
	}
	ret[len] = '\0';
	return fd < 0 || (n < 0 && len == 0) ? -1 : (ssize_t)len;
}

/* Append the children of a thread of process PID. Return false if the kernel does not list them. */
static bool add_children(struct pids *to, long pid, long tid)
{
	static char text[CHILDREN_MAX];
	char path[64], *at = text, *end;

	snprintf(path, sizeof(path), "/proc/%ld/task/%ld/children", pid, tid);
	if (read_proc(path, text, sizeof(text)) < 0)
		return false;
	for (long child; to->n < SAMPLE_MAX; at = end) {
		child = strtol(at, &end, 10);
		if (end == at || child <= 1)
			break;
		to->v = mem_more(to->v, to->n, sizeof(*to->v));
		to->v[to->n++] = (pid_t)child;
	}
	return true;
}

static void add_all_children(struct pids *to, long pid)
{
	char path[64];
	cleanup_dir DIR *threads = NULL;
	const struct dirent *entry;

	snprintf(path, sizeof(path), "/proc/%ld/task", pid);
	threads = opendir(path);
	while (threads && (entry = readdir(threads))) {
		long tid = strtol(entry->d_name, NULL, 10);

		if (tid > 0)
			add_children(to, pid, tid);
	}
}

/* Return the Pss of process PID in bytes, or -1 if it is unknown. */
static int64_t part_of(pid_t pid)
{
	char path[64], text[ROLLUP_MAX];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	if (read_proc(path, text, sizeof(text)) < 0 || !(at = strstr(text, "\nPss:")))
		return -1;
	return strtoll(at + strlen("\nPss:"), NULL, 10) * 1024;
}

bool descent_sample(bool shared, struct descent *ret)
{
	const int64_t ticks = sysconf(_SC_CLK_TCK), page = sysconf(_SC_PAGESIZE);
	struct pids all = {0};
	bool known = add_children(&all, getpid(), getpid());

	*ret = (struct descent){0};
	for (size_t i = 0; i < all.n; i++) {
		struct process_stat stat;
		int64_t memory;

		add_all_children(&all, all.v[i]);
		if (process_stat(all.v[i], &stat) < 0)
			continue;
		memory = shared && stat.pages ? part_of(all.v[i]) : -1;
		ret->cpu_us += (int64_t)stat.ticks * (1000000 / ticks);
		ret->memory += memory >= 0 ? memory : (int64_t)stat.pages * page;
	}
	free(all.v);
	return known;
}
