/* SPDX-License-Identifier: MIT */
/* Makes the text of `why`. Line breaks in untrusted texts become blanks. */
#include "spec/base/amount.h"
#include "spec/base/mem.h"
#include "spec/base/time.h"
#include "spec/base/utf8.h"
#include "spec/base/words.h"
#include "spec/job/status.h"

#define LOCAL_ID_LEN 64

/* `why` cuts longer messages; `status` has the whole message. */
#define MESSAGE_MAX 500
/* the number of SIGKILL on every system */
#define KILL 9
/* If all memory samples are below this (bytes), lack of memory probably did not end the replica. */
#define MUCH_MEMORY (INT64_C(64) << 20)
/* `why` lists at most this many ranges of replicas; `status` has all replicas. */
#define MAX_RANGES 50

/* Print W on the current line. Cut a long text. */
static void put_words(FILE *out, struct spec_words w)
{
	for (size_t i = 0; i < w.n; i++) {
		unsigned char c = (unsigned char)w.p[i];

		if (i >= MESSAGE_MAX && (c & 0xc0) != 0x80) {
			fputs(" ...", out);
			return;
		}
		fputc(c < 0x20 || c == 0x7f ? ' ' : c, out);
	}
}

static void put_clean(FILE *out, const char *text)
{
	put_words(out, (struct spec_words){text, strlen(text)});
}

/* Print W as the end of a sentence, with a full stop unless W ends with one. */
static void put_words_end(FILE *out, struct spec_words w)
{
	put_words(out, w);
	if (w.n == 0 || (w.n <= MESSAGE_MAX && !strchr(".!?", w.p[w.n - 1])))
		fputc('.', out);
}

static void put_end(FILE *out, const char *text)
{
	put_words_end(out, (struct spec_words){text, strlen(text)});
}

/* --- a replica that failed --- */

static void put_signal(FILE *out, int signal)
{
	const char *name = sigabbrev_np(signal);

	fprintf(out, "signal %d", signal);
	if (name)
		fprintf(out, " (SIG%s)", name);
	if (streq(name, "KILL"))
		fputs(", which the kernel also sends when memory runs out", out);
}

/* Print "ended with exit code 3", and the usual meaning of the code. */
static void put_code(FILE *out, int code)
{
	int signal = code - 128;

	fprintf(out, "ended with exit code %d%s", code,
		code == 126   ? " (in a shell: a command can't be executed)"
		: code == 127 ? " (in a shell: a command was not found)"
			      : "");
	if (signal > 0 && signal < 32 && sigabbrev_np(signal)) {
		fputs(", which means ", out);
		put_signal(out, signal);
	}
}

/* True if, according to R's reason, the program exited by itself. */
static bool is_own_end(const struct spec_replica *r)
{
	return !*r->reason || streq(r->reason, "Error") || streq(r->reason, "Signal") ||
	       streq(r->reason, "CrashLoopBackOff") || streq(r->reason, "Completed");
}

/* Print "WHAT (REASON): MESSAGE." */
static void put_trouble(FILE *out, const char *what, const struct spec_replica *r)
{
	fputs(what, out);
	if (*r->reason && *r->message && !streq(r->reason, "Error")) {
		fputs(" (", out);
		put_clean(out, r->reason);
		fputc(')', out);
	}
	fputs(": ", out);
	put_end(out, *r->message ? r->message : r->reason);
}

/* True if MESSAGE names a program with a blank in its name, as in exec: "python train.py": ... */
static bool has_blank(const char *message)
{
	const struct spec_words program = spec_words_program(message);

	return program.n > 0 && memchr(program.p, ' ', program.n);
}

/* Print what to do if a program of ROLE could not be started. */
static void put_start_hint(FILE *out, const char *role, const char *message)
{
	if (strcasestr(message, "argument list too long")) {
		fputs(" The args and env of role ", out);
		put_clean(out, role);
		fputs(" are longer than the system allows: put long values into a file.", out);
		return;
	}
	/* "its ...": the message is about the output or the helper process of a local replica. */
	if (strncmp(message, "its ", strlen("its ")) == 0) {
		fputs(" The program did not cause this: fix the problem, then submit the file "
		      "again.",
		      out);
		return;
	}
	fputs(" Check the entrypoint of role ", out);
	put_clean(out, role);
	fputs(has_blank(message)
		      ? ": it must be only a program, and the program's arguments belong in "
			"args."
		      : ": it must be a program in PATH or the path of an executable file.",
	      out);
}

