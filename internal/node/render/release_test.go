// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/node/render"
	"muster.dev/muster/internal/platform/release/releasetest"
)

// A machine of another minor has the fields of its release in a file of their own, over Muster's and below the user's;
// all else is as before.
func TestReleaseOfAnotherMinor(t *testing.T) {
	t.Parallel()
	for _, s := range scenes(t) {
		before, err := render.Files(s.spec, s.instance, s.facts, s.layout)
		if err != nil {
			continue // no release mends it
		}
		next := s.instance
		next.Release = releasetest.Next()
		after, err := render.Files(s.spec, next, s.facts, s.layout)
		if err != nil {
			t.Fatal(err)
		}
		const path = "/etc/kubernetes/kubelet/config.json.d/20-release.conf"
		i := slices.IndexFunc(after, func(f render.File) bool { return f.Path == path })
		if i < 0 {
			t.Fatalf("%s: no %s", s.dir, path)
		}
		want := "{\n  \"apiVersion\": \"kubelet.config.k8s.io/v1beta1\",\n  \"eventRecordQPS\": 50,\n  \"featureGates\": {\n    \"SELinuxMount\": false\n  },\n  \"kind\": \"KubeletConfiguration\"\n}\n"
		if diff := cmp.Diff(want, string(after[i].Content)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", s.dir, diff)
		}
		after = slices.Delete(after, i, i+1)
		isArguments := func(f render.File) bool { return strings.HasSuffix(f.Path, "/kubelet/environment") } // has --config-dir now
		if diff := cmp.Diff(slices.DeleteFunc(before, isArguments), slices.DeleteFunc(after, isArguments)); diff != "" {
			t.Errorf("%s (-now +next):\n%s", s.dir, diff)
		}
		if args := render.KubeletArgs(s.spec, next, s.layout, false); !slices.Contains(args, "--config-dir=/etc/kubernetes/kubelet/config.json.d") {
			t.Errorf("%s: the kubelet does not read it: %v", s.dir, args)
		}
	}
}
