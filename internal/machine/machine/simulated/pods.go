// SPDX-License-Identifier: Apache-2.0

package simulated

import (
	"context"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"muster.dev/muster/internal/machine/podstatus"
	"muster.dev/muster/internal/platform/watchretry"
)

const (
	// podWorkers is how many nodes write about their pods at once.
	podWorkers = 16
	podRetry   = time.Second
	// conflictRetry is how soon a status is written again that somebody else's write was faster than.
	conflictRetry = 100 * time.Millisecond
)

// pods are the pods of all nodes, from one watch that all simulated machines of this process share: a watch for each
// would cost the API server a goroutine and a buffer for each. The reader may read pods and nothing else. Each node
// writes about its own pods with its own certificate, as a kubelet does.
type pods struct {
	simulator *Simulator
	due       workqueue.TypedDelayingInterface[string] // names of nodes
	mu        sync.Mutex
	nodes     map[string]*nodePods
}

// nodePods are the pods that are bound to a node.
type nodePods struct {
	runner *podRunner // nil while no simulated machine of this process is that node
	pods   map[types.UID]heldPod
}

// heldPod is a pod as it was last told. It is not changed.
type heldPod struct {
	pod *corev1.Pod
	// wrote is a sum of the status that was last written. An API server of another version may drop fields of it: the
	// same is not written again.
	wrote uint64
	// gone is whether the API server has said that the pod is gone, which the watch has still to tell.
	gone bool
}

func newPods(s *Simulator) *pods {
	return &pods{simulator: s, due: workqueue.NewTypedDelayingQueue[string](), nodes: map[string]*nodePods{}}
}

var _ cache.ReflectorStore = (*pods)(nil)

// run watches pods and writes about them until the context ends.
func (p *pods) run(ctx context.Context) error {
	config := p.simulator.restConfig()
	config.TLSClientConfig = rest.TLSClientConfig{CAData: p.simulator.config.CA, CertFile: p.simulator.config.PodReader, KeyFile: p.simulator.config.PodReader}
	watchretry.Wrap(config)
	client, err := coreclient.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client that reads pods: %w", err)
	}
	bound := fields.OneTermNotEqualSelector("spec.nodeName", "")
	from := watchretry.New(cache.NewListWatchFromClient(client.RESTClient(), "pods", metav1.NamespaceAll, bound))
	var workers sync.WaitGroup
	for range podWorkers {
		workers.Go(func() {
			for {
				name, over := p.due.Get()
				if over {
					return
				}
				p.look(ctx, name)
				p.due.Done(name)
			}
		})
	}
	cache.NewReflectorWithOptions(from, &corev1.Pod{}, p, cache.ReflectorOptions{Name: "pods"}).RunWithContext(ctx)
	p.due.ShutDown()
	workers.Wait()
	return nil
}

// attach has a machine's node run the pods that are bound to it, until the returned function is called.
func (p *pods) attach(runner *podRunner) (detach func()) {
	name := runner.record.PrivateDNSName
	p.mu.Lock()
	p.node(name).runner = runner
	p.mu.Unlock()
	p.due.Add(name)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.node(name).runner = nil
		p.forget(name)
	}
}

// node is what is known of a node. The caller holds the mutex.
func (p *pods) node(name string) *nodePods {
	n, ok := p.nodes[name]
	if !ok {
		n = &nodePods{pods: map[types.UID]heldPod{}}
		p.nodes[name] = n
	}
	return n
}

// forget drops a node of which nothing is known. The caller holds the mutex.
func (p *pods) forget(name string) {
	if n := p.nodes[name]; n.runner == nil && len(n.pods) == 0 {
		delete(p.nodes, name)
	}
}

// look does what is due for the pods of a node.
func (p *pods) look(ctx context.Context, name string) {
	runner, list := p.of(name)
	if runner == nil || len(list) == 0 {
		return
	}
	node, err := runner.node(ctx)
	if err != nil {
		if ctx.Err() == nil {
			runner.log.Warn("simulated kubelet cannot run pods yet", "error", err)
			p.due.AddAfter(name, jitter(podRetry))
		}
		return
	}
	actions, again := podstatus.Next(node, list, time.Now())
	for _, action := range actions {
		if err := p.do(ctx, runner, action); err != nil && ctx.Err() == nil {
			if apierrors.IsConflict(err) {
				p.due.AddAfter(name, jitter(conflictRetry))
				continue
			}
			runner.log.Warn("cannot write about pod", "namespace", action.Pod.Namespace, "pod", action.Pod.Name, "error", err)
			p.due.AddAfter(name, jitter(podRetry))
		}
	}
	if !again.IsZero() {
		p.due.AddAfter(name, time.Until(again))
	}
}