/* If R may have been killed for lack of memory, print its largest memory sample. */
static void put_seen(FILE *out, const struct spec_replica *r)
{
	bool for_memory = streq(r->reason, "OOMKilled") || r->signal == KILL ||
			  (r->exit_code == 128 + KILL && is_own_end(r));

	if (!for_memory || *r->blamed || !r->usage || r->usage->memory_peak < MUCH_MEMORY)
		return;
	fputs(" kxfs measured up to ", out);
	spec_amount_print(out, "memory", (double)r->usage->memory_peak);
	fputs(" of memory.", out);
}

static void put_failure(FILE *out, const struct spec_job *job, const struct spec_replica *r)
{
	const struct spec_request *given = job->roles[r->role].request;
	char limit[24];

	if (streq(r->reason, "StartError")) {
		fputs(" could not be started: ", out);
		put_words_end(out, spec_words_start(r->message));
		if (strncmp(r->message, "working directory", strlen("working directory")) == 0)
			return;
		put_start_hint(out, job->roles[r->role].name, r->message);
	} else if (streq(r->reason, "OOMKilled")) {
		fputs(" was killed because it used more memory than its limit", out);
		if (given && given->memory_limit > 0 && !*r->blamed) {
			fputs(" of ", out);
			spec_amount_print(out, "memory", (double)given->memory_limit);
		}
		fputs(". Role ", out);
		put_clean(out, job->roles[r->role].name);
		fputs(" must request more memory, or use less.", out);
	} else if (streq(r->reason, "DeadlineExceeded")) {
		spec_time_span_text(job->time_limit, limit);
		fprintf(out, " ran longer than its time limit%s%s.", job->time_limit ? " of " : "",
			job->time_limit ? limit : "");
	} else if (streq(r->reason, "OutputLost")) {
		fputs(" failed: ", out);
		put_end(out, r->message);
	} else if (streq(r->reason, SPEC_REASON_PROBE)) {
		fputs(" was terminated because its probe failed: ", out);
		put_end(out, r->message);
	} else if (r->signal) {
		fputs(" was killed by ", out);
		put_signal(out, r->signal);
		fputc('.', out);
	} else if (r->exit_code > 0 && is_own_end(r)) {
		fputc(' ', out);
		put_code(out, r->exit_code);
		fputc('.', out);
	} else {
		put_trouble(out, " failed", r);
	}
	put_seen(out, r);
}

/* Print how often the job was retried. AGAIN is true if the job will be retried once more. */
static void put_retries(FILE *out, const struct spec_job *job, bool again)
{
	bool none = job->max_retries == 0 && job->retries == 0;
	bool unknown = job->uncounted;

	/* Some retries are not counted: a RayJob does not count those of its submitter pod. */
	for (size_t i = 0; none && i < job->n_replicas; i++)
		unknown |= job->replicas[i].attempt > 0;
	if (unknown && job->retries == 0)
		return;
	if (none && !again)
		fputs(" There was no retry, because max_retries is 0.", out);
	else if (!none)
		fprintf(out, " Retries used: %u; max_retries is %u.", job->retries,
			job->max_retries);
}

/* Print that a rule of the job's podFailurePolicy forbids a retry of R. */
static void put_policy(FILE *out, const struct spec_job *job, const struct spec_replica *r)
{
	static const char key[] = " rule at index ";
	const char *rule = strstr(job->message, key);

	if (job->retries > 0)
		put_retries(out, job, false);
	if (!rule || !strstr(job->message, r->pod)) {
		fputs(" The job was not retried: ", out);
		put_end(out, job->message);
		return;
	}
	rule += strlen(key);
	fprintf(out,
		" The job was not retried, because rule %.*s of its podFailurePolicy forbids "
		"retries.",
		(int)strspn(rule, "0123456789"), rule);
}

