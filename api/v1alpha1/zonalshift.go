// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnnotationZonalShift is on each Node of a zone that a zonal shift moves its cluster away from. Its value says whether the shift has cordoned the
// Node: [NodeCordonedByShift], or [NodeCordonedBefore], which the end of the shift leaves as it is.
const AnnotationZonalShift = "muster.dev/zonal-shift"

// The values of AnnotationZonalShift.
const (
	NodeCordonedByShift = "cordoned"
	NodeCordonedBefore  = "was-cordoned"
)

// LabelZonalShift is on each EndpointSlice that a zonal shift keeps endpoints out of. Its value is the name of the zone.
const LabelZonalShift = "muster.dev/zonal-shift"

// ConditionApplied on a ZonalShift is True while no pod of the zone gets requests by a Service, and False while the shift is being applied or undone.
const ConditionApplied = "Applied"

// ClusterZonalShift is the zonalShiftConfig of EKS.
type ClusterZonalShift struct {
	// Enabled lets zonal shifts of the cluster be started. API servers of Kubernetes 1.34 and 1.35 have the feature gate MutatingAdmissionPolicy while it
	// is true.
	Enabled bool `json:"enabled"`
}

// On reports whether zonal shifts can be started.
func (z *ClusterZonalShift) On() bool { return z != nil && z.Enabled }

// ZonalShift moves a cluster away from one availability zone until it expires or is cancelled, as Application Recovery Controller does. It is in the
// namespace of its cluster. Its name is the id in the API of ARC. A cluster has one active shift at most: of two, the older one is applied, and the
// other one ends.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories=muster
// +kubebuilder:printcolumn:name="AwayFrom",type=string,JSONPath=`.spec.awayFrom`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.spec.expiryTime`
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.conditions[?(@.type=="Applied")].status`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ZonalShift struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec ZonalShiftSpec `json:"spec"`

	// +optional
	Status ZonalShiftStatus `json:"status,omitzero"`
}

// ZonalShiftSpec describes a zonal shift.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.canceled) || !oldSelf.canceled || has(self.canceled) && self.canceled",message="a cancelled zonal shift stays cancelled; start another one",fieldPath=".canceled"
type ZonalShiftSpec struct {
	// ClusterName is the spec.name of the cluster.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the cluster of a zonal shift cannot be changed; start another one"
	ClusterName string `json:"clusterName"`

	// AwayFrom is the name of the availability zone, such as us-east-1a.
	//
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z]{2}(-[a-z]+)+-[0-9][a-z]$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the zone of a zonal shift cannot be changed; cancel it and start another one"
	AwayFrom string `json:"awayFrom"`

	// ExpiryTime is the time at which the shift ends by itself. It can be changed while the shift is active.
	ExpiryTime metav1.Time `json:"expiryTime"`

	// Comment says why. ARC requires one; it may be empty.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Comment string `json:"comment,omitempty"`

	// Canceled ends the shift.
	//
	// +optional
	Canceled bool `json:"canceled,omitempty"`
}

// ZonalShiftPhase is the status of a zonal shift in the API of ARC.
//
// +kubebuilder:validation:Enum=ACTIVE;EXPIRED;CANCELED
type ZonalShiftPhase string

// The phases.
const (
	ZonalShiftActive   ZonalShiftPhase = "ACTIVE"
	ZonalShiftExpired  ZonalShiftPhase = "EXPIRED"
	ZonalShiftCanceled ZonalShiftPhase = "CANCELED"
)

// ZonalShiftStatus is the observed state of a zonal shift.
type ZonalShiftStatus struct {
	// Phase is EXPIRED or CANCELED once the shift has ended, for good. Empty means that it has not been looked at.
	//
	// +optional
	Phase ZonalShiftPhase `json:"phase,omitempty"`

	// EndedAt is the time at which the shift was found to have ended.
	//
	// +optional
	EndedAt *metav1.Time `json:"endedAt,omitempty"`

	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PhaseAt returns the phase of the shift at a moment: a shift whose expiry has passed is EXPIRED before anybody has written it down.
func (s *ZonalShift) PhaseAt(now time.Time) ZonalShiftPhase {
	switch {
	case s.Status.Phase == ZonalShiftExpired, s.Status.Phase == ZonalShiftCanceled:
		return s.Status.Phase
	case s.Spec.Canceled:
		return ZonalShiftCanceled
	case !now.Before(s.Spec.ExpiryTime.Time):
		return ZonalShiftExpired
	}
	return ZonalShiftActive
}

// ZonalShiftList is a list of zonal shifts.
//
// +kubebuilder:object:root=true
type ZonalShiftList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []ZonalShift `json:"items"`
}
