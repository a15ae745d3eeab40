// SPDX-License-Identifier: Apache-2.0

package stackplan

import (
	"strings"

	"muster.dev/muster/internal/aws/cloudformation/stacktemplate"
)

// shortest is the length in bytes from which on a value is taken out of texts: a shorter one is part of many words.
const shortest = 4

// Secrets are the values of NoEcho parameters.
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
			values = append(values, value)
		}
	}
	return values
}

// Hide takes secrets out of a text.
func Hide(text string, secrets []string) string {
	for _, secret := range secrets {
		text = strings.ReplaceAll(text, secret, "****")
	}
	return text
}