/* Print where to find the output of R, or of the container that ended it. */
static void put_output(FILE *out, const struct spec_job *job, const struct spec_replica *r)
{
	bool readable = !job->no_logs;
	/* true if the kubelet restarted the failed container, and stopped it later */
	bool stopped = r->state == SPEC_FAILED && r->starts > 0;
	size_t n = 0;

	for (size_t i = 0; i < r->n_logs; i++) {
		n += streq(r->logs[i].container, r->blamed);
		readable |= streq(r->logs[i].container, r->blamed) && r->logs[i].complete;
	}
	fputs(*r->blamed ? " The output of that container is in " : " Its output is in ", out);
	put_clean(out, r->name);
	fputc('/', out);
	put_clean(out, r->blamed);
	fputs(*r->blamed ? ".log" : "log", out);
	if (stopped && n > 1)
		fprintf(out, ".%zu", n - 2);
	fputs(readable ? "."
		       : ". This log has only what kxfs has captured, because this user has no "
			 "right to get pods/log.",
	      out);
}

static bool is_explained(const struct spec_replica *r)
{
	return r->exit_code > 0 || r->signal || (*r->reason && *r->message) ||
	       streq(r->reason, "StartError");
}

/*
 * Return the replica that ended last with a nonzero exit code. If there is none, return the replica
 * that ended last; NULL if none has ended.
 */
static const struct spec_replica *last_ended(const struct spec_job *job)
{
	const struct spec_replica *ret = NULL;

	for (size_t i = 0; i < job->n_replicas; i++) {
		const struct spec_replica *r = &job->replicas[i];

		if (r->exit_code < 0)
			continue;
		if (!ret || (r->exit_code > 0) > (ret->exit_code > 0) ||
		    ((r->exit_code > 0) == (ret->exit_code > 0) && r->finished > ret->finished))
			ret = r;
	}
	return ret;
}

/*
 * If N > 1, print the number N of failed replicas. If the job has only one role, also list the
 * failed replicas: 1, 4-6.
 */
static void put_failed(FILE *out, const struct spec_job *job, size_t n)
{
	const char *mark = ": ";
	unsigned ranges = 0;

	if (n < 2)
		return;
	fprintf(out, " It was the first of %zu failed replicas", n);
	for (size_t i = 0, end; job->n_roles == 1 && i < job->n_replicas; i = end + 1) {
		for (end = i; end < job->n_replicas && job->replicas[end].state == SPEC_FAILED;)
			end++;
		if (end == i)
			continue;
		if (ranges++ == MAX_RANGES) {
			fputs(", ...", out);
			break;
		}
		fprintf(out, "%s%u", mark, job->replicas[i].id);
		if (end > i + 1)
			fprintf(out, "-%u", job->replicas[end - 1].id);
		mark = ", ";
	}
	fputc('.', out);
}

static void why_failed(FILE *out, const struct spec_job *job)
{
	size_t n;
	const struct spec_replica *r = spec_job_first_failed(job, &n);

	if (job->given_up) {
		put_end(out, job->message);
		return;
	}
	/* If no replica has failed, a policy in the job's spec made the job fail. */
	if (!r && streq(job->reason, job->phase) && !streq(job->phase, "Terminated") &&
	    last_ended(job)) {
		r = last_ended(job);
		fputs("The job failed because of a policy in its own spec. ", out);
		put_clean(out, r->name);
		fputc(' ', out);
		put_code(out, r->exit_code);
		fputc('.', out);
		put_retries(out, job, false);
		put_output(out, job, r);
		return;
	}
	if (!r || !is_explained(r) || job->exact || streq(job->phase, "Terminated")) {
		fputs(streq(job->phase, "Terminated") ? "The job was ended: " : "The job failed: ",
		      out);
		put_end(out, *job->message ? job->message : job->reason);
		return;
	}
	put_clean(out, r->name);
	put_failure(out, job, r);
	put_failed(out, job, n);
	if (streq(job->reason, SPEC_REASON_FAILURE_POLICY))
		put_policy(out, job, r);
	else
		put_retries(out, job, false);
	if (*job->again)
		fprintf(out, " %s", job->again);
	if (job->silent && !streq(r->reason, "OutputLost"))
		fputs(*r->blamed ? " The container has printed nothing."
				 : " The replica has printed nothing.",
		      out);
	else if (*r->blamed || r->started)
		put_output(out, job, r);
}

