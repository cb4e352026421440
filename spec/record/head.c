/* SPDX-License-Identifier: MIT */
/* Writes and parses the head of a record. The disk is untrusted: a file may have any bytes. */
#include "spec/record/head.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>

#include "spec/base/encode.h"
#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/base/span.h"
#include "spec/yaml/field.h"

#define MAGIC "kxfs job "
/* enough for the first line, even if a length has more than 8 digits */
#define LINE_SIZE 128

#define HEAD(name, type, ...) SPEC_FIELD(struct spec_head, name, type, __VA_ARGS__)
#define MORE(name, type, ...) SPEC_FIELD(struct spec_head_more, name, type, __VA_ARGS__)

static const char *const states[] = {
	[RECORD_HELD] = "HELD",	      [RECORD_SUBMITTING] = "SUBMITTING", [RECORD_LIVE] = "LIVE",
	[RECORD_HISTORY] = "HISTORY", [RECORD_NEVER] = "NEVER",		  NULL,
};

/*
 * The members "job" and "state" of a head have two tables each: one for fields of spec_head, one
 * for fields of spec_head_more.
 */
#define N_FIELDS 11
static const struct spec_field job_fields[2][N_FIELDS] = {
	{
		HEAD(key, SPEC_FIELD_TEXT),
		HEAD(own, SPEC_FIELD_BOOL),
		HEAD(file, SPEC_FIELD_TEXT),
		HEAD(digest, SPEC_FIELD_TEXT),
		HEAD(backend, SPEC_FIELD_TEXT),
		HEAD(id, SPEC_FIELD_TEXT),
		HEAD(owned, SPEC_FIELD_BOOL),
		HEAD(user, SPEC_FIELD_UNSIGNED, .max = UINT_MAX),
		HEAD(group, SPEC_FIELD_UNSIGNED, .max = UINT_MAX),
		HEAD(created, SPEC_FIELD_TIME),
	},
	{
		MORE(submitter, SPEC_FIELD_TEXT),
		MORE(namespace, SPEC_FIELD_TEXT),
		MORE(readable, SPEC_FIELD_UNSIGNED, .max = 0777),
		MORE(seed[0], SPEC_FIELD_UINT64),
		MORE(seed[1], SPEC_FIELD_UINT64),
	},
};

static const struct spec_field state_fields[2][N_FIELDS] = {
	{
		HEAD(state, SPEC_FIELD_WORD, .words = states),
		HEAD(since, SPEC_FIELD_TIME),
		HEAD(uid, SPEC_FIELD_TEXT),
		HEAD(held, SPEC_FIELD_BOOL),
		HEAD(unlinked, SPEC_FIELD_BOOL),
		HEAD(dropped, SPEC_FIELD_BOOL),
		HEAD(over, SPEC_FIELD_BOOL),
	},
	{
		MORE(reason, SPEC_FIELD_TEXT),
		MORE(why, SPEC_FIELD_TEXT),
		MORE(boot, SPEC_FIELD_TEXT),
	},
};

/* all keys of a head: the keys of its parts, and "job" and "state" */
#define N_KEYS (RECORD_N_PARTS + 2)
static const char *const keys[N_KEYS] = {
	[RECORD_HOLD] = "hold",	  [RECORD_PLAN] = "plan",	  [RECORD_SNAPSHOT] = "snapshot",
	[RECORD_N_PARTS] = "job", [RECORD_N_PARTS + 1] = "state",
};

/* --- a head --- */

#define HEAD_TEXTS(h) &(h)->key, &(h)->file, &(h)->digest, &(h)->backend, &(h)->id, &(h)->uid
#define MORE_TEXTS(m) &(m)->submitter, &(m)->namespace, &(m)->reason, &(m)->why, &(m)->boot

struct spec_head *spec_head_copy(const struct spec_head *h)
{
	struct spec_head *copy = new0(struct spec_head);
	struct spec_head_more *m = new0(struct spec_head_more);
	char **const texts[] = {HEAD_TEXTS(copy), MORE_TEXTS(m)};

	*copy = *h;
	copy->more = m;
	if (h->more)
		*m = *h->more;
	/* Give the copy its own texts. NULL becomes "". */
	for (size_t i = 0; i < array_size(texts); i++)
		spec_set(texts[i], take_ptr(*texts[i]));
	for (size_t i = 0; i < RECORD_N_PARTS; i++)
		m->parts[i] = m->parts[i] ? text_copy(m->parts[i]) : NULL;
	return copy;
}

struct spec_head *spec_head_new(void)
{
	static const struct spec_head empty;

	return spec_head_copy(&empty);
}

static void more_free(struct spec_head_more *m)
{
	if (!m)
		return;
	spec_unset(MORE_TEXTS(m));
	for (size_t i = 0; i < RECORD_N_PARTS; i++)
		free(m->parts[i]);
	free(m);
}

void spec_head_forget(struct spec_head *h)
{
	if ((h->state == RECORD_LIVE || h->state == RECORD_HISTORY) &&
	    !(h->more && h->more->parts[RECORD_SNAPSHOT]))
		more_free(take_ptr(h->more));
}

void spec_head_free(struct spec_head *h)
{
	if (!h)
		return;
	spec_unset(HEAD_TEXTS(h));
	more_free(h->more);
	free(h);
}

/* --- the first line --- */

/* Print the three lengths, which the checksum of the head includes. */
static void print_lengths(const struct spec_head_line *line, char ret[40])
{
	snprintf(ret, 40, "%08u %08u %08u ", (unsigned)line->head, (unsigned)line->document,
		 (unsigned)line->manifest);
}

