/* SPDX-License-Identifier: MIT */
/* Mounts: both forms, the rules of the string form, and the message for each mistake. */
#include <errno.h>

#include "spec/app/app_value.h"
#include "spec/base/mem.h"
#include "tests/unit/unit.h"

/*
 * Read the mount DOCUMENT, or the items of a list of several mounts. Return them, one per line, as
 * TYPE SRC DST and "ro" or the permissions of a device; or return the errors. malloc'ed.
 */
static char *read_mounts(const char *document, const char *home)
{
	static const char *const types[] = {[SPEC_MOUNT_BIND] = "bind",
					    [SPEC_MOUNT_VOLUME] = "volume",
					    [SPEC_MOUNT_DEVICE] = "device"};
	static const struct app_path place = {.key = "m"};
	cleanup(spec_yaml_freep) struct spec_yaml *root = NULL;
	cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
	const struct spec_app_rules rules = {.home = home};
	struct app_reader r = {.rules = &rules, .e = &e};
	struct spec_role role = {0};
	char *ret = text_copy("");

	assert_int_equal(spec_yaml_parse(document, strlen(document), &root, &e), 0);
	if (root->type == SPEC_YAML_LIST && root->n > 1)
		for (size_t i = 0; i < root->n; i++)
			app_read_mount(&r, &place, root->v[i], &role);
	else
		app_read_mount(&r, &place, root, &role);
	assert_int_equal(e.err, e.n > 0 ? -EINVAL : 0);
	for (size_t i = 0; i < role.n_mounts; i++) {
		const struct spec_mount *m = &role.mounts[i];

		if (!e.err)
			text_set(&ret, "%s%s %s %s%s%s%s\n", ret, types[m->type], m->src, m->dst,
				 m->read_only ? " ro" : "", m->permissions ? " " : "",
				 m->permissions ? m->permissions : "");
		spec_mount_clear(&role.mounts[i]);
	}
	free(role.mounts);
	if (e.err) {
		free(ret);
		ret = spec_errors_text(&e, "f");
	}
	return ret;
}

struct pair {
	const char *document, *text;
};

static void check_all(const struct pair *table, size_t n, const char *home)
{
	for (size_t i = 0; i < n; i++) {
		cleanup_free char *got = read_mounts(table[i].document, home);

		assert_messages(got, table[i].text);
	}
}

static void test_forms(void **state)
{
	static const struct pair table[] = {
		{"{type: bind, src_path: /host/data, dst_path: /data}", "bind /host/data /data\n"},
		{"{type: bind, src_path: /a, dst_path: /b, read_only: true}", "bind /a /b ro\n"},
		{"{dst_path: /data, read_only: false, src: claim, type: volume}",
		 "volume claim /data\n"},
		{"{type: device, src_path: /dev/a, dst_path: /dev/b}",
		 "device /dev/a /dev/b rwm\n"},
		{"{type: device, src_path: /dev/a, dst_path: /dev/b, permissions: \"\"}",
		 "device /dev/a /dev/b \n"},
		{"{type: device, src_path: /dev/a, dst_path: /dev/b, permissions: mrr}",
		 "device /dev/a /dev/b mrr\n"},
		/* Only the string form expands a home directory. Neither form expands macros. */
		{"{type: bind, src_path: ~/a, dst_path: '/x/${replica_id}'}",
		 "bind ~/a /x/${replica_id}\n"},
		{"type=bind,src=/host,dst=/ctr,readonly", "bind /host /ctr ro\n"},
		{"type=bind,src=/a,dst=/b,readonly=false", "bind /a /b ro\n"},
		{"type=bind,source=/a,target=/b", "bind /a /b\n"},
		{"type=bind,perm=xyz,src=/a,dst=/b", "bind /a /b\n"},
		{"type=volume,source=claim,destination=/vol,read_only", "volume claim /vol ro\n"},
		{"type=device,src=/dev/fuse", "device /dev/fuse /dev/fuse rwm\n"},
		{"type=device,src=/dev/kvm,target=/dev/k,perm=r", "device /dev/kvm /dev/k r\n"},
		{"type=device,src=/dev/kvm,perm=,readonly", "device /dev/kvm /dev/kvm \n"},
		/* An option is split at its first "=". If it is repeated, the last one counts. */
		{"type=bind,src=/a=b=c,dst=/b", "bind /a=b=c /b\n"},
		{"type=bind,src=/a,src=/b,dst=/c,target=/d", "bind /b /d\n"},
		{"type=bind,src=~,dst=/b", "bind /users/ada /b\n"},
		{"type=bind,src=~/data,dst=/b", "bind /users/ada/data /b\n"},
		{"type=bind,src=/~/a,dst=~/b", "bind /~/a ~/b\n"},
		{"type=volume,src=~claim,dst=/b", "volume ~claim /b\n"},
		/* TorchX writes no type. */
		{"{src_path: /a, dst_path: /b, read_only: true}", "bind /a /b ro\n"},
		{"{src: c, dst_path: /d, read_only: false}", "volume c /d\n"},
		{"{src_path: /e, dst_path: /f, permissions: rw}", "device /e /f rw\n"},
		/* several */
		{"type=bind,src=/a,dst=/b,readonly,type=volume,src=c,dst=/d,type=device,src=/dev/x",
		 "bind /a /b ro\nvolume c /d\ndevice /dev/x /dev/x rwm\n"},
		{"[\"type=device,src=/dev/a\", \"type=device,src=/dev/b\"]",
		 "device /dev/a /dev/a rwm\ndevice /dev/b /dev/b rwm\n"},
	};
	static const struct pair root[] = {{"type=bind,src=~,dst=/b", "bind / /b\n"},
					   {"type=bind,src=~/x,dst=/b", "bind /x /b\n"}};
	static const struct pair unknown[] = {
		{"type=bind,src=~/x,dst=/b",
		 "f:1:1: m: src=~/x: ~ is allowed only for your own home directory, which "
		 "kxfs...\n"},
	};

	check_all(table, array_size(table), "/users/ada");
	check_all(table, array_size(table), "/users/ada//");
	check_all(root, array_size(root), "/");
	check_all(unknown, array_size(unknown), NULL);
}

