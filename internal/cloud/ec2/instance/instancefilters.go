// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"path"

	"muster.dev/muster/internal/cloud/ec2/ec2resource"
)

// partValue is what the parts of an instance have under the name of a filter: its role, its groups, its network
// interface.
func (i *instance) partValue(name string) []string {
	switch name {
	case "iam-instance-profile.arn", "iam-instance-profile.id", "iam-instance-profile.name":
		if p := i.IamInstanceProfile; p != nil {
			return []string{map[string]string{"iam-instance-profile.arn": p.ARN, "iam-instance-profile.id": p.ID, "iam-instance-profile.name": path.Base(p.ARN)}[name]}
		}
	case "instance.group-id", "network-interface.group-id":
		return i.groups(func(g GroupIdentifier) string { return g.GroupID })
	case "instance.group-name", "network-interface.group-name":
		return i.groups(func(g GroupIdentifier) string { return g.GroupName })
	case "state-reason-code", "state-reason-message":
		if r := i.StateReason; r != nil {
			return []string{map[string]string{"state-reason-code": r.Code, "state-reason-message": r.Message}[name]}
		}
	case "requester-id":
		if i.machine.Spec.NodeGroup != "" {
			return i.owner
		}
	}
	if m := i.MetadataOptions; m != nil {
		switch name {
		case "metadata-options.http-endpoint", "metadata-options.http-protocol-ipv4":
			return []string{m.HTTPEndpoint}
		case "metadata-options.http-protocol-ipv6":
			return []string{m.HTTPProtocolIpv6}
		case "metadata-options.http-put-response-hop-limit":
			return []string{ec2resource.Number(m.HTTPPutResponseHopLimit)}
		case "metadata-options.http-tokens":
			return []string{m.HTTPTokens}
		case "metadata-options.instance-metadata-tags":
			return []string{m.InstanceMetadataTags}
		}
	}
	var found []string
	for _, n := range i.NetworkInterfaces {
		if value := n.value(i, name); value != "" {
			found = append(found, value)
		}
	}
	return found
}

func (i *instance) groups(of func(GroupIdentifier) string) []string {
	var found []string
	for _, g := range i.SecurityGroups {
		found = append(found, of(g))
	}
	return found
}

func (n instanceInterface) value(of *instance, name string) string {
	switch name {
	case "network-interface.addresses.primary":
		return "true"
	case "network-interface.addresses.private-dns-name", "network-interface.private-dns-name":
		return n.PrivateDNSName
	case "network-interface.addresses.private-ip-address", "network-interface.private-ip-address":
		return n.PrivateIPAddress
	case "network-interface.attachment.attach-time":
		return n.Attachment.AttachTime.Format("2006-01-02T15:04:05.000Z")
	case "network-interface.attachment.attachment-id":
		return n.Attachment.AttachmentID
	case "network-interface.attachment.delete-on-termination":
		return ec2resource.Text(n.Attachment.DeleteOnTermination)
	case "network-interface.attachment.device-index", "network-interface.attachment.network-card-index":
		return "0"
	case "network-interface.attachment.instance-id":
		return of.InstanceID
	case "network-interface.attachment.instance-owner-id", "network-interface.owner-id":
		return n.OwnerID
	case "network-interface.attachment.status":
		return n.Attachment.Status
	case "network-interface.availability-zone":
		return of.Placement.AvailabilityZone
	case "network-interface.mac-address":
		return n.MacAddress
	case "network-interface.network-interface-id":
		return n.NetworkInterfaceID
	case "network-interface.requester-managed", "network-interface.ipv6-native", "network-interface.operator.managed":
		return "false"
	case "network-interface.source-dest-check":
		return ec2resource.Text(n.SourceDestCheck)
	case "network-interface.status":
		return n.Status
	case "network-interface.subnet-id":
		return n.SubnetID
	case "network-interface.vpc-id":
		return n.VpcID
	}
	return ""
}
