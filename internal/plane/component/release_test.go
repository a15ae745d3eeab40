// SPDX-License-Identifier: Apache-2.0

package component

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/platform/release/releasetest"
)

// The release alone says how processes of a cluster of another minor differ.
func TestReleaseOfAnotherMinor(t *testing.T) {
	t.Parallel()
	now, next := fixed(true), fixed(true)
	next.Release = releasetest.Next()
	before, after := specs(t, now), specs(t, next)
	lacks := func(args, others []string) (all []string) {
		for _, arg := range args {
			if !slices.Contains(others, arg) {
				all = append(all, arg)
			}
		}
		return all
	}
	type change struct {
		Path        string
		Gone, Given []string
	}
	got := map[string]change{}
	for i := range after {
		was, is := before[i], after[i]
		if gone, given := lacks(was.Args, is.Args), lacks(is.Args, was.Args); was.Path != is.Path || len(gone)+len(given) > 0 {
			got[is.Name] = change{is.Path, gone, given}
		}
		was.Path, was.Args = is.Path, is.Args
		if diff := cmp.Diff(was, is); diff != "" {
			t.Errorf("%s (-now +next):\n%s", is.Name, diff)
		}
	}
	want := map[string]change{
		APIServer:         {"/opt/muster/bin/1.99/kube-apiserver", []string{"--profiling=false"}, []string{"--emulated-version=1.98", "--profiling=true"}},
		ControllerManager: {"/opt/muster/bin/1.99/kube-controller-manager", []string{"--kube-api-qps=100"}, []string{"--kube-api-qps=150"}},
		Scheduler:         {"/opt/muster/bin/1.99/kube-scheduler", nil, []string{"--feature-gates=GangScheduling=true"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the release changes (-want +got):\n%s", diff)
	}
}
