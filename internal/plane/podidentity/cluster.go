// SPDX-License-Identifier: Apache-2.0

package podidentity

import (
	"errors"
	"strings"
	"time"

	"muster.dev/muster/internal/iam/tokenrefusal"
	"muster.dev/muster/internal/iam/webidentity"
	"muster.dev/muster/internal/plane/podwatch"
)

// Audience is that of the tokens which EKS's webhook mounts into pods for the agent.
const Audience = "pods.eks.amazonaws.com"

// The errors that say why nothing can be said.
var (
	// ErrNoCluster means that the account has no such cluster.
	ErrNoCluster = errors.New("the account has no such cluster")
	// ErrNotReady means that it is not known yet.
	ErrNotReady = errors.New("the pods and associations of the cluster are not known yet")
)

// Pod is a pod of a cluster of the account.
type Pod struct {
	Cluster              string // its name
	Namespace, Name, UID string
	ServiceAccount       string
	Node                 string
	HostNetwork          bool

	accountUID string // that a token names; empty for any
}

// Cluster is a cluster whose pods have identities.
type Cluster struct {
	// Name is EKS's, and Namespace that in the management plane.
	Name, Namespace string
	// Issuer is the URL of the issuer of its tokens, and Keys the public keys of that issuer.
	Issuer string
	Keys   webidentity.Keys
	Pods   *podwatch.Watch
}

// Verify returns the pod that a token is of, if the token is one for the agent and the pod is there. Errors are
// *tokenrefusal.Refusal, or wrap podwatch.ErrNoPod or ErrNotReady.
func (c Cluster) Verify(token string, now time.Time) (Pod, error) {
	read, err := webidentity.Read(token)
	if err != nil {
		return Pod{}, err
	}
	if read.Issuer() != c.Issuer {
		return Pod{}, &tokenrefusal.Refusal{Rule: ruleIssuer, Saw: "another issuer's", Fix: "send a token of the cluster's own issuer, " + c.Issuer}
	}
	claims, err := read.Verify(c.Keys, now)
	if err != nil {
		return Pod{}, err
	}
	if _, err := claims.For(Audience); err != nil {
		return Pod{}, err
	}
	bound, err := claims.Bound()
	if err != nil {
		return Pod{}, err
	}
	if bound.Pod == "" {
		return Pod{}, &tokenrefusal.Refusal{Rule: webidentity.RuleBound, Saw: "no pod", Fix: "mount the token into a pod by a projected volume: a token of TokenRequest names the pod as boundObjectRef"}
	}
	p := Pod{
		Cluster: c.Name, Namespace: bound.Namespace, Name: bound.Pod, UID: bound.PodUID, ServiceAccount: bound.ServiceAccount,
		accountUID: bound.ServiceAccountUID,
	}
	found, err := c.find(p)
	if err != nil {
		return Pod{}, err
	}
	p.Node, p.HostNetwork = found.Node, found.HostNetwork
	return p, nil
}

// ruleIssuer refuses a token of another cluster.
const ruleIssuer = "issuer"

// Find is nil if a pod is there with its service account; otherwise the error wraps podwatch.ErrNoPod or ErrNotReady.
func (c Cluster) Find(p Pod) error {
	_, err := c.find(p)
	return err
}

func (c Cluster) find(p Pod) (podwatch.Pod, error) {
	found, err := c.Pods.Find(podwatch.Subject{
		Namespace: p.Namespace, Pod: p.Name, PodUID: p.UID, ServiceAccount: p.ServiceAccount, ServiceAccountUID: p.accountUID,
	})
	if errors.Is(err, podwatch.ErrNotReady) {
		return found, ErrNotReady
	}
	return found, err
}

// ExternalID is what the trust policy of a target role compares with sts:ExternalId.
func ExternalID(region, account string, p Pod) string {
	return strings.Join([]string{region, account, p.Cluster, p.Namespace, p.ServiceAccount}, "/")
}
