/* SPDX-License-Identifier: MIT */
/* Stamps, and the stamped form of one log; see stamp.h. */
#include "backend/output/stamp.h"

#include <time.h>

#include "backend/base/file.h"
#include "backend/output/merge.h"
#include "spec/base/mem.h"
#include "spec/base/time.h"

void stamp_print(int64_t ns, char ret[STAMP])
{
	time_t seconds = (time_t)(max_of(ns, (int64_t)0) / NS_PER_S);
	unsigned micro = (unsigned)(max_of(ns, (int64_t)0) % NS_PER_S / 1000);
	char text[64];
	struct tm tm;

	gmtime_r(&seconds, &tm);
	snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%06uZ ", tm.tm_year + 1900,
		 tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, micro);
	memcpy(ret, text, STAMP);
}

struct stamper *stamper_new(int fd)
{
	struct stamper *s = new0(struct stamper);

	lines_open(&s->lines, fd);
	stamp_print(0, s->text);
	return s;
}

/*
 * Set NOW to the record of the line that contains byte OFFSET, and KNOWN to true. If there is no
 * such record, set KNOWN to false.
 */
static void stamper_find(struct stamper *s, uint64_t offset)
{
	if (s->known && s->now.line.at <= offset) {
		/* Readers are usually sequential, so try the next few records first. */
		for (unsigned i = 0; i < 64; i++) {
			if (!s->has_next)
				s->has_next = lines_next(&s->lines, &s->next) == 0;
			if (!s->has_next || s->next.line.at > offset)
				return;
			s->now = s->next;
			s->has_next = false;
		}
	}
	s->has_next = false;
	s->known = s->lines.fd >= 0 && lines_find(&s->lines, 0, offset, &s->now) == 0;
}

void stamper_stamp(void *data, uint64_t offset, char ret[STAMP])
{
	struct stamper *s = data;
	int64_t ns;

	stamper_find(s, offset);
	ns = s->known ? s->now.line.ns : 0;
	if (ns != s->printed) {
		stamp_print(ns, s->text);
		s->printed = ns;
	}
	memcpy(ret, s->text, STAMP);
}

static uint64_t stamp_offset(const struct stamp_place *p)
{
	return p->at + STAMP * p->lines;
}

/*
 * Return a known position that is not after OFF, from which a search can begin. OFF is an offset in
 * the form of the log that has WEIGHT additional bytes before each line.
 */
static struct stamp_place place_find(struct stamper *s, const struct stamp_place *place,
				     uint64_t weight, uint64_t off)
{
	struct stamp_place p = {0};
	struct lines_record r;

	if (place->at + weight * place->lines <= off)
		p = *place;
	s->known = false;
	if (s->lines.fd >= 0 && lines_find(&s->lines, weight, off, &r) == 0 && r.line.at > p.at)
		p = (struct stamp_place){.at = r.line.at, .lines = r.number};
	return p;
}

/* Move P forward by the N bytes at BUF. */
static void place_pass(struct stamp_place *p, const char *buf, size_t n)
{
	bool midline = buf[n - 1] != '\n';

	p->lines += lines_count(buf, n) + midline - p->midline;
	p->midline = midline;
	p->at += n;
}

int stamped_size(int fd, struct stamper *s, uint64_t size, struct stamp_place *place, uint64_t *ret)
{
	cleanup_free char *buf = NULL;
	struct stamp_place p = {0};

	if (size > 0)
		p = place->at == size ? *place : place_find(s, place, 0, size - 1);
	if (p.at < size)
		buf = mem_grow(NULL, (size_t)min_of(size - p.at, (uint64_t)LINES_SPAN), 1);
	while (p.at < size) {
		size_t want = (size_t)min_of(size - p.at, (uint64_t)LINES_SPAN);
		ssize_t n = file_read_at(fd, buf, want, p.at);

		if (n < 0)
			return (int)n;
		if (n == 0)
			break;
		place_pass(&p, buf, (size_t)n);
	}
	*place = p;
	*ret = size + STAMP * p.lines;
	return 0;
}

ssize_t stamped_read(int fd, struct stamper *s, uint64_t size, struct stamp_place *place, char *buf,
		     size_t n, uint64_t off)
{
	const struct merge_style style = {"", stamper_stamp, s};
	struct stamp_place p = place_find(s, place, STAMP, off);
	size_t most = p.at < size ? (size_t)min_of(size - p.at, (uint64_t)LINES_SPAN) : 0;
	cleanup_free char *bytes = mem_grow(NULL, most + 1, 1);
	size_t done = 0;

	while (done < n && p.at < size) {
		size_t want = (size_t)min_of(size - p.at, (uint64_t)LINES_SPAN);
		ssize_t got = file_read_at(fd, bytes, want, p.at);
		struct merge_record r = {.offset = p.at,
					 .length = (uint32_t)max_of(got, (ssize_t)0)};
		uint64_t begin = stamp_offset(&p);

		if (got < 0 && done == 0)
			return got;
		if (got <= 0)
			break;
		r.flags = p.midline ? 0 : MERGE_LINE;
		*place = p;
		place_pass(&p, bytes, (size_t)got);
		if (stamp_offset(&p) > off + done)
			done += merge_render(&r, stamp_offset(&p) - begin, &style, bytes,
					     (size_t)got, off + done - begin, buf + done, n - done);
	}
	return (ssize_t)done;
}
