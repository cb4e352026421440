/* SPDX-License-Identifier: MIT */
/* Names, records and lists: see text.h. */
#include "backend/keep/text.h"

#include <inttypes.h>

#include "spec/base/name.h"
#include "spec/base/time.h"

#define ID_MAX 246 /* so that "~UID8" fits into a file name */

const char *keep_text_name(enum keep_text which)
{
	static const char *const names[KEEP_N_TEXTS] = {"status.json", "app.yaml", "manifest.yaml",
							"events",      "why",	   "job.json"};

	return names[which];
}

char *keep_source_name(const char *namespace)
{
	return text_print("%s/source.json", namespace);
}

char *keep_source_text(const char *namespace, const char *uid)
{
	return text_print("{\"namespace\":\"%s\",\"uid\":\"%s\"}\n", namespace, uid);
}

void keep_day(int64_t ns, char ret[11])
{
	char text[32];

	spec_time_text(ns > 0 ? ns : 1, text);
	memcpy(ret, text, 10);
	ret[10] = '\0';
}

char *keep_folder(const struct spec_job *job, bool second)
{
	char day[11];
	/*
	 * It may be called so already in the history of this state directory, because another job has its name there.
	 */
	cleanup_free char *mark = text_print("~%.8s", job->uid);
	size_t n = strlen(job->id), tail = strlen(mark);

	if (n > tail && streq(job->id + n - tail, mark))
		n -= tail;
	keep_day(job->created, day);
	return text_print("%s/%.*s%s", day, (int)min_of(n, (size_t)(second ? ID_MAX : 255)),
			  job->id, second ? mark : "");
}

char *keep_log_name(const struct spec_replica *r, size_t i, unsigned *ret_n)
{
	const struct spec_log *log = &r->logs[i];
	const char *container = log->container;
	cleanup_free char *last = text_print("%s%slog.999.lines", container, *container ? "." : "");

	*ret_n = 0;
	for (size_t j = 0; j < i; j++)
		*ret_n += streq(r->logs[j].container, container);
	if (!spec_name_is_file(r->name) || !spec_name_is_file(log->key) || !spec_name_is_file(last))
		return NULL;
	return text_print("%s/%s%slog", r->name, container, *container ? "." : "");
}

char *keep_part_name(const char *log, unsigned n, const char *lines, uint64_t at)
{
	return text_print("%s.%u%s/%016" PRIu64, log, n, lines, at);
}

/* --- what is in the archive of one job --- */

void keep_record_free(struct keep_record *r)
{
	if (!r)
		return;
	free(r->folder);
	free(r->line);
	for (size_t i = 0; i < KEEP_N_TEXTS; i++)
		free(r->digest[i]);
	for (size_t i = 0; i < r->n_logs; i++) {
		free(r->logs[i].key);
		free(r->logs[i].name);
	}
	free(r->logs);
	free(r);
}

struct keep_log *keep_record_log(struct keep_record *r, const char *key, const char *name,
				 unsigned n)
{
	struct keep_log *log;

	for (size_t i = 0; i < r->n_logs; i++)
		if (streq(r->logs[i].key, key))
			return &r->logs[i];
	r->logs = mem_grow(r->logs, r->n_logs + 1, sizeof(*r->logs));
	log = &r->logs[r->n_logs++];
	*log = (struct keep_log){.key = text_copy(key), .name = text_copy(name), .n = n};
	return log;
}

char *keep_record_text(const struct keep_record *r)
{
	char *text;
	size_t len;
	FILE *out = text_stream(&text, &len);

	if (r->folder)
		fprintf(out, "folder %s\n", r->folder);
	for (size_t i = 0; i < KEEP_N_TEXTS; i++)
		if (r->digest[i])
			fprintf(out, "text %s %s\n", keep_text_name((enum keep_text)i),
				r->digest[i]);
	for (size_t i = 0; i < r->n_logs; i++) {
		const struct keep_log *log = &r->logs[i];

		if (log->claimed)
			fprintf(out, "log %u %" PRIu64 " %" PRIu64 " %s %s\n", log->n, log->size,
				log->lines, log->key, log->name);
	}
	if (r->line)
		fprintf(out, "line %s\n", r->line);
	if (r->final)
		fputs("final\n", out);
	text_stream_close(out);
	return text;
}