/* --- jobs that have not failed --- */

/* Print how to resume a suspended job, if this action is possible now and in ALLOWED. */
static void put_resume(FILE *out, const struct spec_job *job, unsigned allowed)
{
	unsigned actions = job->actions & allowed;

	if (actions & 1u << SPEC_RESUME)
		fprintf(out,
			" To resume the job, write \"resume\" to its file ctl; to end the job, "
			"%sremove its directory.",
			actions & 1u << SPEC_TERMINATE ? "write \"terminate\" there or " : "");
}

static void put_cause(FILE *out, const struct spec_job *job, unsigned allowed)
{
	if (!job->cause.of_replica)
		fputs(strncmp(job->cause.text, "waits ", 6) == 0 ? "The job "
		      : job->cause.stops			 ? "The job is being stopped: "
		      : job->suspended				 ? "The job is suspended: "
		      : job->state == SPEC_RUNNING		 ? "Part of the job does not run: "
								 : "The job waits: ",
		      out);
	put_end(out, job->cause.text);
	if (job->queue_position)
		fprintf(out, " Its position in the queue is %u.", job->queue_position);
	if (*job->cause.advice)
		fprintf(out, " %s", job->cause.advice);
	if (job->actions & allowed & 1u << SPEC_RELEASE)
		fputs(job->state == SPEC_SUBMITTED
			      ? " To send the job again, write \"release\" to its file ctl; to "
				"discard the job, remove its directory."
			      : " To release the job, write \"release\" to its file ctl.",
		      out);
	if (job->suspended || job->cause.stops)
		put_resume(out, job, allowed);
}

static void why_cancelled(FILE *out, const struct spec_job *job, unsigned allowed)
{
	if (job->suspended && *job->cause.reason) {
		put_cause(out, job, allowed);
		return;
	}
	if (job->suspended) {
		fputs("The job is suspended.", out);
		put_resume(out, job, allowed);
		return;
	}
	fputs("The job was cancelled", out);
	if (*job->message) {
		fputs(": ", out);
		put_end(out, job->message);
	} else {
		fputc('.', out);
	}
}

/*
 * If IMAGE is "REPO:ID", and ID is the hexadecimal id of a local Docker image, return ID. Otherwise
 * return "".
 */
static struct spec_words local_id(struct spec_words image)
{
	const char *id;

	if (image.n < LOCAL_ID_LEN + 2)
		return (struct spec_words){"", 0};
	id = image.p + image.n - LOCAL_ID_LEN;
	if (id[-1] != ':' || strspn(id, "0123456789abcdef") < LOCAL_ID_LEN ||
	    memmem(image.p, image.n, "@sha256:", strlen("@sha256:")))
		return (struct spec_words){"", 0};
	return (struct spec_words){id, LOCAL_ID_LEN};
}

static void put_pull(FILE *out, const struct spec_replica *r)
{
	const struct spec_words image = spec_words_image(r->message);
	const struct spec_words id = local_id(image);
	struct spec_words why = spec_words_pull(r->message);

	if (image.n == 0 && why.n == 0)
		why = (struct spec_words){r->message, strlen(r->message)};
	fputs(" can't start: its image", out);
	if (image.n > 0) {
		fputc(' ', out);
		put_words(out, image);
	}
	fputs(" can't be pulled", out);
	if (why.n > 0) {
		fputs(": ", out);
		put_words(out, why);
	}
	if (id.n == 0) {
		fputs(". Check the image's name and tag, and that the cluster's nodes may pull it.",
		      out);
		return;
	}
	fputs(". The image is only in the Docker of one machine; push it from there: docker tag "
	      "sha256:",
	      out);
	put_words(out, id);
	fputc(' ', out);
	put_words(out, image);
	fputs(" && docker push ", out);
	put_words(out, image);
}

