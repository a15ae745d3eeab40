// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/cluster/controlsocket"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/explain/evidence"
	"muster.dev/muster/internal/plane/podidentity"
	"muster.dev/muster/internal/platform/statedir"
)

// readerOf returns what reads the facts about a kind of objects in namespaces of a cluster.
func readerOf(kind string) func(context.Context, client.Reader, evidence.Place, time.Time) (diagnosis.Facts, error) {
	switch kind {
	case kindPod:
		return evidence.Pod
	case kindVolume:
		return evidence.Claim
	case kindService:
		return evidence.Service
	}
	return nil
}

// placed are the facts of an object that is called NAMESPACE/NAME, or NAME in the namespace default, in the only
// cluster that has it.
func (q *question) placed(ctx context.Context, kind, name string) (diagnosis.Facts, error) {
	at := evidence.Place{Namespace: corev1.NamespaceDefault, Name: name}
	if namespace, own, ok := strings.Cut(name, "/"); ok {
		at.Namespace, at.Name = namespace, own
	}
	if at.Namespace == "" || at.Name == "" || strings.Contains(at.Name, "/") {
		return diagnosis.Facts{}, fmt.Errorf("invalid name %q of a %s: must be NAMESPACE/NAME, such as default/web-0", name, kind)
	}
	var found []diagnosis.Facts
	var unread []error
	for _, answer := range q.everywhere(ctx, kind, at) {
		switch {
		case answer.err == nil:
			found = append(found, answer.facts)
		case !apierrors.IsNotFound(answer.err):
			unread = append(unread, fmt.Errorf("cluster %s: %w", answer.cluster, answer.err))
		}
	}
	for _, cluster := range q.clusters() {
		if _, asked := q.apis[cluster]; !asked {
			unread = append(unread, fmt.Errorf("cluster %s could not be asked", cluster))
		}
	}
	if kind == kindPod && len(found) == 1 {
		at.Cluster = found[0].Names["$CLUSTER"]
		q.identityOf(ctx, &found[0], at)
	}
	switch {
	case len(found) == 0 && len(unread) > 0:
		return diagnosis.Facts{}, unaskedError{fmt.Errorf("whether there is a %s %s is not known: %w", kind, at, errors.Join(unread...))}
	case len(found) == 0:
		return diagnosis.Facts{}, fmt.Errorf("there is no %s %s", kind, at)
	}
	return q.only(kind, at.String(), found, nil)
}

// askIdentity asks the service of a state directory which IAM identity a pod has.
func askIdentity(ctx context.Context, dir statedir.Dir, cluster, namespace, pod string) (podidentity.Explanation, error) {
	return controlsocket.NewClient(dir).PodIdentity(ctx, cluster, namespace, pod)
}

// identityOf adds what is known of a pod's IAM identity. Of a cluster elsewhere nothing is: its roles are in another account.
func (q *question) identityOf(ctx context.Context, f *diagnosis.Facts, at evidence.Place) {
	if q.identity == nil || q.foreign {
		return
	}
	explanation, err := q.identity(ctx, at.Cluster, at.Namespace, at.Name)
	if err != nil {
		f.Unseen = append(f.Unseen, diagnosis.Unseen{What: "the IAM identity of " + at.String(), Why: err.Error()})
		return
	}
	if e, ok := evidence.OfPodIdentity(explanation, at); ok {
		f.Evidence = append(f.Evidence, e)
	}
}

// answer is what a cluster says of an object.
type answer struct {
	cluster string
	facts   diagnosis.Facts
	err     error
}

// everywhere asks all clusters for an object, side by side, and returns their answers by the clusters' names.
func (q *question) everywhere(ctx context.Context, kind string, at evidence.Place) []answer {
	answers := make([]answer, len(q.apis))
	var group sync.WaitGroup
	for i, cluster := range slices.Sorted(maps.Keys(q.apis)) {
		at := at
		at.Cluster = cluster
		group.Go(func() {
			facts, err := readerOf(kind)(ctx, q.apis[cluster], at, q.snapshot.At)
			answers[i] = answer{cluster, facts, err}
		})
	}
	group.Wait()
	return answers
}

// host are the facts of a host that joined, which is a Node that is of no machine.
func (q *question) host(name string) (diagnosis.Facts, error) {
	s := q.snapshot
	for i := range s.Machines {
		if m := &s.Machines[i]; m.Status.NodeName == name || m.Name == name {
			return diagnosis.Facts{}, fmt.Errorf("%s is a machine of this account, and no host that joined: muster explain machine %s", name, m.Name)
		}
	}
	var found []diagnosis.Facts
	for _, cluster := range q.clusters() {
		nodes := s.Of[cluster].Nodes
		for i := range nodes {
			if nodes[i].Name == name {
				f := s.Node(cluster, &nodes[i])
				f.Kind = kindHost
				found = append(found, f)
			}
		}
	}
	return q.only(kindHost, name, found, fmt.Errorf("there is no Node %q; how far a host is that has none, its own log says: journalctl -u kubelet", name))
}
