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
			return &describeInstancesOutput{reserved(chosen), next}, nil
		},
	}
}

// instances are all instances of the account, those included that were terminated a while ago.
func (a *Actions) instances(ctx context.Context, call *awsfront.Call) ([]instance, error) {
	view, err := a.viewInstances(ctx, call)
	if err != nil {
		return nil, err
	}
	return view.instances(ctx)
}

func (v *instanceView) instances(ctx context.Context) ([]instance, error) {
	var all v1alpha1.MachineList
	if err := v.api.ec2.List(ctx, &all); err != nil {
		return nil, err
	}
	shown := make([]instance, 0, len(all.Items))
	for i := range all.Items {
		if all.Items[i].Spec.Fargate == nil { // as on AWS, where they are not the account's
			shown = append(shown, v.show(&all.Items[i]))
		}
	}
	gone, err := v.api.terminated(ctx)
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for i := range shown {
		there[shown[i].InstanceID] = true
	}
	for i := range gone {
		m := &gone[i].Machine
		if !there[m.Name] && m.Spec.Fargate == nil { // its Machine is about to go
			shown = append(shown, v.showTerminated(m, gone[i].At.Time))
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

// instanceNoun is how instances are chosen. Pages are in the order of reservations, so that a reservation is whole where
// the page has room for it.
func instanceNoun() ec2resource.Noun[instance] {
	return ec2resource.Noun[instance]{
		Kind: ec2id.Instance, ID: func(i *instance) string { return i.InstanceID }, Tags: func(i *instance) map[string]string { return awsresource.TagMap(i.Tags) },
		Key:    func(i *instance) string { return i.reservation + " " + i.InstanceID },
		Fields: awsresource.FiltersOf[instance](),
		Rules: ec2filter.Rules{Names: []string{ // no instance has a value for them
			"affinity", "block-device-mapping.attach-time", "block-device-mapping.delete-on-termination", "block-device-mapping.device-name",
			"block-device-mapping.status", "block-device-mapping.volume-id", "boot-mode", "capacity-reservation-id", "dns-name",
			"enclave-options.enabled", "host-id", "ip-address", "ipv6-address", "kernel-id", "maintenance-options.auto-recovery",
			"network-interface.addresses.association.allocation-id", "network-interface.addresses.association.association-id",
			"network-interface.addresses.association.carrier-ip", "network-interface.addresses.association.customer-owned-ip",
			"network-interface.addresses.association.ip-owner-id", "network-interface.addresses.association.public-dns-name",
			"network-interface.addresses.association.public-ip", "network-interface.association.allocation-id",
			"network-interface.association.association-id", "network-interface.association.carrier-ip",
			"network-interface.association.customer-owned-ip", "network-interface.association.ip-owner-id",
			"network-interface.association.public-dns-name", "network-interface.association.public-ip", "network-interface.deny-all-igw-traffic",
			"network-interface.description", "network-interface.ipv4-prefixes.ipv4-prefix", "network-interface.ipv6-address",
			"network-interface.ipv6-addresses.ipv6-address", "network-interface.ipv6-addresses.is-primary-ipv6",
			"network-interface.ipv6-prefixes.ipv6-prefix", "network-interface.outpost-arn", "network-interface.public-dns-name",
			"network-interface.requester-id", "network-interface.tag-key", "network-interface.tag-value", "outpost-arn", "placement-group-name",
			"placement-partition-number", "platform", "private-dns-name-options.enable-resource-name-dns-a-record",
			"private-dns-name-options.enable-resource-name-dns-aaaa-record", "private-dns-name-options.hostname-type", "product-code",
			"product-code.type", "ramdisk-id", "tpm-support", "usage-operation-update-time",
		}},
	}
}