/* End a sentence about a replica that waits. If the attempt has a time limit, mention it. */
static void put_abandoning(FILE *out, const struct spec_job *job)
{
	fputs(job->impatient ? ", if this happens soon: the current attempt times out after "
			       "some minutes."
			     : ".",
	      out);
}

static void put_unschedulable(FILE *out, const struct spec_job *job, const struct spec_replica *r)
{
	const struct spec_words claim = spec_words_claim(r->message);

	if (claim.n > 0) {
		fputs(" can't start: there is no persistent volume claim ", out);
		put_words(out, claim);
		fputs(" in namespace ", out);
		put_clean(out, job->namespace);
		fputs(". It starts automatically when the claim exists", out);
		put_abandoning(out, job);
		return;
	}
	if (spec_words_is_beside_gang(r->message)) {
		fputs(" waits for capacity while other replicas run. It starts automatically "
		      "when capacity becomes available.",
		      out);
		return;
	}
	fputs(" fits on no node: ", out);
	put_words_end(out, spec_words_unschedulable(r->message));
}

/* Print why R has not started. N replicas wait for the same reason. */
static void put_waiting(FILE *out, const struct spec_job *job, const struct spec_replica *r,
			size_t n)
{
	put_clean(out, r->name);
	if (streq(r->reason, "StartDelayed")) {
		fputs(" can't be started yet (kxfs retries): ", out);
		put_end(out, r->message);
	} else if (spec_words_is_pull(r->reason)) {
		put_pull(out, r);
	} else if (streq(r->reason, "Unschedulable")) {
		put_unschedulable(out, job, r);
	} else if (streq(r->reason, "CreateContainerConfigError")) {
		fputs(" can't start: ", out);
		put_end(out, r->message);
		fputs(" The replica starts automatically when this problem is fixed", out);
		put_abandoning(out, job);
	} else {
		put_trouble(out, " can't start yet", r);
	}
	if (n > 1)
		fprintf(out, " It is the first of %zu replicas that wait for the same reason.", n);
}

/* Print that a container of R fails repeatedly, and that the kubelet restarts it. */
static void put_loop(FILE *out, const struct spec_job *job, const struct spec_replica *r)
{
	char time[32];

	put_clean(out, r->name);
	fputc(' ', out);
	if (*r->blamed) {
		fputs("can't start: its container ", out);
		put_clean(out, r->blamed);
		fputc(' ', out);
	}
	put_code(out, r->last_code);
	fprintf(out, ". It has been started %u time%s so far, and the kubelet restarts it",
		r->starts, r->starts == 1 ? "" : "s");
	spec_time_text(r->next, time);
	if (*time)
		fprintf(out, " at %s.", time);
	else
		fputs(" automatically.", out);
	put_output(out, job, r);
}

char *spec_status_obstacle(const struct spec_job *job)
{
	const struct spec_replica *r = spec_job_first_waiting(job, NULL);
	char *ret = NULL;
	size_t len;
	FILE *out;

	if (!r)
		return text_copy("");
	out = text_stream(&ret, &len);
	if (r->starts > 0) {
		put_clean(out, r->name);
		fputc(' ', out);
		put_code(out, r->last_code);
		fputc('.', out);
	} else {
		put_waiting(out, job, r, 1);
	}
	text_stream_close(out);
	return ret;
}

static void why_unfinished(FILE *out, const struct spec_job *job, unsigned allowed)
{
	size_t n;
	const struct spec_replica *r = spec_job_first_waiting(job, &n), *failed;
	bool caused = *job->cause.reason;
	size_t n_failed;

	failed = spec_job_first_failed(job, &n_failed);
	/* Begin with why the job waits now: the failure may be from an earlier attempt. */
	if (caused)
		put_cause(out, job, allowed);
	if (failed) {
		fputs(caused ? " Before that, " : "", out);
		put_clean(out, failed->name);
		put_failure(out, job, failed);
		put_failed(out, job, n_failed);
		put_retries(out, job, caused);
		if (*job->again)
			fprintf(out, " %s", job->again);
	} else if (caused) {
		return;
	} else if (r && r->starts > 0) {
		put_loop(out, job, r);
	} else if (r && ((r->exit_code < 0 && !r->signal) || streq(r->reason, "StartDelayed"))) {
		put_waiting(out, job, r, n);
	} else if (r) {
		put_clean(out, r->name);
		put_failure(out, job, r);
		fputs(" It will be restarted soon.", out);
		put_retries(out, job, true);
	} else if (*job->message && job->state != SPEC_RUNNING) {
		put_end(out, job->message);
	}
}

