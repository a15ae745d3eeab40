// SPDX-License-Identifier: Apache-2.0

package queuestore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"muster.dev/muster/internal/platform/atomicfile"
)

// ErrFull is the error of Send for a queue that has no room.
var ErrFull = errors.New("the queue is full")

// ErrGone is the error of Send for a queue that was removed.
var ErrGone = errors.New("the queue was removed")

// The bounds of one queue.
const (
	MaxMessages = 120_000
	MaxBytes    = 64 << 20 // of bodies and attributes together
)

// The bounds of all queues together, whose messages are in memory.
const (
	MaxTotal = 256 << 20 // bytes of messages, with overhead for each
	Spared   = 1 << 20   // bytes that a queue may have whatever others hold
	overhead = 1 << 10
)

// Message is a message of a queue. The fields are the file's.
type Message struct {
	ID         string               `json:"id"`
	Body       string               `json:"body"`
	Attributes map[string]Attribute `json:"attributes,omitempty"`
	// Sender is the id of the principal that sent it.
	Sender string    `json:"sender"`
	Sent   time.Time `json:"sent"`
	// Visible is from when on it can be received.
	Visible time.Time `json:"visible"`
	// Received is how often it was received, and First when that was for the first time.
	Received int       `json:"received,omitempty"`
	First    time.Time `json:"first,omitzero"`
	// Receipt is that of the last time; an older one is good for nothing.
	Receipt string `json:"receipt,omitempty"`
}

// Attribute is an attribute that the sender gave a message.
type Attribute struct {
	Type   string `json:"type"` // String, Number or Binary, and a custom label
	Text   string `json:"text,omitempty"`
	Binary []byte `json:"binary,omitempty"`
}

// size counts against MaxBytes.
func (m *Message) size() int {
	n := len(m.Body)
	for name, a := range m.Attributes {
		n += len(name) + len(a.Type) + len(a.Text) + len(a.Binary)
	}
	return n
}

// cost is what a queue takes in memory.
func (q *queue) cost() int { return q.bytes + overhead*len(q.messages) }

// put adds a message.
func (q *queue) put(m *Message) {
	q.messages[m.ID] = m
	q.bytes += m.size()
	q.total.Add(int64(m.size() + overhead))
}

// full reports whether a queue has no room for a message.
func (q *queue) full(m *Message) bool {
	more := m.size() + overhead
	return len(q.messages) >= MaxMessages || q.bytes+m.size() > MaxBytes || q.total.Load()+int64(more) > MaxTotal && q.cost()+more > Spared
}

// Counts are how many messages a queue has.
type Counts struct{ Visible, Received, Delayed int }

// Store has the queues of an account. It is safe for use by several goroutines.
type Store struct {
	dir string
	now func() time.Time

	// total is the cost of all messages of the queues that were read.
	total atomic.Int64

	mu     sync.Mutex
	queues map[string]*queue
}

// New makes a store of the queues in a directory, which is made with the first message.
func New(dir string, now func() time.Time) *Store {
	return &Store{dir: dir, now: now, queues: map[string]*queue{}}
}

// queue is a queue in memory.
type queue struct {
	dir   string
	total *atomic.Int64 // of the store

	mu       sync.Mutex
	messages map[string]*Message
	bytes    int
	// changed is closed when a message comes, and replaced.
	changed chan struct{}
	gone    bool
}

