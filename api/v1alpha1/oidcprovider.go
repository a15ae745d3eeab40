// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IAMOpenIDConnectProvider is an issuer of OpenID Connect tokens. Trust policies of roles can allow the subjects of its tokens.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=iamopenidconnectproviders,scope=Cluster,categories=iam
// +kubebuilder:printcolumn:name="ARN",type=string,JSONPath=`.spec.arn`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.spec.created`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.startsWith(self.spec.account + '.')",message="the name begins with the account and a dot"
type IAMOpenIDConnectProvider struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec IAMOpenIDConnectProviderSpec `json:"spec"`
}

// IAMOpenIDConnectProviderSpec describes an OpenID Connect provider.
//
// +kubebuilder:validation:XValidation:rule="self.arn == 'arn:aws:iam::' + self.account + ':oidc-provider/' + self.url",message="arn must be made of account and url"
type IAMOpenIDConnectProviderSpec struct {
	// Account is the id of the account.
	//
	// +kubebuilder:validation:Pattern=`^[0-9]{12}$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="account cannot be changed"
	Account string `json:"account"`

	// URL of the issuer, without https:// and port.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9.-]+(/[A-Za-z0-9._~%/-]*)?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="url cannot be changed"
	URL string `json:"url"`

	// ARN is composed of account and URL.
	//
	// +kubebuilder:validation:MaxLength=700
	ARN string `json:"arn"`

	// Created is the time at which the provider was created.
	Created metav1.Time `json:"created"`

	// ClientIDs are the token audiences that are accepted.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=255
	// +listType=set
	ClientIDs []string `json:"clientIDs,omitempty"`

	// Thumbprints of the certificates that may sign the issuer's TLS certificate. They are stored and returned as given.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:Pattern=`^[0-9A-Fa-f]{40}$`
	// +listType=atomic
	Thumbprints []string `json:"thumbprints,omitempty"`

	// +optional
	Tags IAMTags `json:"tags,omitempty"`
}

// IAMOpenIDConnectProviderList is a list of OpenID Connect providers.
//
// +kubebuilder:object:root=true
type IAMOpenIDConnectProviderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []IAMOpenIDConnectProvider `json:"items"`
}
