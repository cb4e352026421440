/* SPDX-License-Identifier: MIT */
/* Mounts: both forms, the rules of the string form, and the message for each mistake. */
#include <errno.h>

#include "spec/app/app_value.h"
#include "tests/unit/unit.h"

#define HOME_DIR "/users/ada"

static const struct app_path place = {.key = "m"};

struct result {
	struct spec_mount *v;
	size_t n;
	struct spec_errors e;
};

static void read_mount(const struct spec_yaml *node, const char *home, struct result *ret)
{
	const struct spec_app_rules rules = {.home = home};
	struct app_reader r = {.rules = &rules, .e = &ret->e};
	struct spec_role role = {.mounts = ret->v, .n_mounts = ret->n};

	app_read_mount(&r, &place, node, &role);
	ret->v = role.mounts;
	ret->n = role.n_mounts;
}

static struct result parse_with(const char *document, const char *home)
{
	cleanup(spec_yaml_freep) struct spec_yaml *root = NULL;
	struct result ret = {0};

	assert_int_equal(spec_yaml_parse(document, strlen(document), &root, &ret.e), 0);
	read_mount(root, home, &ret);
	assert_int_equal(ret.e.err != 0, ret.e.n > 0);
	return ret;
}

static void clear(struct result *r)
{
	for (size_t i = 0; i < r->n; i++)
		spec_mount_clear(&r->v[i]);
	free(r->v);
	spec_errors_clear(&r->e);
}

static void assert_mount(const struct spec_mount *m, enum spec_mount_type type, const char *src,
			 const char *dst, bool read_only, const char *permissions)
{
	assert_int_equal(m->type, type);
	assert_string_equal(m->src, src);
	assert_string_equal(m->dst, dst);
	assert_int_equal(m->read_only, read_only);
	if (permissions)
		assert_string_equal(m->permissions, permissions);
	else
		assert_null(m->permissions);
}

#define BIND   SPEC_MOUNT_BIND
#define VOLUME SPEC_MOUNT_VOLUME
#define DEVICE SPEC_MOUNT_DEVICE

static void test_one_mount(void **state)
{
	static const struct {
		const char *document;
		enum spec_mount_type type;
		const char *src, *dst;
		bool read_only;
		const char *permissions;
	} table[] = {
		{"{type: bind, src_path: /host/data, dst_path: /data}", BIND, "/host/data", "/data",
		 false, NULL},
		{"{type: bind, src_path: /host/ro, dst_path: /ro, read_only: true}", BIND,
		 "/host/ro", "/ro", true, NULL},
		{"{dst_path: /data, read_only: false, src: claim, type: volume}", VOLUME, "claim",
		 "/data", false, NULL},
		{"{type: device, src_path: /dev/fuse, dst_path: /dev/fuse}", DEVICE, "/dev/fuse",
		 "/dev/fuse", false, "rwm"},
		{"{type: device, src_path: /dev/a, dst_path: /dev/b, permissions: \"\"}", DEVICE,
		 "/dev/a", "/dev/b", false, ""},
		{"{type: device, src_path: /dev/a, dst_path: /dev/b, permissions: mrr}", DEVICE,
		 "/dev/a", "/dev/b", false, "mrr"},
		/* Only the string form expands a home directory. Neither form expands macros. */
		{"{type: bind, src_path: ~/a, dst_path: '/x/${replica_id}'}", BIND, "~/a",
		 "/x/${replica_id}", false, NULL},
		{"type=bind,src=/host,dst=/ctr,readonly", BIND, "/host", "/ctr", true, NULL},
		{"type=bind,src=/a,dst=/b,readonly=false", BIND, "/a", "/b", true, NULL},
		{"type=bind,source=/a,target=/b", BIND, "/a", "/b", false, NULL},
		{"type=bind,perm=xyz,src=/a,dst=/b", BIND, "/a", "/b", false, NULL},
		{"type=volume,source=claim,destination=/vol,read_only", VOLUME, "claim", "/vol",
		 true, NULL},
		{"type=device,src=/dev/fuse", DEVICE, "/dev/fuse", "/dev/fuse", false, "rwm"},
		{"type=device,src=/dev/kvm,target=/dev/k,perm=r", DEVICE, "/dev/kvm", "/dev/k",
		 false, "r"},
		{"type=device,src=/dev/kvm,perm=,readonly", DEVICE, "/dev/kvm", "/dev/kvm", false,
		 ""},
		/* An option is split at its first "=". If it is repeated, the last one counts. */
		{"type=bind,src=/a=b=c,dst=/b", BIND, "/a=b=c", "/b", false, NULL},
		{"type=bind,src=/a,src=/b,dst=/c,target=/d", BIND, "/b", "/d", false, NULL},
		{"type=bind,src=~,dst=/b", BIND, HOME_DIR, "/b", false, NULL},
		{"type=bind,src=~/data,dst=/b", BIND, HOME_DIR "/data", "/b", false, NULL},
		{"type=bind,src=/~/a,dst=~/b", BIND, "/~/a", "~/b", false, NULL},
		{"type=volume,src=~claim,dst=/b", VOLUME, "~claim", "/b", false, NULL},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		struct result r = parse_with(table[i].document, HOME_DIR);

		assert_int_equal(r.e.err, 0);
		assert_int_equal(r.n, 1);
		assert_mount(&r.v[0], table[i].type, table[i].src, table[i].dst, table[i].read_only,
			     table[i].permissions);
		clear(&r);
	}
}

