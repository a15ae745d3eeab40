// SPDX-License-Identifier: Apache-2.0

package service

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/platform/statedir"
)

// Without a choice it is all clusters that are brought up, but for one that is being removed or damaged; the others do
// not wait for those.
func TestUpBringsUpAllClusters(t *testing.T) {
	t.Parallel()
	dir := statedir.Dir(t.TempDir())
	if err := os.Chmod(string(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{
		dir.Layout():                     "",
		dir.Cluster("blue").Record():     "{apiVersion: muster.dev/v1alpha1, kind: Cluster, spec: {name: blue}}\n",
		dir.Cluster("red").Record():      "{apiVersion: muster.dev/v1alpha1, kind: Cluster, spec: {name: red}}\n",
		dir.Cluster("broken").Record():   "{apiVersion: muster.dev/v1alpha1, kind: Cluster, spec: {colour: blue}}\n",
		dir.Cluster("going").Record():    "{apiVersion: muster.dev/v1alpha1, kind: Cluster, spec: {name: going}}\n",
		dir.Cluster("going").Deleting():  "",
		dir.Cluster("unborn").Issuer():   "{}",
		filepath.Join(string(dir), "f"):  "{apiVersion: muster.dev/v1alpha1, kind: Cluster, spec: {name: green}}\n",
		dir.Cluster("blue").Kubeconfig(): "",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		up   upOptions
		of   string // --cluster
		want []string
		talk string
		err  string
	}{
		"all":        {upOptions{}, "", []string{"blue", "red"}, "Warning: cluster broken is left out: ", ""},
		"one":        {upOptions{}, "red", []string{"red"}, "", ""},
		"a file":     {upOptions{file: filepath.Join(string(dir), "f")}, "", []string{"green"}, "", ""},
		"with nodes": {upOptions{nodes: 2, nodesSet: true}, "", nil, "", "there are several clusters: choose one with --cluster: "},
		"a dry run":  {upOptions{dryRun: true}, "", nil, "", "there are several clusters"},
	} {
		var talk bytes.Buffer
		up := test.up
		up.Options = &terminal.Options{Streams: terminal.Streams{Err: &talk}, StateDir: string(dir), Cluster: test.of}
		configs, err := up.wanted(dir, nil)
		if test.err != "" {
			if err == nil || !strings.HasPrefix(err.Error(), test.err) {
				t.Errorf("%s: %v, want %s", name, err, test.err)
			}
			continue
		}
		var got []string
		for _, config := range configs {
			got = append(got, config.Cluster.Spec.Name)
		}
		if err != nil || !slices.Equal(got, test.want) || !strings.HasPrefix(talk.String(), test.talk) || test.talk == "" && talk.Len() > 0 {
			t.Errorf("%s: %v, %q, want %q; said %q", name, err, got, test.want, &talk)
		}
	}
}
