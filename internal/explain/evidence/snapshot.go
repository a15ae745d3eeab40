// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/explain/diagnosis"
)

// Logs are the logs of this host. All evidence of a log has a time.
type Logs interface {
	// Kubelet returns lines of the kubelet's log of a machine, written since a moment.
	Kubelet(ctx context.Context, machine string, since time.Time) ([]diagnosis.Evidence, error)
	// Refused returns requests of a node that the API server of a cluster refused, by its audit log.
	Refused(ctx context.Context, cluster, node string, since time.Time) ([]diagnosis.Evidence, error)
	// Tokens returns what the authenticator of a cluster refused of a machine.
	Tokens(ctx context.Context, cluster, machine string, since time.Time) ([]diagnosis.Evidence, error)
}

// Cluster is what was read of a cluster's own API server.
type Cluster struct {
	Nodes    []corev1.Node
	Requests []certificatesv1.CertificateSigningRequest
	// Events about requests, by the name of the request.
	Events map[string][]corev1.Event
	// Configuration is the evidence of webhooks, APIServices and aws-auth that keep nodes or pods away.
	Configuration []diagnosis.Evidence
	// Elsewhere is what else was read of a cluster that is not of an installation of Muster's; nil of one that is.
	Elsewhere *Elsewhere
	// Blind is what could not be read of either, besides the Nodes, requests and Events.
	Blind []diagnosis.Unseen
	// Unseen is what could not be read of the Nodes, requests and Events.
	Unseen []diagnosis.Unseen
}

// Snapshot is what was read at a moment.
type Snapshot struct {
	Clusters []v1alpha1.Cluster
	Groups   []v1alpha1.NodeGroup
	Machines []v1alpha1.Machine
	Updates  []v1alpha1.Update
	Stacks   []v1alpha1.Stack
	// Of are the clusters' own objects, by the spec.name of the cluster. A cluster that was not read has none.
	Of map[string]Cluster
	At time.Time

	indexes map[string]index
}

// index finds what is of one machine among the objects of a cluster.
type index struct {
	nodes map[string]*corev1.Node // by name
	// reviews are those of a node's requests for its certificates, by its name, the newest of each signer.
	reviews map[string]map[string]csrview.Review
}

// nodeUser begins the common name of a node's certificate.
const nodeUser = "system:node:"

// index returns the index of a cluster, which is made once: a review reads the bytes of its request.
func (s *Snapshot) index(cluster string) index {
	if i, ok := s.indexes[cluster]; ok {
		return i
	}
	of := s.Of[cluster]
	i := index{nodes: map[string]*corev1.Node{}, reviews: map[string]map[string]csrview.Review{}}
	for n := range of.Nodes {
		i.nodes[of.Nodes[n].Name] = &of.Nodes[n]
	}
	for n := range of.Requests {
		r := csrview.Of(&of.Requests[n], of.Events[of.Requests[n].Name])
		node, ok := strings.CutPrefix(r.Asked.CommonName, nodeUser)
		if !ok || !asksItself(r) || r.Created.Before(i.reviews[node][r.SignerName].Created) {
			continue
		}
		if i.reviews[node] == nil {
			i.reviews[node] = map[string]csrview.Review{}
		}
		i.reviews[node][r.SignerName] = r
	}
	if s.indexes == nil {
		s.indexes = map[string]index{}
	}
	s.indexes[cluster] = i
	return i
}

// asksItself reports whether a request for a node's certificate is of the node that it names, or of a bootstrap token,
// which has no certificate yet. Whoever may ask can name any node.
func asksItself(r csrview.Review) bool {
	return r.Requester.Username == r.Asked.CommonName || first(r)
}

// first reports whether a request is one for a node's first certificate, by a bootstrap token.
func first(r csrview.Review) bool {
	return r.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName && strings.HasPrefix(r.Requester.Username, "system:bootstrap:")
}

// Read reads the management plane.
func Read(ctx context.Context, management client.Reader, now time.Time) (*Snapshot, error) {
	s := &Snapshot{Of: map[string]Cluster{}, At: now}
	var clusters v1alpha1.ClusterList
	var groups v1alpha1.NodeGroupList
	var machines v1alpha1.MachineList
	var updates v1alpha1.UpdateList
	var stacks v1alpha1.StackList
	for what, list := range map[string]client.ObjectList{"Clusters": &clusters, "NodeGroups": &groups, "Machines": &machines, "Updates": &updates, "Stacks": &stacks} {
		if err := read(ctx, management, list); err != nil {
			return nil, fmt.Errorf("reading the %s of the management plane: %w", what, err)
		}
	}
	s.Clusters, s.Groups, s.Machines, s.Updates, s.Stacks = clusters.Items, groups.Items, machines.Items, updates.Items, stacks.Items
	return s, nil
}

