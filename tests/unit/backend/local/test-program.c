/* SPDX-License-Identifier: MIT */
/* The environment of a program, and the texts for how attempts ended. */
#include <errno.h>

#include "backend/local/program.h"
#include "tests/unit/unit.h"

static size_t count_settings(char *const *env, const char *pair)
{
	size_t len = strcspn(pair, "=") + 1, n = 0;

	for (; *env; env++)
		if (strncmp(*env, pair, len) == 0) {
			assert_string_equal(*env, pair);
			n++;
		}
	return n;
}

/* A program gets each variable once, even if the daemon has it twice. The last setting wins. */
static void test_set_twice(void **state)
{
	static const char *const inherited[] = {"A=1",	      "B=1",	    "A=2", "B=2",
						"KXFS_JOB=1", "KXFS_JOB=2", NULL};
	struct spec_pair own = {.key = (char *)(uintptr_t) "A", .value = (char *)(uintptr_t) "3"};
	struct spec_role role = {.entrypoint = (char *)(uintptr_t) "e", .env = {&own, 1}};
	struct spec_app app = {.roles = &role, .n_roles = 1};
	struct spec_job job = {.id = (char *)(uintptr_t) "j"};
	const struct spec_record rec = {.job = &job,
					.app = &app,
					.work_dir = (char *)(uintptr_t) "/w"};
	const struct spec_replica rep = {.name = (char *)(uintptr_t) "r/0"};
	char **before = environ;
	struct program program;

	environ = (char **)(uintptr_t)inherited;
	program_make(&program, &rec, &rep, "/f");
	environ = before;
	assert_int_equal(count_settings(program.env, "A=3"), 1);
	assert_int_equal(count_settings(program.env, "B=2"), 1);
	assert_int_equal(count_settings(program.env, "KXFS_JOB=j"), 1);
	program_clear(&program);
}

static void test_outcomes(void **state)
{
	static const struct {
		struct task_end end;
		bool again;
		const char *reason, *text;
		bool passes;
	} table[] = {
		{{.how = TASK_ENDED}, false, "Completed", "", false},
		{{.how = TASK_ENDED, .exit_code = 3}, false, "Error", "exit code 3", false},
		{{.how = TASK_ENDED, .sig = 9},
		 false,
		 "Signal",
		 "killed by signal 9 (SIGKILL)",
		 false},
		{{.how = TASK_ENDED, .sig = 15, .err = ETIMEDOUT},
		 false,
		 "DeadlineExceeded",
		 "ran longer than its time limit of 90m",
		 false},
		{{.how = TASK_ENDED, .err = ETIMEDOUT},
		 true,
		 "Restarting",
		 "ran longer than its time limit of 90m",
		 false},
		{{.how = TASK_ENDED, .sig = 35}, false, "Signal", "killed by signal 35", false},
		{{.how = TASK_ENDED, .sig = 15},
		 true,
		 "Restarting",
		 "killed by signal 15 (SIGTERM)",
		 false},
		{{.how = TASK_KILLED},
		 false,
		 "HelperKilled",
		 "the helper process of kxfs that ran the program was killed",
		 false},
		{{.how = TASK_KILLED, .sig = 9},
		 false,
		 "HelperKilled",
		 "the helper process of kxfs that ran the program was killed by signal 9 (SIGKILL)",
		 false},
		{{.why = TASK_HELPER, .err = EAGAIN},
		 false,
		 "StartError",
		 "its helper process can't be started: Resource temporarily unavailable",
		 true},
		{{.why = TASK_HELPER, .err = EACCES},
		 true,
		 "StartError",
		 "its helper process can't be started: Permission denied",
		 false},
		{{.why = TASK_OUTPUT, .err = ENOSPC},
		 false,
		 "StartError",
		 "its output can't be stored: No space left on device",
		 false},
		{{.why = TASK_CWD, .err = ENOENT},
		 false,
		 "StartError",
		 "working directory \"/w\": No such file or directory",
		 false},
		{{.why = TASK_EXEC, .err = ENOEXEC},
		 false,
		 "StartError",
		 "exec: \"e\": Exec format error",
		 false},
		{{.why = TASK_SEARCH, .err = ENOENT},
		 false,
		 "StartError",
		 "exec: \"e\": not found in PATH",
		 false},
		{{.why = TASK_APP},
		 false,
		 "StartError",
		 "app.yaml is not what was submitted",
		 false},
	};
	struct spec_role role = {.entrypoint = (char *)(uintptr_t) "e"};
	struct spec_app app = {.roles = &role, .n_roles = 1};
	struct spec_job job = {.time_limit = 5400};
	const struct spec_record rec = {
		.job = &job,
		.app = &app,
		.work_dir = (char *)(uintptr_t) "/w",
		.fault = (char *)(uintptr_t) "app.yaml is not what was submitted"};
	const struct spec_replica rep = {0};

	for (size_t i = 0; i < array_size(table); i++) {
		cleanup_free char *text = program_end_text(&rec, &rep, &table[i].end);

		assert_string_equal(text, table[i].text);
		assert_string_equal(program_end_reason(table[i].again, &table[i].end),
				    table[i].reason);
		assert_int_equal(program_end_passes(&table[i].end), table[i].passes);
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
	end.how = TASK_NOT_STARTED;
	end.err = EACCES;
	assert_false(program_end_passes(&end));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_set_twice),
		cmocka_unit_test(test_outcomes),
		cmocka_unit_test(test_passes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
