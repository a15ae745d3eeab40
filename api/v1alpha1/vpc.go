// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

const (
	// FinalizerVPC keeps a VPC until its subnets and its network are removed.
	FinalizerVPC = "muster.dev/vpc"
	// FinalizerSubnet keeps a Subnet until no machine and no API server has an address in it.
	FinalizerSubnet = "muster.dev/subnet"
)

// VPC is a private network of the account: an address range, divided into Subnets. Two VPCs may have the same range; there is no route
// between VPCs. Its name is its id.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=muster
// +kubebuilder:printcolumn:name="CIDR",type=string,JSONPath=`.spec.cidrBlock`
// +kubebuilder:printcolumn:name="Default",type=boolean,JSONPath=`.spec.isDefault`
// +kubebuilder:printcolumn:name="Egress",type=string,JSONPath=`.spec.egress.mode`
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

// VPCSpec describes a VPC. cidrBlock and isDefault cannot be changed.
//
// +kubebuilder:validation:XValidation:rule="self.?isDefault.orValue(false) == oldSelf.?isDefault.orValue(false)",message="isDefault cannot be changed; make another VPC",fieldPath=".isDefault"
type VPCSpec struct {
	// CIDRBlock is the address range, from /16 to /28.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=18
	// +kubebuilder:validation:XValidation:rule="isCIDR(self) && cidr(self).ip().family() == 4 && cidr(self) == cidr(self).masked() && cidr(self).ip().isGlobalUnicast() && cidr(self).prefixLength() >= 16 && cidr(self).prefixLength() <= 28",message="must be an IPv4 network from /16 to /28, as 172.31.0.0/16"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cidrBlock cannot be changed; make another VPC"
	CIDRBlock string `json:"cidrBlock"`

	// IsDefault marks the account's default VPC, for clusters that name no subnets. The service creates it at its first start.
	//
	// +optional
	IsDefault bool `json:"isDefault,omitempty"`

	// EnableDNSHostnames is stored and returned by the EC2 API. It has no effect: instances have no public addresses.
	//
	// +optional
	EnableDNSHostnames bool `json:"enableDnsHostnames,omitempty"`

	// Egress configures connections to addresses outside the VPC.
	//
	// +optional
	Egress VPCEgress `json:"egress,omitzero"`

	// +optional
	Tags Tags `json:"tags,omitempty"`
}

// EgressMode is the way in which connections leave a VPC.
//
// +kubebuilder:validation:Enum=NAT;None
type EgressMode string

const (
	// EgressNAT allows machines and pods to open connections to addresses outside, by sockets of the host.
	EgressNAT EgressMode = "NAT"
	// EgressNone allows no connections to addresses outside.
	EgressNone EgressMode = "None"
)

// VPCEgress configures connections to addresses outside the VPC. Of the ranges that contain an address, the most specific one decides. The
// host's own addresses, loopback, link-local and metadata addresses cannot be reached. Addresses in 10.0.0.0/8, 172.16.0.0/12,
// 192.168.0.0/16 and 100.64.0.0/10 can be reached only if allowedRanges contains them.
type VPCEgress struct {
	// Mode is NAT or None. If omitted, it is None. The default VPC of a new account has NAT.
	//
	// +optional
	Mode EgressMode `json:"mode,omitempty"`

	// AllowedRanges are private ranges that can be reached in addition to public addresses, and exceptions from deniedRanges.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=18
	// +kubebuilder:validation:XValidation:rule="self.all(r, isCIDR(r) && cidr(r).ip().family() == 4 && cidr(r) == cidr(r).masked())",message="must be ranges of IPv4 addresses, as 10.20.0.0/16"
	AllowedRanges []string `json:"allowedRanges,omitempty"`

	// DeniedRanges cannot be reached.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=18
	// +kubebuilder:validation:XValidation:rule="self.all(r, isCIDR(r) && cidr(r).ip().family() == 4 && cidr(r) == cidr(r).masked())",message="must be ranges of IPv4 addresses, as 203.0.113.0/24"
	DeniedRanges []string `json:"deniedRanges,omitempty"`
}

// VPCStatus is the observed state of a VPC.
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

// Subnet is a part of a VPC's address range in one availability zone. Its first four addresses and its last one are reserved. Its name is
// its id. The condition Ready reports whether it is within the VPC's range and overlaps no other subnet.
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

// SubnetSpec describes a subnet. vpcID, cidrBlock and availabilityZone cannot be changed.
type SubnetSpec struct {
	// VPCID is the VPC of the subnet.
	//
	// +kubebuilder:validation:Pattern=`^vpc-[0-9a-f]{17}$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="vpcID cannot be changed; make another subnet"
	VPCID string `json:"vpcID"`

	// CIDRBlock is the address range, from /16 to /28, within that of the VPC.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=18
	// +kubebuilder:validation:XValidation:rule="isCIDR(self) && cidr(self).ip().family() == 4 && cidr(self) == cidr(self).masked() && cidr(self).ip().isGlobalUnicast() && cidr(self).prefixLength() >= 16 && cidr(self).prefixLength() <= 28",message="must be an IPv4 network from /16 to /28, as 172.31.0.0/20"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cidrBlock cannot be changed; make another subnet"
	CIDRBlock string `json:"cidrBlock"`

	// AvailabilityZone of the subnet, such as us-east-1a.
	//
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z]+(-[a-z]+)+-[0-9]+[a-z]$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="availabilityZone cannot be changed; make another subnet"
	AvailabilityZone string `json:"availabilityZone"`

	// MapPublicIPOnLaunch is stored and returned by the EC2 API. It has no effect: instances have no public addresses.
	//
	// +optional
	MapPublicIPOnLaunch bool `json:"mapPublicIpOnLaunch,omitempty"`

	// +optional
	Tags Tags `json:"tags,omitempty"`
}

// SubnetStatus is the observed state of a subnet.
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
