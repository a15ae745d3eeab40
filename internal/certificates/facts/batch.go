// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"muster.dev/muster/internal/certificates/policy"
)

// BatchConfig says how to ask about many machines at once.
type BatchConfig struct {
	Name string
	// Valid reports whether there can be such a machine or name; an impossible one is not looked up.
	Valid func(Subject) bool
	// Ask asks about all subjects, and returns the machines of each that has any: all owners of a name.
	Ask func(ctx context.Context, subjects []Subject) (map[Subject][]policy.Machine, error)
	// Size of a batch, at most; 200 if 0.
	Size int
	// Window is how long a batch waits for more to ask about; 50 ms if 0.
	Window time.Duration
	// AtOnce is how many batches are asked about at once; 2 if 0.
	AtOnce int
	// MaxAge is how long a machine is known after an answer, and the owners of a name, even if there are none;
	// MaxAgeOfNone is for the answer that there is no machine. 30 s and 5 s if 0.
	MaxAge, MaxAgeOfNone time.Duration
	Timeout              time.Duration // of one try; 10 s if 0
	Most                 int           // answers kept, of each of two kinds; 10,000 if 0
	// OnChange is called after each change. It must be quick.
	OnChange func(Change)
	Now      func() time.Time // time.Now if nil
	Logger   *slog.Logger
}

// Batch is a source that asks a service about many machines at once. After a failure it asks less and less often, about
// any machine, until an answer comes.
type Batch struct {
	config  BatchConfig
	answers *Answers
	health  *health

	mu       sync.Mutex
	failures int
	paused   time.Time // until when
}

var _ Source = (*Batch)(nil)

// How often a batch is tried before the waiting callers are told why, and how long it is waited after a failure.
const (
	tries      = 3
	firstPause = 200 * time.Millisecond
	mostPause  = 30 * time.Second
	// afterFailure is how long one is told: the pause keeps from asking too often.
	afterFailure = time.Second
)

// NewBatch makes one.
func NewBatch(c BatchConfig) (*Batch, error) {
	switch {
	case c.Name == "" || c.Ask == nil || c.Valid == nil:
		return nil, errors.New("a source that asks needs a name, and to know what to ask and how")
	case c.OnChange == nil || c.Logger == nil:
		return nil, fmt.Errorf("the source %s needs somebody to tell about changes, and a logger", c.Name)
	}
	if c.Size <= 0 {
		c.Size = 200
	}
	if c.AtOnce <= 0 {
		c.AtOnce = 2
	}
	for field, value := range map[*time.Duration]time.Duration{
		&c.Window: 50 * time.Millisecond, &c.MaxAge: 30 * time.Second, &c.MaxAgeOfNone: 5 * time.Second, &c.Timeout: 10 * time.Second,
	} {
		if *field <= 0 {
			*field = value
		}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Batch{
		config:  c,
		answers: NewAnswers(AnswersConfig{Name: c.Name, Most: c.Most, OnChange: c.OnChange, Now: c.Now}),
		health: &health{now: c.Now, logger: c.Logger.With("source", c.Name), recovered: func() {
			c.OnChange(Change{All: true}) // so that what failed is asked for again
		}},
	}, nil
}

// Name of the source.
func (b *Batch) Name() string { return b.config.Name }

// HasSynced is always true: everything can be asked at any time.
func (b *Batch) HasSynced() bool { return true }

// Status reports whether the service answered last.
func (b *Batch) Status() SourceStatus {
	s := SourceStatus{Name: b.config.Name, Synced: true}
	s.Age, s.Problem = b.health.status()
	return s
}

// Machine finds a machine by its ID.
func (b *Batch) Machine(id string) policy.Fact[policy.Machine] { return b.get(Subject{ID: id}) }

// MachineOfNode finds the machine that may register a node.
func (b *Batch) MachineOfNode(node string) policy.Fact[policy.Machine] {
	return b.get(Subject{Node: node})
}

// Owners finds all machines that have a DNS name or an address. Of each its ID and its node are told, and not what else
// it has.
func (b *Batch) Owners(name string) policy.Fact[[]policy.Machine] {
	if name == "" || !b.config.Valid(Subject{Name: name}) {
		return policy.Know[[]policy.Machine](nil, b.config.Name, b.config.Now())
	}
	return b.answers.Owners(name)
}

func (b *Batch) get(s Subject) policy.Fact[policy.Machine] {
	if s == (Subject{}) || !b.config.Valid(s) {
		return policy.None[policy.Machine](b.config.Name, b.config.Now())
	}
	return b.answers.Get(s)
}

// Run asks until ctx is done.
func (b *Batch) Run(ctx context.Context) {
	slots := make(chan struct{}, b.config.AtOnce)
	var group sync.WaitGroup
	defer group.Wait()
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		if !b.answers.Wait(ctx) || !sleep(ctx, b.config.Window) || !b.rested(ctx) {
			return
		}
		group.Go(func() {
			defer func() { <-slots }()
			b.ask(ctx, b.answers.Take(b.config.Size))
		})
	}
}

