// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

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
		err  error // of the one after those that are left
		want string
	}{
		"enough":       {left: need, err: unix.EMFILE},
		"one too few":  {left: need - 1, err: unix.EMFILE, want: ", 41 of them are left, and the cluster's programs need 42: allow more with `sysctl fs.inotify.max_user_instances=1024`"},
		"none":         {err: unix.EMFILE, want: ", 0 of them are left, "},
		"no memory":    {left: 3, err: unix.ENOMEM, want: "cannot allocate memory"},
		"not a number": {left: 3, err: errors.New("no such thing"), want: "asking for an inotify instance: no such thing"},
	} {
		t.Run(name, func(t *testing.T) {
			before, given := instances(t), 0
			err := checkInotify(groups, func(flags int) (int, error) {
				if given == tc.left {
					return -1, tc.err
				}
				given++
				return unix.InotifyInit1(flags)
			})
			got := ""
			if err != nil {
				got = err.Error()
			}
			if (err == nil) != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("error %q, want %q", got, tc.want)
			}
			if after := instances(t); after != before {
				t.Errorf("%d inotify instances are held, %d were before", after, before)
			}
		})
	}
}

// instances counts the inotify instances that this process holds.
func instances(t *testing.T) (n int) {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if link, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && strings.HasSuffix(link, "inotify") {
			n++
		}
	}
	return n
}
