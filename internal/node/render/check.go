// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"muster.dev/muster/internal/node/nodeconfig"
)

// problems are settings that cannot be had on this layout, and those that the programs themselves would refuse later
// and elsewhere, on top of the problems of a NodeConfig anywhere.
func problems(spec nodeconfig.Spec, instance Instance, layout Layout) field.ErrorList {
	root := field.NewPath("spec")
	all := spec.Validate()
	all = append(all, checkKnown(root.Child("cluster"), spec)...)
	all = append(all, checkKubelet(root.Child("kubelet"), spec, layout)...)
	all = append(all, checkRole(root, spec, instance)...)
	if _, chosen := lastFlag(spec.Kubelet.Flags, flagNodeIP); !chosen && ipv6(spec) && instance.PrivateIP.IsValid() && !NodeIP(spec, instance).IsValid() {
		all = append(all, field.Invalid(root.Child("cluster", "cidr"), spec.Cluster.CIDR, fmt.Sprintf("this machine has no IPv6 address, only %s: give its network interface one", instance.PrivateIP)))
	}
	all = append(all, checkNodeName(root, spec, instance)...)
	if spec.Cluster.EnableOutpost != nil && *spec.Cluster.EnableOutpost {
		all = append(all, field.Forbidden(root.Child("cluster", "enableOutpost"), "muster does not know the local clusters of AWS Outposts; leave it out"))
	}
	if spec.Containerd.Config != "" {
		all = append(all, checkContainerd(root.Child("containerd", "config"), spec.Containerd.Config)...)
	}
	if layout.ExistingContainerd {
		const message = "this host has a containerd of its own, which muster does not configure: change its configuration by hand and leave this out"
		if spec.Containerd.Config != "" {
			all = append(all, field.Forbidden(root.Child("containerd", "config"), message))
		}
		if len(spec.Containerd.BaseRuntimeSpec) > 0 {
			all = append(all, field.Forbidden(root.Child("containerd", "baseRuntimeSpec"), message))
		}
		if spec.FeatureGates[nodeconfig.GateFastImagePull] {
			all = append(all, field.Forbidden(root.Child("featureGates", nodeconfig.GateFastImagePull), message))
		}
	}
	all = append(all, checkEnvironment(root.Child("instance", "environment"), spec.Instance.Environment, layout)...)
	return all
}

// checkKnown asks for what a machine may find out by itself, but has to have by now.
func checkKnown(path *field.Path, spec nodeconfig.Spec) field.ErrorList {
	const message = "is not known yet: discovery finds it, or give it here"
	var all field.ErrorList
	if spec.Cluster.APIServerEndpoint == "" {
		all = append(all, field.Required(path.Child("apiServerEndpoint"), message))
	}
	if len(spec.Cluster.CertificateAuthority) == 0 {
		all = append(all, field.Required(path.Child("certificateAuthority"), message))
	}
	if _, ok := spec.Kubelet.Config["clusterDNS"]; !ok && spec.Cluster.CIDR == "" {
		all = append(all, field.Required(path.Child("cidr"), message))
	}
	return all
}

// checkRole sees to it that a machine that joins by its role can: the cluster knows it by what the metadata service
// says it is, and its kubelet has no client certificate that it could rotate.
func checkRole(root *field.Path, spec nodeconfig.Spec, instance Instance) field.ErrorList {
	if !spec.Join.InstanceRole {
		return nil
	}
	var all field.ErrorList
	if spec.Cluster.Name == "" {
		all = append(all, field.Required(root.Child("cluster", "name"), "a machine that joins by its role must be told which cluster it joins"))
	}
	if instance.Region == "" {
		all = append(all, field.Invalid(root.Child("join", "instanceRole"), true, "this machine has no instance metadata, and so no role; join by a token"))
	}
	if rotates, ok := spec.Kubelet.Config["rotateCertificates"]; ok && rotates != false {
		all = append(all, field.Invalid(root.Child("kubelet", "config", "rotateCertificates"), rotates, "a machine that joins by its role has no client certificate; leave it out"))
	}
	if name := NodeName(spec, instance); name != instance.PrivateDNSName {
		all = append(all, field.Invalid(root.Child("join", "nodeName"), name, fmt.Sprintf("a machine that joins by its role is known by its private DNS name, %s; leave other names out", instance.PrivateDNSName)))
	}
	return all
}

// checkNodeName checks that the settings name the node in one way only, and that the cluster will accept the name.
func checkNodeName(root *field.Path, spec nodeconfig.Spec, instance Instance) field.ErrorList {
	if name, ok := lastFlag(spec.Kubelet.Flags, flagHostnameOverride); ok && spec.Join.NodeName != "" && name != spec.Join.NodeName {
		return field.ErrorList{field.Invalid(root.Child("join", "nodeName"), spec.Join.NodeName,
			fmt.Sprintf("--hostname-override=%s in spec.kubelet.flags says something else; keep one of them", name))}
	}
	name := NodeName(spec, instance)
	if name == "" && spec.FeatureGates[nodeconfig.GateInstanceIDNodeName] {
		return field.ErrorList{field.Invalid(root.Child("featureGates", nodeconfig.GateInstanceIDNodeName), true, "this machine has no instance id; set spec.join.nodeName instead")}
	}
	if name == "" {
		return field.ErrorList{field.Required(root.Child("join", "nodeName"), "the machine has no name of its own")}
	}
	if spec.Join.NodeName != "" {
		return nil // it has been looked at
	}
	var all field.ErrorList
	for _, message := range validation.IsDNS1123Subdomain(name) { // the rule for the names of Nodes
		all = append(all, field.Invalid(root.Child("join", "nodeName"), name, message))
	}
	return all
}

func checkKubelet(path *field.Path, spec nodeconfig.Spec, layout Layout) field.ErrorList {
	var all field.ErrorList
	for _, f := range parseFlags(spec.Kubelet.Flags) {
		at := path.Child("flags").Index(f.index)
		switch {
		case slices.Contains(reservedFlags(), f.name):
			all = append(all, field.Forbidden(at, fmt.Sprintf("--%s is muster's to set; leave it out", f.name)))
		case f.name == flagNodeLabels:
			all = append(all, checkLabels(at, f.value)...)
		case f.name == flagMaxPods:
			if n, err := strconv.ParseInt(f.value, 10, 32); err != nil || n < 1 {
				all = append(all, field.Invalid(at, f.value, "--max-pods must be a whole number, 1 or more"))
			}
		}
	}
	if driver, ok := spec.Kubelet.Config["cgroupDriver"]; ok && driver != layout.cgroupDriver() {
		all = append(all, field.Invalid(path.Child("config", "cgroupDriver"), driver, fmt.Sprintf("containerd is set up for %s; leave it out", layout.cgroupDriver())))
	}
	return all
}
