/* SPDX-License-Identifier: MIT */
/* Finds the cause of an error in messages of the kubelet, the runtime and the scheduler. */
#include "spec/base/time.h"
#include "spec/base/words.h"

static const struct spec_words nothing = {"", 0};

static struct spec_words to_end(const char *p)
{
	return (struct spec_words){p, strlen(p)};
}

/* Return the text in quotes that directly follows KEY in TEXT; empty if there is none. */
static struct spec_words quoted(const char *text, const char *key)
{
	const char *p = strstr(text, key);
	const char *end;

	if (!p)
		return nothing;
	p += strlen(key);
	end = *p == '"' ? strchr(p + 1, '"') : NULL;
	return end ? (struct spec_words){p + 1, (size_t)(end - p - 1)} : nothing;
}

bool spec_words_is_pull(const char *reason)
{
	static const char *const reasons[] = {"ErrImagePull",
					      "ImagePullBackOff",
					      "ErrImageNeverPull",
					      "InvalidImageName",
					      "RegistryUnavailable",
					      "ImageInspectError",
					      NULL};

	return streq_any(reason, reasons);
}

struct spec_words spec_words_image(const char *message)
{
	static const char *const keys[] = {"pulling image ", "pull and unpack image ",
					   "pull image ",    "image name ",
					   "image ",	     "image: "};

	for (size_t i = 0; i < array_size(keys); i++) {
		struct spec_words w = quoted(message, keys[i]);

		if (w.n > 0)
			return w;
	}
	return nothing;
}

struct spec_words spec_words_pull(const char *message)
{
	const char *last = "";

	/* The message has a chain of errors, joined by ": ". The last error is the root cause. */
	for (const char *p = message; (p = strstr(p, ": ")); p += 2)
		last = p + 2;
	/* "Back-off pulling image ..." only means that the kubelet retries. */
	return strstr(last, "pulling image ") ? nothing : to_end(last);
}

int64_t spec_words_backoff(const char *message)
{
	static const char key[] = "back-off ";
	static const int64_t units[] = {['h'] = 3600, ['m'] = 60, ['s'] = 1};
	const char *p = strncmp(message, key, strlen(key)) == 0 ? message + strlen(key) : "";
	int64_t ret = 0;

	while (*p >= '0' && *p <= '9') {
		int64_t n = 0;

		for (; *p >= '0' && *p <= '9'; p++)
			n = min_of(n * 10 + (*p - '0'), INT64_C(100000));
		if (*p != 'h' && *p != 'm' && *p != 's')
			return 0;
		ret += n * units[(unsigned char)*p++];
	}
	return *p == ' ' ? ret * NS_PER_S : 0;
}

bool spec_words_is_beside_gang(const char *message)
{
	const char *ready = strstr(message, "pod group is ready");

	return ready && strstr(ready, "Pending: ") && strstr(ready, " Unschedulable");
}

bool spec_words_is_passing(const char *message)
{
	return (strstr(message, "pod group is ready") && !spec_words_is_beside_gang(message)) ||
	       (strncmp(message, "0/", 2) == 0 && strstr(message, " tasks in gang"));
}

struct spec_words spec_words_program(const char *message)
{
	return quoted(message, "exec: ");
}

struct spec_words spec_words_start(const char *message)
{
	static const char key[] = "unable to start container process: ";
	static const char tail[] = ": unknown";
	const char *p = strstr(message, key);
	struct spec_words w = to_end(p ? p + strlen(key) : message);

	if (w.n > strlen(tail) && streq(w.p + w.n - strlen(tail), tail))
		w.n -= strlen(tail);
	return w;
}

struct spec_words spec_words_unschedulable(const char *message)
{
	const char *preemption = strstr(message, " preemption: ");
	const char *end = strstr(message, ". ");

	/* The first sentence has the cause. Plugins add sentences about preemption. */
	return preemption && end && end < preemption
		       ? (struct spec_words){message, (size_t)(end + 1 - message)}
		       : to_end(message);
}

struct spec_words spec_words_claim(const char *message)
{
	struct spec_words w = quoted(message, "persistentvolumeclaim ");

	return w.n > 0 && strncmp(w.p + w.n + 1, " not found", strlen(" not found")) == 0 ? w
											  : nothing;
}

bool spec_words_undump(char *text)
{
	static const char mark[] = "Message:\"";
	char *from = strstr(text, mark), *to = text;

	if (!from)
		return false;
	for (from += strlen(mark); *from && *from != '"'; from++) {
		if (*from == '\\' && from[1])
			from++;
		*to++ = *from;
	}
	*to = '\0';
	return true;
}

bool spec_words_clean(char *text, size_t max)
{
	bool cut = false;
	size_t n = 0;

	for (char *p = text; *p; p++) {
		bool space = (unsigned char)*p <= 0x20 || *p == 0x7f;

		cut = n >= max && !space && ((unsigned char)*p & 0xc0) != 0x80;
		if (cut)
			break;
		if (!space || (n > 0 && text[n - 1] != ' '))
			text[n++] = space ? ' ' : *p;
	}
	while (n > 0 && strchr(" ;", text[n - 1]))
		n--;
	text[n] = '\0';
	return cut;
}
