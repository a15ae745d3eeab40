// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/resource"
)

// EBSDriver is the CSI driver of EBS volumes.
const EBSDriver = "ebs.csi.aws.com"

// mostDisk is the ephemeral storage that a pod may request, in bytes. A machine's disk has 20 GiB, and its file
// system and the kubelet's reserve take some of them. A kubelet would refuse a pod that requests more. On EKS the limit is
// 175 GiB.
const mostDisk = 16 << 30

// Claim is what is known of a PersistentVolumeClaim of a pod.
type Claim struct {
	// Bound reports whether the claim has a volume.
	Bound bool
	// Kind is the CSI driver of the volume, or in-tree plugin, such as efs.csi.aws.com or hostPath.
	Kind string
}

// Unsupported returns why a pod cannot have a machine of its own, in the words of EKS's scheduler and with the way out;
// "" if it can. Claims are those of the pod, by name; a claim that is not there is not bound.
func Unsupported(pod *corev1.Pod, claims map[string]Claim) string {
	var reasons []string
	add := func(what string, found []string) {
		if len(found) > 0 {
			slices.Sort(found)
			reasons = append(reasons, what+strings.Join(slices.Compact(found), ", "))
		}
	}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && owner.Kind == "DaemonSet" {
		reasons = append(reasons, "it is of DaemonSet "+owner.Name+": run that as a sidecar")
	}
	add("fields not supported: ", fields(pod))
	add("invalid SecurityContext fields: ", securityFields(pod))
	add("volumes not supported: ", volumes(pod, claims))
	add("resources not supported: ", resources(pod))
	if len(reasons) == 0 {
		return ""
	}
	return "Pod not supported on Fargate: " + strings.Join(reasons, "; ")
}

// fields are fields of the pod that share something of the host, or ask for what no machine of Fargate has.
func fields(pod *corev1.Pod) []string {
	var found []string
	for name, set := range map[string]bool{
		"HostNetwork": pod.Spec.HostNetwork, "HostPID": pod.Spec.HostPID, "HostIPC": pod.Spec.HostIPC,
		"ResourceClaims": len(pod.Spec.ResourceClaims) > 0, "OS windows": pod.Spec.OS != nil && pod.Spec.OS.Name == corev1.Windows,
	} {
		if set {
			found = append(found, name)
		}
	}
	eachContainer(pod, func(c *corev1.Container) {
		for _, port := range c.Ports {
			if port.HostPort != 0 {
				found = append(found, fmt.Sprintf("port %d contains HostPort", port.ContainerPort))
			}
		}
	})
	return found
}

func securityFields(pod *corev1.Pod) []string {
	var found []string
	eachContainer(pod, func(c *corev1.Container) {
		if s := c.SecurityContext; s != nil && s.Privileged != nil && *s.Privileged {
			found = append(found, "Privileged")
		}
	})
	return found
}

// resources are what no machine of Fargate has.
func resources(pod *corev1.Pod) []string {
	var found []string
	for name, quantity := range resource.PodRequests(pod, resource.PodResourcesOptions{}) {
		switch {
		case name == corev1.ResourceCPU, name == corev1.ResourceMemory:
		case name == corev1.ResourceEphemeralStorage:
			if quantity.Value() > mostDisk {
				found = append(found, fmt.Sprintf("%s of %s, at most %dGi", name, quantity.String(), mostDisk>>30))
			}
		case !quantity.IsZero():
			found = append(found, string(name))
		}
	}
	return found
}

// volumes are those that a machine of Fargate cannot have: directories and disks of the host, and EBS.
func volumes(pod *corev1.Pod, claims map[string]Claim) []string {
	var found []string
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		switch {
		case v.HostPath != nil:
			found = append(found, v.Name+" is a hostPath")
		case v.AWSElasticBlockStore != nil, v.CSI != nil && v.CSI.Driver == EBSDriver:
			found = append(found, v.Name+" is an EBS volume: use EFS")
		case v.PersistentVolumeClaim != nil || v.Ephemeral != nil:
			name := pod.Name + "-" + v.Name // as Kubernetes names the claim of an ephemeral volume
			if v.PersistentVolumeClaim != nil {
				name = v.PersistentVolumeClaim.ClaimName
			}
			if why := claimed(claims[name]); why != "" {
				found = append(found, fmt.Sprintf("%s, PVC %s %s", v.Name, name, why))
			}
		}
	}
	return found
}

// claimed returns why the volume of a claim cannot be used; "" if it can.
func claimed(c Claim) string {
	switch {
	case !c.Bound:
		return "is not bound"
	case c.Kind == EBSDriver || c.Kind == "awsElasticBlockStore":
		return "is an EBS volume: use EFS"
	case c.Kind == "hostPath" || c.Kind == "local":
		return "is a directory or disk of a host (" + c.Kind + ")"
	}
	return ""
}

// KindOf returns the kind of a volume as [Claim] has it.
func KindOf(v *corev1.PersistentVolume) string {
	driver := ""
	if v.Spec.CSI != nil {
		driver = v.Spec.CSI.Driver
	}
	switch {
	case v.Spec.AWSElasticBlockStore != nil:
		driver = "awsElasticBlockStore"
	case v.Spec.HostPath != nil:
		driver = "hostPath"
	case v.Spec.Local != nil:
		driver = "local"
	}
	return cmp.Or(driver, "other")
}

// ClaimNames returns the names of a pod's claims.
func ClaimNames(pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.Volumes {
		switch v := &pod.Spec.Volumes[i]; {
		case v.PersistentVolumeClaim != nil:
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			names = append(names, pod.Name+"-"+v.Name)
		}
	}
	return names
}

func eachContainer(pod *corev1.Pod, do func(*corev1.Container)) {
	for i := range pod.Spec.InitContainers {
		do(&pod.Spec.InitContainers[i])
	}
	for i := range pod.Spec.Containers {
		do(&pod.Spec.Containers[i])
	}
}
