// SPDX-License-Identifier: Apache-2.0

package pageserver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"muster.dev/muster/internal/console/view"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/explain/redaction"
)

const (
	// leastPause is the shortest time from one reading to the next while somebody looks. A reading that took long is
	// followed by a pause of pauseShare times as long, so that the console takes a fifth of a processor at most.
	leastPause = time.Second
	pauseShare = 4
	// readTime is how long a reading may take, and patience how long a request waits for one. It is less than an answer may take.
	readTime, patience = 30 * time.Second, 10 * time.Second
)

// held is the newest reading.
type held struct {
	reading Reading // nil before the first one
	facts   view.Facts
	// rights are those by which the facts were filtered; nil if they were not.
	rights *view.Rights
	// err is why it is not newer; nil if the last try succeeded.
	err error
	at  time.Time // when the last try ended
	// next is closed when there is another one.
	next chan struct{}
}

// keeper reads the installation again and again while somebody looks, for all pages together.
type keeper struct {
	source Source
	now    func() time.Time
	wanted chan struct{}

	mu       sync.Mutex
	held     held
	watching int
}

func newKeeper(source Source, now func() time.Time) *keeper {
	k := &keeper{source: source, now: now, wanted: make(chan struct{}, 1)}
	k.held.next = make(chan struct{})
	k.want()
	return k
}

// want asks for another reading soon.
func (k *keeper) want() {
	select {
	case k.wanted <- struct{}{}:
	default:
	}
}

// run reads whenever that is wanted, until the context ends.
func (k *keeper) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.wanted:
		}
		began := time.Now()
		k.read(ctx)
		pause := time.NewTimer(max(leastPause, pauseShare*time.Since(began)))
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
		k.mu.Lock()
		if k.watching > 0 {
			k.want()
		}
		k.mu.Unlock()
	}
}

// read reads once. If that fails, the facts before stay, with why they are not newer.
func (k *keeper) read(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	reading, err := k.source.Read(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		k.held.reading, k.held.facts = reading, reading.Facts()
		reports := slices.Clone(k.held.facts.Wrong.Reports)
		for i := range reports {
			reports[i] = redacted(reports[i])
		}
		k.held.facts.Wrong.Reports = reports
		k.held.facts = cleanAccess(k.held.facts)
	}
	k.held.err, k.held.at = err, k.now()
	close(k.held.next)
	k.held.next = make(chan struct{})
}

// watch keeps the readings coming until it is undone.
func (k *keeper) watch() (undo func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.watching++
	k.want()
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.watching--
	}
}

// newest is the newest reading, whatever its age.
func (k *keeper) newest() held {
	k.mu.Lock()
	defer k.mu.Unlock()
	h := k.held
	if h.err != nil && h.reading != nil {
		h = h.until(h.err)
	}
	return h
}

// explains reports whether why a machine is as it is, and its logs, may be seen.
func (h held) explains(machine string) bool {
	return h.rights == nil || h.facts.Explained(*h.rights, machine)
}

// until is a reading with why there is no newer one.
func (h held) until(why error) held {
	h.facts.Wrong.Unseen = append(slices.Clip(h.facts.Wrong.Unseen),
		diagnosis.Unseen{What: fmt.Sprintf("anything since %s", h.facts.At.UTC().Format(time.TimeOnly+" UTC")), Why: why.Error()})
	return h
}

// errSilent says that a reading takes long.
var errSilent = fmt.Errorf("the installation has not answered for %d seconds: it is asked again", int(patience.Seconds()))

// younger waits for a reading that is at most so old. An older one is returned with why if that takes long.
func (k *keeper) younger(ctx context.Context, age time.Duration) (held, error) {
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		h := k.newest()
		if !h.at.IsZero() && k.now().Sub(h.at) <= age {
			if h.reading == nil {
				return h, h.err
			}
			return h, nil
		}
		k.want()
		select {
		case <-h.next:
		case <-late.C:
			if h.reading == nil {
				return h, errSilent
			}
			return h.until(errSilent), nil
		case <-ctx.Done():
			return h, ctx.Err()
		}
	}
}

// redacted is a report without the secrets in its evidence.
func redacted(r diagnosis.Report) diagnosis.Report {
	r.Causes = slices.Clone(r.Causes)
	for i := range r.Causes {
		r.Causes[i].Evidence = redactedEvidence(r.Causes[i].Evidence)
	}
	r.Other = redactedEvidence(r.Other)
	return r
}

func redactedEvidence(all []diagnosis.Evidence) []diagnosis.Evidence {
	all = slices.Clone(all)
	for i := range all {
		all[i].Text, _ = redaction.Text(all[i].Text)
	}
	return all
}

// cleanAccess returns facts without the secrets in what was refused, in what is wrong with entries and in what people wrote
// about tokens.
func cleanAccess(f view.Facts) view.Facts {
	clean := func(texts ...*string) {
		for _, text := range texts {
			*text, _ = redaction.Text(*text)
		}
	}
	f.Refusals = slices.Clone(f.Refusals)
	for i := range f.Refusals {
		r := &f.Refusals[i]
		clean(&r.Principal, &r.AccessKeyID, &r.Resource, &r.Rule, &r.Saw, &r.Fix)
	}
	f.Of = maps.Clone(f.Of)
	for name, of := range f.Of {
		access := &of.Access
		access.Problems, access.Notes, access.Tokens = slices.Clone(access.Problems), slices.Clone(access.Notes), slices.Clone(access.Tokens)
		for i := range access.Problems {
			clean(&access.Problems[i].Saw, &access.Problems[i].Fix)
		}
		for i := range access.Notes {
			clean(&access.Notes[i])
		}
		for i := range access.Tokens {
			clean(&access.Tokens[i].Description)
		}
		f.Of[name] = of
	}
	return f
}
