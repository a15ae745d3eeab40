// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

const (
	// FinalizerVPC keeps a VPC until its subnets are gone, and its network with them.
	FinalizerVPC = "muster.dev/vpc"
	// FinalizerSubnet keeps a Subnet until no machine and no endpoint of a cluster has an address of it.
	FinalizerSubnet = "muster.dev/subnet"
)

// VPC is a private network of the account: a range of addresses, of which Subnets are parts. Two VPCs may have the same range; nothing of one
// reaches the other. Its name is its id.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=muster
// +kubebuilder:printcolumn:name="CIDR",type=string,JSONPath=`.spec.cidrBlock`
// +kubebuilder:printcolumn:name="Default",type=boolean,JSONPath=`.spec.isDefault`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^vpc-[0-9a-f]{17}$')",message="a VPC's name is its id: vpc- and 17 hexadecimal digits"
type VPC struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec VPCSpec `json:"spec"`

	// +optional
	Status VPCStatus `json:"status,omitzero"`
}

// VPCSpec describes a VPC. Its range and whether it is the default are fixed when it is made.
//
// +kubebuilder:validation:XValidation:rule="self.cidrBlock == oldSelf.cidrBlock && (has(self.isDefault) && self.isDefault) == (has(oldSelf.isDefault) && oldSelf.isDefault)",message="the range of a VPC, and whether it is the default, cannot be changed; make another one"
type VPCSpec struct {
	// CIDRBlock is the range of its addresses, from /16 to /28.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=18
	// +kubebuilder:validation:XValidation:rule="isCIDR(self) && cidr(self).ip().family() == 4 && cidr(self) == cidr(self).masked() && cidr(self).ip().isGlobalUnicast() && cidr(self).prefixLength() >= 16 && cidr(self).prefixLength() <= 28",message="must be an IPv4 network from /16 to /28, as 172.31.0.0/16"
	CIDRBlock string `json:"cidrBlock"`

	// IsDefault marks the account's default VPC, which clusters are in that name no subnets. The service makes it at the first start.
	//
	// +optional
	IsDefault bool `json:"isDefault,omitempty"`

	// EnableDNSHostnames is a record, which AWS's API reads back: instances have no public addresses, so they have no public names either way.
	//
	// +optional
	EnableDNSHostnames bool `json:"enableDnsHostnames,omitempty"`

	// +optional
	Tags Tags `json:"tags,omitempty"`
}

// VPCStatus is what the service observed.
type VPCStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// VPCList is a list of VPCs.
//
// +kubebuilder:object:root=true
type VPCList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []VPC `json:"items"`
}

// Subnet is a part of a VPC's range, in one availability zone. The first four of its addresses and the last one are reserved. Its name is its
// id. That it is within its VPC's range and apart from the other subnets is what its condition Ready says.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=muster
// +kubebuilder:printcolumn:name="VPC",type=string,JSONPath=`.spec.vpcID`
// +kubebuilder:printcolumn:name="CIDR",type=string,JSONPath=`.spec.cidrBlock`
// +kubebuilder:printcolumn:name="Zone",type=string,JSONPath=`.spec.availabilityZone`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^subnet-[0-9a-f]{17}$')",message="a subnet's name is its id: subnet- and 17 hexadecimal digits"
type Subnet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec SubnetSpec `json:"spec"`

	// +optional
	Status SubnetStatus `json:"status,omitzero"`
}

// SubnetSpec describes a subnet. Its VPC, range and zone are fixed when it is made.
//
// +kubebuilder:validation:XValidation:rule="self.vpcID == oldSelf.vpcID && self.cidrBlock == oldSelf.cidrBlock && self.availabilityZone == oldSelf.availabilityZone",message="the VPC, the range and the zone of a subnet cannot be changed; make another one"
type SubnetSpec struct {
	// VPCID is the VPC that it is a part of.
	//
	// +kubebuilder:validation:Pattern=`^vpc-[0-9a-f]{17}$`
	VPCID string `json:"vpcID"`

	// CIDRBlock is the range of its addresses, from /16 to /28, within that of the VPC.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=18
	// +kubebuilder:validation:XValidation:rule="isCIDR(self) && cidr(self).ip().family() == 4 && cidr(self) == cidr(self).masked() && cidr(self).ip().isGlobalUnicast() && cidr(self).prefixLength() >= 16 && cidr(self).prefixLength() <= 28",message="must be an IPv4 network from /16 to /28, as 172.31.0.0/20"
	CIDRBlock string `json:"cidrBlock"`

	// AvailabilityZone is one of the region's, as us-east-1a.
	//
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z]+(-[a-z]+)+-[0-9]+[a-z]$`
	AvailabilityZone string `json:"availabilityZone"`

	// MapPublicIPOnLaunch is a record, which AWS's API reads back: instances have no public addresses.
	//
	// +optional
	MapPublicIPOnLaunch bool `json:"mapPublicIpOnLaunch,omitempty"`

	// +optional
	Tags Tags `json:"tags,omitempty"`
}

// SubnetStatus is what the service observed.
type SubnetStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SubnetList is a list of subnets.
//
// +kubebuilder:object:root=true
type SubnetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Subnet `json:"items"`
}
