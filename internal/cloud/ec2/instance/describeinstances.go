// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/ec2filter"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/machine/terminated"
)

type describeInstancesInput struct {
	ec2resource.Paged
	InstanceIDs []string
	// IncludeManagedResources is about instances that other services of AWS's run for themselves. An account has no
	// such instances.
	IncludeManagedResources bool
}

type describeInstancesOutput struct {
	Reservations []reservation
	NextToken    string
}

func (a *Actions) describeInstances() awsfront.Spec[describeInstancesInput, describeInstancesOutput] {
	return awsfront.Spec[describeInstancesInput, describeInstancesOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *describeInstancesInput) (*describeInstancesOutput, error) {
			if len(in.InstanceIDs) > 0 && in.MaxResults != nil {
				return nil, awsfault.Errorf(ec2resource.InvalidCombination, "The parameter instancesSet cannot be used with the parameter maxResults")
			}
			all, err := a.instances(ctx, call)
			if err != nil {
				return nil, err
			}
			chosen, next, err := ec2resource.Choose(a.ec2, call, instanceNoun(), all, in.InstanceIDs, in.Paged)
			if err != nil {
				return nil, err
			}
			return &describeInstancesOutput{reserved(call, chosen), next}, nil
		},
	}
}

// instances are all instances of the account, those included that were terminated a while ago.
func (a *Actions) instances(ctx context.Context, call *awsfront.Call) ([]instance, error) {
	view, err := a.viewInstances(ctx, call)
	if err != nil {
		return nil, err
	}
	var all v1alpha1.MachineList
	if err := a.ec2.List(ctx, &all); err != nil {
		return nil, err
	}
	shown := make([]instance, 0, len(all.Items))
	for i := range all.Items {
		shown = append(shown, view.show(&all.Items[i]))
	}
	gone, err := a.terminated(ctx)
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for i := range shown {
		there[shown[i].InstanceID] = true
	}
	for i := range gone {
		m := &gone[i].Machine
		if !there[m.Name] { // its Machine is about to go
			shown = append(shown, view.showTerminated(m, gone[i].At.Time))
		}
	}
	return shown, nil
}

// terminated are the instances that were terminated a while ago.
func (a *Actions) terminated(ctx context.Context) ([]v1alpha1.TerminatedInstance, error) {
	gone, err := terminated.List(ctx, a.ec2.Management)
	if err != nil {
		return nil, ec2resource.Away(err)
	}
	return gone, nil
}

// instanceNoun is how instances are chosen. Pages are in the order of reservations, so that one is whole where the page
// has room for it.
func instanceNoun() ec2resource.Noun[instance] {
	return ec2resource.Noun[instance]{
		Kind: ec2id.Instance, ID: func(i *instance) string { return i.InstanceID }, Tags: func(i *instance) map[string]string { return awsresource.TagMap(i.Tags) },
		Key: func(i *instance) string { return i.reservation + " " + i.InstanceID },
		Rules: ec2filter.Rules{Names: append([]string{
			"affinity", "architecture", "availability-zone", "availability-zone-id", "block-device-mapping.attach-time", "block-device-mapping.delete-on-termination",
			"block-device-mapping.device-name", "block-device-mapping.status", "block-device-mapping.volume-id", "boot-mode", "capacity-reservation-id",
			"client-token", "dns-name", "ebs-optimized", "ena-support", "enclave-options.enabled", "host-id", "hypervisor", "iam-instance-profile.arn",
			"iam-instance-profile.id", "iam-instance-profile.name", "image-id", "instance-id", "instance-lifecycle", "instance-state-code", "instance-state-name",
			"instance-type", "instance.group-id", "instance.group-name", "ip-address", "ipv6-address", "kernel-id", "key-name", "launch-index", "launch-time",
			"maintenance-options.auto-recovery", "metadata-options.http-endpoint", "metadata-options.http-protocol-ipv4", "metadata-options.http-protocol-ipv6",
			"metadata-options.http-put-response-hop-limit", "metadata-options.http-tokens", "metadata-options.instance-metadata-tags", "monitoring-state",
			"outpost-arn", "owner-id", "placement-group-name", "placement-partition-number", "platform", "platform-details", "private-dns-name",
			"private-dns-name-options.enable-resource-name-dns-a-record", "private-dns-name-options.enable-resource-name-dns-aaaa-record",
			"private-dns-name-options.hostname-type", "private-ip-address", "product-code", "product-code.type", "ramdisk-id", "reason", "requester-id", "reservation-id",
			"root-device-name", "root-device-type", "source-dest-check", "spot-instance-request-id", "state-reason-code", "state-reason-message", "subnet-id", "tenancy",
			"tpm-support", "usage-operation", "usage-operation-update-time", "virtualization-type", "vpc-id",
		}, interfaceFilters()...), Tags: true},
		Values: (*instance).value,
	}
}

