// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"muster.dev/muster/internal/platform/strictyaml"
)

// hidden stands for what is never shown.
const hidden = "(not shown)"

var (
	// tokens finds bootstrap tokens, also where nobody expects them, such as in the name of an unknown field.
	tokens = regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`)
	// passwords are what stands before the host in a URL.
	passwords = regexp.MustCompile(`://[^/@\s]+@`)
	// secretNames are those of fields and variables whose values are secrets: token, auth and password of containerd's
	// registries, AWS_SECRET_ACCESS_KEY and the like.
	secretNames = regexp.MustCompile(`(?i)(^|[_-])(token|auth|identitytoken|password|passwd|secret|secret_access_key|credentials?)$`)
	// assignments give them values, in TOML and files of environments.
	assignments = regexp.MustCompile(`(?im)(\b(?:[a-z0-9_-]*[_-])?(?:token|auth|identitytoken|password|passwd|secret|secret_access_key|credentials?)"?[ \t]*=[ \t]*)("[^"\n]*"|'[^'\n]*'|[^\s,{}\[\]"']+)`)
)

// WithoutSecrets hides bootstrap tokens, the passwords in URLs and values assigned to names of secrets.
func WithoutSecrets(text string) string {
	text = assignments.ReplaceAllString(text, "${1}"+hidden)
	return tokens.ReplaceAllString(passwords.ReplaceAllString(text, "://"+hidden+"@"), hidden)
}

// Redacted is the spec as it may be shown: without the token, the passwords of proxies and registries and fields named
// like a secret.
func (s Spec) Redacted() (Spec, error) {
	tree, err := treeOf(s)
	if err != nil {
		return Spec{}, fmt.Errorf("NodeConfig: %w", err)
	}
	if containerd, ok := tree["containerd"].(map[string]any); ok {
		if containerd["config"], err = redactedTOML(s.Containerd.Config); err != nil {
			return Spec{}, err
		}
	}
	redact("", tree)
	raw, err := json.Marshal(tree)
	if err != nil {
		return Spec{}, fmt.Errorf("NodeConfig: %w", err)
	}
	var shown Spec
	if problems, _ := strictyaml.FromJSON(raw, &shown); problems != nil {
		return Spec{}, Problems(problems)
	}
	return shown, nil
}

// redactedTOML leaves a text as it was written unless it holds a secret.
func redactedTOML(text string) (string, error) {
	config, err := readTOML(text)
	if err != nil {
		return "", fmt.Errorf("%s: %w", pathContainerd, err)
	}
	before, err := writeTOML(config)
	if err != nil {
		return "", err
	}
	redact("", config)
	after, err := writeTOML(config)
	if err != nil || after == before {
		return WithoutSecrets(text), err
	}
	return after, nil
}

// redact replaces what is secret in a value that is known by a name, and in all that it holds.
func redact(name string, value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			value[key] = redact(key, inner)
		}
	case []map[string]any: // TOML's arrays of tables
		for _, inner := range value {
			redact(name, inner)
		}
	case []any:
		for i, inner := range value {
			value[i] = redact(name, inner)
		}
	case string:
		variable, _, assigned := strings.Cut(value, "=")
		switch {
		case value == "":
		case secretNames.MatchString(name):
			return hidden
		case assigned && secretNames.MatchString(variable): // --some-token=..., or the environment of a runtime specification
			return variable + "=" + hidden
		default:
			return WithoutSecrets(value)
		}
	}
	return value
}
