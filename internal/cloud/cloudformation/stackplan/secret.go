// SPDX-License-Identifier: Apache-2.0

package stackplan

import (
	"encoding/base64"
	"slices"
	"strings"

	"muster.dev/muster/internal/aws/cloudformation/stacktemplate"
)

// shortest is the length in bytes from which on a value is taken out of texts: a shorter one is part of many words.
const shortest = 4

// Secrets are the values of NoEcho parameters, and the forms in which Fn::Base64 has them.
func Secrets(asked Asked) []string {
	template, err := stacktemplate.Parse([]byte(asked.Template))
	if err != nil {
		return nil
	}
	var values []string
	for i := range template.Parameters {
		p := &template.Parameters[i]
		value, given := asked.Parameters[p.Name]
		if !given && p.Default != nil {
			value = *p.Default
		}
		if p.NoEcho && len(value) >= shortest {
			values = append(values, value, base64.StdEncoding.EncodeToString([]byte(value)))
		}
	}
	return values
}

// Exposed is a parameter that has NoEcho in one template, and no NoEcho in the next, which would show the value that it keeps; empty
// without one. Templates that cannot be read expose nothing.
func Exposed(before, after string, kept []string) string {
	had, err := stacktemplate.Parse([]byte(before))
	if err != nil {
		return ""
	}
	has, err := stacktemplate.Parse([]byte(after))
	if err != nil {
		return ""
	}
	silent := func(t *stacktemplate.Template, name string) bool {
		return slices.ContainsFunc(t.Parameters, func(p stacktemplate.Parameter) bool { return p.Name == name && p.NoEcho })
	}
	for _, name := range kept {
		if silent(had, name) && !silent(has, name) {
			return name
		}
	}
	return ""
}

// Hide takes secrets out of a text.
func Hide(text string, secrets []string) string {
	for _, secret := range secrets {
		text = strings.ReplaceAll(text, secret, "****")
	}
	return text
}
