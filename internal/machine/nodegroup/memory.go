// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"muster.dev/muster/api/v1alpha1"
)

// lag is how far the caches may be behind what this process wrote itself. It is seconds too long rather than too short.
const lag = 10 * time.Second

// memory is what this process did a moment ago and its caches may not show yet. Losing it costs some repeated work, no
// more: a new process starts with caches that show everything that was done before it.
type memory struct {
	mu      sync.Mutex
	written map[string]string // machine → version that the last write gave it
	tokens  map[string]madeToken
	asked   map[string]time.Time // machine → when to ask again whether the cluster lets it in
	refused map[string]refusedAt // machine → the last refusal of a token with its session

	writtenAt map[string]time.Time // machine → when its status was written last
	gone      map[string]string    // machine → the token that its status names yet, and that was removed
}

type madeToken struct {
	credential credential
	at         time.Time
}

type refusedAt struct {
	refusal Refusal
	at      time.Time
}

func newMemory() *memory {
	return &memory{
		written: map[string]string{}, tokens: map[string]madeToken{}, asked: map[string]time.Time{}, refused: map[string]refusedAt{},
		writtenAt: map[string]time.Time{}, gone: map[string]string{},
	}
}

// wrote takes note of a Machine just written.
func (m *memory) wrote(object *v1alpha1.Machine, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.written[object.Name] = object.ResourceVersion
	m.writtenAt[object.Name] = now
}

// stale reports whether a Machine, read from the cache, is older than what was written. Versions of one kind can be
// compared since Kubernetes 1.35 (KEP-5504); one that cannot be is taken for new.
func (m *memory) stale(object *v1alpha1.Machine) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	order, err := resourceversion.CompareResourceVersion(object.ResourceVersion, m.written[object.Name])
	return err == nil && order < 0
}

// made takes note of a token just stored.
func (m *memory) made(machine string, c credential, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tokens[machine] = madeToken{credential: c, at: now}
}

// token returns the token that was stored for the machine a moment ago, if one was.
func (m *memory) token(machine string, now time.Time) credential {
	m.mu.Lock()
	defer m.mu.Unlock()
	made, ok := m.tokens[machine]
	if !ok || now.Sub(made.at) > lag {
		delete(m.tokens, machine)
		return credential{}
	}
	return made.credential
}

// drop takes note of a token just removed.
func (m *memory) drop(machine, token string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gone[machine] = token
}

// dropped reports whether a token of the machine was removed.
func (m *memory) dropped(machine, token string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.gone[machine] == token
}

// joined forgets a token that is used up.
func (m *memory) joined(machine string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.tokens, machine)
}

// checked takes note of when to ask again whether the cluster lets a machine in.
func (m *memory) checked(machine string, until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked[machine] = until
}

// checkedFor is how long that is from now, or 0.
func (m *memory) checkedFor(machine string, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return max(m.asked[machine].Sub(now), 0)
}

// recheck makes it time to ask again about every machine.
func (m *memory) recheck() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.asked)
}

// heard takes note of a refusal, and makes it time to ask again about the machine.
func (m *memory) heard(h Heard, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refused[h.Machine] = refusedAt{refusal: h.Refusal, at: now}
	delete(m.asked, h.Machine)
}

// heardOf is how what the machine sent was refused a moment ago, or nil.
func (m *memory) heardOf(machine string, now time.Time) *Refusal {
	m.mu.Lock()
	defer m.mu.Unlock()
	was, ok := m.refused[machine]
	if !ok || now.Sub(was.at) > heardFor {
		delete(m.refused, machine)
		return nil
	}
	return &was.refusal
}

func (m *memory) forget(machine string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.written, machine)
	delete(m.writtenAt, machine)
	delete(m.gone, machine)
	delete(m.tokens, machine)
	delete(m.asked, machine)
	delete(m.refused, machine)
}
