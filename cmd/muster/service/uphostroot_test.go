// SPDX-License-Identifier: Apache-2.0

package service

import (
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/internal/machine/hostroot"
)

func TestAllowHostRoot(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		given bool
		names []string
		want  hostroot.Clusters
		fails string
	}{
		{"without the flag", false, nil, nil, ""},
		{"an empty one", true, []string{}, hostroot.Clusters{}, ""},
		{"an empty name", true, []string{""}, hostroot.Clusters{}, ""},
		{"two, one of them twice", true, []string{"b", "a", "b"}, hostroot.Clusters{"a", "b"}, ""},
		{"no name", true, []string{"a", "../b"}, nil, `--allow-host-root: "../b" is not the name of a cluster`},
	} {
		up := &upOptions{hostRoot: test.names, hostRootSet: test.given}
		got, err := up.allowHostRoot()
		if test.fails != "" {
			if err == nil || !strings.HasPrefix(err.Error(), test.fails) {
				t.Errorf("%s: %v", test.name, err)
			}
			continue
		}
		if err != nil || !slices.Equal(got, test.want) || (got == nil) != (test.want == nil) {
			t.Errorf("%s: %#v, %v; want %#v", test.name, got, err, test.want)
		}
	}
}
