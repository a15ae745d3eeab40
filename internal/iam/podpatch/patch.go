// SPDX-License-Identifier: Apache-2.0

package podpatch

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Operation is one operation of a JSON patch (RFC 6902).
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// TrustAnnotation has the account's authority in a pod. It is a file in the containers by the downward API: no object
// of the namespace is needed, and nothing of the node.
const TrustAnnotation = "muster.dev/aws-ca-bundle"

const (
	trustVolume = "aws-ca-bundle"
	trustMount  = "/var/run/secrets/muster.dev/aws"
	trustFile   = "ca.pem"
)

// Patch gives a pod an identity.
func (r Rules) Patch(pod *corev1.Pod, id Identity) []Operation {
	windows := pod.Spec.NodeSelector["beta.kubernetes.io/os"] == "windows" || pod.Spec.NodeSelector["kubernetes.io/os"] == "windows"
	onWindows := func(file string) string {
		if windows {
			return "C:" + strings.ReplaceAll(file, "/", `\`)
		}
		return file
	}
	add := adder{r, id, onWindows(path.Join(id.MountPath, id.TokenPath)), onWindows(path.Join(trustMount, trustFile))}
	initContainers, containers := add.to(pod.Spec.InitContainers), add.to(pod.Spec.Containers)

	var operations []Operation
	if id.FullURI != "" {
		operations = append(operations, label(pod.Labels))
	}
	if !hasVolume(pod, id.Volume) {
		operations = append(operations, tokenVolume(pod, id))
	}
	operations = append(operations, Operation{"add", "/spec/containers", containers})
	if len(initContainers) > 0 {
		operations = append(operations, Operation{"add", "/spec/initContainers", initContainers})
	}
	if r.Account.Trust != "" && !hasVolume(pod, trustVolume) {
		operations = append(operations, r.trust(pod)...)
	}
	return operations
}

func hasVolume(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
}

// label says that the pod has an association, as on EKS.
func label(has map[string]string) Operation {
	if has == nil {
		return Operation{"add", "/metadata/labels", map[string]string{Domain + "/pod-identity": "enabled"}}
	}
	return Operation{"add", "/metadata/labels/" + Domain + "~1pod-identity", "enabled"}
}

func tokenVolume(pod *corev1.Pod, id Identity) Operation {
	volume := corev1.Volume{Name: id.Volume, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
			Audience: id.Audience, ExpirationSeconds: &id.Expiration, Path: id.TokenPath,
		}}},
	}}}
	if pod.Spec.Volumes == nil {
		return Operation{"add", "/spec/volumes", []corev1.Volume{volume}}
	}
	return Operation{"add", "/spec/volumes/0", volume}
}

// trust adds the account's authority: the volumes are there by now.
func (r Rules) trust(pod *corev1.Pod) []Operation {
	annotation := Operation{"add", "/metadata/annotations/" + strings.ReplaceAll(TrustAnnotation, "/", "~1"), r.Account.Trust}
	if pod.Annotations == nil {
		annotation = Operation{"add", "/metadata/annotations", map[string]string{TrustAnnotation: r.Account.Trust}}
	}
	return []Operation{annotation, {"add", "/spec/volumes/-", corev1.Volume{
		Name: trustVolume, VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{{
			Path: trustFile, FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.annotations['" + TrustAnnotation + "']"},
		}}}},
	}}}
}

// adder adds an identity to containers.
type adder struct {
	rules                Rules
	id                   Identity
	tokenFile, trustFile string // as the container sees them
}

func (a adder) to(containers []corev1.Container) []corev1.Container {
	changed := make([]corev1.Container, 0, len(containers))
	for _, c := range containers {
		if !a.id.Skip[c.Name] {
			c = a.one(c)
		}
		changed = append(changed, c)
	}
	return changed
}

// one adds what the container does not say itself, a group of variables at a time.
func (a adder) one(c corev1.Container) corev1.Container {
	says := func(names ...string) bool {
		return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return slices.Contains(names, e.Name) })
	}
	has := says("AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE")
	if a.id.FullURI != "" {
		has = says("AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
	}
	region, regional := says("AWS_REGION", "AWS_DEFAULT_REGION"), says("AWS_STS_REGIONAL_ENDPOINTS")
	trust, endpoint := says("AWS_CA_BUNDLE"), says("AWS_ENDPOINT_URL")
	env := slices.Clone(c.Env)
	set := func(name, value string) { env = append(env, corev1.EnvVar{Name: name, Value: value}) }
	if !has || !region || !regional { // else it has all that the original knows, which leaves such a container alone
		if !regional && a.id.RegionalSTS {
			set("AWS_STS_REGIONAL_ENDPOINTS", "regional")
		}
		if !region && a.rules.Region != "" {
			set("AWS_DEFAULT_REGION", a.rules.Region)
			set("AWS_REGION", a.rules.Region)
		}
		switch {
		case has:
		case a.id.FullURI != "":
			set("AWS_CONTAINER_CREDENTIALS_FULL_URI", a.id.FullURI)
			set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", a.tokenFile)
		default:
			set("AWS_ROLE_ARN", a.id.RoleARN)
			set("AWS_WEB_IDENTITY_TOKEN_FILE", a.tokenFile)
		}
		c.VolumeMounts = mounted(c.VolumeMounts, a.id.Volume, a.id.MountPath)
	}
	if a.rules.Account.Trust != "" && !trust {
		set("AWS_CA_BUNDLE", a.trustFile)
		c.VolumeMounts = mounted(c.VolumeMounts, trustVolume, trustMount)
	}
	if a.rules.Account.EndpointURL != "" && !endpoint {
		set("AWS_ENDPOINT_URL", a.rules.Account.EndpointURL)
	}
	if len(env) > 0 || c.Env != nil {
		c.Env = env
	}
	return c
}

// mounted adds the mount of a volume that a container does not mount yet.
func mounted(mounts []corev1.VolumeMount, volume, at string) []corev1.VolumeMount {
	if slices.ContainsFunc(mounts, func(m corev1.VolumeMount) bool { return m.Name == volume }) {
		return mounts
	}
	return append(slices.Clone(mounts), corev1.VolumeMount{Name: volume, ReadOnly: true, MountPath: at})
}
