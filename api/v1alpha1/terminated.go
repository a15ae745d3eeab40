// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RecordTerminatedInstance is the spec.type of the AWSRecord of an instance that is gone and that EC2 still describes. It has the name of the
// machine, and its data is a TerminatedInstance.
const RecordTerminatedInstance = "terminated-instance"

// TerminatedInstance describes an instance that was terminated.
//
// +kubebuilder:object:generate=false
type TerminatedInstance struct {
	// Machine as it was, without its user data.
	Machine Machine `json:"machine"`
	// At is the time at which the instance ended.
	At metav1.Time `json:"at"`
}