func (b *Batch) ask(ctx context.Context, subjects []Subject) {
	if len(subjects) == 0 {
		return
	}
	var err error
	for range tries {
		if !b.rested(ctx) {
			return
		}
		at := b.config.Now()
		var found map[Subject][]policy.Machine
		found, err = b.try(ctx, subjects)
		if ctx.Err() != nil {
			return
		}
		b.tried(err)
		if err == nil {
			answers := make([]Answer, 0, len(subjects))
			for _, s := range subjects {
				answers = append(answers, b.answer(s, found[s], at))
			}
			b.answers.Put(answers...)
			b.health.report(nil) // after that, so that a receiver of the change finds answers
			return
		}
		b.health.report(err)
	}
	answers := make([]Answer, 0, len(subjects))
	for _, s := range subjects {
		answers = append(answers, Answer{s, policy.DontKnow[[]policy.Machine](b.config.Name, err.Error()), afterFailure})
	}
	b.answers.Put(answers...)
}

func (b *Batch) try(ctx context.Context, subjects []Subject) (map[Subject][]policy.Machine, error) {
	ctx, cancel := context.WithTimeout(ctx, b.config.Timeout)
	defer cancel()
	found, err := b.config.Ask(ctx, subjects)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("no answer within %s: %w", b.config.Timeout, err)
	}
	return found, err
}

// answer is what the machines found for a subject mean.
func (b *Batch) answer(s Subject, found []policy.Machine, at time.Time) Answer {
	switch {
	case s.Name != "":
		owners := make([]policy.Machine, 0, len(found))
		for _, m := range found {
			owners = append(owners, policy.Machine{ID: m.ID, NodeName: m.NodeName})
		}
		sortByID(owners)
		return Answer{s, policy.Know(owners, b.config.Name, at), b.config.MaxAge}
	case len(found) == 0:
		return Answer{s, policy.None[[]policy.Machine](b.config.Name, at), b.config.MaxAgeOfNone}
	case len(found) > 1:
		why := fmt.Sprintf("machines %s and %s are both %s%s", found[0].ID, found[1].ID, s.Node, s.ID)
		return Answer{s, policy.DontKnow[[]policy.Machine](b.config.Name, why), b.config.MaxAgeOfNone}
	}
	return Answer{s, policy.Know(found, b.config.Name, at), b.config.MaxAge}
}

// tried makes the pauses longer after each failure, and ends them after a success.
func (b *Batch) tried(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.failures, b.paused = 0, time.Time{}
		return
	}
	pause := min(mostPause, firstPause<<min(b.failures, 10))
	b.failures++
	b.paused = b.config.Now().Add(pause)
}

// rested returns when the pause is over, or false when ctx is done.
func (b *Batch) rested(ctx context.Context) bool {
	for {
		b.mu.Lock()
		left := b.paused.Sub(b.config.Now())
		b.mu.Unlock()
		if left <= 0 {
			return ctx.Err() == nil
		}
		if !sleep(ctx, left) {
			return false
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