static uint64_t sum_of(const struct spec_head_line *line, const char *head)
{
	char lengths[40];

	print_lengths(line, lengths);
	return spec_fnv1a(spec_fnv1a(SPEC_FNV1A_INIT, lengths, strlen(lengths)), head, line->head);
}

static void print_line(const struct spec_head_line *line, char ret[LINE_SIZE])
{
	char lengths[40];

	print_lengths(line, lengths);
	snprintf(ret, LINE_SIZE, MAGIC "1 %c %s%016" PRIx64 " %016" PRIx64 "\n",
		 line->history ? 'h' : 'j', lengths, line->sum, line->rest_sum);
}

int spec_head_line_parse(const char *text, size_t len, struct spec_head_line *ret)
{
	const size_t magic = strlen(MAGIC);
	char copy[SPEC_HEAD_LINE + 1], again[LINE_SIZE];
	unsigned head, document, manifest;
	char letter;

	if (len < SPEC_HEAD_LINE || memcmp(text, MAGIC, magic) != 0)
		return -EINVAL;
	if (text[magic] != '1' || text[magic + 1] != ' ')
		return text[magic] >= '0' && text[magic] <= '9' ? -ENOTSUP : -EINVAL;
	memcpy(copy, text, SPEC_HEAD_LINE);
	copy[SPEC_HEAD_LINE] = '\0';
	*ret = (struct spec_head_line){0};
	if (sscanf(copy, MAGIC "1 %c %8u %8u %8u %16" SCNx64 " %16" SCNx64, &letter, &head,
		   &document, &manifest, &ret->sum, &ret->rest_sum) != 6)
		return -EINVAL;
	ret->history = letter == 'h';
	ret->head = head;
	ret->document = document;
	ret->manifest = manifest;
	print_line(ret, again);
	return memcmp(again, copy, SPEC_HEAD_LINE) == 0 && head <= SPEC_MAX_HEAD &&
			       document <= SPEC_MAX_FILE && manifest <= SPEC_HEAD_MANIFEST
		       ? 0
		       : -EINVAL;
}

/* --- the head --- */

char *spec_head_text(const struct spec_head *h, struct spec_head_line *line, size_t *ret_len)
{
	cleanup_json struct json_object *job = spec_tree_map(), *state = spec_tree_map();
	cleanup_free char *job_text = NULL, *state_text = NULL, *head = NULL;
	char first[LINE_SIZE];
	struct spec_head shown = *h;
	FILE *out = text_stream(&head, &line->head);
	char *ret;

	/*
	 * Only the letter in the first line differs between LIVE and HISTORY, so that kxfs can
	 * overwrite this letter in place.
	 */
	line->history = h->state == RECORD_HISTORY || h->state == RECORD_NEVER;
	shown.state = h->state == RECORD_HISTORY ? RECORD_LIVE : h->state;
	spec_fields_write(job, job_fields[0], &shown);
	spec_fields_write(job, job_fields[1], h->more);
	spec_fields_write(state, state_fields[0], &shown);
	spec_fields_write(state, state_fields[1], h->more);
	job_text = spec_tree_print(job);
	state_text = spec_tree_print(state);
	fprintf(out, "{\"job\":%s,\"state\":%s", job_text, state_text);
	for (size_t i = 0; i < RECORD_N_PARTS; i++)
		if (h->more->parts[i])
			fprintf(out, ",\"%s\":%.*s", keys[i], (int)strcspn(h->more->parts[i], "\n"),
				h->more->parts[i]);
	fputs("}\n", out);
	text_stream_close(out);
	line->sum = sum_of(line, head);
	print_line(line, first);
	ret = mem_grow(NULL, SPEC_HEAD_LINE + line->head + 1, 1);
	memcpy(ret, first, SPEC_HEAD_LINE);
	memcpy(ret + SPEC_HEAD_LINE, head, line->head + 1);
	*ret_len = SPEC_HEAD_LINE + line->head;
	return ret;
}

static int read_fields(struct spec_span span, const struct spec_field fields[2][N_FIELDS],
		       struct spec_head *h)
{
	cleanup_free struct spec_value *value = NULL;
	int err = span.p ? spec_value_parse(span.p, spec_span_len(span), &value) : -EINVAL;

	err = err ? err : spec_fields_read(value, fields[0], h);
	return err ? err : spec_fields_read(value, fields[1], h->more);
}

int spec_head_parse(const struct spec_head_line *line, const char *text, struct spec_head **ret)
{
	const struct spec_span head = {text, text + line->head};
	cleanup(spec_head_freep) struct spec_head *h = spec_head_new();
	struct spec_span spans[N_KEYS];
	int err = sum_of(line, text) == line->sum ? 0 : -EINVAL;

	spec_span_members(head, keys, N_KEYS, spans);
	if (!err)
		err = read_fields(spans[RECORD_N_PARTS], job_fields, h);
	if (!err)
		err = read_fields(spans[RECORD_N_PARTS + 1], state_fields, h);
	if (err || !spec_name_is_file(h->key) || strlen(h->key) > SPEC_MAX_KEY ||
	    !spec_name_is_file(h->id) || h->state == RECORD_HISTORY)
		return -EINVAL;
	for (size_t i = 0; i < RECORD_N_PARTS; i++) {
		const struct spec_span span = spans[i];

		if (!span.p)
			continue;
		if (*span.p != '{' || memchr(span.p, '\n', spec_span_len(span)) ||
		    memchr(span.p, '\0', spec_span_len(span)))
			return -EINVAL;
		h->more->parts[i] = mem_copy(span.p, spec_span_len(span));
	}
	if (line->history && h->state == RECORD_LIVE)
		h->state = RECORD_HISTORY;
	if (line->history != (h->state == RECORD_HISTORY || h->state == RECORD_NEVER))
		return -EINVAL;
	*ret = take_ptr(h);
	return 0;
}
