// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// KubeletAuthorityStep is one step of rotating the certificate authority of kubelets.
//
// +kubebuilder:validation:Enum=Create;Activate;Delete
type KubeletAuthorityStep string

// The steps.
const (
	// KubeletAuthorityCreate makes an authority that is trusted but does not sign.
	KubeletAuthorityCreate KubeletAuthorityStep = "Create"
	// KubeletAuthorityActivate makes the authority sign.
	KubeletAuthorityActivate KubeletAuthorityStep = "Activate"
	// KubeletAuthorityDelete removes an authority that does not sign.
	KubeletAuthorityDelete KubeletAuthorityStep = "Delete"
)

// KubeletAuthorityRequest requests one step. It is carried out once.
type KubeletAuthorityRequest struct {
	// ID identifies the request.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ID string `json:"id"`

	Step KubeletAuthorityStep `json:"step"`

	// Authority is the id of the authority concerned, or the id for a new one.
	//
	// +kubebuilder:validation:Pattern=`^ca-[0-9a-f]{17}$`
	// +kubebuilder:validation:MaxLength=20
	Authority string `json:"authority"`
}

// KubeletAuthorityAnswer is the result of a request.
type KubeletAuthorityAnswer struct {
	ID string `json:"id"`

	// Refused explains why the request was not carried out. It is empty if it was.
	//
	// +optional
	Refused string `json:"refused,omitempty"`
}

// KubeletAuthorityDistribution is the progress of distributing trust in an authority.
type KubeletAuthorityDistribution string

// The states of distribution.
const (
	KubeletAuthorityInProgress KubeletAuthorityDistribution = "InProgress"
	KubeletAuthorityComplete   KubeletAuthorityDistribution = "Complete"
	KubeletAuthorityDeleting   KubeletAuthorityDistribution = "Deleting"
)

// KubeletAuthority is a certificate authority of kubelets.
type KubeletAuthority struct {
	// ID in the EKS API.
	ID string `json:"id"`

	// Name of the authority in the output of `muster certs`, such as kubelet-1.
	Name string `json:"name"`

	// Signs reports whether this authority signs.
	//
	// +optional
	Signs bool `json:"signs,omitempty"`

	// Asked reports whether the EKS API requested it.
	//
	// +optional
	Asked bool `json:"asked,omitempty"`

	// Removable reports whether it can be deleted.
	//
	// +optional
	Removable bool `json:"removable,omitempty"`

	Distribution KubeletAuthorityDistribution `json:"distribution"`

	// Message describes what the rotation is waiting for. It is empty if it waits for nothing.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// Data is the certificate: PEM in base64.
	Data string `json:"data"`

	NotBefore metav1.Time `json:"notBefore"`
	NotAfter  metav1.Time `json:"notAfter"`
}
