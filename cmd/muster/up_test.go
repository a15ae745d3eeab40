// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/platform/statedir"
)

// Flags that cannot be honoured are refused before anything is started, also if a cluster exists.
func TestUpRefuses(t *testing.T) {
	t.Parallel()
	const cluster = "apiVersion: muster.dev/v1alpha1\nkind: Cluster\nmetadata: {name: muster}\n---\n" +
		"apiVersion: muster.dev/v1alpha1\nkind: NodeGroup\nspec: {provider: local, scalingConfig: {desiredSize: 1}}\nmetadata: {name: "
	for _, test := range []struct {
		group string
		args  []string
		code  int
		want  string
	}{
		{"default", []string{"--provider", "magic"}, 1, `unknown --provider "magic"; there are: local, simulated`},
		{"default", []string{"--region", "moon-1"}, 1, `--region: unknown region "moon-1"; there are: af-south-1, ap-east-1, `},
		{"default", []string{"--region", "us-east-1a", "--dry-run"}, 1, `--region: unknown region "us-east-1a"; there are: `},
		{"default", []string{"--provider", "simulated"}, 1, "--provider: the machines of node group default are local ones, and stay so"},
		{"default", []string{"--provider", "simulated", "--nodes", "2"}, 1, "--provider: the machines of node group default are local ones"},
		{"default", []string{"--nodes", "9"}, 1, "--nodes: node group default may have 5 machines at most (spec.scalingConfig.maxSize), and is to have 9: raise it, too, as `muster scale nodegroup default 9 --max 9` does"},
		{"other", []string{"--provider", "simulated"}, 1, `--provider: this cluster was set up without a node group "default"`},
		{"other", []string{"--nodes", "2"}, 1, `--nodes: this cluster was set up without a node group "default"`},
		{"other", []string{"--filename", "x.yaml", "--nodes", "2"}, 2, "--auto, --nodes, --provider, --simulate-pods and --version say what a file says: give either them or --file"},
	} {
		path := t.TempDir()
		if err := os.Chmod(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(statedir.Dir(path).Layout(), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		record := statedir.Dir(path).Cluster("muster").Record()
		if err := os.MkdirAll(filepath.Dir(record), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(record, []byte(cluster+test.group+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, talk bytes.Buffer
		code := run(append([]string{"--state-dir", path, "up"}, test.args...), terminal.Streams{Out: &out, Err: &talk})
		if code != test.code || !strings.HasPrefix(talk.String(), "Error: "+test.want) || out.Len() > 0 {
			t.Errorf("%v: exit %d, printed %q, said %q", test.args, code, &out, &talk)
		}
	}
}

func TestAnEmptyStateDirectoryIsNotThisOne(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"down", "--delete"}, {"csr", "list"}} {
		var out, talk bytes.Buffer
		code := run(append([]string{"--state-dir", ""}, args...), terminal.Streams{Out: &out, Err: &talk})
		if code != 2 || talk.String() != "Error: --state-dir is empty: name a directory, or leave it out\n" {
			t.Errorf("%v: exit %d, said %q", args, code, &talk)
		}
	}
}

// The usage of a command far below is told once.
func TestUsageIsToldOnce(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"env", "foo"}, {"node", "config", "foo"}, {"node", "config", "show", "foo"}, {"auth", "check", "a", "b"}} {
		var out, talk bytes.Buffer
		if code := run(args, terminal.Streams{Out: &out, Err: &talk}); code != 2 || strings.Count(talk.String(), "usage:") != 1 {
			t.Errorf("%v: exit %d, said %q", args, code, &talk)
		}
	}
}
