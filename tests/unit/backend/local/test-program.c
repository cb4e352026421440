/* SPDX-License-Identifier: MIT */
/* The environment of a program, and the texts for how attempts ended. */
#include <errno.h>

#include "backend/local/program.h"
#include "spec/base/mem.h"
#include "tests/unit/spec/app-document.h"
#include "tests/unit/unit.h"

static struct spec_record *rec;

static int setup(void **state)
{
	static const char text[] = "name: j\n"
				   "roles:\n"
				   "- name: r\n"
				   "  image: i\n"
				   "  entrypoint: e\n"
				   "  env:\n"
				   "    A: 3\n"
				   "    COST: $$5\n"
				   "    HERE: ${app_id}-${replica_id}\n"
				   "    RANK0: ${rank0_env}\n"
				   "    ROOT: '[$img_root]'\n"
				   "    OLD: $base_img_root\n"
				   "    TORCHX_RANK0_HOST: elsewhere\n";
	const struct spec_record_origin origin = {.id = "j",
						  .ttl = -1,
						  .uid = "u",
						  .work_dir = "/w"};
	cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
	struct spec_app *app = NULL;

	assert_int_equal(document_parse(text, strlen(text), NULL, &app, &e), 0);
	rec = spec_record_new(app, &origin);
	rec->job->time_limit = 5400;
	spec_set(&rec->fault, "app.yaml is not what was submitted");
	return 0;
}

static int teardown(void **state)
{
	spec_record_free(rec);
	return 0;
}

/*
 * A program gets each variable once, even if the daemon has it twice. The last setting wins. The
 * role's settings win over the daemon's, and those of kxfs over all. Macros are expanded.
 */
static void test_environment(void **state)
{
	static const char *const inherited[] = {"A=1",	      "B=1",	    "A=2", "B=2",
						"KXFS_JOB=1", "KXFS_JOB=2", NULL};
	char **before = environ, all[512] = "";
	struct program program;

	environ = (char **)(uintptr_t)inherited;
	program_make(&program, rec, &rec->job->replicas[0], "/f");
	environ = before;
	for (char **pair = program.env; *pair; pair++)
		strcat(strcat(all, *pair), "\n");
	program_clear(&program);
	assert_string_equal(all, "A=3\n"
				 "B=2\n"
				 "KXFS_JOB=j\n"
				 "PWD=/w\n"
				 "TORCHELASTIC_ERROR_FILE=/f\n"
				 "COST=$5\n"
				 "HERE=j-0\n"
				 "RANK0=TORCHX_RANK0_HOST\n"
				 "ROOT=[]\n"
				 "OLD=DEPRECATED\n"
				 "TORCHX_RANK0_HOST=localhost\n"
				 "TORCHX_JOB_ID=kxfs://torchx/j\n"
				 "KXFS_REPLICA=r-0\n");
}

static void expect_end(const struct task_end *end, const char *reason, const char *text)
{
	cleanup_free char *found = program_end_text(rec, &rec->job->replicas[0], end);

	assert_string_equal(found, text);
	assert_string_equal(program_end_reason(false, end), reason);
}

static void test_ended(void **state)
{
	static const struct {
		struct task_end end;
		const char *reason, *text;
	} table[] = {
		{{.how = TASK_ENDED}, "Completed", ""},
		{{.how = TASK_ENDED, .exit_code = 3}, "Error", "exit code 3"},
		{{.how = TASK_ENDED, .sig = 9}, "Signal", "killed by signal 9 (SIGKILL)"},
		{{.how = TASK_ENDED, .sig = 35}, "Signal", "killed by signal 35"},
		{{.how = TASK_ENDED, .sig = 15, .err = ETIMEDOUT},
		 "DeadlineExceeded",
		 "ran longer than its time limit of 90m"},
		{{.how = TASK_KILLED},
		 "HelperKilled",
		 "the helper process of kxfs that ran the program was killed"},
		{{.how = TASK_KILLED, .sig = 9},
		 "HelperKilled",
		 "the helper process of kxfs that ran the program was killed by signal 9 "
		 "(SIGKILL)"},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		expect_end(&table[i].end, table[i].reason, table[i].text);
		assert_string_equal(program_end_reason(true, &table[i].end), "Restarting");
		assert_false(program_end_passes(&table[i].end));
	}
}

static void test_not_started(void **state)
{
	static const struct {
		enum task_why why;
		int err;
		const char *text;
	} table[] = {
		{TASK_HELPER, EACCES, "its helper process can't be started: Permission denied"},
		{TASK_OUTPUT, ENOSPC, "its output can't be stored: No space left on device"},
		{TASK_CWD, ENOENT, "working directory \"/w\": No such file or directory"},
		{TASK_EXEC, ENOEXEC, "exec: \"e\": Exec format error"},
		{TASK_SEARCH, ENOENT, "exec: \"e\": not found in PATH"},
		{TASK_APP, 0, "app.yaml is not what was submitted"},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		const struct task_end end = {.why = table[i].why, .err = table[i].err};

		expect_end(&end, "StartError", table[i].text);
		assert_string_equal(program_end_reason(true, &end), "StartError");
		assert_false(program_end_passes(&end));
	}
}

/*
 * A temporary lack of resources does not make a start fail for good. An error of a program that was
 * running does.
 */
static void test_passes(void **state)
{
	static const int errors[] = {EAGAIN, ENOMEM, EMFILE, ENFILE, ENOBUFS};
	struct task_end end = {.how = TASK_NOT_STARTED, .why = TASK_HELPER};

	for (size_t i = 0; i < array_size(errors); i++) {
		end.err = errors[i];
		end.how = TASK_NOT_STARTED;
		assert_true(program_end_passes(&end));
		end.how = TASK_ENDED;
		assert_false(program_end_passes(&end));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_ended),
		cmocka_unit_test(test_not_started),
		cmocka_unit_test(test_passes),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
