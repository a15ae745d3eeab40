// SPDX-License-Identifier: Apache-2.0

package featuregates

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/api/v1alpha1"
)

// program answers as kube-apiserver v1.37.2 does: gates are read before the version is told.
const program = `#!/bin/sh
refuse() { echo "I1129 01:03:54.195289 1 feature_gate.go:362] \"Warning: setting GA feature gate\"" >&2; echo "E1129 01:03:54.195289 1 run.go:72] \"command failed\" err=\"$1\"" >&2; exit 1; }
case "$1" in
--help)
	printf '      --feature-gates colonSeparatedMultimapStringString   Comma-separated list:\n'
	printf '             kube:AllAlpha=true|false (ALPHA - default=false)\n             kube:Gang=true|false (ALPHA - default=false)\n'
	printf '             kube:WatchList=true|false (BETA - default=true)\n'
	exit 0 ;;
*Nope=*) refuse "unrecognized feature gate: Nope" ;;
*Fixed=false*) refuse "cannot set feature gate Fixed to false, feature is locked to true" ;;
*Needs=true*) case "$1" in *Gang=true*) ;; *) refuse "Needs is enabled, but depends on features that are disabled: [Gang]" ;; esac ;;
*Silent=*) echo "it will not" >&2; exit 2 ;;
esac
[ "$2" = --version ] && echo "Kubernetes v1.37.2"
`

func write(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCheck(t *testing.T) {
	t.Parallel()
	server, scheduler := write(t, "kube-apiserver"), write(t, "kube-scheduler")
	for name, c := range map[string]struct {
		gates v1alpha1.FeatureGates
		want  string
	}{
		"none":           {nil, ""},
		"known":          {v1alpha1.FeatureGates{"Gang": true, "WatchList": false}, ""},
		"unknown":        {v1alpha1.FeatureGates{"Gang": true, "Nope": true}, "Nope cannot be true: unrecognized feature gate: Nope"},
		"locked":         {v1alpha1.FeatureGates{"Fixed": false}, "Fixed cannot be false: cannot set feature gate Fixed to false, feature is locked to true"},
		"both at once":   {v1alpha1.FeatureGates{"Fixed": false, "Nope": false}, "Fixed cannot be false: cannot set feature gate Fixed to false, feature is locked to true; Nope cannot be false: unrecognized feature gate: Nope"},
		"needs another":  {v1alpha1.FeatureGates{"Needs": true}, "they cannot be set together: Needs is enabled, but depends on features that are disabled: [Gang]"},
		"has the other":  {v1alpha1.FeatureGates{"Needs": true, "Gang": true}, ""},
		"without an err": {v1alpha1.FeatureGates{"Silent": true}, "Silent cannot be true: it will not"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := Check(t.Context(), []string{server, scheduler}, c.gates)
			refusal, refused := errors.AsType[*Refusal](err)
			if refused != (c.want != "") || err != nil && !refused {
				t.Fatalf("%v, want %q", err, c.want)
			}
			if refused && refusal.Error() != c.want {
				t.Errorf("%s\nwant %s", refusal, c.want)
			}
		})
	}
}

// A program that is not there, or that is ended, refuses nothing.
func TestCheckNobodyAsked(t *testing.T) {
	t.Parallel()
	killed := filepath.Join(t.TempDir(), "killed")
	if err := os.WriteFile(killed, []byte("#!/bin/sh\nkill -9 $$\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/nothing/is/here", killed} {
		err := Check(t.Context(), []string{path}, v1alpha1.FeatureGates{"Gang": true})
		if _, refused := errors.AsType[*Refusal](err); err == nil || refused || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestAlpha(t *testing.T) {
	t.Parallel()
	path := write(t, "kube-apiserver")
	got, err := Alpha(t.Context(), path, v1alpha1.FeatureGates{"Gang": true, "AllBeta": true, "AllAlpha": false, "WatchList": true})
	if diff := cmp.Diff([]string{"AllBeta", "Gang"}, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if got, err := Alpha(t.Context(), "/nothing/is/here", v1alpha1.FeatureGates{"Gang": false}); err != nil || len(got) > 0 {
		t.Errorf("%v, %v", got, err)
	}
}
