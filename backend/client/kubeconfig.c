/* SPDX-License-Identifier: MIT */
/* Finds and reads kubeconfig files, in kubectl's order. */
#include "backend/client/kubeconfig.h"

#include <errno.h>

#include "backend/base/file.h"
#include "backend/base/print.h"
#include "backend/base/process.h"
#include "spec/base/limits.h"
#include "spec/base/mem.h"

#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

/* Set *RET_TEXT to the text of E without its last newline, and return E's errno. */
static int refuse_errors(char **ret_text, const struct spec_errors *e, const char *file)
{
	char *text = spec_errors_text(e, file);

	if (*text)
		text[strlen(text) - 1] = '\0';
	*ret_text = text;
	return e->err;
}

/* Make PATH absolute; malloc'ed. Return NULL if the working directory no longer exists. */
static char *absolute(const char *dir, const char *path)
{
	cleanup_free char *here = NULL;

	if (*path == '/')
		return text_copy(path);
	if (!dir || !*dir) {
		here = getcwd(NULL, 0);
		dir = here;
	}
	return dir ? text_print("%s/%s", dir, path) : NULL;
}

/* Merge the file PATH into K. If it does not exist, return -ENOENT without a text. */
static int add_file(struct spec_kubeconfig *k, const char *dir, const char *path, char **ret_text)
{
	cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
	cleanup_free char *file = absolute(dir, path), *text = NULL;
	size_t len;
	int err = file ? file_read_other(file, SPEC_MAX_FILE, &text, &len) : -ENOENT;

	if (err == -ENOENT)
		return err;
	if (err == -EINVAL)
		return refuse(err, ret_text, "kubeconfig %s: it is not a regular file", path);
	if (err == -EFBIG)
		return refuse(err, ret_text, "kubeconfig %s: it is larger than 1 MiB", path);
	if (err < 0)
		return refuse(err, ret_text, "kubeconfig %s: %s", path, strerror(-err));
	err = spec_kubeconfig_merge(k, file, text, len, &e);
	explicit_bzero(text, len);
	return err < 0 ? refuse_errors(ret_text, &e, file) : 0;
}

/* Merge the files of LIST into K. Skip missing files, but fail if all are missing. */
static int add_list(struct spec_kubeconfig *k, const char *dir, const char *list, char **ret_text)
{
	cleanup_free char *copy = text_copy(list);
	char *rest = copy, *path;
	bool any = false;

	while ((path = strsep(&rest, ":"))) {
		int err = *path ? add_file(k, dir, path, ret_text) : -ENOENT;

		if (err < 0 && err != -ENOENT)
			return err;
		any |= err == 0;
	}
	if (any)
		return 0;
	return refuse(-ENOENT, ret_text,
		      "none of the files in KUBECONFIG (%s) exists; correct or unset "
		      "KUBECONFIG, or give -o kubeconfig=FILE",
		      list);
}

static int in_cluster(const char *context, struct spec_connection *ret, char **ret_text,
		      const char *missing)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	const char *port = getenv("KUBERNETES_SERVICE_PORT");
	cleanup_free char *namespace = NULL;
	size_t len;
	int err;

	if (!host || !*host || access(SERVICE_ACCOUNT "/token", F_OK) < 0)
		return refuse(
			-ENOENT, ret_text,
			"there is no kubeconfig: %s does not exist; set KUBECONFIG or give -o "
			"kubeconfig=FILE",
			missing);
	if (*context)
		return refuse(
			-EINVAL, ret_text,
			"there is no context \"%s\": without a kubeconfig, kxfs uses the pod's "
			"service account, which has no contexts",
			context);
	err = file_read_other(SERVICE_ACCOUNT "/namespace", 256, &namespace, &len);
	if (err < 0 && err != -ENOENT)
		return refuse(err, ret_text, "%s: %s", SERVICE_ACCOUNT "/namespace",
			      strerror(-err));
	if (namespace)
	namespace[strcspn(namespace, " \t\r\n")] = '\0';
	err = spec_kubeconfig_in_cluster(host, port ? port : "443", namespace ? namespace : "",
					 ret);
	return err == -EINVAL ? refuse(err, ret_text,
				       "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT do not "
				       "form the address of a server")
			      : err;
}

/*
 * Merge the kubeconfig files into K. If neither OPTION nor $KUBECONFIG is set, and ~/.kube/config
 * does not exist, return 1, and set *RET_MISSING to the path of that file.
 */
static int add_files(struct spec_kubeconfig *k, const char *dir, const char *option,
		     char **ret_missing, char **ret_text)
{
	const char *list = getenv("KUBECONFIG");
	cleanup_free char *home = NULL;
	int err;

	if (option && *option) {
		err = add_file(k, dir, option, ret_text);
		return err == -ENOENT
			       ? refuse(err, ret_text, "kubeconfig %s: %s", option, strerror(-err))
			       : err;
	}
	if (list && *list)
		return add_list(k, dir, list, ret_text);
	home = process_home();
	*ret_missing = text_print("%s/.kube/config", home ? home : "");
	err = add_file(k, dir, *ret_missing, ret_text);
	return err == -ENOENT ? 1 : err;
}

int kubeconfig_load(const char *option, const char *dir, const char *context,
		    struct spec_connection *ret, char **ret_text)
{
	cleanup(spec_kubeconfig_freep) struct spec_kubeconfig *k = spec_kubeconfig_new();
	cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
	cleanup_free char *missing = NULL;
	int err;

	*ret = (struct spec_connection){0};
	*ret_text = NULL;
	err = add_files(k, dir, option, &missing, ret_text);
	if (err < 0)
		return err;
	if (err > 0)
		return in_cluster(context, ret, ret_text, missing);
	err = spec_kubeconfig_connect(k, context, ret, &e);
	return err < 0 ? refuse_errors(ret_text, &e, NULL) : 0;
}

int kubeconfig_contexts(const char *option, char ***ret, char **ret_text)
{
	cleanup(spec_kubeconfig_freep) struct spec_kubeconfig *k = spec_kubeconfig_new();
	cleanup_free char *missing = NULL;
	int err;

	*ret_text = NULL;
	err = add_files(k, NULL, option, &missing, ret_text);
	if (err < 0)
		return err;
	*ret = spec_kubeconfig_contexts(k);
	return 0;
}
