/* SPDX-License-Identifier: MIT */
/*
 * What an answer means that is no success. S3 has a code for each reason; one that is known gets a text of ours, and
 * of any other the server's own words are quoted, cleaned and shortened. Other elements of a refusal may hold what was
 * sent, a token too, and are never shown.
 */
#include <errno.h>

#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/base/time.h"
#include "spec/base/utf8.h"
#include "spec/s3/reply.h"
#include "spec/s3/xml.h"

#define SKEW_S	    60 /* a clock that is so far from the server's is worth a word */
#define WORDS_MAX   64
#define MESSAGE_MAX 300

struct code {
	const char *name;
	int err;
	bool keys; /* others may do */
	const char *text;
};

static const struct code codes[] = {
	{"AccessDenied", -EACCES, true, "these keys have no right to that"},
	{"AllAccessDisabled", -EACCES, false, "all access to the bucket is disabled"},
	{"SignatureDoesNotMatch", -EACCES, true,
	 "the signature is wrong: is the secret that of this access key?"},
	{"InvalidAccessKeyId", -EACCES, true, "the server does not know this access key"},
	{"ExpiredToken", -EACCES, true, "the session token has ended"},
	{"ExpiredTokenException", -EACCES, true, "the session token has ended"},
	{"InvalidToken", -EACCES, true, "the session token is wrong"},
	{"InvalidIdentityToken", -EACCES, true, "the web identity token is not accepted"},
	{"RequestTimeTooSkewed", -EACCES, false, "the clocks differ too much"},
	{"NoSuchKey", -ENOENT, false, "there is no such object"},
	{"NoSuchBucket", -EIO, false, "there is no such bucket"},
	{"SlowDown", -EAGAIN, false, "the server asks for fewer requests"},
	{"ServiceUnavailable", -EAGAIN, false, "the server is busy"},
	{"InternalError", -EAGAIN, false, "the server has failed"},
	{"RequestTimeout", -EAGAIN, false, "the server has waited in vain for what was sent"},
	{"QuotaExceeded", -ENOSPC, false, "the quota of the bucket is used up"},
	{"XMinioStorageFull", -ENOSPC, false, "the server's disks are full"},
	{"EntityTooLarge", -EIO, false, "the server takes no object of this size"},
	{"PermanentRedirect", -EIO, false, "the bucket is elsewhere: see region= and endpoint="},
	{"AuthorizationHeaderMalformed", -EIO, false,
	 "the request was signed for another region than the bucket's: see region="},
	/* Where the server gives no code that is known, or a proxy has answered in its place. */
	{"401", -EACCES, true, NULL},
	{"403", -EACCES, true, NULL},
	{"404", -ENOENT, false, NULL},
	{"429", -EAGAIN, false, NULL},
	{"500", -EAGAIN, false, NULL},
	{"502", -EAGAIN, false, NULL},
	{"503", -EAGAIN, false, NULL},
	{"504", -EAGAIN, false, NULL},
	{"507", -ENOSPC, false, NULL},
};

struct refusal {
	char *code, *message; /* "" not said */
};

/* <Error><Code/><Message/></Error>, which STS has in an <ErrorResponse>. */
static void on_element(void *data, const char *path, const char *value)
{
	struct refusal *r = data;

	if (!strncmp(path, "ErrorResponse/", strlen("ErrorResponse/")))
		path += strlen("ErrorResponse/");
	if (streq(path, "Error/Code"))
		text_set(&r->code, "%s", value);
	else if (streq(path, "Error/Message"))
		text_set(&r->message, "%s", value);
}

/* TEXT, cleaned and cut to MAX bytes of whole characters. */
static char *quote(const char *text, size_t max)
{
	char *clean = spec_utf8_clean_copy(text, "");
	size_t n = strlen(clean);

	if (n > max) {
		for (n = max; n > 0 && ((unsigned char)clean[n] & 0xc0) == 0x80; n--)
			;
		clean[n] = '\0';
	}
	return clean;
}

static const struct code *find_code(const char *name)
{
	for (size_t i = 0; i < array_size(codes); i++)
		if (streq(codes[i].name, name))
			return &codes[i];
	return NULL;
}

int spec_s3_refusal(int status, const char *body, size_t len, const struct spec_s3_asked *asked,
		    bool *ret_keys, char **ret_text)
{
	static const struct code unknown = {"", -EIO, false, NULL};
	struct refusal r = {text_copy(""), text_copy("")};
	cleanup_free char *word = NULL, *message = NULL, *clock = NULL, *name = NULL;
	const struct code *code;
	char span[24], number[16];

	snprintf(number, sizeof(number), "%d", status);
	if (xml_read(body, len, on_element, &r) < 0) {
		text_set(&r.code, "%s", "");
		text_set(&r.message, "%s", "");
	}
	code = find_code(r.code);
	code = code ? code : find_code(number);
	code = code ? code : &unknown;
	spec_time_span_text(asked->ahead < 0 ? -asked->ahead : asked->ahead, span);
	if (code->err == -EACCES && (asked->ahead <= -SKEW_S || asked->ahead >= SKEW_S))
		clock = text_print("; the clock of this machine is %s %s the server's", span,
				   asked->ahead < 0 ? "behind" : "ahead of");
	else if (streq(r.code, "RequestTimeTooSkewed"))
		clock = text_copy("; is the time of this machine right?");
	word = quote(r.code, WORDS_MAX);
	message = quote(code->text ? code->text : r.message, MESSAGE_MAX);
	name = quote(asked->name, MESSAGE_MAX);
	*ret_keys = code->keys;
	*ret_text =
		text_print("%s %s%s%s: %d%s%s%s%s%s", asked->verb, *asked->bucket ? "s3://" : "",
			   asked->bucket, name, status, *word ? " " : "", word,
			   *message ? ", " : "", message, clock ? clock : "");
	free(r.code);
	free(r.message);
	return code->err;
}
