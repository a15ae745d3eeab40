// SPDX-License-Identifier: Apache-2.0

package serviceaccounts

import (
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/plane/podidentity"
)

// Pods says which pods of the account's clusters have which identities.
type Pods struct {
	Clusters

	// Machines are the account's, and Associations those of all clusters.
	Machines     *identityservice.Machines
	Associations *podidentity.Associations
}

var _ identityservice.Pods = Pods{}

// NewPods makes the watch of associations, which knows nothing until it runs.
func NewPods(clusters Clusters, machines *identityservice.Machines, management client.WithWatch) Pods {
	return Pods{clusters, machines, podidentity.NewAssociations(management)}
}

// Cluster finds a cluster by its name; the error is podidentity.ErrNoCluster, or podidentity.ErrNotReady for one that
// is being started, and for any other while the name of one is not known yet.
func (p Pods) Cluster(name string) (podidentity.Cluster, error) {
	unknown := podidentity.ErrNoCluster
	for _, known := range p.Running() {
		switch {
		case known.name() == "":
			unknown = podidentity.ErrNotReady
		case known.name() == name && known.Pods == nil:
			return podidentity.Cluster{}, podidentity.ErrNotReady
		case known.name() == name:
			_, keys, err := known.Issuing.At(time.Now())
			if err != nil {
				return podidentity.Cluster{}, fmt.Errorf("%w: %w", podidentity.ErrNotReady, err)
			}
			return podidentity.Cluster{Name: name, Namespace: known.Specs.Dir.Namespace(), Issuer: known.Specs.Issuer.URL, Keys: keys, Pods: known.Pods}, nil
		}
	}
	return podidentity.Cluster{}, unknown
}

// Machine returns the name of a machine's node, and of the cluster that it was launched for.
func (p Pods) Machine(id string) (node, cluster string, ok bool) {
	m, ok := p.Machines.Get(id)
	if !ok {
		return "", "", false
	}
	return m.Status.NodeName, m.Spec.ClusterName, true
}

// Association returns that of a service account; ok is false if it has none. The error is podidentity.ErrNotReady.
func (p Pods) Association(c podidentity.Cluster, namespace, serviceAccount string) (podidentity.Association, bool, error) {
	return p.Associations.Of(c, namespace, serviceAccount)
}

// Role is what the identity service is asked to give a pod by an association. The external id is for the target role.
func (p Pods) Role(pod podidentity.Pod, by podidentity.Association, externalID string) identityservice.PodRole {
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
func (p Pods) Holds(root identityservice.PodRoot) error {
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
func (p Pods) granted(c podidentity.Cluster, root identityservice.PodRoot) error {
	found, ok, err := p.Associations.Of(c, root.Namespace, root.ServiceAccount)
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