// of returns what runs the pods of a node, nil if none is, and the node's pods.
func (p *pods) of(name string) (*podRunner, []*corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, ok := p.nodes[name]
	if !ok || n.runner == nil {
		return nil, nil
	}
	list := make([]*corev1.Pod, 0, len(n.pods))
	for _, held := range n.pods {
		if !held.gone {
			list = append(list, held.pod)
		}
	}
	return n.runner, list
}

// do takes an action, and knows its effect before the watch tells.
func (p *pods) do(ctx context.Context, runner *podRunner, action podstatus.Action) error {
	if action.Status == nil {
		err := runner.remove(ctx, action.Pod)
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // the pod of that UID is gone
			p.end(action.Pod)
			return nil
		}
		return err
	}
	sum, err := sumOf(action.Status)
	if err != nil || !p.write(action.Pod, sum) {
		return err
	}
	written, err := runner.report(ctx, action.Pod, action.Status)
	switch {
	case apierrors.IsNotFound(err):
		p.end(action.Pod)
		return nil
	case err != nil:
		p.write(action.Pod, 0)
		return err
	}
	p.put(written, true)
	p.due.Add(runner.record.PrivateDNSName) // a pod that has ended is removed next
	return nil
}

func sumOf(status *corev1.PodStatus) (uint64, error) {
	raw, err := status.Marshal()
	if err != nil {
		return 0, fmt.Errorf("encoding the status of a pod: %w", err)
	}
	sum := fnv.New64a()
	_, _ = sum.Write(raw) // it never fails
	return sum.Sum64(), nil
}

// write notes what is written about a pod; false if the same was written last, or the pod is gone.
func (p *pods) write(pod *corev1.Pod, sum uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.node(pod.Spec.NodeName)
	held, ok := n.pods[pod.UID]
	if !ok || held.wrote == sum {
		p.forget(pod.Spec.NodeName)
		return false
	}
	held.wrote = sum
	n.pods[pod.UID] = held
	return true
}

// put keeps a pod, unless it is older than the one that is known, and reports whether it is news. An answer of the API server
// is kept of a pod that is known alone: the watch may have told meanwhile that the pod is gone, and tells of it no more.
func (p *pods) put(pod *corev1.Pod, answer bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.node(pod.Spec.NodeName)
	held, known := n.pods[pod.UID]
	if answer && !known {
		p.forget(pod.Spec.NodeName)
		return false
	}
	if held.gone {
		return false
	}
	if known {
		if order, err := resourceversion.CompareResourceVersion(pod.ResourceVersion, held.pod.ResourceVersion); err == nil && order <= 0 {
			return false
		}
	}
	held.pod = trim(pod)
	n.pods[pod.UID] = held
	return true
}

// end runs a pod no more that the API server has said to be gone. The pod is forgotten when the watch tells of its end:
// until then the watch may tell of what was before.
func (p *pods) end(pod *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.node(pod.Spec.NodeName)
	if held, known := n.pods[pod.UID]; known {
		held.gone = true
		n.pods[pod.UID] = held
	}
	p.forget(pod.Spec.NodeName)
}

// remove forgets a pod.
func (p *pods) remove(pod *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.node(pod.Spec.NodeName).pods, pod.UID)
	p.forget(pod.Spec.NodeName)
}

// Add implements [cache.ReflectorStore].
func (p *pods) Add(object any) error { return p.Update(object) }

// Update implements [cache.ReflectorStore].
func (p *pods) Update(object any) error {
	if pod, ok := object.(*corev1.Pod); ok && p.put(pod, false) {
		p.due.Add(pod.Spec.NodeName)
	}
	return nil
}

// Delete implements [cache.ReflectorStore]. The address of the pod is free now, for one that waits for an address.
func (p *pods) Delete(object any) error {
	if pod, ok := object.(*corev1.Pod); ok {
		p.remove(pod)
		p.due.Add(pod.Spec.NodeName)
	}
	return nil
}

// Replace implements [cache.ReflectorStore]: pods that are not in a new list are gone.
func (p *pods) Replace(objects []any, _ string) error {
	listed := make(map[types.UID]bool, len(objects))
	for _, object := range objects {
		if pod, ok := object.(*corev1.Pod); ok {
			listed[pod.UID] = true
		}
	}
	var gone []any
	p.mu.Lock()
	for _, n := range p.nodes {
		for uid, held := range n.pods {
			if !listed[uid] {
				gone = append(gone, held.pod)
			}
		}
	}
	p.mu.Unlock()
	for _, pod := range gone {
		_ = p.Delete(pod) // it never fails
	}
	for _, pod := range objects {
		_ = p.Update(pod) // it never fails
	}
	return nil
}

// Resync implements [cache.ReflectorStore].
func (p *pods) Resync() error { return nil }
