// SPDX-License-Identifier: Apache-2.0

package podpatch

import (
	"encoding/csv"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// ContainerCredentials says how pods with a pod identity association ask for credentials.
type ContainerCredentials struct {
	FullURI, Audience, MountPath, Volume, TokenPath string
}

// DefaultContainerCredentials are EKS's.
func DefaultContainerCredentials() ContainerCredentials {
	return ContainerCredentials{ //nolint:gosec // G101: where credentials are, and none
		FullURI: "http://169.254.170.23/v1/credentials", Audience: "pods.eks.amazonaws.com",
		MountPath: "/var/run/secrets/pods.eks.amazonaws.com/serviceaccount", Volume: "eks-pod-identity-token", TokenPath: "eks-pod-identity-token",
	}
}

// Identity is how a pod gets credentials. Either RoleARN or FullURI is set.
type Identity struct {
	RoleARN, FullURI                       string
	Audience, MountPath, Volume, TokenPath string
	Expiration                             int64 // of the token, in seconds
	RegionalSTS                            bool
	Skip                                   map[string]bool // containers that get nothing
}

// TokenVolume is the volume with a token for STS.
const TokenVolume = "aws-iam-token" //nolint:gosec // G101: the name of a volume

// webMountPath and webTokenPath are where it is.
const (
	webMountPath = "/var/run/secrets/eks.amazonaws.com/serviceaccount"
	webTokenPath = "token"
	// leastJittered is the shortest life of a token for container credentials whose expiration nobody chose.
	leastJittered = int64(79200)
)

// Rules are how the webhook was set up. Zero values are EKS's.
type Rules struct {
	Defaults
	MountPath string // of tokens for STS
	Container ContainerCredentials
	// Region is for AWS_REGION and AWS_DEFAULT_REGION; empty sets neither.
	Region string
	// Account is what a pod needs to reach an account of Muster's; nothing if the pod is to reach AWS.
	Account Account
	// Jitter returns a number from 0 to n-1; nil is always 0.
	Jitter func(n int64) int64
}

// Account is what the original does not give.
type Account struct {
	Trust       string // certificates in PEM, for AWS_CA_BUNDLE
	EndpointURL string // for AWS_ENDPOINT_URL
}

// WebIdentity is the identity of a pod whose service account has a role.
func (r Rules) WebIdentity(pod *corev1.Pod, e Entry) Identity {
	mount := r.MountPath
	if mount == "" {
		mount = webMountPath
	}
	return Identity{
		RoleARN: e.RoleARN, Audience: e.Audience, MountPath: mount, Volume: TokenVolume, TokenPath: webTokenPath,
		Expiration: r.expiration(pod, e.TokenExpiration), RegionalSTS: e.UseRegionalSTS, Skip: r.skipped(pod),
	}
}

// ContainerIdentity is the identity of a pod whose service account has a pod identity association.
func (r Rules) ContainerIdentity(pod *corev1.Pod, regionalSTS bool, expiration int64) Identity {
	seconds := r.expiration(pod, expiration)
	if seconds == DefaultExpiration { // so that the tokens of many pods that start together do not end together
		seconds = leastJittered
		if r.Jitter != nil {
			seconds += r.Jitter(DefaultExpiration - leastJittered + 1)
		}
	}
	c := r.Container
	return Identity{
		FullURI: c.FullURI, Audience: c.Audience, MountPath: c.MountPath, Volume: c.Volume, TokenPath: c.TokenPath,
		Expiration: seconds, RegionalSTS: regionalSTS, Skip: r.skipped(pod),
	}
}

// expiration is that of the pod's annotation, or else that of its service account.
func (r Rules) expiration(pod *corev1.Pod, expiration int64) int64 {
	if text, ok := pod.Annotations[r.Domain+"/token-expiration"]; ok {
		if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
			return max(seconds, minExpiration)
		}
	}
	return expiration
}

// skipped are the containers that the pod's annotation names, in one line of CSV. Spaces count. A line that cannot be
// read skips none.
func (r Rules) skipped(pod *corev1.Pod) map[string]bool {
	names := map[string]bool{}
	text, ok := pod.Annotations[r.Domain+"/skip-containers"]
	if !ok {
		return names
	}
	fields, err := csv.NewReader(strings.NewReader(text)).Read()
	if err != nil {
		return names
	}
	for _, name := range fields {
		names[name] = true
	}
	return names
}

// Complete fills in what is empty.
func (r Rules) Complete() Rules {
	r.Defaults = r.Defaults.Complete()
	d := DefaultContainerCredentials()
	for _, f := range []struct{ is, def *string }{
		{&r.Container.FullURI, &d.FullURI},
		{&r.Container.Audience, &d.Audience},
		{&r.Container.MountPath, &d.MountPath},
		{&r.Container.Volume, &d.Volume},
		{&r.Container.TokenPath, &d.TokenPath},
	} {
		if *f.is == "" {
			*f.is = *f.def
		}
	}
	return r
}