/* Is TEXT a path of two names, as ROLE-K/log? */
static bool is_path(const char *text)
{
	cleanup_free char *first = text_copy(text);
	char *slash = strchr(first, '/');

	if (!slash)
		return false;
	*slash = '\0';
	return spec_name_is_file(first) && spec_name_is_file(slash + 1);
}

static void parse_line(struct keep_record *r, const char *line)
{
	char a[256], b[520];
	struct keep_log log = {0}, *to;

	if (streq(line, "final"))
		r->final = true;
	else if (strncmp(line, "folder ", 7) == 0 && is_path(line + 7))
		text_set(&r->folder, "%s", line + 7);
	else if (sscanf(line, "line %64[0-9a-f]", a) == 1)
		text_set(&r->line, "%s", a);
	else if (sscanf(line, "text %255s %64[0-9a-f]", a, b) == 2) {
		for (size_t i = 0; i < KEEP_N_TEXTS; i++)
			if (streq(a, keep_text_name((enum keep_text)i)))
				text_set(&r->digest[i], "%s", b);
	} else if (sscanf(line, "log %3u %18" SCNu64 " %18" SCNu64 " %255s %519[^\n]", &log.n,
			  &log.size, &log.lines, a, b) == 5 &&
		   /* sscanf makes a large number of one below 0. */
		   log.n <= KEEP_MAX_LOGS && max_of(log.size, log.lines) <= INT64_MAX &&
		   spec_name_is_file(a) && is_path(b)) {
		to = keep_record_log(r, a, b, log.n);
		to->size = log.size;
		to->lines = log.lines;
		to->claimed = true;
	}
}

struct keep_record *keep_record_parse(const char *text)
{
	struct keep_record *r = new0(struct keep_record);
	cleanup_free char *copy = text_copy(text);
	char *rest = copy, *line;

	while ((line = strsep(&rest, "\n")))
		parse_line(r, line);
	/* Without a folder nobody knows where the job's objects are. */
	if (!r->folder) {
		keep_record_free(r);
		r = new0(struct keep_record);
	}
	return r;
}

/* --- list.jsonl --- */

void keep_line_init(struct keep_line *line, const char *uid, const char *status)
{
	cleanup_free char *head = text_print("{\"uid\":\"%s\",", uid);

	line->text = text_print("%s%s", head, status + 1);
	line->len = strlen(line->text);
	line->head = strlen(head);
	line->placed = false;
}

/* The one of LINES whose job the line is of with which TEXT, of N bytes, begins; NULL: none. */
static struct keep_line *line_of(const char *text, size_t n, struct keep_line *lines,
				 size_t n_lines)
{
	for (size_t i = 0; i < n_lines; i++)
		if (n >= lines[i].head && memcmp(text, lines[i].text, lines[i].head) == 0)
			return &lines[i];
	return NULL;
}

bool keep_list_merge(const char *text, size_t len, struct keep_line *lines, size_t n, bool append,
		     size_t max, char **ret, size_t *ret_len)
{
	size_t room = len + 1, used = 0;
	const char *end = text + len;
	/* The newline that the last line gets, if it has none. */
	const size_t added = len > 0 && end[-1] != '\n';
	char *to;

	for (size_t i = 0; i < n; i++)
		room += lines[i].len;
	to = mem_zero(room + 1);
	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		size_t old = (size_t)((stop ? stop : end) - text);
		size_t rest = stop ? (size_t)(end - stop) - 1 + added : 0;
		struct keep_line *line = line_of(text, old, lines, n);

		/* A line that finds no room here any more, or stands here twice, is dropped. */
		if (line && !line->placed && used + line->len + rest <= max) {
			memcpy(to + used, line->text, line->len);
			used += line->len;
			line->placed = true;
		} else if (!line) {
			memcpy(to + used, text, old);
			used += old;
			to[used++] = '\n';
		}
		text += min_of(old + 1, (size_t)(end - text));
	}
	for (size_t i = 0; append && i < n; i++) {
		if (lines[i].placed || used + lines[i].len > max)
			continue;
		memcpy(to + used, lines[i].text, lines[i].len);
		used += lines[i].len;
		lines[i].placed = true;
	}
	*ret = to;
	*ret_len = used;
	return used != len || memcmp(to, end - len, len) != 0;
}
