/* SPDX-License-Identifier: MIT */
/* Names: TorchX's suffixes and normal forms, and how untrusted names are checked. */
#include "spec/base/name.h"
#include "tests/unit/unit.h"

static void test_suffix(void **state)
{
	static const struct {
		uint64_t v;
		const char *suffix;
	} table[] = {
		{0, ""},
		{1, "c"},
		{19, "z"},
		{20, "bc"},
		{579, "z9"},
		{580, "bbc"},
		{16820, "bbbc"},
		{4294967296, "vb4fxrn"},
		{UINT64_C(9223372036854775808), "ljk1ssxp5ch3lc"},
		{UINT64_C(18446744073709551615), "tqsrbbl31fnwwd"},
	};
	char got[SPEC_SUFFIX_MAX];

	for (size_t i = 0; i < array_size(table); i++) {
		spec_name_suffix(table[i].v, got);
		assert_string_equal(got, table[i].suffix);
	}
}

static void test_norm(void **state)
{
	static const char *const table[][2] = {
		{"My_Train.App 01", "mytrainapp01"},
		{"---lead--", "lead"},
		{"_-x-_", "x"},
		{"1-a--b", "1-a--b"},
		{"___", ""},
		{"", ""},
		/* U+0130 and U+212A become i and k. Other letters outside ASCII are dropped. */
		{"\u0130zmir", "izmir"},
		{"-\u212a-", "k"},
		{"\u00c4pfel\u0131", "pfel"},
		{"\u65e5\u672c", ""},
		{"a\xe2\x84", "a"},
		{"x\xc4\xc4\xb0", "xi"},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		char *got cleanup_free = spec_name_norm(table[i][0]);

		assert_string_equal(got, table[i][1]);
	}
}

#define A10 "aaaaaaaaaa"
#define A60 A10 A10 A10 A10 A10 A10

static void test_label(void **state)
{
	static const char *const labels[] = {"a", "0", "a-b--c9", A60 "aaa"};
	static const char *const objects[] = {"a.b-c.0", "a.b", A60 "aaaa"};
	static const char *const bad[] = {"",	 "-a", "a-", "-",  "A",	   "a_b",  "\u00e4",
					  "a\n", ".",  "a.", ".a", "a..b", "a.-b", "A.b"};

	for (size_t i = 0; i < array_size(labels); i++)
		assert_true(spec_name_is_label(labels[i]) && spec_name_is_object(labels[i]));
	for (size_t i = 0; i < array_size(objects); i++)
		assert_true(!spec_name_is_label(objects[i]) && spec_name_is_object(objects[i]));
	for (size_t i = 0; i < array_size(bad); i++)
		assert_false(spec_name_is_label(bad[i]) || spec_name_is_object(bad[i]));
}

static void test_file(void **state)
{
	static const char *const good[] = {"a",	     "a b",	     "A.b_c-1",	   "-x",
					   "\u00e9", "\u65e5\u672c", "\U0001f600", "\u00a0"};
	/* among them C1 control characters, bytes that are not UTF-8, and "/" in too many bytes */
	static const char *const bad[] = {
		"",	".",	"..",	 ".x",	    "a/b",	"/",
		"a\n",	"\x7f", "a\tb",	 "\x1b[0m", "\xc2\x80", "\xc2\x9f",
		"\x80", "\xff", "a\xc3", "\xc3(",   "\xc0\xaf", "\xe0\x80\xaf",
	};

	for (size_t i = 0; i < array_size(good); i++)
		assert_true(spec_name_is_file(good[i]));
	for (size_t i = 0; i < array_size(bad); i++)
		assert_false(spec_name_is_file(bad[i]));
	assert_true(spec_name_is_file(A60 A60 A60 A60 A10 "aaaaa"));
	assert_false(spec_name_is_file(A60 A60 A60 A60 A10 "aaaaaa"));
}

static void test_replica_dir(void **state)
{
	static const struct {
		const char *role;
		unsigned k;
		const char *dir;
	} table[] = {
		{"trainer", 0, "trainer-0"},
		{"Trainer_Role.A", 12, "Trainer_Role.A-12"},
		{"a-1", 4294967295u, "a-1-4294967295"},
		{"-lead", 0, "lead-0"},
		{".hidden", 1, "hidden-1"},
		{"my role", 2, "myrole-2"},
		{"a/../b", 3, "ab-3"},
		{"\u65e5\u672c", 0, "role-0"},
		{"", 0, "role-0"},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		char *got cleanup_free = spec_name_replica_dir(table[i].role, table[i].k);

		assert_string_equal(got, table[i].dir);
	}
}

