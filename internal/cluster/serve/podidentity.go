// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/tools/cache"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/planeclient"
	"muster.dev/muster/internal/plane/podidentity"
	"muster.dev/muster/internal/plane/podwatch"
	"muster.dev/muster/internal/plane/tokenkeys"
)

// PodIdentities says which pods of the account's clusters have which identities.
type PodIdentities struct {
	service      *Service
	machines     cache.Store
	associations *podidentity.Associations
}

var _ identityservice.Pods = PodIdentities{}

// podSource is what one cluster knows of its pods.
type podSource struct {
	issuing *tokenkeys.Issuing
	pods    *podwatch.Watch
}

// newPodSource begins no watch yet.
func newPodSource(c component.Config, issuing *tokenkeys.Issuing) (*podSource, error) {
	pods, err := podwatch.NewForConfig(planeclient.Cluster(c), nil)
	if err != nil {
		return nil, err
	}
	return &podSource{issuing, pods}, nil
}

// Cluster finds a cluster by its name; the error is podidentity.ErrNoCluster, or podidentity.ErrNotReady for one that
// is being started, and for any other while the name of one is not known yet.
func (p PodIdentities) Cluster(name string) (podidentity.Cluster, error) {
	unknown := podidentity.ErrNoCluster
	for _, h := range p.service.clusters() {
		h.mu.Lock()
		own, url, source := h.specs.Cluster, h.specs.Issuer.URL, h.podSource
		h.mu.Unlock()
		switch {
		case own.Spec.Name == "":
			unknown = podidentity.ErrNotReady
		case own.Spec.Name == name && source == nil:
			return podidentity.Cluster{}, podidentity.ErrNotReady
		case own.Spec.Name == name:
			_, keys, err := source.issuing.At(time.Now())
			if err != nil {
				return podidentity.Cluster{}, fmt.Errorf("%w: %w", podidentity.ErrNotReady, err)
			}
			return podidentity.Cluster{Name: name, Namespace: h.dir.Namespace(), Issuer: url, Keys: keys, Pods: source.pods}, nil
		}
	}
	return podidentity.Cluster{}, unknown
}

// Machine returns the name of a machine's node, and of the cluster that it was launched for.
func (p PodIdentities) Machine(id string) (node, cluster string, ok bool) {
	object, exists, err := p.machines.GetByKey(id)
	if err != nil || !exists {
		return "", "", false
	}
	m, ok := object.(*v1alpha1.Machine)
	if !ok {
		return "", "", false
	}
	return m.Status.NodeName, m.Spec.ClusterName, true
}

// Association returns that of a service account; ok is false if it has none. The error is podidentity.ErrNotReady.
func (p PodIdentities) Association(c podidentity.Cluster, namespace, serviceAccount string) (podidentity.Association, bool, error) {
	return p.associations.Of(c, namespace, serviceAccount)
}

// Role is what the identity service is asked to give a pod by an association. The external id is for the target role.
func (p PodIdentities) Role(pod podidentity.Pod, by podidentity.Association, externalID string) identityservice.PodRole {
	role := identityservice.PodRole{
		Root: identityservice.PodRoot{
			Cluster: pod.Cluster, Namespace: pod.Namespace, Pod: pod.Name, UID: pod.UID, ServiceAccount: pod.ServiceAccount,
			Association: by.ID, Grant: by.Grant, Untagged: by.Untagged,
		},
		Role: by.Role, Target: by.Target, Policy: by.Policy,
	}
	if by.Target != "" {
		role.ExternalID = externalID
	}
	return role
}

// Holds implements [identityservice.Pods].
func (p PodIdentities) Holds(root identityservice.PodRoot) error {
	c, err := p.Cluster(root.Cluster)
	if err == nil {
		err = c.Find(podidentity.Pod{Cluster: root.Cluster, Namespace: root.Namespace, Name: root.Pod, UID: root.UID, ServiceAccount: root.ServiceAccount})
	}
	if err == nil && root.Association != "" {
		err = p.granted(c, root)
	}
	if errors.Is(err, podidentity.ErrNotReady) {
		return fmt.Errorf("%w: %w", identityservice.ErrNotReady, err)
	}
	return err
}

// granted is nil while the association of a session is the one that counts, and grants what it did.
func (p PodIdentities) granted(c podidentity.Cluster, root identityservice.PodRoot) error {
	found, ok, err := p.associations.Of(c, root.Namespace, root.ServiceAccount)
	switch {
	case err != nil:
		return err
	case !ok || found.ID != root.Association:
		return fmt.Errorf("the pod identity association %s of service account %s/%s is gone", root.Association, root.Namespace, root.ServiceAccount)
	case found.Grant != root.Grant:
		return fmt.Errorf("the pod identity association %s grants something else now", root.Association)
	}
	return nil
}
