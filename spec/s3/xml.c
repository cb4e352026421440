/* SPDX-License-Identifier: MIT */
/* Expat reads; this keeps the path of the element that it is in, and the text of the innermost ones. */
#include "spec/s3/xml.h"

#include <errno.h>
#include <expat.h>

#include "spec/base/limits.h"
#include "spec/base/mem.h"

#define XML_DEPTH_MAX 8
#define XML_PATH_MAX  256

struct xml_reader {
	XML_Parser parser;
	xml_fn fn;
	void *data;
	unsigned depth;
	char path[XML_PATH_MAX];
	size_t lengths[XML_DEPTH_MAX]; /* of PATH before each element that is open */
	char *value;		       /* of the element that has begun last, if it is still open */
	size_t n;		       /* of its bytes */
	bool bad;
};

static void refuse(struct xml_reader *r)
{
	r->bad = true;
	XML_StopParser(r->parser, XML_FALSE);
}

static void on_begin(void *data, const char *name, const char **attributes)
{
	struct xml_reader *r = data;
	const char *colon = strchr(name, ':');
	size_t len = strlen(r->path);
	int more;

	(void)attributes;
	if (r->bad || r->depth == XML_DEPTH_MAX)
		return refuse(r);
	more = snprintf(r->path + len, sizeof(r->path) - len, "%s%s", len ? "/" : "",
			colon ? colon + 1 : name);
	if (more < 0 || (size_t)more >= sizeof(r->path) - len)
		return refuse(r);
	r->lengths[r->depth++] = len;
	r->n = 0;
}

static void on_end(void *data, const char *name)
{
	struct xml_reader *r = data;

	(void)name;
	if (r->bad)
		return;
	r->value[r->n] = '\0';
	r->fn(r->data, r->path, r->value);
	r->path[r->lengths[--r->depth]] = '\0';
	r->n = 0;
}

static void on_text(void *data, const char *text, int n)
{
	struct xml_reader *r = data;

	if (r->bad || (size_t)n > SPEC_MAX_S3_TEXT - r->n)
		return refuse(r);
	memcpy(r->value + r->n, text, (size_t)n);
	r->n += (size_t)n;
}

static void on_doctype(void *data, const char *name, const char *system, const char *public,
		       int internal)
{
	(void)name, (void)system, (void)public, (void)internal;
	refuse(data);
}

int xml_read(const char *text, size_t len, xml_fn fn, void *data)
{
	cleanup_free char *value = new0_n(char, SPEC_MAX_S3_TEXT + 1);
	struct xml_reader r = {.fn = fn, .data = data, .value = value};
	enum XML_Status status;

	if (len > SPEC_MAX_S3_REPLY)
		return -EINVAL;
	r.parser = XML_ParserCreate("UTF-8");
	if (!r.parser)
		mem_out();
	XML_SetUserData(r.parser, &r);
	XML_SetElementHandler(r.parser, on_begin, on_end);
	XML_SetCharacterDataHandler(r.parser, on_text);
	XML_SetStartDoctypeDeclHandler(r.parser, on_doctype);
	status = XML_Parse(r.parser, text, (int)len, 1);
	if (status != XML_STATUS_OK && XML_GetErrorCode(r.parser) == XML_ERROR_NO_MEMORY)
		mem_out();
	XML_ParserFree(r.parser);
	return status == XML_STATUS_OK && !r.bad ? 0 : -EINVAL;
}
