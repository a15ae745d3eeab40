// SPDX-License-Identifier: Apache-2.0

package launchtemplate

import (
	"encoding/base64"
	"fmt"
	"unicode/utf8"

	"muster.dev/muster/api/v1alpha1"
)

// Refusal is why a node group cannot be of a launch template, in the words of EKS. Request reports whether its code is
// InvalidRequestException and not InvalidParameterException.
type Refusal struct {
	Message string
	Request bool
}

func (r *Refusal) Error() string { return r.Message }

func refuse(format string, args ...any) *Refusal {
	return &Refusal{Message: fmt.Sprintf(format, args...)}
}

// ForNodeGroup returns the settings that a node group takes from a version. Settings that EKS does not allow in a
// template of a node group, or that the group itself decides, are refused: the error is a [*Refusal].
func ForNodeGroup(t *v1alpha1.LaunchTemplate, v *v1alpha1.LaunchTemplateVersion) (*v1alpha1.NodeGroupLaunchTemplate, error) {
	data, err := Read(*v)
	if err != nil {
		return nil, fmt.Errorf("launch template %s: %w", t.Name, err)
	}
	switch {
	case data.IAMInstanceProfile != nil:
		return nil, refuse("Launch template should not specify an instance profile. The noderole in your request will be used to construct an instance profile.")
	case len(data.NetworkInterfaces) > 0 && data.NetworkInterfaces[0].SubnetID != "":
		return nil, refuse("Launch template should not specify a subnet. The subnets in your request will be used.")
	case data.Placement != nil && data.Placement.AvailabilityZone != "":
		return nil, refuse("Launch template should not specify an availability zone. The subnets in your request decide where machines are.")
	case data.InstanceMarketOptions != nil: // the words are EKS's
		return nil, refuse("Instance market options are not supported with the launch template.")
	case data.ImageID != "":
		return nil, refuse("Launch template %s specifies the image %s. Muster's node groups have the image of their release version: leave ImageId out", t.Name, data.ImageID)
	}
	group := &v1alpha1.NodeGroupLaunchTemplate{
		ID: t.Name, Name: t.Spec.Name, Version: v.Number, InstanceType: data.InstanceType, KeyName: data.KeyName, DiskSize: data.DiskSize(), SecurityGroupIDs: data.GroupIDs(), UserData: plain(data.UserData),
	}
	if m := data.MetadataOptions; m != nil && m.HTTPPutResponseHopLimit != nil {
		group.MetadataOptions.HTTPPutResponseHopLimit = int32(*m.HTTPPutResponseHopLimit) //nolint:gosec // G115: it is from 1 to 64
	}
	for _, tag := range data.InstanceTags() {
		if group.Tags == nil {
			group.Tags = v1alpha1.Tags{}
		}
		group.Tags[tag.Key] = v1alpha1.TagValue(tag.Value)
	}
	return group, nil
}

// plain is user data as people read it, where it is text.
func plain(encoded string) string {
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || !utf8.Valid(raw) {
		return encoded
	}
	return string(raw)
}
