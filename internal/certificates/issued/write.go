// SPDX-License-Identifier: Apache-2.0

package issued

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// conflicts is how often a write starts over because somebody else wrote first.
const conflicts = 10

// flush writes what is pending when it begins. Entries that come meanwhile are left to the next one: under load
// something always does.
func (r *Register) flush(ctx context.Context) error {
	began := r.config.Now()
	r.mu.RLock()
	left := r.pending.len()
	r.mu.RUnlock()
	for failed := 0; left > 0; {
		s, moved := r.next()
		if s == nil {
			return nil
		}
		err := r.write(ctx, s)
		switch {
		case err == nil:
			failed = 0
			left -= moved
		case errors.Is(err, errAgain) && failed < conflicts:
			failed++
		default:
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending.len() > 0 {
		r.since = began
		r.awake()
	}
	return nil
}

// errAgain means that what is known of the segments has changed, and the write must be thought out again.
var errAgain = errors.New("somebody else wrote first")

// next returns the segment to be written next with as much of pending as it holds and how much that is, nil if nothing
// is pending.
func (r *Register) next() (s *segment, moved int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending.len() == 0 {
		return nil, 0
	}
	if s = r.open(); s != nil {
		moved = r.move(s, false)
	}
	if moved == 0 {
		s = r.begin()
		moved = r.move(s, true)
	}
	s.sort()
	return s, moved
}

// open returns a copy of the newest segment, nil if there is none or it may not be written.
func (r *Register) open() *segment {
	if len(r.order) == 0 || !r.order[len(r.order)-1].writable() {
		return nil
	}
	return r.order[len(r.order)-1].clone()
}

func (r *Register) begin() *segment {
	number := 1
	if len(r.order) > 0 {
		number += r.order[len(r.order)-1].number
	}
	for r.taken[number] {
		number++
	}
	r.begun = true
	s := newSegment()
	s.name, s.number = nameOf(number), number
	s.bytes = size(content{}.data())
	return s
}

// move copies into a segment what it has room for, at least one thing if it must.
func (r *Register) move(s *segment, must bool) (moved int) {
	fits := func(n int) bool {
		if s.bytes+n > r.config.SegmentBytes && (moved > 0 || !must) {
			return false
		}
		s.bytes += n
		moved++
		return true
	}
	var line []byte
	for _, e := range r.pending.entries {
		if line = e.append(line[:0]); !fits(len(line) + 1) {
			return moved
		}
		s.add(e)
	}
	lines := map[uint32]bool{}
	for _, k := range r.pending.retired {
		n := len(group{keys: []short{k.key}}.line()) // a bound: most keys share their line with others
		if g := r.groups.list[k.group]; !lines[k.group] {
			g.keys = []short{k.key}
			n, lines[k.group] = len(g.line())+1, true
		}
		if !fits(n) {
			return moved
		}
		s.retired = append(s.retired, k)
	}
	return moved
}

// write creates or updates a segment, on the condition that nobody else wrote it since it was read.
func (r *Register) write(ctx context.Context, s *segment) error {
	r.mu.RLock()
	data := s.content(&r.groups).data()
	r.mu.RUnlock()
	maps := r.config.Client.CoreV1().ConfigMaps(r.config.Namespace)
	var cm *corev1.ConfigMap
	var err error
	if s.revision == "" {
		cm, err = maps.Create(ctx, s.configMap(r.config.Namespace, data), metav1.CreateOptions{})
	} else {
		cm, err = maps.Update(ctx, s.configMap(r.config.Namespace, data), metav1.UpdateOptions{})
	}
	switch {
	case err == nil:
		return r.written(s, cm, data)
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err) && s.revision != "":
		return r.reread(ctx, s)
	case (apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err)) && s.revision != "":
		r.seal(s, err)
		return errAgain
	case apierrors.IsNotFound(err):
		return fmt.Errorf("the namespace %s does not exist: create it, or set register.namespace to one that does: %w", r.config.Namespace, err)
	}
	return fmt.Errorf("writing ConfigMap %s/%s: %w", r.config.Namespace, s.name, err)
}

// written takes over what was written.
func (r *Register) written(s *segment, cm *corev1.ConfigMap, data map[string]string) error {
	if !maps.Equal(cm.Data, data) {
		r.apply(cm)
		return fmt.Errorf("ConfigMap %s/%s does not hold what was written into it: is there a webhook that changes it?", r.config.Namespace, s.name)
	}
	s.identify(cm)
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.segments[s.name]; known == nil || known.uid != s.uid || newer(s.revision, known.revision) {
		r.put(s)
	}
	r.settle(r.segments[s.name])
	return nil
}

// reread finds out what became of a segment.
func (r *Register) reread(ctx context.Context, s *segment) error {
	cm, err := r.config.Client.CoreV1().ConfigMaps(r.config.Namespace).Get(ctx, s.name, metav1.GetOptions{})
	r.mu.Lock()
	known := r.segments[s.name]
	switch {
	case err == nil && cm.Labels[registerLabel] != "true":
		r.taken[s.number] = true
		fallthrough
	case apierrors.IsNotFound(err):
		r.mu.Unlock()
		if known != nil {
			r.remove(known)
		}
		return errAgain
	}
	r.mu.Unlock()
	if err != nil {
		return fmt.Errorf("reading ConfigMap %s/%s: %w", r.config.Namespace, s.name, err)
	}
	r.apply(cm)
	return errAgain
}

// seal takes a segment out of use that the API server does not let change: somebody made it immutable, or quotas are in
// the way.
func (r *Register) seal(s *segment, err error) {
	r.config.Logger.Warn("register segment cannot be changed: another one is used", "configmap", r.config.Namespace+"/"+s.name, "error", err)
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.segments[s.name]; known != nil {
		known.sealed = true
	}
}
