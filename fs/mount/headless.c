/* SPDX-License-Identifier: MIT */
/* A semaphore on which the main thread waits, and a timer that makes the pool write the metrics. */
#include "fs/mount/headless.h"

#include <errno.h>
#include <semaphore.h>

#include "backend/base/diag.h"
#include "backend/base/file.h"
#include "backend/base/work.h"
#include "spec/base/mem.h"

#define METRICS_MS   15000
#define METRICS_FILE "metrics"

struct headless {
	struct backend *backend;
	const char *state_dir;
	struct loop *loop;
	sem_t over;
	/* I/O thread: */
	struct loop_timer timer;
	struct work metrics;
	/* The last reported error of writing the metrics, or 0. */
	int reported;
};

static void metrics_run(void *data)
{
	struct headless *h = data;
	cleanup_free char *text = NULL;
	size_t len;
	FILE *out = text_stream(&text, &len);

	backend_metrics(h->backend, out);
	text_stream_close(out);
	h->metrics.err = file_write(h->state_dir, METRICS_FILE, text, len);
}

static void metrics_done(void *data)
{
	struct headless *h = data;

	if (h->metrics.err && h->metrics.err != h->reported)
		diag(DIAG_WARNING, "%s/" METRICS_FILE ": %s", h->state_dir,
		     strerror(-h->metrics.err));
	h->reported = h->metrics.err;
	loop_timer_set(&h->timer, METRICS_MS);
}

static void on_timer(void *data)
{
	struct headless *h = data;

	work_start(&h->metrics, h->loop);
}

struct headless *headless_new(struct loop *loop, struct backend *b, const char *state_dir)
{
	struct headless *h = new0(struct headless);

	h->backend = b;
	h->state_dir = state_dir;
	h->loop = loop;
	sem_init(&h->over, 0, 0);
	loop_timer_init(&h->timer, loop, on_timer, h);
	h->metrics = (struct work){.run = metrics_run, .done = metrics_done, .data = h};
	return h;
}

void headless_serve(struct headless *h)
{
	loop_post(h->loop, on_timer, h);
	while (sem_wait(&h->over) < 0 && errno == EINTR)
		;
}

void headless_stop(struct headless *h)
{
	sem_post(&h->over);
}

void headless_free(struct headless *h)
{
	if (!h)
		return;
	sem_destroy(&h->over);
	free(h);
}
