// SPDX-License-Identifier: Apache-2.0

package ec2id

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"muster.dev/muster/internal/aws/awsfault"
)

func TestIDs(t *testing.T) {
	for name, c := range map[string]struct {
		kind Kind
		id   string
		code string
	}{
		"17 digits":         {VPC, "vpc-0a1b2c3d4e5f60718", ""},
		"8 digits":          {Instance, "i-1234abcd", ""},
		"another kind":      {VPC, "subnet-0a1b2c3d4e5f60718", "InvalidVpcID.Malformed"},
		"no prefix":         {Subnet, "0a1b2c3d4e5f60718", "InvalidSubnetID.Malformed"},
		"capitals":          {SecurityGroup, "sg-0A1B2C3D4E5F60718", "InvalidGroupId.Malformed"},
		"too short":         {RouteTable, "rtb-0a1b", "InvalidRouteTableId.Malformed"},
		"too long":          {InternetGateway, "igw-0a1b2c3d4e5f607189", "InvalidInternetGatewayId.Malformed"},
		"not hexadecimal":   {NATGateway, "nat-0a1b2c3d4e5f6071g", "NatGatewayMalformed"},
		"empty":             {LaunchTemplate, "", "InvalidLaunchTemplateId.Malformed"},
		"a prefix alone":    {Address, "eipalloc-", "InvalidAllocationID.Malformed"},
		"an image":          {Image, "ami-1", "InvalidAMIID.Malformed"},
		"an association":    {AddressAssoc, "eipassoc-1", "InvalidAssociationID.NotFound"},
		"a spot request":    {SpotRequest, "sir-x", "InvalidSpotInstanceRequestID.Malformed"},
		"line break":        {Instance, "i-1234abcd\n", "InvalidInstanceID.Malformed"},
		"a longer prefix":   {RouteTable, "rtbassoc-0a1b2c3d4e5f60718", "InvalidRouteTableId.Malformed"},
		"something instead": {NetworkACL, strings.Repeat("x", 1000), "InvalidNetworkAclId.Malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.kind.Check(c.id)
			var fault *awsfault.Error
			if errors.As(err, &fault); (err == nil) != (c.code == "") || fault != nil && fault.Code != c.code {
				t.Errorf("%q: %v, want %q", c.id, err, c.code)
			}
			if fault != nil && len(fault.Message) > 300 {
				t.Errorf("the message repeats %d bytes", len(fault.Message))
			}
		})
	}
}

func TestNotFound(t *testing.T) {
	for _, c := range []struct {
		got        *awsfault.Error
		code, text string
	}{
		{VPC.NotFound("vpc-1"), "InvalidVpcID.NotFound", "The vpc ID 'vpc-1' does not exist"},
		{SecurityGroup.NotFound("sg-1"), "InvalidGroup.NotFound", "The security group 'sg-1' does not exist"},
		{Instance.NotFound("i-1", "i-2"), "InvalidInstanceID.NotFound", "The instance IDs 'i-1, i-2' do not exist"},
	} {
		if c.got.Code != c.code || c.got.Message != c.text || c.got.HTTPStatus() != 400 {
			t.Errorf("%v, want %s: %s", c.got, c.code, c.text)
		}
	}
}

// Every id belongs to one kind.
func TestNew(t *testing.T) {
	for _, k := range Kinds() {
		id := k.New([Entropy]byte{0, 1, 2, 3, 4, 5, 6, 7, 0xff})
		if id != k.Prefix+"0001020304050607f" || k.Check(id) != nil {
			t.Errorf("%s: %v", id, k.Check(id))
		}
		of, err := Of(id)
		if err != nil || of != k {
			t.Errorf("%s is of %v, %v", id, of, err)
		}
	}
	if _, err := Of("local"); err == nil || !strings.HasPrefix(err.Error(), "InvalidID: ") {
		t.Errorf("Of(local): %v", err)
	}
}

func FuzzCheck(f *testing.F) {
	f.Add("vpc-0a1b2c3d4e5f60718")
	f.Add("i-1234abcd")
	f.Add("\xff")
	f.Fuzz(func(t *testing.T, id string) {
		kinds := 0
		for _, k := range Kinds() {
			err := k.Check(id)
			if err == nil {
				kinds++
				continue
			}
			if !utf8.ValidString(err.Error()) || len(err.Error()) > 400 {
				t.Errorf("%q: %v", id, err)
			}
		}
		if kinds > 1 {
			t.Errorf("%q is of %d kinds", id, kinds)
		}
	})
}
