/* SPDX-License-Identifier: MIT */
/*
 * .kxfs/metrics as far as it is the same for all backends: what is in the store and in the spool, and the
 * requests of fs/. The implementation adds its own.
 */
#include <inttypes.h>

#include "backend/impl.h"
#include "backend/print.h"

static int print_jobs(struct backend *b, FILE *out)
{
	size_t count[SPEC_N_STATES] = {0};
	const struct spec_job **jobs cleanup_free = NULL;
	size_t n;
	int err = store_list(b->store, BACKEND_JOBS, &jobs, &n);

	if (err < 0)
		return err;
	for (size_t i = 0; i < n; i++) {
		count[jobs[i]->state]++;
		spec_job_unref(jobs[i]);
	}
	print_metric_head(out, "jobs", "gauge", "Jobs in jobs/ by state");
	for (size_t i = 0; i < SPEC_N_STATES; i++)
		fprintf(out, "kxfs_jobs{state=\"%s\"} %zu\n", spec_state_name((enum spec_state)i),
			count[i]);
	return 0;
}

static void print_requests(struct backend *b, FILE *out)
{
	static const char *const results[] = {"ok", "error"};

	print_metric_head(out, "requests_total", "counter",
			  "Submissions, cancellations and so on that were answered");
	for (size_t i = 0; i < BACKEND_N_REQUESTS; i++)
		for (size_t r = 0; r < array_size(results); r++)
			fprintf(out,
				"kxfs_requests_total{request=\"%s\",result=\"%s\"} %" PRIu64 "\n",
				request_name((enum backend_request_kind)i), results[r],
				(uint64_t)atomic_load(&b->answered[i][r]));
}

int backend_metrics(struct backend *b, FILE *out)
{
	uint64_t bytes, lines;
	int err = print_jobs(b, out);

	if (err < 0)
		return err;
	spool_captured(b->spool, &bytes, &lines);
	const struct print_metric metrics[] = {
		{"history_jobs", "gauge", "Jobs in history/",
		 store_count(b->store, BACKEND_HISTORY)},
		{"captured_bytes_total", "counter", "Bytes of output that were captured", bytes},
		{"captured_lines_total", "counter", "Lines of them", lines},
		{"spool_bytes", "gauge", "Output of jobs on disk", spool_bytes(b->spool)},
		{"spool_limit_bytes", "gauge", "Limit of kxfs_spool_bytes", b->config.spool_limit},
	};
	print_metrics(out, metrics, array_size(metrics));
	print_requests(b, out);
	return b->ops->metrics(b, out);
}
