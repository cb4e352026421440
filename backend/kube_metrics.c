/* SPDX-License-Identifier: MIT */
/*
 * A cluster's part of .kxfs/metrics. Any thread: all is read from counters that never wait.
 */
#include "backend/kube.h"
#include "backend/print.h"

static void print_answers(const struct http_counts *http, FILE *out)
{
	print_metric_head(out, "server_requests_total", "counter",
			  "Requests sent to the server, by the code of its answer");
	tally_print(http->answers, out, "server_requests_total",
		    (const char *const[]){"verb", "resource", "code"});
}

static void print_watches(const struct kube *k, FILE *out)
{
	print_metric_head(out, "watch_restarts_total", "counter",
			  "Watches that ended and were asked for anew, by why they ended");
	tally_print(&k->watch_ends, out, "watch_restarts_total",
		    (const char *const[]){"resource", "reason", NULL});
}

/* For how long what is shown has not been confirmed. */
static void print_unconfirmed(struct kube *k, FILE *out)
{
	int64_t since;

	{
		lock_scope(&k->lock);
		since = k->stale_since;
	}
	print_metric_head(out, "view_unconfirmed_seconds", "gauge",
			  "How long the cluster has not confirmed what is shown; 0 while it does");
	fprintf(out, "kxfs_view_unconfirmed_seconds %.3f\n",
		since ? (double)max_of(loop_time_ns() - since, (int64_t)0) / 1e9 : 0.0);
}

int kube_metrics(struct backend *b, FILE *out)
{
	struct kube *k = kube_of(b);
	struct http_counts http;

	http_count(k->http, &http);
	const struct print_metric metrics[] = {
		{"pods", "gauge", "Pods of the jobs in jobs/", atomic_load(&k->n_pods)},
		{"server_failures_total", "counter", "Requests that got no whole answer",
		 http.failed},
		{"server_retries_total", "counter", "Requests sent again", http.retried},
		{"server_connections", "gauge", "Connections to the server", http.connections},
		{"watch_events_total", "counter", "Objects that the server told of",
		 atomic_load(&k->n_events)},
		{"log_streams", "gauge", "Logs that are followed", atomic_load(&k->n_streams)},
		{"log_streams_waiting", "gauge", "Logs that wait for a stream",
		 atomic_load(&k->n_waiting)},
	};

	print_metrics(out, metrics, array_size(metrics));
	print_unconfirmed(k, out);
	print_answers(&http, out);
	print_watches(k, out);
	return ferror(out) ? -ENOMEM : 0;
}
