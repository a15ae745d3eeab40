// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "strings"

// providerIDPrefix begins the provider ids of EC2's instances (cloud-provider-aws, pkg/providers/v1/instances.go).
const providerIDPrefix = "aws:///"

// ProviderID is the provider id of a Machine's Node, as EKS's nodes have it: aws:///us-east-1a/i-0123456789abcdef0.
func ProviderID(zone, machine string) string { return providerIDPrefix + zone + "/" + machine }

// MachineOfProviderID returns the name of the Machine in a provider id, whatever the zone; false if the id has another form.
func MachineOfProviderID(id string) (machine string, ok bool) {
	rest, ok := strings.CutPrefix(id, providerIDPrefix)
	if !ok {
		return "", false
	}
	zone, machine, ok := strings.Cut(rest, "/")
	if !ok || zone == "" || machine == "" || strings.Contains(machine, "/") {
		return "", false
	}
	return machine, true
}
