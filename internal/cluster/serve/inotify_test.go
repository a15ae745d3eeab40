// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"strings"
	"testing"

	"muster.dev/muster/api/v1alpha1"
)

func TestCheckInotify(t *testing.T) {
	group := func(provider v1alpha1.Provider, size int32) *v1alpha1.NodeGroup {
		g := &v1alpha1.NodeGroup{}
		g.Spec.Provider, g.Spec.ScalingConfig.DesiredSize = provider, size
		return g
	}
	groups := []*v1alpha1.NodeGroup{group(v1alpha1.ProviderLocal, 2), group(v1alpha1.ProviderSimulated, 500), group(v1alpha1.ProviderLocal, 1)}
	const need = 18 + 3*8
	for name, tc := range map[string]struct {
		left int
		err  error
		want string
	}{
		"enough":      {left: need},
		"one too few": {left: need - 1, want: ", 41 of them are left, and the cluster's programs need 42: allow more with `sysctl fs.inotify.max_user_instances=1024`"},
		"none":        {want: ", 0 of them are left, "},
		"no answer":   {err: errors.New("no such thing"), want: "no such thing"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := checkInotify(groups, func(most int) (int, error) { return min(most, tc.left), tc.err }); err != nil {
				got = err.Error()
			}
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("error %q, want %q", got, tc.want)
			}
		})
	}
}
