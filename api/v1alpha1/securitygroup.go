// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FinalizerSecurityGroup keeps a SecurityGroup until no machine and no API server uses it, and its rules are no longer in force.
const FinalizerSecurityGroup = "muster.dev/securitygroup"

// DefaultSecurityGroup is the name of the security group that every VPC has.
const DefaultSecurityGroup = "default"

// SecurityGroup is a set of rules for connections to and from machines and API servers in one VPC. Connections that no rule allows are
// dropped. Its name is its id. The condition Ready reports whether its rules are in force.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=sg,categories=muster
// +kubebuilder:printcolumn:name="VPC",type=string,JSONPath=`.spec.vpcID`
// +kubebuilder:printcolumn:name="Group",type=string,JSONPath=`.spec.groupName`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^sg-[0-9a-f]{17}$')",message="a security group's name is its id: sg- and 17 hexadecimal digits"
type SecurityGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec SecurityGroupSpec `json:"spec"`

	// +optional
	Status SecurityGroupStatus `json:"status,omitzero"`
}

// SecurityGroupSpec describes a security group. Only rules and tags can be changed.
//
// +kubebuilder:validation:XValidation:rule="has(self.clusterName) == has(oldSelf.clusterName)",message="clusterName cannot be changed; make another security group",fieldPath=".clusterName"
type SecurityGroupSpec struct {
	// VPCID is the VPC of the group and its members.
	//
	// +kubebuilder:validation:MaxLength=21
	// +kubebuilder:validation:Pattern=`^vpc-[0-9a-f]{17}$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="vpcID cannot be changed; make another security group"
	VPCID string `json:"vpcID"`

	// GroupName is unique within the VPC. Each VPC has a group named "default".
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9 ._:/()#,@\[\]+=&;{}!$*-]+$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="groupName cannot be changed; make another security group"
	GroupName string `json:"groupName"`

	// Description of the group.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="description cannot be changed; make another security group"
	Description string `json:"description"`

	// ClusterName is the spec.name of the cluster whose cluster security group this is. Its members are the API server and the machines of node
	// groups.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="clusterName cannot be changed; make another security group"
	ClusterName string `json:"clusterName,omitempty"`

	// Tags of the AWS API.
	//
	// +optional
	Tags Tags `json:"tags,omitempty"`

	// Rules allow connections. There are no rules that deny.
	//
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=200
	Rules []SecurityGroupRule `json:"rules,omitempty"`
}

// RuleDirection is the direction of a connection, as seen from the members of a group.
//
// +kubebuilder:validation:Enum=Ingress;Egress
type RuleDirection string

// The directions.
const (
	RuleIngress RuleDirection = "Ingress"
	RuleEgress  RuleDirection = "Egress"
)

// AllProtocols is the protocol of a rule for all protocols.
const AllProtocols = "-1"

