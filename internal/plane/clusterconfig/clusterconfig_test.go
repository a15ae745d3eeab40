// SPDX-License-Identifier: Apache-2.0

package clusterconfig

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/api/v1alpha1"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases in testdata: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got string
			if config, err := Parse("muster.yaml", data); err != nil {
				got = err.Error() + "\n"
			} else {
				got = string(encode(t, config))
			}
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		})
	}
}

// encode writes a configuration as a file that says it in full.
func encode(t *testing.T, config Config) []byte {
	t.Helper()
	objects := []any{config.Cluster}
	for _, group := range config.NodeGroups {
		objects = append(objects, group)
	}
	var parts [][]byte
	for _, object := range objects {
		part, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, part)
	}
	return bytes.Join(parts, []byte("---\n"))
}

func TestDefault(t *testing.T) {
	tests := []struct {
		nodes    int
		provider v1alpha1.Provider
		podCIDR  string
		problem  string
	}{
		{3, v1alpha1.ProviderLocal, "", ""},
		{0, v1alpha1.ProviderLocal, "", ""},
		{256, v1alpha1.ProviderLocal, "", ""},
		{257, v1alpha1.ProviderLocal, "10.224.0.0/11", ""},
		{5000, v1alpha1.ProviderSimulated, "10.224.0.0/11", ""},
		{-1, v1alpha1.ProviderLocal, "", "NodeGroup default: spec.scalingConfig.desiredSize: Invalid value: -1: must be from 0 to 5000"},
		{5001, v1alpha1.ProviderLocal, "10.224.0.0/11", "NodeGroup default: spec.scalingConfig.desiredSize: Invalid value: 5001: must be from minSize, 0, to maxSize, 5000"},
		{3, "ec2", "", `NodeGroup default: spec.provider: Unsupported value: "ec2": supported values: "local", "simulated"`},
	}
	for _, test := range tests {
		t.Run(fmt.Sprint(test.nodes, test.provider), func(t *testing.T) {
			config := Default(test.nodes, test.provider)
			if got := config.Cluster.Spec.Network.PodCIDR; got != test.podCIDR {
				t.Errorf("podCIDR = %s, want %s", got, test.podCIDR)
			}
			problem := ""
			if err := config.Validate(); err != nil {
				problem = err.Error()
			}
			if problem != test.problem {
				t.Errorf("Validate says %q, want %q", problem, test.problem)
			}
			if test.problem != "" {
				return
			}
			// Written out and read again it is the same.
			again, err := Parse("again.yaml", encode(t, config))
			if err != nil {
				t.Fatal(err)
			}
			config.DefaultMax = nil // the written file has maxSize
			if diff := cmp.Diff(config, again); diff != "" {
				t.Errorf("read again (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRead(t *testing.T) {
	if _, err := Read(filepath.Join(t.TempDir(), "absent.yaml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading an absent file: %v", err)
	}
	huge := filepath.Join(t.TempDir(), "huge.yaml")
	if err := os.WriteFile(huge, bytes.Repeat([]byte("# x\n"), maxSize/4+1), 0o600); err != nil {
		t.Fatal(err)
	}
	var problems *Problems
	if _, err := Read(huge); !errors.As(err, &problems) || !strings.Contains(err.Error(), "is larger than") {
		t.Errorf("reading a huge file: %v", err)
	}
	config, err := Read("testdata/full.yaml")
	if err != nil || len(config.NodeGroups) != 2 {
		t.Errorf("reading a good file: %+v, %v", config, err)
	}
}

// FuzzParse: whatever a file holds, it is either a valid configuration that survives being written and read, or
// Problems.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("{apiVersion: muster.dev/v1alpha1, kind: Cluster, metadata: [], spec: 3}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		config, err := Parse("fuzz.yaml", data)
		var problems *Problems
		if err != nil {
			if !errors.As(err, &problems) || len(problems.List) == 0 {
				t.Fatalf("not Problems: %v", err)
			}
			return
		}
		if err := config.Validate(); err != nil {
			t.Fatalf("read, but not valid: %v", err)
		}
		again, err := Parse("again.yaml", encode(t, config))
		if err != nil {
			t.Fatalf("written out it cannot be read: %v", err)
		}
		if diff := cmp.Diff(encode(t, config), encode(t, again)); diff != "" {
			t.Errorf("read again (-want +got):\n%s", diff)
		}
	})
}