// ReadOf reads what the management plane has about the cluster of a namespace, and nothing of another cluster. It says
// whether the account has several clusters. A cluster that is not there is an error.
func ReadOf(ctx context.Context, management client.Reader, namespace string, now time.Time) (of *Snapshot, several bool, err error) {
	of, err = Read(ctx, management, now)
	if err != nil {
		return nil, false, err
	}
	several = len(of.Clusters) > 1
	of.Clusters = slices.DeleteFunc(of.Clusters, func(c v1alpha1.Cluster) bool { return c.Namespace != namespace })
	if len(of.Clusters) == 0 {
		return nil, false, fmt.Errorf("the management plane has no cluster in namespace %s", namespace)
	}
	of.Groups = slices.DeleteFunc(of.Groups, func(g v1alpha1.NodeGroup) bool { return g.Namespace != namespace })
	of.Updates = slices.DeleteFunc(of.Updates, func(u v1alpha1.Update) bool { return u.Namespace != namespace })
	of.Machines = slices.DeleteFunc(of.Machines, func(m v1alpha1.Machine) bool {
		return m.Spec.ClusterName == "" || v1alpha1.ClusterSlug(m.Spec.ClusterName) != namespace
	})
	of.Stacks = nil // a stack is of no cluster
	return of, several, nil
}

// ReadClusters reads the API servers of clusters, by their names, and keeps what it found or why nothing was found. They
// are asked side by side, and all have the same time: clusters that hang are not waited for one after another.
func (s *Snapshot) ReadClusters(ctx context.Context, apis map[string]client.Reader) {
	ctx, cancel := context.WithTimeout(ctx, readTime) // of all lists: an API server that hangs answers none
	defer cancel()
	var mutex sync.Mutex
	var group sync.WaitGroup
	for name, api := range apis {
		group.Go(func() {
			c := readCluster(ctx, name, api)
			mutex.Lock()
			defer mutex.Unlock()
			s.Of[name] = c
		})
	}
	group.Wait()
}

// readCluster reads the API server of one cluster.
func readCluster(ctx context.Context, name string, api client.Reader) Cluster {
	var c Cluster
	var nodes corev1.NodeList
	var requests certificatesv1.CertificateSigningRequestList
	var events corev1.EventList
	for _, one := range []struct {
		what string
		list client.ObjectList
		opts []client.ListOption
	}{
		{"the Nodes", &nodes, nil},
		{"the certificate signing requests", &requests, nil},
		{"the Events", &events, []client.ListOption{client.InNamespace(metav1.NamespaceDefault)}}, // those about objects without a namespace
	} {
		if err := read(ctx, api, one.list, one.opts...); err != nil {
			c.Unseen = append(c.Unseen, diagnosis.Unseen{What: fmt.Sprintf("%s of cluster %s", one.what, name), Why: err.Error()})
		}
	}
	c.Nodes, c.Requests, c.Events = nodes.Items, requests.Items, map[string][]corev1.Event{}
	for _, e := range events.Items {
		if e.InvolvedObject.Kind == "CertificateSigningRequest" {
			c.Events[e.InvolvedObject.Name] = append(c.Events[e.InvolvedObject.Name], e)
		}
	}
	if len(c.Unseen) == 0 { // else it says so, and is not asked again
		configuration := &configurationReader{cluster: name, api: api}
		configuration.read(ctx)
		c.Configuration, c.Blind = configuration.evidence, configuration.unseen
	}
	return c
}

// Missed notes why a cluster's own API server was not read.
func (s *Snapshot) Missed(name string, why error) {
	s.Of[name] = Cluster{Unseen: []diagnosis.Unseen{{What: "the Nodes and certificate signing requests of cluster " + name, Why: why.Error()}}}
}

// node returns the Node of a machine; nil if there is none.
func (s *Snapshot) node(m *v1alpha1.Machine) *corev1.Node {
	return s.index(m.Spec.ClusterName).nodes[m.Status.NodeName]
}

// of returns the machines of a node group.
func (s *Snapshot) of(g *v1alpha1.NodeGroup) []*v1alpha1.Machine {
	var machines []*v1alpha1.Machine
	for i := range s.Machines {
		m := &s.Machines[i]
		if m.Spec.NodeGroup == g.Spec.Name && v1alpha1.ClusterSlug(m.Spec.ClusterName) == g.Namespace {
			machines = append(machines, m)
		}
	}
	return machines
}

// clusterOf is the spec.name of the cluster that has a namespace; the namespace itself if no cluster is there.
func (s *Snapshot) clusterOf(namespace string) string {
	for i := range s.Clusters {
		if s.Clusters[i].Namespace == namespace {
			return s.Clusters[i].Spec.Name
		}
	}
	return namespace
}
