// SPDX-License-Identifier: Apache-2.0

package launchtemplate

import (
	"encoding/base64"
	"slices"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/machine/instancetype"
)

const (
	invalid     = "InvalidParameterValue"
	combination = "InvalidParameterCombination"

	maxUserData = 16 << 10 // before base64, as EC2's
	maxHops     = 64
	maxGroups   = 16
	maxVolumes  = 40
)

// Check refuses what Muster cannot honour, with EC2's codes.
func (d Data) Check() error {
	if d.InstanceType != "" {
		if _, err := instancetype.Find(d.InstanceType); err != nil {
			return awsfault.Errorf(invalid, "Invalid value '%.64s' for InstanceType: %s", d.InstanceType, err)
		}
	}
	if d.ImageID != "" {
		if err := ec2id.Image.Check(d.ImageID); err != nil {
			return err
		}
	}
	raw, err := base64.StdEncoding.DecodeString(d.UserData)
	switch {
	case err != nil:
		return awsfault.Errorf("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.")
	case len(raw) > maxUserData:
		return awsfault.Errorf(invalid, "User data is limited to %d bytes: it has %d", maxUserData, len(raw))
	case d.CreditSpecification != nil && !slices.Contains([]string{"standard", "unlimited"}, d.CreditSpecification.CPUCredits):
		return awsfault.Errorf(invalid, "Value (%.40s) for parameter CpuCredits is invalid. It must be standard or unlimited", d.CreditSpecification.CPUCredits)
	case d.IAMInstanceProfile != nil && (d.IAMInstanceProfile.ARN == "") == (d.IAMInstanceProfile.Name == ""):
		return awsfault.Errorf(combination, "The parameter 'iamInstanceProfile' must have either a name or an ARN")
	case d.Placement != nil && !slices.Contains([]string{"", "default"}, d.Placement.Tenancy):
		return awsfault.Errorf(invalid, "Value (%.40s) for parameter Tenancy is invalid. Muster has default only", d.Placement.Tenancy)
	case len(d.BlockDeviceMappings) > maxVolumes:
		return awsfault.Errorf(invalid, "There are %d block device mappings: at most %d are taken", len(d.BlockDeviceMappings), maxVolumes)
	}
	if err := d.checkVolumes(); err != nil {
		return err
	}
	if err := d.checkAbsent(); err != nil {
		return err
	}
	if err := d.InstanceMarketOptions.Check(); err != nil {
		return err
	}
	if err := d.checkMetadata(); err != nil {
		return err
	}
	if err := d.checkNetwork(); err != nil {
		return err
	}
	return d.checkTags()
}

// checkVolumes refuses sizes that no disk has.
func (d Data) checkVolumes() error {
	for _, m := range d.BlockDeviceMappings {
		if m.Ebs == nil || m.Ebs.VolumeSize == nil {
			continue
		}
		switch size := *m.Ebs.VolumeSize; {
		case size < 1 || size > v1alpha1.MaxDisk:
			return awsfault.Errorf(invalid, "Value (%d) for parameter VolumeSize is invalid. It must be from 1 to %d GiB", size, v1alpha1.MaxDisk)
		case m.DeviceName == rootDevice && size < v1alpha1.MinDisk:
			return awsfault.Errorf("InvalidBlockDeviceMapping", "Volume of size %dGB is smaller than a node needs, expect size >= %dGB", size, v1alpha1.MinDisk)
		}
	}
	return nil
}

// checkAbsent refuses what no machine has.
func (d Data) checkAbsent() error {
	switch {
	case d.EnclaveOptions != nil && is(d.EnclaveOptions.Enabled):
		return awsfault.Errorf(invalid, "Muster's machines have no enclaves: leave EnclaveOptions out")
	case d.HibernationOptions != nil && is(d.HibernationOptions.Configured):
		return awsfault.Errorf(invalid, "Muster's machines do not hibernate: leave HibernationOptions out")
	case d.CapacityReservationSpecification != nil && !slices.Contains([]string{"", "open", "none"}, d.CapacityReservationSpecification.CapacityReservationPreference):
		return awsfault.Errorf(invalid, "Value (%.40s) for parameter CapacityReservationPreference is invalid. Muster has open and none only: there are no capacity reservations", d.CapacityReservationSpecification.CapacityReservationPreference)
	}
	return nil
}

