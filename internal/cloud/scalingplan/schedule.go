// SPDX-License-Identifier: Apache-2.0

package scalingplan

import (
	"fmt"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/cron"
)

// MaxCapacity is the highest MaxSize of a group of one's own, as its kind has it.
const MaxCapacity = 1000

// Sizes are the bounds of a group's capacity, and the capacity that it is brought to.
type Sizes struct{ Min, Max, Desired int32 }

// Change returns the sizes after a change; nil leaves a size as it is. A desired capacity that is not named stays between the
// bounds. The error says which rule the new sizes break.
func (s Sizes) Change(minimum, maximum, desired *int32) (Sizes, error) {
	if minimum != nil {
		s.Min = *minimum
	}
	if maximum != nil {
		s.Max = *maximum
	}
	switch {
	case s.Min < 0 || s.Max < 0:
		return s, fmt.Errorf("Min bound, %d, and max bound, %d, must be at least 0", s.Min, s.Max) //nolint:staticcheck // ST1005: it is AWS's text
	case s.Min > s.Max:
		return s, fmt.Errorf("Min bound, %d, must be less than or equal to max bound, %d", s.Min, s.Max) //nolint:staticcheck // ST1005: it is AWS's text
	case desired == nil:
		s.Desired = min(max(s.Desired, s.Min), s.Max)
		return s, nil
	}
	s.Desired = *desired
	if s.Desired < s.Min || s.Desired > s.Max {
		return s, fmt.Errorf("Desired capacity:%d must be between the specified min size:%d and max size:%d", s.Desired, s.Min, s.Max) //nolint:staticcheck // ST1005: it is AWS's text
	}
	return s, nil
}

// NextRun returns when a scheduled action is due next, in the time zone of its recurrence; the zero time if it never is again.
func NextRun(a v1alpha1.ScheduledAction, zone *time.Location) time.Time {
	done := a.Done.Time
	if a.Recurrence == "" {
		if a.StartTime == nil || !a.StartTime.After(done) {
			return time.Time{}
		}
		return a.StartTime.Time
	}
	of, err := cron.Parse(a.Recurrence)
	if err != nil {
		return time.Time{}
	}
	if a.StartTime != nil && a.StartTime.After(done) {
		done = a.StartTime.Add(-time.Nanosecond)
	}
	next := of.Next(done, zone)
	if a.EndTime != nil && next.After(a.EndTime.Time) {
		return time.Time{}
	}
	return next
}

// Run carries out the scheduled actions that are due. It returns those that are left, with what they have done, the sizes,
// the cause of the change in the words of Auto Scaling, "" if the sizes stay as they are, and when the next action is due. An action
// whose sizes cannot be, or are above the most that the kind of group may have, is left out, and why is told.
func Run(s Sizes, most int32, actions []v1alpha1.ScheduledAction, suspended bool, zone func(string) *time.Location, now time.Time) Schedule {
	out := Schedule{Sizes: s}
	for _, a := range actions {
		next := NextRun(a, zone(a.TimeZone))
		if !next.IsZero() && !next.After(now) {
			out.Changed = true
			a.Done.Time = now
			if !suspended {
				out.run(a, most, now)
			}
			next = NextRun(a, zone(a.TimeZone))
		}
		if next.IsZero() {
			out.Changed = true
			continue
		}
		out.Actions = append(out.Actions, a)
		if out.Next.IsZero() || next.Before(out.Next) {
			out.Next = next
		}
	}
	return out
}

// Schedule is what comes of scheduled actions.
type Schedule struct {
	Sizes   Sizes
	Actions []v1alpha1.ScheduledAction
	// Changed reports whether there is something to write.
	Changed bool
	Cause   string
	Next    time.Time
	// Problems are actions whose sizes cannot be.
	Problems []string
}

func (s *Schedule) run(a v1alpha1.ScheduledAction, most int32, now time.Time) {
	after, err := s.Sizes.Change(a.MinSize, a.MaxSize, a.DesiredCapacity)
	if err == nil && after.Max > most {
		err = fmt.Errorf("max bound, %d, must be at most %d", after.Max, most)
	}
	if err != nil {
		s.Problems = append(s.Problems, fmt.Sprintf("the scheduled action %s changes nothing: %v", a.Name, err))
		return
	}
	s.Cause = Constraints(now, "scheduled action", s.Sizes, after)
	s.Sizes = after
}

// Constraints is the cause of a change of sizes, by a user request or a scheduled action.
func Constraints(now time.Time, by string, before, after Sizes) string {
	cause := fmt.Sprintf("%s a %s update of AutoScalingGroup constraints to min: %d, max: %d, desired: %d", at(now), by, after.Min, after.Max, after.Desired)
	if before.Desired != after.Desired {
		cause += fmt.Sprintf(" changing the desired capacity from %d to %d", before.Desired, after.Desired)
	}
	return cause + "."
}

// Explicit is the cause of a change of the desired capacity alone.
func Explicit(now time.Time, from, to int32) string {
	return fmt.Sprintf("%s a user request explicitly set group desired capacity changing the desired capacity from %d to %d.", at(now), from, to)
}