static void test_errors(void **state)
{
	static const struct pair table[] = {
		{"src=/a,dst=/b,type=bind", "f:1:1: m: type must be specified first...\n"},
		{"''", "f:1:1: m: unknown mount option \"\": must be one of type...\n"},
		{"type=bind,sorce=/a,dst=/b",
		 "f:1:1: m: unknown mount option \"sorce\"; did you mean source?\n"
		 "f:1:1: m: src of a bind mount is missing: write type=bind...\n"},
		{"type=tmpfs,dst=/x",
		 "f:1:1: m: invalid mount type \"tmpfs\": must be bind, volume or device\n"},
		{"type,src=/a",
		 "f:1:1: m: invalid mount type \"\": must be bind, volume or device\n"},
		{"type=bind,dst=/b",
		 "f:1:1: m: src of a bind mount is missing: write type=bind...\n"},
		{"type=volume,src=c,dst=",
		 "f:1:1: m: dst of a volume mount is empty: write type=volume...\n"},
		{"type=device", "f:1:1: m: src of a device mount is missing: write "
				"type=device,src=DEVICE[,dst=CONTAINER_PATH][,perm=rwm]\n"},
		{"type=device,src=/dev/x,perm=rwx",
		 "f:1:1: m: \"rwx\" may contain only the letters r, w and m\n"},
		{"type=bind,src=~bob/x,dst=/b",
		 "f:1:1: m: src=~bob/x: ~ is allowed only for your own home directory; "
		 "write...\n"},
		{"{type: bind, src_path: /a, dst_path: /b, readonly: true}",
		 "f:1:42: m.readonly: unknown field; did you mean read_only?\n"},
		{"{type: volume, src_path: /a, dst_path: /b}",
		 "f:1:1: m: src is missing\n"
		 "f:1:16: m.src_path: unknown field; did you mean dst_path?\n"},
		{"{type: device, src_path: /a, dst_path: /b, read_only: true}",
		 "f:1:44: m.read_only: unknown field; the fields here are type, src_path, "
		 "dst_path, permissions\n"},
		{"{type: device, src_path: /a, dst_path: /b, permissions: rwx}",
		 "f:1:57: m.permissions: \"rwx\" may contain only the letters r, w and m\n"},
		{"{type: bind, dst_path: /b}", "f:1:1: m: src_path is missing\n"},
		{"{type: bind, src_path: '', dst_path: null}",
		 "f:1:24: m.src_path: must not be empty\n"
		 "f:1:38: m.dst_path: must not be null...\n"},
		{"{type: bind, src_path: [/a], dst_path: /b, read_only: yes}",
		 "f:1:24: m.src_path: must be text, not a list\n"
		 "f:1:55: m.read_only: must be true or false\n"},
		{"{type: bind, src_path: /a, dst_path: /b, read_only: \"true\"}",
		 "f:1:53: m.read_only: must be true or false\n"},
		{"{type: bind, src_path: \"/a\\0b\", dst_path: /b}",
		 "f:1:24: m.src_path: must not contain a NUL character\n"},
		{"{type: tmpfs, dst_path: /x}", "f:1:8: m.type: must be bind, volume or device\n"},
		{"{type: bind, src_path: /a, dst_path: /b, \"a b\": c}",
		 "f:1:42: m[\"a b\"]: unknown field; the fields here are type, src_path, "
		 "dst_path, read_only\n"},
		{"{src_path: /a, dst_path: /b}", "f:1:1: m: type is missing: add...\n"},
		{"[type=bind]", "f:1:1: m: must be a map with \"type\", or text such as...\n"},
	};

	check_all(table, array_size(table), "/users/ada");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