static void test_home_forms(void **state)
{
	struct result r = parse_with("type=bind,src=~/x,dst=/b", "/users/ada//");

	assert_string_equal(r.v[0].src, "/users/ada/x");
	clear(&r);
	r = parse_with("type=bind,src=~,dst=/b", "/");
	assert_string_equal(r.v[0].src, "/");
	clear(&r);
	r = parse_with("type=bind,src=~/x,dst=/b", "/");
	assert_string_equal(r.v[0].src, "/x");
	clear(&r);
}

static void test_several_in_a_string(void **state)
{
	struct result r = parse_with(
		"type=bind,src=/a,dst=/b,readonly,type=volume,src=c,dst=/d,type=device,src=/dev/x",
		NULL);

	assert_int_equal(r.e.err, 0);
	assert_int_equal(r.n, 3);
	assert_mount(&r.v[0], BIND, "/a", "/b", true, NULL);
	assert_mount(&r.v[1], VOLUME, "c", "/d", false, NULL);
	assert_mount(&r.v[2], DEVICE, "/dev/x", "/dev/x", false, "rwm");
	clear(&r);
}

static void test_appends(void **state)
{
	cleanup(spec_yaml_freep) struct spec_yaml *root = NULL;
	static const char document[] = "[\"type=device,src=/dev/a\", \"type=device,src=/dev/b\"]";
	struct result r = {0};

	assert_int_equal(spec_yaml_parse(document, strlen(document), &root, &r.e), 0);
	for (size_t i = 0; i < root->n; i++)
		read_mount(root->v[i], NULL, &r);
	assert_int_equal(r.e.err, 0);
	assert_int_equal(r.n, 2);
	assert_string_equal(r.v[0].src, "/dev/a");
	assert_string_equal(r.v[1].src, "/dev/b");
	clear(&r);
}

