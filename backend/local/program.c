/* SPDX-License-Identifier: MIT */
/*
 * Makes the arguments, with expanded macros, and the environment, in which each variable occurs
 * once.
 */
#include "backend/local/program.h"

#include "spec/app/macro.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/record/turns.h"

/* Variables: the program's job; the host of rank 0 ($rank0_env names it); where TorchElastic writes its error. */
#define JOB_ID	   "TORCHX_JOB_ID"
#define RANK0	   "TORCHX_RANK0_HOST"
#define ERROR_FILE "TORCHELASTIC_ERROR_FILE"

struct program_strings {
	char **v; /* NULL-terminated */
	size_t n;
};

/* Append TEXT, which is taken over. */
static void add(struct program_strings *s, char *text)
{
	s->v = mem_more(s->v, s->n + 1, sizeof(*s->v));
	s->v[s->n++] = text;
	s->v[s->n] = NULL;
}

static char *expand(const char *text, const struct spec_macros *m)
{
	char *ret = spec_macro_expand(text, m);

	if (!ret)
		mem_out();
	return ret;
}

static size_t key_len(const char *pair)
{
	return strcspn(pair, "=");
}

/* One setting of a variable, and its position; the last setting counts. */
struct setting {
	char *pair;
	size_t order;
};

static int by_key_and_order(const void *a, const void *b)
{
	const struct setting *x = a, *y = b;
	size_t nx = key_len(x->pair), ny = key_len(y->pair);
	int cmp = memcmp(x->pair, y->pair, min_of(nx, ny));

	if (cmp != 0)
		return cmp;
	if (nx != ny)
		return nx < ny ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

/* Keep only the last setting of each variable. */
static void make_unique(struct program_strings *s)
{
	cleanup_free struct setting *all = new0_n(struct setting, s->n);
	size_t kept = 0;

	for (size_t i = 0; i < s->n; i++)
		all[i] = (struct setting){s->v[i], i};
	qsort(all, s->n, sizeof(*all), by_key_and_order);
	for (size_t i = 0; i < s->n; i++) {
		size_t len = key_len(all[i].pair);

		if (i + 1 < s->n && key_len(all[i + 1].pair) == len &&
		    memcmp(all[i].pair, all[i + 1].pair, len) == 0)
			free(all[i].pair);
		else
			s->v[kept++] = all[i].pair;
	}
	s->n = kept;
	s->v[kept] = NULL;
}

void program_make(struct program *p, const struct spec_record *rec, const struct spec_replica *rep,
		  const char *error_file)
{
	const struct spec_role *role = &rec->app->roles[rep->role];
	cleanup_free char *id = text_print("%u", rep->id);
	struct program_strings args = {0}, env = {0};
	bool has_handle = false;
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
		add(&env, text_copy(*e));
	add(&env, text_print(ERROR_FILE "=%s", error_file));
	for (size_t i = 0; i < role->env.n; i++) {
		cleanup_free char *value = expand(role->env.v[i].value, &m);

		add(&env, text_print("%s=%s", role->env.v[i].key, value));
		has_handle |= streq(role->env.v[i].key, JOB_ID) && spec_name_is_handle(value);
	}
	if (!has_handle)
		add(&env, text_print(JOB_ID "=kxfs://torchx/%s", rec->job->id));
	add(&env, text_copy(RANK0 "=localhost"));
	add(&env, text_print("KXFS_JOB=%s", rec->job->id));
	add(&env, text_print("KXFS_REPLICA=%s", rep->name));
	if (rep->gpus) {
		cleanup_free char *numbers = spec_turns_numbers(rep->gpus);

		/*
		 * For NVIDIA's and AMD's libraries. ROCR_VISIBLE_DEVICES must not be set as well:
		 * the numbers in HIP_VISIBLE_DEVICES count only the devices that it leaves.
		 */
		add(&env, text_print("CUDA_VISIBLE_DEVICES=%s", numbers));
		add(&env, text_print("HIP_VISIBLE_DEVICES=%s", numbers));
	}
	make_unique(&env);
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