func is(b *bool) bool { return b != nil && *b }

func (d Data) checkMetadata() error {
	m := d.MetadataOptions
	if m == nil {
		return nil
	}
	for _, only := range []struct{ name, value, has, why string }{
		{"HttpEndpoint", m.HTTPEndpoint, "enabled", "a machine learns from instance metadata what it is"},
		{"HttpTokens", m.HTTPTokens, "required", "there is no version 1 of instance metadata"},
		{"HttpProtocolIpv6", m.HTTPProtocolIpv6, "disabled", "there is no IPv6"},
		{"InstanceMetadataTags", m.InstanceMetadataTags, "disabled", "instance metadata has no tags"},
	} {
		if only.value != "" && only.value != only.has {
			return awsfault.Errorf(invalid, "Value (%.40s) for parameter %s is invalid. Muster has %s only: %s", only.value, only.name, only.has, only.why)
		}
	}
	if hops := m.HTTPPutResponseHopLimit; hops != nil && (*hops < 1 || *hops > maxHops) {
		return awsfault.Errorf(invalid, "Value (%d) for parameter HttpPutResponseHopLimit is invalid. It must be from 1 to %d", *hops, maxHops)
	}
	return nil
}

func (d Data) checkNetwork() error {
	if len(d.NetworkInterfaces) > 1 {
		return awsfault.Errorf(invalid, "There are %d network interfaces: Muster's machines have one", len(d.NetworkInterfaces))
	}
	if len(d.NetworkInterfaces) == 1 {
		n := d.NetworkInterfaces[0]
		switch {
		case len(d.SecurityGroupIDs) > 0:
			return awsfault.Errorf(combination, "Network interfaces and an instance-level security groups may not be specified on the same request")
		case n.DeviceIndex != nil && *n.DeviceIndex != 0, n.NetworkCardIndex != nil && *n.NetworkCardIndex != 0:
			return awsfault.Errorf(invalid, "Muster's machines have one network interface, of device index 0 and network card index 0")
		case n.InterfaceType != "" && n.InterfaceType != "interface":
			return awsfault.Errorf(invalid, "Value (%.40s) for parameter InterfaceType is invalid. Muster has interface only", n.InterfaceType)
		case n.DeleteOnTermination != nil && !*n.DeleteOnTermination:
			return awsfault.Errorf(invalid, "A network interface ends with its machine: DeleteOnTermination must be true or left out")
		}
		if n.SubnetID != "" {
			if err := ec2id.Subnet.Check(n.SubnetID); err != nil {
				return err
			}
		}
	}
	groups := d.GroupIDs()
	if len(groups) > maxGroups {
		return awsfault.Errorf("SecurityGroupsPerInterfaceLimitExceeded", "There are %d security groups: an interface has at most %d", len(groups), maxGroups)
	}
	for _, id := range groups {
		if err := ec2id.SecurityGroup.Check(id); err != nil {
			return err
		}
	}
	return nil
}

func (d Data) checkTags() error {
	types := []string{"instance", "volume", "network-interface", "spot-instances-request", "elastic-gpu"}
	for i, s := range d.TagSpecifications {
		if !slices.Contains(types, s.ResourceType) {
			return awsfault.Errorf(invalid, "'%.64s' is not a valid taggable resource type for this operation.", s.ResourceType)
		}
		if slices.ContainsFunc(d.TagSpecifications[:i], func(o TagSpecification) bool { return o.ResourceType == s.ResourceType }) {
			return awsfault.Errorf(invalid, "There are two tag specifications for the resource type %s: put all its tags into one", s.ResourceType)
		}
		if _, err := awstag.Read("ec2", s.Tags); err != nil {
			return err
		}
	}
	return nil
}
