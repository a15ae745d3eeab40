// SPDX-License-Identifier: Apache-2.0

package nodegroupspec

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/api/v1alpha1"
)

// ParseLabels reads labels, each as key=value.
func ParseLabels(pairs []string) (v1alpha1.NodeLabels, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	labels := v1alpha1.NodeLabels{}
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("invalid label %q: must be key=value", pair)
		}
		if old, ok := labels[key]; ok && string(old) != value {
			return nil, fmt.Errorf("label %s is given twice, as %q and %q", key, old, value)
		}
		labels[key] = v1alpha1.LabelValue(value)
	}
	return labels, nil
}

// ParseTaints reads taints, each as key=value:Effect or key:Effect.
func ParseTaints(texts []string) (v1alpha1.NodeTaints, error) {
	var taints v1alpha1.NodeTaints
	for _, text := range texts {
		pair, effect, ok := strings.Cut(text, ":")
		key, value, _ := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("invalid taint %q: must be key=value:Effect or key:Effect", text)
		}
		switch e := corev1.TaintEffect(effect); e {
		case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
			taints = append(taints, v1alpha1.NodeTaint{Key: key, Value: v1alpha1.LabelValue(value), Effect: e})
		default:
			return nil, fmt.Errorf("taint %q has the effect %q; there are: NoSchedule, PreferNoSchedule, NoExecute", text, effect)
		}
	}
	return taints, nil
}

// Labels lists labels by key, as in a=b,c=d; "none" if there are none.
func Labels(labels v1alpha1.NodeLabels) string {
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		texts = append(texts, key+"="+string(labels[key]))
	}
	return cmp.Or(strings.Join(texts, ","), "none")
}

// Taints lists taints in their order, as in a=b:NoSchedule,c:NoExecute; "none" if there are none.
func Taints(taints v1alpha1.NodeTaints) string {
	var texts []string
	for _, t := range taints.Core() {
		texts = append(texts, t.ToString())
	}
	return cmp.Or(strings.Join(texts, ","), "none")
}
