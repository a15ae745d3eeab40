// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestUnsupported(t *testing.T) {
	const no = "Pod not supported on Fargate: "
	volume := func(source corev1.VolumeSource) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: source}} }
	}
	claim := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		claims map[string]Claim
		want   string
	}{
		"an ordinary pod": {func(*corev1.Pod) {}, nil, ""},
		"of a ReplicaSet": {func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "r", Controller: new(true)}}
		}, nil, ""},
		"of a DaemonSet": {func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "d", Controller: new(true)}}
		}, nil, no + "it is of DaemonSet d: run that as a sidecar"},
		"the host's network": {func(p *corev1.Pod) { p.Spec.HostNetwork = true }, nil, no + "fields not supported: HostNetwork"},
		"the host's all":     {func(p *corev1.Pod) { p.Spec.HostPID, p.Spec.HostIPC = true, true }, nil, no + "fields not supported: HostIPC, HostPID"},
		"a port of the host": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 8080}}
		}, nil, no + "fields not supported: port 80 contains HostPort"},
		"a port": {func(p *corev1.Pod) { p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80}} }, nil, ""},
		"privileged": {func(p *corev1.Pod) {
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
		}, nil, no + "invalid SecurityContext fields: Privileged"},
		"not privileged": {func(p *corev1.Pod) {
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(false)}
		}, nil, ""},
		"privileged at first": {func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{SecurityContext: &corev1.SecurityContext{Privileged: new(true)}}}
		}, nil, no + "invalid SecurityContext fields: Privileged"},
		"hostPath":           {volume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}), nil, no + "volumes not supported: v is a hostPath"},
		"EBS":                {volume(corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{}}), nil, no + "volumes not supported: v is an EBS volume: use EFS"},
		"EBS by CSI":         {volume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: EBSDriver}}), nil, no + "volumes not supported: v is an EBS volume: use EFS"},
		"emptyDir":           {volume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}), nil, ""},
		"a claim of nothing": {volume(claim), nil, no + "volumes not supported: v, PVC data is not bound"},
		"a claim of EFS":     {volume(claim), map[string]Claim{"data": {true, "efs.csi.aws.com"}}, ""},
		"a claim of EBS":     {volume(claim), map[string]Claim{"data": {true, EBSDriver}}, no + "volumes not supported: v, PVC data is an EBS volume: use EFS"},
		"a claim of a host":  {volume(claim), map[string]Claim{"data": {true, "local"}}, no + "volumes not supported: v, PVC data is a directory or disk of a host (local)"},
		"an ephemeral claim": {volume(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}), map[string]Claim{"web-v": {true, "efs.csi.aws.com"}}, ""},
		"a GPU": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
		}, nil, no + "resources not supported: nvidia.com/gpu"},
		"too much disk": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("17Gi")}
		}, nil, no + "resources not supported: ephemeral-storage of 17Gi, at most 16Gi"},
		"all the disk": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("16Gi")}
		}, nil, ""},
		"too much disk for two": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("9Gi")}
			p.Spec.Containers = append(p.Spec.Containers, p.Spec.Containers[0])
		}, nil, no + "resources not supported: ephemeral-storage of 18Gi, at most 16Gi"},
		"a claim of a device": {func(p *corev1.Pod) {
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}}
		}, nil, no + "fields not supported: ResourceClaims"},
		"Windows": {func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Windows} }, nil, no + "fields not supported: OS windows"},
		"Linux":   {func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Linux} }, nil, ""},
		"two reasons": {func(p *corev1.Pod) {
			p.Spec.HostNetwork = true
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
		}, nil, no + "fields not supported: HostNetwork; invalid SecurityContext fields: Privileged"},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}}
		c.change(pod)
		if got := Unsupported(pod, c.claims); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestKindOf(t *testing.T) {
	for want, source := range map[string]corev1.PersistentVolumeSource{
		"efs.csi.aws.com": {CSI: &corev1.CSIPersistentVolumeSource{Driver: "efs.csi.aws.com"}}, "hostPath": {HostPath: &corev1.HostPathVolumeSource{}},
		"local": {Local: &corev1.LocalVolumeSource{}}, "awsElasticBlockStore": {AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{}}, "other": {NFS: &corev1.NFSVolumeSource{}},
	} {
		if got := KindOf(&corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: source}}); got != want {
			t.Errorf("%+v is %s, want %s", source, got, want)
		}
	}
}
