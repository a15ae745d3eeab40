// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/cloud/eventpattern"
)

// Event is an event without what the bus adds to it.
type Event struct {
	Source, DetailType string
	Time               time.Time
	Resources          []string // ARNs
	Detail             any      // written as JSON
}

// envelope is an event as targets get it (EventBridge's user guide, "Event structure").
type envelope struct {
	Version    string    `json:"version"`
	ID         string    `json:"id"`
	DetailType string    `json:"detail-type"`
	Source     string    `json:"source"`
	Account    string    `json:"account"`
	Time       time.Time `json:"time"`
	Region     string    `json:"region"`
	Resources  []string  `json:"resources"`
	Detail     any       `json:"detail"`
}

// errMalformed is the error of an event that cannot be written, or compared with patterns.
var errMalformed = errors.New("the event is malformed")

// Emit sends an event of the account itself to the queues of all rules that it matches. Queues that take nothing from a
// rule are left out, and the log says why. The error is that of queues that could not be asked or written: the event may
// have reached others, and the caller sends it again.
func (b *Bus) Emit(ctx context.Context, e Event) error {
	_, err := b.send(ctx, b.AccountID, e)
	return err
}

// send is Emit for an event of an account. It returns the id of the event.
func (b *Bus) send(ctx context.Context, account string, e Event) (string, error) {
	sent := envelope{"0", uuid.NewString(), e.DetailType, e.Source, account, e.Time.UTC().Truncate(time.Second), b.Region, e.Resources, e.Detail}
	if sent.Resources == nil {
		sent.Resources = []string{}
	}
	text, err := json.Marshal(sent)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errMalformed, err)
	}
	event, err := eventpattern.ReadEvent(text)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errMalformed, err)
	}
	all, err := rules.List(ctx, b.Management)
	if err != nil {
		return "", fmt.Errorf("looking for the rules of an event: %w", err)
	}
	var errs []error
	for i := range all {
		errs = append(errs, b.toTargets(ctx, account, &all[i], event, text))
	}
	return sent.ID, errors.Join(errs...)
}

// toTargets sends an event to the targets of a rule, if it matches.
func (b *Bus) toTargets(ctx context.Context, account string, r *record, event eventpattern.Event, text []byte) error {
	if r.Data.State != enabled || len(r.Data.Targets) == 0 {
		return nil
	}
	pattern, err := eventpattern.Parse(r.Data.Pattern)
	if err != nil {
		return fmt.Errorf("the pattern of the rule %s: %w", r.Name, err)
	}
	if matches, err := pattern.Match(event); err != nil || !matches {
		return err
	}
	from := arn.ARN{Partition: "aws", Service: service, Region: b.Region, Account: account, Resource: rulePrefix + r.Name}
	var errs []error
	for _, t := range r.Data.Targets {
		queue, err := arn.Parse(t.ARN)
		if err != nil {
			errs = append(errs, fmt.Errorf("target %s of the rule %s: %w", t.ID, r.Name, err))
			continue
		}
		body := string(text)
		if t.Input != "" {
			body = t.Input
		}
		err = b.Deliver(ctx, queue, from, body)
		if errors.Is(err, ErrRefused) {
			b.Log.Warn("an event was dropped", "rule", r.Name, "target", t.ARN, "error", err)
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("sending to %s for the rule %s: %w", t.ARN, r.Name, err))
		}
	}
	return errors.Join(errs...)
}