static void test_errors(void **state)
{
	static const struct {
		const char *document, *text;
	} table[] = {
		{"src=/a,dst=/b,type=bind",
		 "f:1:1: m: type must be specified first, as in "
		 "type=bind,src=HOST_PATH,dst=CONTAINER_PATH[,readonly]\n"},
		{"''", "f:1:1: m: unknown mount option \"\": must be one of type, src, source, "
		       "dst, destination, target, readonly, read_only, perm\n"},
		{"type=bind,src=/a,dst=/b,",
		 "f:1:1: m: unknown mount option \"\": must be one of type, src, source, dst, "
		 "destination, target, readonly, read_only, perm\n"},
		{"type=bind,sorce=/a,dst=/b",
		 "f:1:1: m: unknown mount option \"sorce\"; did you mean source?\n"
		 "f:1:1: m: src of a bind mount is missing: write "
		 "type=bind,src=HOST_PATH,dst=CONTAINER_PATH[,readonly]\n"},
		{"type=tmpfs,dst=/x",
		 "f:1:1: m: invalid mount type \"tmpfs\": must be bind, volume or device\n"},
		{"type,src=/a",
		 "f:1:1: m: invalid mount type \"\": must be bind, volume or device\n"},
		{"type=Bind,src=/a,dst=/b",
		 "f:1:1: m: invalid mount type \"Bind\": must be bind, volume or device\n"},
		{"type=bind,dst=/b", "f:1:1: m: src of a bind mount is missing: write "
				     "type=bind,src=HOST_PATH,dst=CONTAINER_PATH[,readonly]\n"},
		{"type=volume,src=c,dst=", "f:1:1: m: dst of a volume mount is empty: write "
					   "type=volume,src=CLAIM,dst=CONTAINER_PATH[,readonly]\n"},
		{"type=device", "f:1:1: m: src of a device mount is missing: write "
				"type=device,src=DEVICE[,dst=CONTAINER_PATH][,perm=rwm]\n"},
		{"type=device,src=/dev/x,perm=rwx",
		 "f:1:1: m: \"rwx\" may contain only the letters r, w and m\n"},
		{"type=bind,src=~bob/x,dst=/b",
		 "f:1:1: m: src=~bob/x: ~ is allowed only for your own home directory; write "
		 "the path in full\n"},
		{"{type: bind, src_path: /a, dst_path: /b, readonly: true}",
		 "f:1:42: m.readonly: unknown field; did you mean read_only?\n"},
		{"{type: volume, src_path: /a, dst_path: /b}",
		 "f:1:1: m: src is missing\n"
		 "f:1:16: m.src_path: unknown field; did you mean dst_path?\n"},
		{"{type: device, src_path: /a, dst_path: /b, read_only: true}",
		 "f:1:44: m.read_only: unknown field; the fields here are type, src_path, dst_path, permissions\n"},
		{"{type: device, src_path: /a, dst_path: /b, permissions: rwx}",
		 "f:1:57: m.permissions: \"rwx\" may contain only the letters r, w and m\n"},
		{"{type: bind, dst_path: /b}", "f:1:1: m: src_path is missing\n"},
		{"{type: bind, src_path: '', dst_path: null}",
		 "f:1:24: m.src_path: must not be empty\nf:1:38: m.dst_path: must not be null; leave out a field that has no value, or put \"null\" in quotes if you mean this text\n"},
		{"{type: bind, src_path: [/a], dst_path: /b, read_only: yes}",
		 "f:1:24: m.src_path: must be text, not a list\n"
		 "f:1:55: m.read_only: must be true or false\n"},
		{"{type: bind, src_path: /a, dst_path: /b, read_only: \"true\"}",
		 "f:1:53: m.read_only: must be true or false\n"},
		{"{type: bind, src_path: \"/a\\0b\", dst_path: /b}",
		 "f:1:24: m.src_path: must not contain a NUL character\n"},
		{"{type: tmpfs, dst_path: /x}", "f:1:8: m.type: must be bind, volume or device\n"},
		{"{type: bind, src_path: /a, dst_path: /b, \"a b\": c}",
		 "f:1:42: m[\"a b\"]: unknown field; the fields here are type, src_path, dst_path, read_only\n"},
		{"{type: null}", "f:1:8: m.type: must be bind, volume or device\n"},
		{"{src_path: /a, dst_path: /b}",
		 "f:1:1: m: type is missing: add \"type: bind\", \"type: volume\" or "
		 "\"type: device\"\n"},
		{"[type=bind]", "f:1:1: m: must be a map with \"type\", or text such as "
				"type=bind,src=HOST_PATH,dst=CONTAINER_PATH[,readonly]\n"},
		{"!!null ''", "f:1:1: m: must be a map with \"type\", or text such as "
			      "type=bind,src=HOST_PATH,dst=CONTAINER_PATH[,readonly]\n"},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		struct result r = parse_with(table[i].document, HOME_DIR);
		cleanup_free char *text = spec_errors_text(&r.e, "f");

		assert_int_equal(r.e.err, -EINVAL);
		assert_string_equal(text, table[i].text);
		clear(&r);
	}
}

static void test_home_unknown(void **state)
{
	struct result r = parse_with("type=bind,src=~/x,dst=/b", NULL);
	cleanup_free char *text = spec_errors_text(&r.e, "f");

	assert_string_equal(text, "f:1:1: m: src=~/x: ~ is allowed only for your own home "
				  "directory, which kxfs does not know; write the path in full\n");
	clear(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_mount),
		cmocka_unit_test(test_home_forms),
		cmocka_unit_test(test_several_in_a_string),
		cmocka_unit_test(test_appends),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_home_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
