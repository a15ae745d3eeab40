// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"muster.dev/muster/internal/node/nodehealth"
)

func TestProcessesOfAMachine(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		threads, zombies int
		forks            bool
		want             []nodehealth.Reason
	}{
		"well":                      {699, 19, false, nil},
		"a pod has used up its own": {699, 0, true, nil},
		"many":                      {700, 0, true, []nodehealth.Reason{nodehealth.PIDsRunOut}},
		"all":                       {900, 0, true, []nodehealth.Reason{nodehealth.PIDsRunOut, nodehealth.ForkFailed}},
		"all, and nobody minds":     {1000, 0, false, []nodehealth.Reason{nodehealth.PIDsRunOut}},
		"zombies":                   {20, 20, false, []nodehealth.Reason{nodehealth.ZombiesGather}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := slices.Sorted(maps.Keys(processes(test.threads, test.zombies, 1000, test.forks))); !slices.Equal(got, test.want) {
				t.Errorf("found %v, want %v", got, test.want)
			}
		})
	}
}

func TestSigns(t *testing.T) {
	t.Parallel()
	var s signs
	s.runs("containerd")
	for _, program := range []string{"containerd", "kubelet", "kube-proxy", "another"} {
		s.fails(program, errors.New("exit status 1"))
	}
	want := map[nodehealth.Reason]string{
		nodehealth.ContainerdRestarts: "containerd ends again and again: exit status 1", nodehealth.KubeletRestarts: "kubelet ends again and again: exit status 1",
		nodehealth.KubeProxyRestarts: "kube-proxy ends again and again: exit status 1",
	}
	if got := s.restarts(); !maps.Equal(got, want) {
		t.Errorf("it is %v", got)
	}
	for _, program := range []string{"containerd", "kubelet", "kube-proxy"} {
		s.runs(program)
	}
	if got := s.restarts(); len(got) > 0 {
		t.Errorf("afterwards it is %v", got)
	}
}