static void test_submits(void **state)
{
	static const char *const yes[] = {"a.yaml",   "a.yml",	"a.json", "x y.json", "~.yml",
					  "a.b.yaml", "a.YAML", "a.Yml",  "a.JSON"};
	static const char *const no[] = {"a",	       "",	".yaml",      ".a.yaml",
					 "a.yaml~",    "a.yam", "yaml",	      "a.json5",
					 "a.yaml.job", "4913",	"a.yaml.tmp", "a.yaml.error",
					 ".a.yaml.swp"};

	for (size_t i = 0; i < array_size(yes); i++)
		assert_true(spec_name_submits(yes[i]));
	for (size_t i = 0; i < array_size(no); i++)
		assert_false(spec_name_submits(no[i]));
}

static void test_job(void **state)
{
	static const struct {
		const char *app;
		uint64_t v;
		const char *name;
	} table[] = {
		{"app", 1, "app-c"}, {"My App_1", 1, "myapp1-c"},
		{"-a-", 20, "a-bc"}, {"app", 0, "app"},
		{"___", 1, "c"},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		char *name cleanup_free = spec_name_job(table[i].app, table[i].v);

		assert_string_equal(name, table[i].name);
	}
}

static void test_uuid(void **state)
{
	unsigned char bytes[16];
	char text[37];

	memset(bytes, 0xff, sizeof(bytes));
	spec_name_uuid(bytes, text);
	assert_string_equal(text, "ffffffff-ffff-4fff-bfff-ffffffffffff");
	for (unsigned char i = 0; i < 16; i++)
		bytes[i] = i;
	spec_name_uuid(bytes, text);
	assert_string_equal(text, "00010203-0405-4607-8809-0a0b0c0d0e0f");
}

static void test_handle(void **state)
{
	assert_true(spec_name_is_handle("kxfs://torchx/train-x7k2pd0"));
	assert_true(spec_name_is_handle("kxfs://torchx/${app_id}"));
	assert_false(spec_name_is_handle("kubernetes://torchx/${app_id}"));
	assert_false(spec_name_is_handle("kxfs"));
	assert_false(spec_name_is_handle(""));
}

#define X31 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static const char *const table[][2] = {
	{"", ""},
	{"trainer", "trainer"},
	{"My_Train.App-01", "My_Train.App-01"},
	{"My App/v1 (test)-", "My.App.v1..test"},
	{"_Role Name_", "Role.Name"},
	{"---", ""},
	{"  a", "a"},
	{"日本", ""},
	{"a日b", "a.b"},
	{"é", ""},
	{"a\x7f", "a"},
	{X31 X31 "x", X31 X31 "x"},
	{X31 X31 "xy", X31 X31 "x"},
	{X31 X31 "-y", X31 X31},
	{"-" X31 X31 "ab", X31 X31 "a"},
};

static void test_clean(void **state)
{
	for (size_t i = 0; i < array_size(table); i++) {
		char *got cleanup_free = spec_label_clean(table[i][0]);

		assert_string_equal(got, table[i][1]);
		assert_true(spec_label_is_valid(got));
		assert_int_equal(spec_label_is_valid(table[i][0]), streq(table[i][0], table[i][1]));
	}
}

/* The value is valid for any user and host, and differs between users. */
static void test_user(void **state)
{
	static const char *const users[][2] = {
		{"ada@login1", "ada"},
		{"ada@login2.example.org", "ada"},
		{"ada", "ada"},
		{"1000@login1", "1000"},
		{"Ada.L_1@h", "Ada.L_1"},
		{"ada@example.org@login1", "ada.example.org-cfe00dde46ef9426"},
		{"CORP\\ada@h", "CORP.ada-86a325e5e63b3d3c"},
		{"ada-@h", "ada-28cd54fe3e0c710e"},
		{"日本@h", "cf2abf0c5be326cb"},
		{"@h", "e3b0c44298fc1c14"},
		{"", "e3b0c44298fc1c14"},
		{X31 X31 "x@h", X31 X31 "x"},
		{X31 X31 "xy@h", X31 "xxxxxxxxxxxxxxx-d00194072cfc20cc"},
	};

	for (size_t i = 0; i < array_size(users); i++) {
		char *got cleanup_free = spec_label_user(users[i][0]);

		assert_string_equal(got, users[i][1]);
		assert_true(*got && spec_label_is_valid(got));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_suffix),	    cmocka_unit_test(test_norm),
		cmocka_unit_test(test_label),	    cmocka_unit_test(test_file),
		cmocka_unit_test(test_replica_dir), cmocka_unit_test(test_submits),
		cmocka_unit_test(test_job),	    cmocka_unit_test(test_uuid),
		cmocka_unit_test(test_handle),	    cmocka_unit_test(test_clean),
		cmocka_unit_test(test_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