// SecurityGroupRule allows connections of a protocol with an address range or with the members of a group. A range includes the pods of
// machines that have an address in it.
//
// +kubebuilder:validation:XValidation:rule="(has(self.cidrIPv4) ? 1 : 0) + (has(self.cidrIPv6) ? 1 : 0) + (has(self.groupID) ? 1 : 0) == 1",message="a rule names one of cidrIPv4, cidrIPv6 and groupID"
// +kubebuilder:validation:XValidation:rule="self.protocol in ['tcp', 'udp', 'icmp', 'icmpv6'] ? has(self.fromPort) && has(self.toPort) : !has(self.fromPort) && !has(self.toPort)",message="fromPort and toPort are for tcp and udp, and type and code of icmp and icmpv6; rules of other protocols have none"
// +kubebuilder:validation:XValidation:rule="!(self.protocol in ['tcp', 'udp']) || !has(self.fromPort) || !has(self.toPort) || self.fromPort >= 0 && self.fromPort <= self.toPort",message="fromPort must be from 0 to toPort"
// +kubebuilder:validation:XValidation:rule="!(self.protocol in ['icmp', 'icmpv6']) || !has(self.fromPort) || !has(self.toPort) || self.fromPort <= 255 && self.toPort <= 255 && (self.fromPort != -1 || self.toPort == -1)",message="type and code are up to 255, or -1 for any; a code needs a type"
type SecurityGroupRule struct {
	// ID of the rule.
	//
	// +kubebuilder:validation:MaxLength=21
	// +kubebuilder:validation:Pattern=`^sgr-[0-9a-f]{17}$`
	ID string `json:"id"`

	Direction RuleDirection `json:"direction"`

	// Protocol is tcp, udp, icmp, icmpv6, another protocol's number, or -1 for all.
	//
	// +kubebuilder:validation:MaxLength=6
	// +kubebuilder:validation:Pattern=`^(-1|tcp|udp|icmp|icmpv6|[0-9]{1,3})$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[0-9]+$') || int(self) <= 255 && string(int(self)) == self && !(self in ['1', '6', '17', '58'])",message="a number is from 0 to 255, without zeros before it; tcp, udp, icmp and icmpv6 go by name"
	Protocol string `json:"protocol"`

	// FromPort is the first port of tcp or udp, or the type of icmp, -1 for any.
	//
	// +optional
	// +kubebuilder:validation:Minimum=-1
	// +kubebuilder:validation:Maximum=65535
	FromPort *int32 `json:"fromPort,omitempty"`

	// ToPort is the last port of tcp or udp, or the code of icmp, -1 for any.
	//
	// +optional
	// +kubebuilder:validation:Minimum=-1
	// +kubebuilder:validation:Maximum=65535
	ToPort *int32 `json:"toPort,omitempty"`

	// CIDRIPv4 is the address range of the peer.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=18
	// +kubebuilder:validation:XValidation:rule="isCIDR(self) && cidr(self).ip().family() == 4 && cidr(self) == cidr(self).masked()",message="must be an IPv4 network, as 10.0.0.0/16"
	CIDRIPv4 string `json:"cidrIPv4,omitempty"`

	// CIDRIPv6 is the address range of the peer. It is stored and has no effect: VPCs have no IPv6.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=43
	// +kubebuilder:validation:XValidation:rule="isCIDR(self) && cidr(self).ip().family() == 6 && cidr(self) == cidr(self).masked()",message="must be an IPv6 network, as fd00::/64"
	CIDRIPv6 string `json:"cidrIPv6,omitempty"`

	// GroupID is the security group of the peer, which may be this group. A rule for a group that does not exist allows nothing.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Pattern=`^sg-[0-9a-f]{17}$`
	GroupID string `json:"groupID,omitempty"`

	// Description of the rule.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Description string `json:"description,omitempty"`

	// Tags of the AWS API.
	//
	// +optional
	Tags Tags `json:"tags,omitempty"`
}

// SecurityGroupStatus is the observed state of a security group.
type SecurityGroupStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SecurityGroupList is a list of security groups.
//
// +kubebuilder:object:root=true
type SecurityGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []SecurityGroup `json:"items"`
}

// DefaultSecurityGroupID is the id of the group "default" of a VPC. It follows from the VPC's, which is random.
func DefaultSecurityGroupID(vpcID string) string { return madeID("sg-", "the default group of "+vpcID) }

// SecurityGroupRuleID is the id of a rule that Muster itself gives a group: its own members, or everybody.
func SecurityGroupRuleID(groupID string, direction RuleDirection) string {
	return madeID("sgr-", string(direction)+" of "+groupID)
}

func madeID(prefix, what string) string {
	sum := sha256.Sum256([]byte(what))
	return prefix + hex.EncodeToString(sum[:])[:17]
}

// IsDefault reports whether it is the group that its VPC comes with.
func (g *SecurityGroup) IsDefault() bool { return g.Name == DefaultSecurityGroupID(g.Spec.VPCID) }

// FirstRules are those of a group that Muster makes: its members reach each other, and everybody.
func FirstRules(groupID string) []SecurityGroupRule {
	return []SecurityGroupRule{
		{ID: SecurityGroupRuleID(groupID, RuleIngress), Direction: RuleIngress, Protocol: AllProtocols, GroupID: groupID},
		{ID: SecurityGroupRuleID(groupID, RuleEgress), Direction: RuleEgress, Protocol: AllProtocols, CIDRIPv4: "0.0.0.0/0"},
	}
}
