// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkLabels refuses a value of --node-labels that the kubelet refuses to start with
// (cmd/kubelet/app/options/options.go, ValidateKubeletFlags), so that it is said where the label was written.
func checkLabels(path *field.Path, value string) field.ErrorList {
	var problems field.ErrorList
	labels := map[string]string{}
	for pair := range strings.SplitSeq(value, ",") {
		key, label, ok := strings.Cut(pair, "=")
		switch key = strings.TrimSpace(key); {
		case pair == "":
		case !ok:
			problems = append(problems, field.Invalid(path, pair, "a label of --node-labels must be written key=value"))
		case isKubernetesLabel(key) && !isKubeletLabel(key):
			problems = append(problems, field.Invalid(path, key, fmt.Sprintf("the kubelet may not set this label on its own Node; "+
				"use another prefix, one of kubelet.kubernetes.io/ and node.kubernetes.io/, or label the Node from the cluster: kubectl label node NAME %s=%s", key, label)))
		default:
			labels[key] = strings.TrimSpace(label)
		}
	}
	return append(problems, metav1validation.ValidateLabels(labels, path)...)
}

// isKubernetesLabel reports whether the key belongs to Kubernetes.
func isKubernetesLabel(key string) bool {
	namespace := labelNamespace(key)
	return slices.ContainsFunc([]string{"kubernetes.io", "k8s.io"}, func(suffix string) bool {
		return namespace == suffix || strings.HasSuffix(namespace, "."+suffix)
	})
}

// isKubeletLabel reports whether kubelets may set that label on their own Nodes (k8s.io/kubelet,
// pkg/apis/well_known_labels.go).
func isKubeletLabel(key string) bool {
	if slices.Contains([]string{
		corev1.LabelHostname, corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaZone,
		corev1.LabelFailureDomainBetaRegion, corev1.LabelInstanceType, corev1.LabelInstanceTypeStable, corev1.LabelOSStable,
		corev1.LabelArchStable, "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
	}, key) {
		return true
	}
	namespace := labelNamespace(key)
	return slices.ContainsFunc([]string{corev1.LabelNamespaceSuffixKubelet, corev1.LabelNamespaceSuffixNode}, func(suffix string) bool {
		return namespace == suffix || strings.HasSuffix(namespace, "."+suffix)
	})
}

func labelNamespace(key string) string {
	namespace, _, ok := strings.Cut(key, "/")
	if !ok {
		return ""
	}
	return namespace
}
