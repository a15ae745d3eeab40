// SPDX-License-Identifier: Apache-2.0

package simulated

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/userdata"
)

// registration is what a Node says of itself because its machine was told so.
type registration struct {
	labels  map[string]string
	taints  []corev1.Taint
	maxPods int32
}

// configure reads the user data that a real machine would ask for. Scripts in there do not run: there is no machine to
// run them on.
func (k *kubelet) configure() error {
	raw, err := os.ReadFile(filepath.Join(k.simulator.config.State.Machine(k.record.ID), machine.UserDataFile))
	if err != nil {
		return fmt.Errorf("reading user data of the simulated machine: %w", err)
	}
	parts, err := userdata.Read(raw)
	if err != nil {
		return err
	}
	documents, _ := userdata.NodeConfigs(parts)
	merged, err := nodeconfig.Read(documents, false)
	if err != nil {
		return err
	}
	if problems := merged.Spec.Validate(); len(problems) > 0 {
		return fmt.Errorf("NodeConfig: %w", problems.ToAggregate())
	}
	k.config = merged.Spec
	k.registration, err = register(merged.Spec.Kubelet, k.record.Type)
	return err
}

// register works out what a kubelet with these settings would register as.
func register(kubelet nodeconfig.Kubelet, instanceType string) (registration, error) {
	r := registration{labels: map[string]string{}}
	for _, flag := range kubelet.Flags {
		if list, ok := strings.CutPrefix(flag, "--node-labels="); ok {
			maps.Copy(r.labels, readLabels(list))
		}
	}
	raw, err := json.Marshal(kubelet.Config["registerWithTaints"])
	if err := errors.Join(err, json.Unmarshal(raw, &r.taints)); err != nil {
		return r, fmt.Errorf("spec.kubelet.config.registerWithTaints: %w", err)
	}
	pods, given := kubelet.MaxPods()
	if !given {
		if pods, _, err = nodeconfig.MaxPods(instanceType, kubelet.MaxPodsExpression); err != nil {
			return r, err
		}
	}
	r.maxPods = pods
	return r, nil
}

func readLabels(list string) map[string]string {
	labels := map[string]string{}
	for pair := range strings.SplitSeq(list, ",") {
		if key, value, ok := strings.Cut(pair, "="); ok {
			labels[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	return labels
}
