// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import corev1 "k8s.io/api/core/v1"

// NodeLabels are the labels that a node registers with. A kubelet does not start with labels that these rules exclude, so they are refused
// before a machine is made (kubernetes cmd/kubelet/app/options, ValidateKubeletFlags; k8s.io/kubelet/pkg/apis).
//
// +kubebuilder:validation:MaxProperties=50
// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k).hasValue())",message="a label's key is a name of at most 63 letters, digits, -, _ and ., after an optional DNS name and /"
// +kubebuilder:validation:XValidation:rule="self.all(k, !k.matches('^([^/]*[.])?(kubernetes|k8s)[.]io/') || k.matches('^([^/]*[.])?(kubelet|node)[.]kubernetes[.]io/') || k in ['kubernetes.io/hostname', 'kubernetes.io/os', 'kubernetes.io/arch', 'beta.kubernetes.io/os', 'beta.kubernetes.io/arch', 'beta.kubernetes.io/instance-type', 'topology.kubernetes.io/zone', 'topology.kubernetes.io/region', 'failure-domain.beta.kubernetes.io/zone', 'failure-domain.beta.kubernetes.io/region'])",message="of the labels below kubernetes.io and k8s.io a kubelet takes only those below node.kubernetes.io and kubelet.kubernetes.io and a few well-known ones"
type NodeLabels map[string]LabelValue

// LabelValue is the value of a label.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
type LabelValue string

// Strings returns the labels as Kubernetes' own types have them.
func (l NodeLabels) Strings() map[string]string {
	if l == nil {
		return nil
	}
	out := make(map[string]string, len(l))
	for key, value := range l {
		out[key] = string(value)
	}
	return out
}

// NodeTaints are the taints that a node registers with.
//
// +kubebuilder:validation:MaxItems=50
// +listType=map
// +listMapKey=key
// +listMapKey=effect
type NodeTaints []NodeTaint

// NodeTaint keeps pods that do not tolerate it off a node.
type NodeTaint struct {
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="!format.qualifiedName().validate(self).hasValue()",message="a taint's key is a name of at most 63 letters, digits, -, _ and ., after an optional DNS name and /"
	Key string `json:"key"`

	// +optional
	Value LabelValue `json:"value,omitempty"`

	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect corev1.TaintEffect `json:"effect"`
}

// Core returns the taints as Kubernetes' own types have them.
func (t NodeTaints) Core() []corev1.Taint {
	if t == nil {
		return nil
	}
	out := make([]corev1.Taint, 0, len(t))
	for _, taint := range t {
		out = append(out, corev1.Taint{Key: taint.Key, Value: string(taint.Value), Effect: taint.Effect})
	}
	return out
}