// open returns a queue, and reads it if that was not done yet.
func (s *Store) open(id string) (*queue, error) {
	if id == "" || strings.Trim(id, "0123456789abcdef-") != "" {
		return nil, fmt.Errorf("invalid id of a queue %.80q: it must be hexadecimal", id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[id]; q != nil {
		return q, nil
	}
	q := &queue{dir: filepath.Join(s.dir, id), total: new(atomic.Int64), messages: map[string]*Message{}, changed: make(chan struct{})}
	entries, err := os.ReadDir(q.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading a queue: %w", err)
	}
	for _, entry := range entries {
		name, is := strings.CutSuffix(entry.Name(), suffix)
		if !is { // half a file, which nobody was told about
			continue
		}
		text, err := os.ReadFile(filepath.Join(q.dir, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading a message: %w", err)
		}
		m := &Message{}
		if err := json.Unmarshal(text, m); err != nil || m.ID != name {
			return nil, fmt.Errorf("reading the message %s: it is not one that Muster wrote: %w", entry.Name(), cmp.Or(err, errors.New("another id")))
		}
		q.put(m)
	}
	q.total = &s.total // only now: a queue that cannot be read is read again
	q.total.Add(int64(q.cost()))
	s.queues[id] = q
	return q, nil
}

const suffix = ".json"

// write puts a message on the disk.
func (q *queue) write(m *Message) error {
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("writing a message: %w", err)
	}
	if err := os.MkdirAll(q.dir, 0o700); err != nil {
		return fmt.Errorf("writing a message: %w", err)
	}
	if err := atomicfile.Write(filepath.Join(q.dir, m.ID+suffix), text, 0o600); err != nil {
		return fmt.Errorf("writing a message: %w", err)
	}
	return nil
}

// remove takes a message off the disk.
func (q *queue) remove(m *Message) error {
	if err := os.Remove(filepath.Join(q.dir, m.ID+suffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing a message: %w", err)
	}
	delete(q.messages, m.ID)
	q.bytes -= m.size()
	q.total.Add(-int64(m.size() + overhead))
	return nil
}

// expire drops what is older than a queue keeps.
func (q *queue) expire(now time.Time, keeps time.Duration) error {
	for _, m := range q.messages {
		if now.Sub(m.Sent) >= keeps {
			if err := q.remove(m); err != nil {
				return err
			}
		}
	}
	return nil
}

// Send adds a message to a queue that keeps messages for some time.
func (s *Store) Send(id string, keeps time.Duration, m Message) error {
	q, err := s.open(id)
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.expire(s.now(), keeps); err != nil {
		return err
	}
	switch {
	case q.gone:
		return ErrGone
	case q.full(&m):
		return ErrFull
	}
	if err := q.write(&m); err != nil {
		return err
	}
	q.put(&m)
	close(q.changed)
	q.changed = make(chan struct{})
	return nil
}

// Await returns when a queue has a message that can be received or is removed, when a time is over, or with the error of the
// context.
func (s *Store) Await(ctx context.Context, id string, keeps time.Duration, until time.Time) error {
	q, err := s.open(id)
	if err != nil {
		return err
	}
	for {
		changed, next, err := q.look(s.now(), keeps)
		if err != nil || next.IsZero() {
			return err
		}
		now := s.now()
		if !until.After(now) {
			return nil
		}
		if next.After(until) {
			next = until
		}
		timer := time.NewTimer(next.Sub(now))
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		timer.Stop()
	}
}

// far is later than any wait.
const far = 24 * time.Hour

// look returns the zero time if there is nothing to wait for, and else what there is: the channel, or the time.
func (q *queue) look(now time.Time, keeps time.Duration) (changed <-chan struct{}, next time.Time, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.expire(now, keeps); err != nil {
		return nil, time.Time{}, err
	}
	if q.gone {
		return nil, time.Time{}, nil
	}
	next = now.Add(far)
	for _, m := range q.messages {
		if !m.Visible.After(now) {
			return nil, time.Time{}, nil
		}
		if m.Visible.Before(next) {
			next = m.Visible
		}
	}
	return q.changed, next, nil
}

// Receive takes up to most messages that can be received, the oldest first, out of sight for some time, and gives each a
// receipt. The messages that were taken before an error are returned with it.
func (s *Store) Receive(id string, keeps, hidden time.Duration, most int, receipt func() string) ([]Message, error) {
	q, err := s.open(id)
	if err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	now := s.now()
	if err := q.expire(now, keeps); err != nil {
		return nil, err
	}
	var ready []*Message
	for _, m := range q.messages {
		if !m.Visible.After(now) {
			ready = append(ready, m)
		}
	}
	slices.SortFunc(ready, func(x, y *Message) int { return cmp.Or(x.Sent.Compare(y.Sent), cmp.Compare(x.ID, y.ID)) })
	var got []Message
	for _, m := range ready[:min(most, len(ready))] {
		taken := *m
		taken.Received, taken.Visible, taken.Receipt = m.Received+1, now.Add(hidden), receipt()
		if m.Received == 0 {
			taken.First = now
		}
		if err := q.write(&taken); err != nil {
			return got, err
		}
		*m = taken
		got = append(got, taken)
	}
	return got, nil
}

// Delete removes the message of a receipt. It reports whether the receipt is the last one of a message.
func (s *Store) Delete(id, message, receipt string) (bool, error) {
	return s.withReceipt(id, message, receipt, func(q *queue, m *Message) error { return q.remove(m) })
}

// Hide takes the message of a receipt out of sight for some time from now on; zero has it come again at once. It reports
// whether the receipt is the last one of a message.
func (s *Store) Hide(id, message, receipt string, hidden time.Duration) (bool, error) {
	return s.withReceipt(id, message, receipt, func(q *queue, m *Message) error {
		changed := *m
		changed.Visible = s.now().Add(hidden)
		if err := q.write(&changed); err != nil {
			return err
		}
		*m = changed
		close(q.changed)
		q.changed = make(chan struct{})
		return nil
	})
}

func (s *Store) withReceipt(id, message, receipt string, do func(*queue, *Message) error) (bool, error) {
	q, err := s.open(id)
	if err != nil {
		return false, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	m := q.messages[message]
	if m == nil || m.Receipt == "" || m.Receipt != receipt {
		return false, nil
	}
	return true, do(q, m)
}

// Counts counts the messages of a queue.
func (s *Store) Counts(id string, keeps time.Duration) (Counts, error) {
	q, err := s.open(id)
	if err != nil {
		return Counts{}, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	now := s.now()
	if err := q.expire(now, keeps); err != nil {
		return Counts{}, err
	}
	var c Counts
	for _, m := range q.messages {
		switch {
		case !m.Visible.After(now):
			c.Visible++
		case m.Received == 0:
			c.Delayed++
		default:
			c.Received++
		}
	}
	return c, nil
}
