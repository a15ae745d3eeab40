// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RecordTerminatedInstance is the spec.type of the AWSRecord of an instance that is gone and that EC2 still describes. It has the name of the
// machine, and its data is a TerminatedInstance.
const RecordTerminatedInstance = "terminated-instance"

// TerminatedInstance is what is remembered of an instance.
//
// +kubebuilder:object:generate=false
type TerminatedInstance struct {
	// Machine as it was, without its user data.
	Machine Machine `json:"machine"`
	// At is when it was gone.
	At metav1.Time `json:"at"`
}
