/* SPDX-License-Identifier: MIT */
/* The exec credential plugin that a user's entry names. */
#include <errno.h>

#include <json-c/json.h>

#include "spec/kubeconfig_impl.h"

#define EXEC_EXTENSION "client.authentication.k8s.io/exec"

static int read_args(struct kubeconfig_reader *x, struct spec_exec *ret)
{
	const struct spec_yaml *v = kubeconfig_field(x, "args");

	if (!v || spec_yaml_is_null(v))
		return 0;
	if (v->type != SPEC_YAML_LIST)
		return kubeconfig_error(x->e, x->file, v, "args must be a list of texts");
	ret->args = calloc(v->n + 1, sizeof(*ret->args));
	if (!ret->args)
		return kubeconfig_no_memory(x);
	for (size_t i = 0; i < v->n; i++) {
		int err = kubeconfig_text(x, v->v[i], "an argument", &ret->args[i]);

		if (err < 0)
			return err;
		ret->n_args++;
	}
	return 0;
}

static int read_variable(struct kubeconfig_reader *x, const struct spec_yaml *item,
			 struct spec_pair *ret)
{
	struct kubeconfig_reader of_item = {.file = x->file, .body = item, .e = x->e};
	int err = kubeconfig_read_text(&of_item, "name", &ret->key);

	if (err == 0)
		err = kubeconfig_read_text(&of_item, "value", &ret->value);
	if (err == 0 && (!*ret->key || strchr(ret->key, '=')))
		err = kubeconfig_error(x->e, x->file, item,
				       "an item of env must be {name: NAME, value: VALUE}");
	return err;
}

static int read_env(struct kubeconfig_reader *x, struct spec_exec *ret)
{
	const struct spec_yaml *v = kubeconfig_field(x, "env");

	if (!v || spec_yaml_is_null(v))
		return 0;
	if (v->type != SPEC_YAML_LIST)
		return kubeconfig_error(x->e, x->file, v,
					"env must be a list of {name: NAME, value: VALUE}");
	ret->env = calloc(v->n + 1, sizeof(*ret->env));
	if (!ret->env)
		return kubeconfig_no_memory(x);
	for (size_t i = 0; i < v->n; i++) {
		int err = read_variable(x, v->v[i], &ret->env[ret->n_env++]);

		if (err < 0)
			return err;
	}
	return 0;
}

static int read_command(struct kubeconfig_reader *x, const struct spec_yaml *exec,
			struct spec_exec *ret)
{
	int err = kubeconfig_read_text(x, "command", &ret->command);

	if (err < 0)
		return err;
	if (!*ret->command)
		return kubeconfig_error(x->e, x->file, exec, "the exec plugin has no command");
	return strchr(ret->command, '/') ? kubeconfig_absolute(x, &ret->command) : 0;
}

static int read_version(struct kubeconfig_reader *x, const struct spec_yaml *exec,
			struct spec_exec *ret)
{
	int err = kubeconfig_read_text(x, "apiVersion", &ret->api_version);

	if (err < 0 || streq(ret->api_version, "client.authentication.k8s.io/v1") ||
	    streq(ret->api_version, "client.authentication.k8s.io/v1beta1"))
		return err;
	return kubeconfig_error(
		x->e, x->file, exec,
		"the exec plugin's apiVersion must be client.authentication.k8s.io/v1 "
		"or v1beta1; let the tool that wrote this entry write it again");
}

/* kxfs has no terminal to lend. */
static int check_mode(struct kubeconfig_reader *x, const struct spec_yaml *exec)
{
	cleanup_free char *mode = NULL;
	int err = kubeconfig_read_text(x, "interactiveMode", &mode);

	if (err < 0 || !streq(mode, "Always"))
		return err;
	return kubeconfig_error(
		x->e, x->file, exec,
		"the exec plugin insists on a terminal (interactiveMode: Always), which "
		"kxfs does not have; use IfAvailable, and log in before kxfs starts");
}

int kubeconfig_read_exec(struct kubeconfig_reader *user, struct spec_exec *ret)
{
	const struct spec_yaml *exec = kubeconfig_field(user, "exec");
	struct kubeconfig_reader x = {.file = user->file, .body = exec, .e = user->e};
	int err;

	if (!exec || spec_yaml_is_null(exec))
		return 0;
	if (exec->type != SPEC_YAML_MAP)
		return kubeconfig_error(x.e, x.file, exec, "exec must be a map");
	err = read_version(&x, exec, ret);
	if (err == 0)
		err = check_mode(&x, exec);
	if (err == 0)
		err = read_args(&x, ret);
	if (err == 0)
		err = read_env(&x, ret);
	if (err == 0)
		err = kubeconfig_read_text(&x, "installHint", &ret->install_hint);
	if (err == 0)
		err = kubeconfig_read_bool(&x, "provideClusterInfo", &ret->provide_cluster_info);
	return err < 0 ? err : read_command(&x, exec, ret);
}

static int extension_json(struct kubeconfig_reader *cluster, const struct spec_yaml *body,
			  char **ret)
{
	struct json_object *json = NULL;

	if (spec_yaml_to_json(body, &json) < 0)
		return kubeconfig_no_memory(cluster);
	free(*ret);
	*ret = strdup(json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN));
	json_object_put(json);
	return *ret ? 0 : kubeconfig_no_memory(cluster);
}

int kubeconfig_read_extension(struct kubeconfig_reader *cluster, char **ret)
{
	const struct spec_yaml *list = kubeconfig_field(cluster, "extensions");

	*ret = strdup("");
	if (!*ret)
		return kubeconfig_no_memory(cluster);
	for (size_t i = 0; list && list->type == SPEC_YAML_LIST && i < list->n; i++) {
		const struct spec_yaml *name = spec_yaml_get(list->v[i], "name");
		const struct spec_yaml *body = spec_yaml_get(list->v[i], "extension");

		if (name && streq(name->text, EXEC_EXTENSION) && body && !spec_yaml_is_null(body))
			return extension_json(cluster, body, ret);
	}
	return 0;
}
