// SPDX-License-Identifier: Apache-2.0

package fluentbit

import (
	"slices"
	"strings"
	"time"
)

// mostEmits is how often a record is emitted again under another tag.
const mostEmits = 4

// filter changes a record, or drops it.
type filter interface {
	apply(r *run, e Event) (Event, bool)
}

// step is a filter and the tags that it is for.
type step struct {
	match string
	filter
}

// run is one run of records through the filters.
type run struct {
	now     time.Time
	pods    Pods
	emitted []Event
}

// Pod is what the filter kubernetes adds to records.
type Pod struct {
	UID, Node           string
	Labels, Annotations map[string]string
	// Images are those of the containers, by name.
	Images map[string]string
}

// Pods finds a pod by its namespace and name.
type Pods func(namespace, name string) (Pod, bool)

// Plugins are the filters that there are (EKS user guide).
func Plugins() []string {
	return []string{"grep", "kubernetes", "modify", "nest", "parser", "record_modifier", "rewrite_tag", "throttle"}
}

func readFilter(s *section, parsers map[string]*parser) (step, error) {
	o := optionsOf(s)
	name, made := strings.ToLower(o.required("Name")), step{match: o.required("Match")}
	if o.problem != nil {
		return made, o.problem
	}
	switch name {
	case "grep":
		made.filter = readGrep(o)
	case "kubernetes":
		made.filter = readKubernetes(o, parsers)
	case "modify":
		made.filter = readModify(o)
	case "nest":
		made.filter = readNest(o)
	case "parser":
		made.filter = readParserFilter(o, parsers)
	case "record_modifier":
		made.filter = readRecordModifier(o)
	case "rewrite_tag":
		made.filter = readRewriteTag(o)
	case "throttle":
		made.filter = readThrottle(o)
	default:
		return made, s.errorf(s.line, "the filter %.60q is not supported: %s are", name, strings.Join(Plugins(), ", "))
	}
	return made, o.end("the filter " + name)
}

// Run runs records through the filters, and returns those that are left, in their order.
func (c *Config) Run(events []Event, now time.Time, pods Pods) []Event {
	var left []Event
	for round := 0; len(events) > 0; round++ {
		r := &run{now: now, pods: pods}
		for _, e := range events {
			if e, kept := c.one(r, e); kept {
				left = append(left, e)
			}
		}
		events = r.emitted
		if round == mostEmits {
			left = append(left, events...)
			break
		}
	}
	return left
}

func (c *Config) one(r *run, e Event) (Event, bool) {
	for _, s := range c.filters {
		if !matches(s.match, e.Tag) {
			continue
		}
		changed, kept := s.apply(r, e)
		if !kept {
			return changed, false
		}
		e = changed
	}
	return e, true
}

// Takes reports whether an output takes a record.
func (o Output) Takes(e Event) bool { return matches(o.match, e.Tag) }

// Message is what an output writes of a record; empty for nothing.
func (o Output) Message(e Event) string {
	if o.Key != "" {
		value, ok := e.Record.Get(o.Key)
		if !ok {
			return ""
		}
		return textOf(value)
	}
	if len(e.Record) == 0 {
		return ""
	}
	return textOf(e.Record)
}

// sorted are the pairs of a map of strings.
func sorted(of map[string]string) Map {
	var all Map
	for key, value := range of {
		all = append(all, Pair{key, value})
	}
	slices.SortFunc(all, func(a, b Pair) int { return strings.Compare(a.Key, b.Key) })
	return all
}
