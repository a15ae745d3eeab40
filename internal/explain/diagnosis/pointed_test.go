// SPDX-License-Identifier: Apache-2.0

package diagnosis

import "testing"

func TestPointed(t *testing.T) {
	t.Parallel()
	for look, want := range map[string]string{
		"kubectl describe node n": "kubectl describe node n --context \"a b\"", "muster get x": "muster get x --cluster \"a b\"", "journalctl": "journalctl",
	} {
		f := Facts{
			Names: map[string]string{"$CLUSTER": "a b"}, Evidence: []Evidence{{Look: look}},
			Parts: []Facts{{Names: map[string]string{"$CLUSTER": "a b"}, Evidence: []Evidence{{Look: look}}}},
		}
		got := f.pointed()
		if got.Evidence[0].Look != want || got.Parts[0].Evidence[0].Look != want || f.Evidence[0].Look != look {
			t.Errorf("%+v", got)
		}
	}
}
