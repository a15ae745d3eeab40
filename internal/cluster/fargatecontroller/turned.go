// SPDX-License-Identifier: Apache-2.0

package fargatecontroller

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/platform/lru"
)

const (
	// firstPause is how long the pods of a controller wait for a machine after a kubelet refused one of them. The pause doubles
	// with each that is refused, up to lastPause.
	firstPause = 10 * time.Second
	lastPause  = 5 * time.Minute
	// maxPauses is how many controllers have a pause at once.
	maxPauses = 1000
)

// pauses are those of controllers of pods, such as ReplicaSets, by their UID. A ReplicaSet makes another pod at once when
// a kubelet refuses one, and each would have another machine. A service that was killed begins again with none.
type pauses struct {
	mu sync.Mutex
	of *lru.Map[types.UID, pause]
}

type pause struct {
	pod    types.UID // that was refused last
	length time.Duration
	until  time.Time
	why    string
}

// begin begins the next pause of the controller of a pod that a kubelet refused.
func (p *pauses) begin(pod *corev1.Pod, now time.Time) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil { // nobody makes another
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = lru.New[types.UID, pause](maxPauses)
	}
	was, _ := p.of.Get(owner.UID)
	if was.pod == pod.UID { // the cache is behind
		return
	}
	length := min(max(2*was.length, firstPause), lastPause)
	until := now.Add(length)
	p.of.Put(owner.UID, pause{pod.UID, length, until, fmt.Sprintf("the kubelet of pod %s, of the same %s, refused it: %s %s; no machine is launched for another one until %s",
		pod.Name, owner.Kind, pod.Status.Reason, pod.Status.Message, until.UTC().Format(time.TimeOnly))})
}

// left is how long a pod waits for a machine because of others of its controller, and why; 0 if it does not.
func (p *pauses) left(pod *corev1.Pod, now time.Time) (time.Duration, string) {
	owner := metav1.GetControllerOfNoCopy(pod)
	p.mu.Lock()
	defer p.mu.Unlock()
	if owner == nil || p.of == nil {
		return 0, ""
	}
	is, _ := p.of.Get(owner.UID)
	return max(is.until.Sub(now), 0), is.why
}

// end forgets the pauses of the controller of a pod that runs.
func (p *pauses) end(pod *corev1.Pod) {
	owner := metav1.GetControllerOfNoCopy(pod)
	p.mu.Lock()
	defer p.mu.Unlock()
	if owner != nil && p.of != nil {
		p.of.Delete(owner.UID)
	}
}

// turnAway deletes the machine of a pod that its kubelet refused: nothing ran on it. The pod goes with the machine.
func (r *pods) turnAway(ctx context.Context, pod *corev1.Pod, m *v1alpha1.Machine) error {
	if !m.DeletionTimestamp.IsZero() {
		return nil
	}
	r.pauses.begin(pod, r.Now())
	if err := r.management.Delete(ctx, m, client.Preconditions{UID: &m.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting machine %s, whose kubelet refused pod %s/%s: %w", m.Name, pod.Namespace, pod.Name, err)
	}
	return nil
}
