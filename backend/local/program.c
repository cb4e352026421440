/* SPDX-License-Identifier: MIT */
/*
 * Expands macros in arguments and in a role's environment. If several environments set a variable,
 * the last setting wins.
 */
#include "backend/local/program.h"

#include <errno.h>
#include <signal.h>

#include "spec/app/app.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/base/time.h"
#include "spec/record/slots.h"

/*
 * Environment variables for the program. The variable RANK0 has the host of rank 0. The macro
 * rank0_env expands to the name of this variable. The variable ERROR_FILE has the path of the file
 * for TorchElastic's error.
 */
#define JOB_ID	   "TORCHX_JOB_ID"
#define RANK0	   "TORCHX_RANK0_HOST"
#define ERROR_FILE "TORCHELASTIC_ERROR_FILE"

struct program_strings {
	char **v; /* NULL-terminated */
	size_t n;
};

/* Append TEXT, and take ownership of it. */
static void add(struct program_strings *s, char *text)
{
	s->v = mem_more(s->v, s->n + 1, sizeof(*s->v));
	s->v[s->n++] = text;
	s->v[s->n] = NULL;
}

/* Append the setting PAIR, or replace the setting of the same variable among the first N. */
static void set(struct program_strings *s, size_t n, char *pair)
{
	size_t len = strcspn(pair, "=") + 1;

	for (size_t i = 0; i < n; i++)
		if (strncmp(s->v[i], pair, len) == 0) {
			free(s->v[i]);
			s->v[i] = pair;
			return;
		}
	add(s, pair);
}

static char *expand(const char *text, const struct spec_macros *m)
{
	char *ret = spec_macro_expand(text, m);

	if (!ret)
		mem_out();
	return ret;
}

/*
 * True if the variable KEY changes the numbers of GPUs. For a replica with GPUs, the role must not
 * set such a variable, so that a number means the same GPU for all jobs.
 */
static bool is_numbering(const char *key)
{
	return streq(key, "CUDA_DEVICE_ORDER") || streq(key, "ROCR_VISIBLE_DEVICES") ||
	       streq(key, "GPU_DEVICE_ORDINAL");
}

void program_make(struct program *p, const struct spec_record *rec, const struct spec_replica *rep,
		  const char *error_file)
{
	const struct spec_role *role = &rec->app->roles[rep->role];
	cleanup_free char *id = text_print("%u", rep->id);
	struct program_strings args = {0}, env = {0};
	bool has_handle = false;
	size_t others;
	const struct spec_macros m = {
		.app_id = rec->job->id,
		.replica_id = id,
		.img_root = "",
		.base_img_root = "DEPRECATED",
		.rank0_env = RANK0,
	};

	add(&args, text_copy(role->entrypoint));
	for (size_t i = 0; i < role->n_args; i++)
		add(&args, expand(role->args[i], &m));
	for (char **e = environ; *e; e++)
		set(&env, env.n, text_copy(*e));
	set(&env, env.n, text_print("PWD=%s", rec->work_dir));
	set(&env, env.n, text_print(ERROR_FILE "=%s", error_file));
	others = env.n; /* no need to search the role's settings: it sets no variable twice */
	for (size_t i = 0; i < role->env.n; i++) {
		cleanup_free char *value = expand(role->env.v[i].value, &m);

		if (rep->gpus && is_numbering(role->env.v[i].key))
			continue;
		set(&env, others, text_print("%s=%s", role->env.v[i].key, value));
		has_handle |= streq(role->env.v[i].key, JOB_ID) && spec_name_is_handle(value);
	}
	if (!has_handle)
		set(&env, env.n, text_print(JOB_ID "=kxfs://torchx/%s", rec->job->id));
	set(&env, env.n, text_copy(RANK0 "=localhost"));
	set(&env, env.n, text_print("KXFS_JOB=%s", rec->job->id));
	set(&env, env.n, text_print("KXFS_REPLICA=%s", rep->name));
	if (rep->gpus) {
		cleanup_free char *numbers = spec_slots_numbers(rep->gpus);

		/*
		 * Don't also set ROCR_VISIBLE_DEVICES. It would hide devices, and the numbers in
		 * HIP_VISIBLE_DEVICES would then count only the devices that are not hidden.
		 */
		set(&env, env.n, text_print("CUDA_VISIBLE_DEVICES=%s", numbers));
		set(&env, env.n, text_print("HIP_VISIBLE_DEVICES=%s", numbers));
	}
	*p = (struct program){args.v, env.v};
}

static void clear(char **v)
{
	for (char **text = v; text && *text; text++)
		free(*text);
	free(v);
}

void program_clear(struct program *p)
{
	clear(p->args);
	clear(p->env);
}

/* --- how an attempt ended --- */

/* Return why the program could not be started, and name the file. */
static char *why_not_started(const struct spec_record *rec, const struct spec_replica *rep,
			     const struct task_end *end)
{
	const char *entrypoint = rec->app ? rec->app->roles[rep->role].entrypoint : "";

	switch (end->why) {
	case TASK_APP:
		return text_copy(rec->fault);
	case TASK_OUTPUT:
		return text_print("its output can't be stored: %s", strerror(end->err));
	case TASK_CWD:
		return text_print("working directory \"%s\": %s", rec->work_dir,
				  strerror(end->err));
	case TASK_EXEC:
		return text_print("exec: \"%s\": %s", entrypoint, strerror(end->err));
	case TASK_SEARCH:
		return text_print("exec: \"%s\": not found in PATH", entrypoint);
	case TASK_HELPER:
		break;
	}
	return text_print("its helper process can't be started: %s", strerror(end->err));
}

char *program_end_text(const struct spec_record *rec, const struct spec_replica *rep,
		       const struct task_end *end)
{
	const char *sig = sigabbrev_np(end->sig);
	char name[32];

	snprintf(name, sizeof(name), "%d%s%s%s", end->sig, sig ? " (SIG" : "", sig ? sig : "",
		 sig ? ")" : "");
	if (end->how == TASK_NOT_STARTED)
		return why_not_started(rec, rep, end);
	if (end->how == TASK_KILLED && end->sig)
		return text_print("the helper process of kxfs that ran the program was killed by "
				  "signal %s",
				  name);
	if (end->how == TASK_KILLED)
		return text_copy("the helper process of kxfs that ran the program was killed");
	if (end->err == ETIMEDOUT) {
		spec_time_span_text(rec->job->time_limit, name);
		return text_print("ran longer than its time limit of %s", name);
	}
	if (end->sig)
		return text_print("killed by signal %s", name);
	return end->exit_code ? text_print("exit code %d", end->exit_code) : text_copy("");
}

const char *program_end_reason(bool again, const struct task_end *end)
{
	if (end->how == TASK_NOT_STARTED)
		return "StartError";
	if (again)
		return "Restarting";
	if (end->how == TASK_KILLED)
		return "HelperKilled";
	if (end->err == ETIMEDOUT)
		return "DeadlineExceeded";
	if (end->sig)
		return "Signal";
	return end->exit_code ? "Error" : "Completed";
}

bool program_end_passes(const struct task_end *end)
{
	return end->how == TASK_NOT_STARTED &&
	       (end->err == EAGAIN || end->err == ENOMEM || end->err == EMFILE ||
		end->err == ENFILE || end->err == ENOBUFS);
}