// interfaceFilters are the filters by what the network interfaces of an instance are.
func interfaceFilters() []string {
	return []string{
		"network-interface.addresses.association.allocation-id", "network-interface.addresses.association.association-id", "network-interface.addresses.association.carrier-ip",
		"network-interface.addresses.association.customer-owned-ip", "network-interface.addresses.association.ip-owner-id", "network-interface.addresses.association.public-dns-name",
		"network-interface.addresses.association.public-ip", "network-interface.addresses.primary", "network-interface.addresses.private-dns-name",
		"network-interface.addresses.private-ip-address", "network-interface.association.allocation-id", "network-interface.association.association-id",
		"network-interface.association.carrier-ip", "network-interface.association.customer-owned-ip", "network-interface.association.ip-owner-id",
		"network-interface.association.public-dns-name", "network-interface.association.public-ip", "network-interface.attachment.attach-time",
		"network-interface.attachment.attachment-id", "network-interface.attachment.delete-on-termination", "network-interface.attachment.device-index",
		"network-interface.attachment.instance-id", "network-interface.attachment.instance-owner-id", "network-interface.attachment.network-card-index",
		"network-interface.attachment.status", "network-interface.availability-zone", "network-interface.deny-all-igw-traffic", "network-interface.description",
		"network-interface.group-id", "network-interface.group-name", "network-interface.ipv4-prefixes.ipv4-prefix", "network-interface.ipv6-address",
		"network-interface.ipv6-addresses.ipv6-address", "network-interface.ipv6-addresses.is-primary-ipv6", "network-interface.ipv6-native",
		"network-interface.ipv6-prefixes.ipv6-prefix", "network-interface.mac-address", "network-interface.network-interface-id", "network-interface.operator.managed",
		"network-interface.outpost-arn", "network-interface.owner-id", "network-interface.private-dns-name", "network-interface.private-ip-address",
		"network-interface.public-dns-name", "network-interface.requester-id", "network-interface.requester-managed", "network-interface.source-dest-check",
		"network-interface.status", "network-interface.subnet-id", "network-interface.tag-key", "network-interface.tag-value", "network-interface.vpc-id",
	}
}

// value is what an instance has under the name of a filter.
func (i *instance) value(name string) []string {
	switch name {
	case "architecture":
		return []string{i.Architecture}
	case "availability-zone":
		return []string{i.Placement.AvailabilityZone}
	case "availability-zone-id":
		return []string{i.Placement.AvailabilityZoneID}
	case "client-token":
		return []string{i.ClientToken}
	case "ebs-optimized":
		return []string{ec2resource.Text(i.EbsOptimized)}
	case "ena-support":
		return []string{ec2resource.Text(i.EnaSupport)}
	case "hypervisor":
		return []string{i.Hypervisor}
	case "image-id":
		return []string{i.ImageID}
	case "instance-id":
		return []string{i.InstanceID}
	case "instance-state-code":
		return []string{ec2resource.Number(i.State.Code)}
	case "instance-state-name":
		return []string{i.State.Name}
	case "instance-type":
		return []string{i.InstanceType}
	case "key-name":
		return []string{i.KeyName}
	case "launch-index":
		return []string{ec2resource.Number(i.AmiLaunchIndex)}
	case "launch-time":
		return []string{i.LaunchTime.Format("2006-01-02T15:04:05.000Z")}
	case "monitoring-state":
		return []string{i.Monitoring.State}
	case "owner-id":
		return i.owner
	case "platform-details":
		return []string{i.PlatformDetails}
	case "private-dns-name":
		return []string{i.PrivateDNSName}
	case "private-ip-address":
		return []string{i.PrivateIPAddress}
	case "reason":
		return []string{i.StateTransitionReason}
	case "reservation-id":
		return []string{i.reservation}
	case "root-device-name":
		return []string{i.RootDeviceName}
	case "root-device-type":
		return []string{i.RootDeviceType}
	case "source-dest-check":
		return []string{ec2resource.Text(*i.SourceDestCheck)}
	case "subnet-id":
		return []string{i.SubnetID}
	case "tenancy":
		return []string{i.Placement.Tenancy}
	case "usage-operation":
		return []string{i.UsageOperation}
	case "virtualization-type":
		return []string{i.VirtualizationType}
	case "vpc-id":
		return []string{i.VpcID}
	}
	return i.partValue(name)
}