/* Separate the next sentence from earlier text: by a newline after last words, else by a blank. */
static void put_gap(FILE *out, const struct spec_job *job)
{
	if (ftell(out) > 0)
		fputc(job->state == SPEC_FAILED && *job->last_words ? '\n' : ' ', out);
}

/* Print that output of the job can't be written to the disk now. */
static void put_disk(FILE *out, const struct spec_job *job)
{
	const struct spec_replica *first = NULL;
	size_t n = 0;
	int err = 0;

	for (size_t i = 0; i < job->n_replicas; i++) {
		const struct spec_replica *r = &job->replicas[i];
		size_t j = 0;

		while (j < r->n_logs && !r->logs[j].disk)
			j++;
		if (j < r->n_logs && n++ == 0) {
			first = r;
			err = r->logs[j].disk;
		}
	}
	if (!first)
		return;
	put_gap(out, job);
	fputs("The output of ", out);
	put_clean(out, first->name);
	if (n > 1)
		fprintf(out, " and of %zu more", n - 1);
	fprintf(out,
		" can't be written to the state directory: %s. kxfs retries "
		"automatically, but output that the cluster removes meanwhile "
		"is lost.",
		strerror(err));
}

/* Print why logs of a finished job in a cluster may be incomplete. */
static void put_behind(FILE *out, const struct spec_job *job)
{
	size_t n_late = 0, n_running = 0;

	for (size_t i = 0; i < job->n_replicas; i++) {
		const struct spec_replica *r = &job->replicas[i];
		size_t n = 0;

		for (size_t j = 0; j < r->n_logs; j++)
			n += r->logs[j].waiting && !r->logs[j].disk;
		if (r->state == SPEC_RUNNING)
			n_running += n > 0;
		else
			n_late += n;
	}
	if (!job->behind || n_late + n_running == 0)
		return;
	put_gap(out, job);
	if (n_running > 0)
		fprintf(out, "%zu pod%s of the job still run%s, and kxfs captures what %s.%s",
			n_running, n_running > 1 ? "s" : "", n_running > 1 ? "" : "s",
			n_running > 1 ? "they print" : "it prints", n_late > 0 ? " " : "");
	if (n_late > 0)
		fprintf(out, "kxfs has not fetched the end of %zu log%s from the cluster yet.",
			n_late, n_late > 1 ? "s" : "");
}

void spec_status_why(const struct spec_job *job, unsigned allowed, char **ret, size_t *ret_len)
{
	cleanup_free char *text = NULL;
	FILE *out = text_stream(&text, ret_len);

	if (job->state == SPEC_FAILED) {
		why_failed(out, job);
		if (*job->last_words)
			fputs(" Its last output:\n    ", out);
		for (const char *p = job->last_words; *p; p++) {
			fputc(*p, out);
			if (*p == '\n')
				fputs("    ", out);
		}
	} else if (job->state == SPEC_CANCELLED)
		why_cancelled(out, job, allowed);
	else if (job->state != SPEC_SUCCEEDED)
		why_unfinished(out, job, allowed);
	else if (streq(job->reason, "OutputLost"))
		put_end(out, job->message);
	put_disk(out, job);
	put_behind(out, job);
	if (ftell(out) > 0)
		fputc('\n', out);
	text_stream_close(out);
	*ret = spec_utf8_is_clean(text, "\n\t") ? take_ptr(text)
						: spec_utf8_clean_copy(text, "\n\t");
	*ret_len = strlen(*ret);
}
