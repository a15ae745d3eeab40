// SPDX-License-Identifier: Apache-2.0

package nodehealth

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Look is what one look at a machine finds.
type Look struct {
	// Known are the conditions whose subsystems could be looked at. Findings of others do not count.
	Known []corev1.NodeConditionType
	// Found are the reasons that hold now, each with a sentence.
	Found map[Reason]string
}

// Event is something that a person should know, and no reason to repair.
type Event struct {
	Condition corev1.NodeConditionType
	Reason    Reason
	Message   string
}

// Board remembers the last looks at a machine, and what the cluster has been told.
type Board struct {
	seen       map[Reason][]bool // the last looks, the newest last
	message    map[Reason]string // of the last look that found it
	lasts      map[Reason]bool   // it was found often enough, and at one of the remembered looks
	conditions map[corev1.NodeConditionType]corev1.NodeCondition
	told       map[Reason]time.Time // when an Event was made last
	dirty      bool
	written    time.Time
}

// NewBoard knows nothing yet.
func NewBoard() *Board {
	return &Board{seen: map[Reason][]bool{}, message: map[Reason]string{}, lasts: map[Reason]bool{}, conditions: map[corev1.NodeConditionType]corev1.NodeCondition{}, told: map[Reason]time.Time{}}
}

// Look takes in a look, and returns the Events that are due.
func (b *Board) Look(look Look, now time.Time) []Event {
	var events []Event
	for _, r := range rules() {
		if !slices.Contains(look.Known, r.condition) {
			continue
		}
		message, found := look.Found[r.reason]
		if found {
			b.message[r.reason] = message
		}
		b.seen[r.reason] = append(b.seen[r.reason], found)
		b.seen[r.reason] = b.seen[r.reason][max(0, len(b.seen[r.reason])-window):]
		n := b.count(r.reason)
		b.lasts[r.reason] = n >= r.looks || n > 0 && b.lasts[r.reason]
		if last, told := b.told[r.reason]; r.event && n >= r.looks && (!told || now.Sub(last) >= EventPause) {
			b.told[r.reason] = now
			events = append(events, Event{r.condition, r.reason, b.message[r.reason]})
		}
	}
	for _, s := range subsystems() {
		if slices.Contains(look.Known, s.condition) {
			b.judge(s, now)
		}
	}
	return events
}

// count is how many of the remembered looks found a reason.
func (b *Board) count(reason Reason) (n int) {
	for _, found := range b.seen[reason] {
		if found {
			n++
		}
	}
	return n
}

// judge sets the condition of a subsystem: False while one of its reasons lasts.
func (b *Board) judge(s subsystem, now time.Time) {
	was, known := b.conditions[s.condition]
	is := corev1.NodeCondition{Type: s.condition, Status: corev1.ConditionTrue, Reason: s.healthy, Message: "Monitoring for the " + s.name + " system is active"}
	var messages []string
	for _, r := range rules() {
		if r.condition == s.condition && !r.event && b.lasts[r.reason] {
			if len(messages) == 0 {
				is.Status, is.Reason = corev1.ConditionFalse, string(r.reason)
			}
			messages = append(messages, b.message[r.reason])
		}
	}
	if len(messages) > 0 {
		is.Message = strings.Join(messages, "; ")
	}
	if is.LastTransitionTime = metav1.NewTime(now); known && was.Status == is.Status {
		is.LastTransitionTime = was.LastTransitionTime
	}
	if !known || was.Status != is.Status || was.Reason != is.Reason {
		b.dirty = true
	} else {
		is.Message = was.Message // another message alone is not worth a request
	}
	b.conditions[s.condition] = is
}

// Due returns the conditions to write now, in the order of their names; nil if the cluster knows them and has heard of
// them lately.
func (b *Board) Due(now time.Time) []corev1.NodeCondition {
	if len(b.conditions) == 0 || !b.dirty && now.Sub(b.written) < Heartbeat {
		return nil
	}
	due := make([]corev1.NodeCondition, 0, len(b.conditions))
	for _, s := range subsystems() {
		if c, known := b.conditions[s.condition]; known {
			c.LastHeartbeatTime = metav1.NewTime(now)
			due = append(due, c)
		}
	}
	return due
}

// Wrote notes that what Due returned has been written.
func (b *Board) Wrote(now time.Time) { b.dirty, b.written = false, now }
