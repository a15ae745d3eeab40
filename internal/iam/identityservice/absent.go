// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"slices"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/iamfault"
	"muster.dev/muster/internal/iam/iam"
)

// Passwords, SSH keys, certificates, service-specific credentials and MFA devices do not exist here. Tools ask for a
// user's before they delete the user, and are told that there are none.

type listSSHKeysOut struct {
	listPage
	SSHPublicKeys []none
}

type listCertificatesOut struct {
	listPage
	Certificates []none
}

type listServiceCredentialsIn struct {
	UserName, ServiceName *string
	AllUsers              bool
	Marker                *string
	MaxItems              *int32
}

type listServiceCredentialsOut struct {
	listPage
	ServiceSpecificCredentials []none
}

type listDevicesOut struct {
	listPage
	MFADevices []none
}

type listVirtualDevicesIn struct {
	AssignmentStatus, Marker *string
	MaxItems                 *int32
}

type listVirtualDevicesOut struct {
	listPage
	VirtualMFADevices []none
}

func (s *Service) registerAbsent(front *awsfront.Front) {
	ofUser := func(c *call, in listKeysIn) (target, error) { return c.aboutNamed(in.UserName) }
	register(s, front, apiIAM, "ListSSHPublicKeys", reads, ofUser, func(c *call, in listKeysIn) (*listSSHKeysOut, error) {
		page, err := c.nothingOf(in)
		return &listSSHKeysOut{listPage: page}, err
	})
	register(s, front, apiIAM, "ListSigningCertificates", reads, ofUser, func(c *call, in listKeysIn) (*listCertificatesOut, error) {
		page, err := c.nothingOf(in)
		return &listCertificatesOut{listPage: page}, err
	})
	register(s, front, apiIAM, "ListMFADevices", reads, ofUser, func(c *call, in listKeysIn) (*listDevicesOut, error) {
		page, err := c.nothingOf(in)
		return &listDevicesOut{listPage: page}, err
	})
	register(s, front, apiIAM, "ListServiceSpecificCredentials", reads, func(c *call, in listServiceCredentialsIn) (target, error) {
		if in.AllUsers {
			return c.aboutUser("*"), nil
		}
		return c.aboutNamed(in.UserName)
	}, func(c *call, in listServiceCredentialsIn) (*listServiceCredentialsOut, error) {
		if in.AllUsers {
			page, err := c.emptyPage(in.Marker, in.MaxItems)
			return &listServiceCredentialsOut{listPage: page}, err
		}
		page, err := c.nothingOf(listKeysIn{in.UserName, in.Marker, in.MaxItems})
		return &listServiceCredentialsOut{listPage: page}, err
	})
	register(s, front, apiIAM, "ListVirtualMFADevices", reads, func(c *call, _ listVirtualDevicesIn) (target, error) {
		return target{resource: "arn:" + iam.Partition + ":iam::" + c.account + ":mfa/"}, nil
	},
		func(c *call, in listVirtualDevicesIn) (*listVirtualDevicesOut, error) {
			if in.AssignmentStatus != nil && !slices.Contains([]string{"Assigned", "Unassigned", "Any"}, *in.AssignmentStatus) {
				return nil, iamfault.Errorf(iamfault.ValidationError, "AssignmentStatus is %.20q: it must be Assigned, Unassigned or Any", *in.AssignmentStatus)
			}
			page, err := c.emptyPage(in.Marker, in.MaxItems)
			return &listVirtualDevicesOut{listPage: page}, err
		})
	profile := func(c *call, in userNameIn) (target, error) { return c.aboutNamed(in.UserName) }
	register(s, front, apiIAM, "GetLoginProfile", reads, profile, noLoginProfile)
	register(s, front, apiIAM, "DeleteLoginProfile", writes, profile, noLoginProfile)
}

// aboutNamed is a user whose name may be left out: the caller.
func (c *call) aboutNamed(name *string) (target, error) {
	user, err := c.userName(name)
	return c.aboutUser(user), err
}

// nothingOf is the empty list of something that a user has none of.
func (c *call) nothingOf(in listKeysIn) (listPage, error) {
	name, err := c.userName(in.UserName)
	if err == nil {
		_, err = c.user(name)
	}
	if err != nil {
		return listPage{}, err
	}
	return c.emptyPage(in.Marker, in.MaxItems)
}

func (c *call) emptyPage(marker *string, most *int32) (listPage, error) {
	_, page, err := pageBy(nil, func(string) string { return "" }, c.markers, marker, most)
	return page, err
}

func noLoginProfile(c *call, in userNameIn) (*none, error) {
	name, err := c.userName(in.UserName)
	if err != nil {
		return nil, err
	}
	if _, err := c.user(name); err != nil {
		return nil, err
	}
	return nil, iamfault.Errorf(iamfault.NoSuchEntity, "Login Profile for User %.128s cannot be found.", name)
}
