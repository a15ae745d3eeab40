// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"strings"
	"testing"

	"muster.dev/muster/internal/platform/manifest"
)

func TestFill(t *testing.T) {
	const two = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{.Name}}}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: b}\n"
	for name, c := range map[string]struct {
		text string
		want string // of the error, or else the names
	}{
		"two objects":  {two, "a b"},
		"nothing":      {"", ""},
		"a lost value": {"kind: {{.Other}}", `filling in x.yaml: template: x.yaml:1:8: executing "x.yaml" at <.Other>: map has no entry for key "Other"`},
		"a bad action": {"{{", "template: x.yaml:1: unclosed action"},
		"no YAML":      {"---\n{", "reading x.yaml: "},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := manifest.Fill("x.yaml", c.text, map[string]string{"Name": "a"})
			var names []string
			for _, object := range objects {
				names = append(names, object.GetName())
			}
			got := strings.Join(names, " ")
			if err != nil {
				got = err.Error()
			}
			if got != c.want && (err == nil || !strings.HasPrefix(got, c.want)) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
