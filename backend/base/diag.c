/* SPDX-License-Identifier: MIT */
/*
 * A ring of text, where new lines overwrite the oldest. It is global, because any code may report a
 * message.
 */
#include "backend/base/diag.h"

#include <errno.h>
#include <stdatomic.h>
#include <time.h>

#include "backend/base/lock.h"
#include "spec/base/mem.h"
#include "spec/base/utf8.h"

#define DIAG_RING (128u << 10)
/* Longer messages are truncated, and end in "...". */
#define DIAG_MESSAGE 1024

static atomic_int diag_level_max = DIAG_INFO;
static atomic_bool diag_stderr = true;

static struct lock diag_lock = LOCK_INIT;
static char diag_ring[DIAG_RING];
static size_t diag_start; /* offset of the oldest line */
static size_t diag_len;

static const char *const diag_names[] = {"error", "warning", "info", "debug"};

void diag_setup(enum diag_level level, bool to_stderr)
{
	atomic_store(&diag_level_max, (int)level);
	atomic_store(&diag_stderr, to_stderr);
}

bool diag_to_stderr(void)
{
	return atomic_load(&diag_stderr);
}

/*
 * Copy TEXT to RET as one line. TEXT is modified. RET needs 4 * strlen(TEXT) + 1 bytes, as in
 * spec_utf8_clean.
 */
static void diag_escape(char *text, char *ret)
{
	char *next;

	for (; (next = strchr(text, '\n')); text = next + 1) {
		*next = '\0';
		ret = spec_utf8_clean(ret, text, "");
		if (next[1])
			ret = stpcpy(ret, " | ");
	}
	spec_utf8_clean(ret, text, "");
}

static void diag_append(const char *line, size_t len)
{
	char c = '\n';

	lock_scope(&diag_lock);
	while (diag_len > 0 && (DIAG_RING - diag_len < len || c != '\n')) {
		c = diag_ring[diag_start];
		diag_start = (diag_start + 1) % DIAG_RING;
		diag_len--;
	}
	for (size_t i = 0; i < len; i++)
		diag_ring[(diag_start + diag_len + i) % DIAG_RING] = line[i];
	diag_len += len;
}

void diag(enum diag_level level, const char *fmt, ...)
{
	int saved = errno;
	char message[DIAG_MESSAGE];
	char text[4 * DIAG_MESSAGE + 1];
	char line[sizeof(text) + 64];
	struct timespec now;
	struct tm tm;
	va_list ap;
	int n;

	if ((int)level > atomic_load(&diag_level_max))
		return;
	va_start(ap, fmt);
	n = vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	if (n >= (int)sizeof(message))
		memcpy(message + sizeof(message) - 4, "...", 4);
	diag_escape(message, text);

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	n = (int)strftime(line, sizeof(line), "%Y-%m-%dT%H:%M:%S", &tm);
	n += snprintf(line + n, sizeof(line) - (size_t)n, ".%03ldZ %s %s\n", now.tv_nsec / 1000000,
		      diag_names[level], text);
	diag_append(line, (size_t)n);
	if (atomic_load(&diag_stderr))
		fprintf(stderr, "kxfs: %s\n", text);
	errno = saved;
}

char *diag_text(size_t *ret_len)
{
	char *text = mem_zero(DIAG_RING + 1);
	size_t head;

	lock_scope(&diag_lock);
	head = min_of(diag_len, DIAG_RING - diag_start);
	memcpy(text, diag_ring + diag_start, head);
	memcpy(text + head, diag_ring, diag_len - head);
	text[diag_len] = '\0';
	*ret_len = diag_len;
	return text;
}
