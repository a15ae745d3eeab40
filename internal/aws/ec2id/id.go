// SPDX-License-Identifier: Apache-2.0

// Package ec2id has the ids of EC2: a prefix and 17 hexadecimal digits, and the errors for one that is malformed or
// that nothing has.
//
// AWS spells the codes differently for each kind, and clients compare them: InvalidVpcID, but InvalidGroupId;
// InvalidRouteTableID.NotFound, but InvalidRouteTableId.Malformed. Terraform takes a resource for deleted by them.
package ec2id

import (
	"encoding/hex"
	"strings"

	"muster.dev/muster/internal/aws/awsfault"
)

// digits is how many hexadecimal digits an id has.
const digits = 17

// Entropy is how many random bytes New takes.
const Entropy = 9

// Kind is a kind of resources that have ids.
type Kind struct {
	Prefix    string // with the hyphen
	noun      string
	malformed string
	notFound  string
}

// The kinds. Codes are of EC2's list of error codes. The codes of NAT gateways are the ones that DeleteNatGateway
// answers and Terraform compares. The list has no code of its own for a malformed association ID: it has the code of an
// association that does not exist.
var (
	VPC               = Kind{"vpc-", "vpc ID", "InvalidVpcID.Malformed", "InvalidVpcID.NotFound"}
	Subnet            = Kind{"subnet-", "subnet ID", "InvalidSubnetID.Malformed", "InvalidSubnetID.NotFound"}
	SecurityGroup     = Kind{"sg-", "security group", "InvalidGroupId.Malformed", "InvalidGroup.NotFound"}
	SecurityGroupRule = Kind{"sgr-", "security group rule ID", "InvalidSecurityGroupRuleId.Malformed", "InvalidSecurityGroupRuleId.NotFound"}
	Instance          = Kind{"i-", "instance ID", "InvalidInstanceID.Malformed", "InvalidInstanceID.NotFound"}
	Image             = Kind{"ami-", "image id", "InvalidAMIID.Malformed", "InvalidAMIID.NotFound"}
	LaunchTemplate    = Kind{"lt-", "launch template ID", "InvalidLaunchTemplateId.Malformed", "InvalidLaunchTemplateId.NotFound"}
	NetworkInterface  = Kind{"eni-", "networkInterface ID", "InvalidNetworkInterfaceId.Malformed", "InvalidNetworkInterfaceID.NotFound"}
	RouteTable        = Kind{"rtb-", "routeTable ID", "InvalidRouteTableId.Malformed", "InvalidRouteTableID.NotFound"}
	RouteAssociation  = Kind{"rtbassoc-", "association ID", "InvalidAssociationID.NotFound", "InvalidAssociationID.NotFound"}
	InternetGateway   = Kind{"igw-", "internetGateway ID", "InvalidInternetGatewayId.Malformed", "InvalidInternetGatewayID.NotFound"}
	NATGateway        = Kind{"nat-", "Nat Gateway ID", "NatGatewayMalformed", "NatGatewayNotFound"}
	Address           = Kind{"eipalloc-", "allocation ID", "InvalidAllocationID.Malformed", "InvalidAllocationID.NotFound"}
	AddressAssoc      = Kind{"eipassoc-", "association ID", "InvalidAssociationID.NotFound", "InvalidAssociationID.NotFound"}
	NetworkACL        = Kind{"acl-", "networkAcl ID", "InvalidNetworkAclId.Malformed", "InvalidNetworkAclID.NotFound"}
	ACLAssociation    = Kind{"aclassoc-", "association ID", "InvalidAssociationID.NotFound", "InvalidAssociationID.NotFound"}
	KeyPair           = Kind{"key-", "key pair", "InvalidKeyPair.Format", "InvalidKeyPair.NotFound"}
	DHCPOptions       = Kind{"dopt-", "dhcpOptions ID", "InvalidDhcpOptionsId.Malformed", "InvalidDhcpOptionID.NotFound"}
	SpotRequest       = Kind{"sir-", "spot instance request ID", "InvalidSpotInstanceRequestID.Malformed", "InvalidSpotInstanceRequestID.NotFound"}
	Reservation       = Kind{Prefix: "r-"} // without codes: a filter alone takes the id of a reservation, and no filter refuses an id
)

// Kinds are all kinds.
func Kinds() []Kind {
	return []Kind{
		VPC, Subnet, SecurityGroup, SecurityGroupRule, Instance, Image, LaunchTemplate, NetworkInterface, RouteTable, RouteAssociation, InternetGateway,
		NATGateway, Address, AddressAssoc, NetworkACL, ACLAssociation, KeyPair, DHCPOptions, SpotRequest, Reservation,
	}
}

// New makes an id of random bytes; 17 of their 18 digits are used.
func (k Kind) New(random [Entropy]byte) string {
	return k.Prefix + hex.EncodeToString(random[:])[:digits]
}

// Is reports whether an id is one of the kind, in today's form of 17 digits or the one of 8 that EC2 gave out before 2016.
func (k Kind) Is(id string) bool {
	rest, ok := strings.CutPrefix(id, k.Prefix)
	return ok && (len(rest) == digits || len(rest) == 8) && !strings.ContainsFunc(rest, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'f')
	})
}

// Check returns the error for an id that is malformed.
func (k Kind) Check(id string) error {
	if k.Is(id) {
		return nil
	}
	return awsfault.Errorf(k.malformed, "Invalid %s: %q (expecting %q and %d hexadecimal digits)", k.noun, shown(id), k.Prefix+"...", digits)
}

// NotFound is the error for ids that nothing has.
func (k Kind) NotFound(ids ...string) *awsfault.Error {
	if k == LaunchTemplate && len(ids) == 1 {
		return awsfault.Errorf(k.notFound, "The specified launch template, with template ID %s, does not exist.", shown(ids[0]))
	}
	if len(ids) == 1 {
		return awsfault.Errorf(k.notFound, "The %s '%s' does not exist", k.noun, shown(ids[0]))
	}
	named := make([]string, len(ids))
	for i, id := range ids {
		named[i] = shown(id)
	}
	return awsfault.Errorf(k.notFound, "The %ss '%s' do not exist", k.noun, strings.Join(named, ", "))
}

// Of is the kind of an id, as CreateTags is given one. The error is InvalidID.
func Of(id string) (Kind, error) {
	for _, k := range Kinds() {
		if k.Is(id) {
			return k, nil
		}
	}
	return Kind{}, awsfault.Errorf("InvalidID", "The ID '%s' is not valid: it must be the id of a resource that has tags, such as %s0123456789abcdef0", shown(id), VPC.Prefix)
}

// shown bounds what a message repeats of a request.
func shown(id string) string {
	if len(id) > 64 {
		return strings.ToValidUTF8(id[:64], "") + "…"
	}
	return strings.ToValidUTF8(id, "�")
}
