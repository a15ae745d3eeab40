// SPDX-License-Identifier: Apache-2.0

package kubeletcheck_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/internal/node/kubeletcheck"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/render"
)

// The kubelet's own validation judges what a person wrote: the program is the real one.
func TestKubeletsOwnValidation(t *testing.T) {
	run := kubeletcheck.Exec("../../../bin/" + kubeletcheck.Program)
	for name, test := range map[string]struct {
		config string
		flags  []string
		want   []string
	}{
		"nothing said":    {},
		"good":            {config: `{"maxPods": 20, "featureGates": {"NodeSwap": true}}`, flags: []string{"--v=4", "--eviction-hard=memory.available<5%"}},
		"a feature gate":  {config: `{"featureGates": {"NoSuchGate": true}}`, want: []string{"NoSuchGate"}},
		"one by flag":     {flags: []string{"--feature-gates=NoSuchGate=true"}, want: []string{"unrecognized feature gate: NoSuchGate"}},
		"a threshold":     {flags: []string{"--eviction-hard=nonsense"}, want: []string{`"nonsense" for "--eviction-hard"`}},
		"another":         {config: `{"evictionHard": {"memory.available": "oops"}}`, want: []string{"eviction: quantities must match"}},
		"too much memory": {config: `{"kubeReserved": {"memory": "99Gi"}}`, want: []string{`resource "memory" has a reservation of`}},
		"too many CPUs":   {flags: []string{"--system-reserved=cpu=5"}, want: []string{`resource "cpu" has a reservation of`}},
		"pods":            {flags: []string{"--max-pods=-5"}, want: []string{"maxPods (--max-pods) -5 must not be a negative number"}},
		"all at once": {
			config: `{"kubeAPIQPS": -3, "kubeReserved": {"memory": "99Gi"}}`, flags: []string{"--max-pods=-5"},
			want: []string{"kubeAPIQPS", "maxPods", `resource "memory"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := []render.File{{Path: "/etc/kubernetes/kubelet/config.json", Content: []byte(`{"kind":"KubeletConfiguration","apiVersion":"kubelet.config.k8s.io/v1beta1","failCgroupV1":false}`)}}
			if test.config != "" {
				var dropIn map[string]any
				if err := json.Unmarshal([]byte(test.config), &dropIn); err != nil {
					t.Fatal(err)
				}
				dropIn["kind"], dropIn["apiVersion"] = nodeconfig.KubeletKind, nodeconfig.KubeletAPIVersion
				raw, err := json.Marshal(dropIn)
				if err != nil {
					t.Fatal(err)
				}
				files = append(files, render.File{Path: "/etc/kubernetes/kubelet/config.json.d/40-nodeadm.conf", Content: raw})
			}
			err := kubeletcheck.Check(t.Context(), run, files, append([]string{"--config=/elsewhere"}, test.flags...), kubeletcheck.Machine{CPUs: 2, MemoryBytes: 8 << 30})
			problems, _ := errors.AsType[nodeconfig.Problems](err)
			if len(problems) != len(test.want) || err != nil && len(problems) == 0 {
				t.Fatalf("got %v", err)
			}
			for i, want := range test.want {
				if !strings.Contains(problems[i], want) {
					t.Errorf("%q is not in %q", want, problems[i])
				}
			}
		})
	}
}

// That it is not known whether a configuration is good is not that it is.
func TestProgramThatFails(t *testing.T) {
	for name, run := range map[string]kubeletcheck.Run{
		"not there": kubeletcheck.Exec(filepath.Join(t.TempDir(), kubeletcheck.Program)),
		"killed":    func(context.Context, []byte) ([]byte, int, error) { return nil, -1, nil },
		"silent":    func(context.Context, []byte) ([]byte, int, error) { return nil, 1, nil },
		"talkative": func(context.Context, []byte) ([]byte, int, error) { return []byte("hm\n"), 0, nil },
	} {
		err := kubeletcheck.Check(t.Context(), run, nil, nil, kubeletcheck.Machine{})
		if _, refused := errors.AsType[nodeconfig.Problems](err); err == nil || refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNeeded(t *testing.T) {
	for want, kubelets := range map[bool][]nodeconfig.Kubelet{
		false: {{}, {Flags: []string{"--node-labels=a=b"}}},
		true:  {{Config: map[string]any{"maxPods": 3}}, {Flags: []string{"--node-labels=a=b", "--v=4"}}},
	} {
		for _, kubelet := range kubelets {
			if got := kubeletcheck.Needed(nodeconfig.Spec{Kubelet: kubelet}); got != want {
				t.Errorf("%+v: %v", kubelet, got)
			}
		}
	}
}
